//! Both programs from outside: a mistake on the command line.

mod support;

use support::{CALL, DEMO, run};

#[test]
fn usage_errors_are_one_sentence_and_status_2() {
    for (program, arguments) in [
        (DEMO, &["--era", "x"][..]),
        (DEMO, &["--runtime", "async-std"]),
        (DEMO, &["--nope"]),
        (DEMO, &["x"]),
        (CALL, &["--json"]),
        (CALL, &["--json", "tools/list", "--runtime", "threads", "--", DEMO]),
        (CALL, &["--json", "tools/list", "--max-timeout", "5", "--", DEMO]),
        (CALL, &["--json", "tools/list", "[]", "--", DEMO]),
    ] {
        let ended = run(program, arguments, b"");
        assert_eq!((ended.code(), ended.lines.len()), (Some(2), 0), "{arguments:?}");
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{arguments:?}: {}", ended.stderr);
    }
}
