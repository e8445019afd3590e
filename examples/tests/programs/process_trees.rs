//! `mcp-call` and the trees of its servers: wrappers, helpers, servers that do not end as they should. Afterwards nothing of a tree is alive.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::{CALL, DEADLINE, DEMO, On, Program, dies, kinds, lives, of_key};

fn on() -> On {
    On::the_runtime_of(module_path!())
}

/// Runs `tools/list` against a shell script, in which `$0` is the demo server.
fn shell(options: &[&str], script: &str) -> (super::support::Ended, Vec<Value>) {
    let command = ["tools/list", "--", "sh", "-c", script, DEMO];
    on().call([&["--stderr", "events"][..], options, &command].concat(), "")
}

/// The processes that the script told of on its standard error, in the form `pid N`.
fn told(events: &[Value]) -> Vec<u64> {
    let lines = events.iter().filter_map(|event| event["line"].as_str()?.strip_prefix("pid "));
    lines.map(|pid| pid.parse().expect("a number")).collect()
}

fn closed(events: &[Value]) -> (&Value, &Value) {
    let closed = events.last().expect("events");
    assert_eq!(closed["event"], "closed");
    (&closed["exit"], &closed["escalation"])
}

/// A server that has answered the probe and this program's one request.
const SERVE: &str = r#"read probe; echo '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}'
    read request; echo '{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}}'"#;

// case 137: a shell that waits for the server which it has started in the background; the input's end reaches the server all the same
#[test]
fn a_wrapper_that_waits_ends_with_its_server() {
    let (ended, events) = shell(&[], r#"exec 3<&0; "$0" <&3 & echo "pid $!" >&2; exec 3<&-; wait"#);
    assert_eq!(ended.code(), Some(0), "{events:?}");
    assert_eq!(closed(&events), (&json!({"code": 0}), &json!("none")));
    told(&events).into_iter().for_each(dies);
}

// case 137: the same where the shell gives the server no input: it has nothing to serve, ends, and the start is a clear failure
#[test]
fn a_wrapper_that_keeps_the_input_to_itself_is_a_failed_start() {
    let (ended, events) = shell(&["--grace", "300"], r#""$0" & echo "pid $!" >&2; wait"#);
    assert_eq!(ended.code(), Some(3), "{events:?}");
    // It ends on the probe, so it is tried with the handshake as well (VER-05).
    assert_eq!(told(&events).len(), 2);
    told(&events).into_iter().for_each(dies);
}

// PRC-03, case 139: a launcher that starts the server in the background and exits: what the server still says counts, then requests end
// `closed`; the server does not stay behind, deaf to SIGTERM or not
#[test]
fn a_launcher_that_exits_takes_its_server_with_it() {
    for trap in ["", "trap '' TERM;"] {
        let server = format!("{trap} {SERVE}\n read next; while :; do sleep 1000; done");
        let launcher = format!("exec 3<&0; ( {server} ) <&3 & echo \"pid $!\" >&2");
        let script = r#"{"op":"request","key":"a","method":"tools/list"}
            {"op":"request","key":"b","method":"tools/list"}"#;
        let arguments = ["--stderr", "events", "--grace", "300", "--script", "-", "--", "sh", "-c", &*launcher];
        let (ended, events) = on().call(arguments, script);
        // It may have been established by then or not: that is a race of the server's own. Every key has ended once, and nothing lives.
        assert!(matches!(ended.code(), Some(3 | 4)), "{events:?}");
        of_key(&events, "failed", "b");
        closed(&events);
        assert!((1..=2).contains(&told(&events).len()), "{events:?}");
        told(&events).into_iter().for_each(dies);
    }
}

// PRC-03: what the server still says after its launcher has exited counts, then requests end `closed`, with what is known of them
#[test]
fn what_is_said_after_the_launcher_has_exited_counts() {
    let fifo = std::env::temp_dir().join(format!("mcp-call-{}-{}-fifo", std::process::id(), on().runtime()));
    let fifo = fifo.to_str().expect("UTF-8");
    // The server answers once its launcher is a zombie: nobody has reaped it while there is something to hear.
    let (probe, request) = SERVE.split_once('\n').expect("two lines");
    let (read, answer) = request.split_once("; ").expect("a request and its answer");
    let gone = "until grep -q ') Z' /proc/$$/stat; do :; done";
    let server = format!("{probe}\n {read}; read more; echo > {fifo}; {gone}; {answer}; sleep 1000");
    let launcher =
        format!("mkfifo {fifo}; trap '' TERM; exec 3<&0; ( {server} ) <&3 & echo \"pid $!\" >&2; read go < {fifo}");
    let script = r#"{"op":"request","key":"a","method":"tools/list"}
        {"op":"request","key":"b","method":"tools/list"}"#;
    let arguments = ["--stderr", "events", "--grace", "5000", "--script", "-", "--", "sh", "-c", &*launcher];
    let (ended, events) = on().call(arguments, script);
    let _ = std::fs::remove_file(fifo);
    assert_eq!(ended.code(), Some(4), "{events:?}");
    of_key(&events, "result", "a");
    let failed = of_key(&events, "failed", "b");
    assert_eq!((&failed["cause"], &failed["delivery"]), (&json!("closed"), &json!("sent")));
    assert_eq!(closed(&events), (&json!({"code": 0}), &json!("none")));
    told(&events).into_iter().for_each(dies);
}

// PRC-03, SHD-02, case 137 and 150: a helper in the group that holds all three streams open is ended with it; one without any costs nothing
// either. A clean close takes no grace.
#[test]
fn a_helper_that_holds_the_streams_is_ended_with_its_group() {
    for streams in ["", "<&0 >/dev/null 2>&1", "</dev/null >/dev/null", ">/dev/null 2>&1 </dev/null"] {
        let started = Instant::now();
        let script = format!("exec 3<&0; sleep 1000 {streams} 3<&- & echo \"pid $!\" >&2; {SERVE}\n cat >/dev/null");
        let (ended, events) = shell(&["--grace", "20000"], &script);
        assert_eq!(ended.code(), Some(0), "{streams}: {events:?}");
        assert_eq!(closed(&events), (&json!({"code": 0}), &json!("none")), "{streams}");
        told(&events).into_iter().for_each(dies);
        assert!(started.elapsed() < Duration::from_secs(20), "{streams}: it did not wait for a grace");
    }
}

// case 138 and 150, SHD-02: a helper that left the group and holds the output open stalls nothing. It escapes, which is a documented limit.
#[test]
fn a_helper_that_left_the_group_stalls_nothing() {
    let started = Instant::now();
    let script = format!("setsid sh -c 'echo \"pid $$\" >&2; exec sleep 1000' & {SERVE}\n cat >/dev/null");
    let (ended, events) = shell(&["--grace", "5000"], &script);
    assert_eq!(ended.code(), Some(0), "{events:?}");
    assert_eq!(closed(&events), (&json!({"code": 0}), &json!("none")));
    for helper in told(&events) {
        assert!(lives(helper), "nobody but the server could have kept it in the group");
        assert!(Command::new("kill").arg(helper.to_string()).status().expect("kill runs").success());
    }
    assert!(started.elapsed() < DEADLINE, "it did not wait for the helper");
}

// SHD-02, RST-05, case 124: standard output is closed and the server lives on: it is ended by the ladder, with its status
#[test]
fn a_server_that_closes_its_output_is_ended() {
    let script = format!("echo \"pid $$\" >&2; {SERVE}\n exec >&-; exec sleep 1000");
    let arguments = ["--stderr", "events", "--grace", "200", "--script", "-", "--", "sh", "-c", &*script];
    let requests = r#"{"op":"request","key":"a","method":"tools/list"}
        {"op":"wait","key":"a"}
        {"op":"request","key":"b","method":"tools/list"}"#;
    let (ended, events) = on().call(arguments, requests);
    assert_eq!(ended.code(), Some(4), "{events:?}");
    assert_eq!(of_key(&events, "failed", "b")["cause"], "closed");
    assert_eq!(closed(&events), (&json!({"signal": 15}), &json!("terminate")));
    told(&events).into_iter().for_each(dies);
}

// SHD-01: a server that has stopped itself cannot act on SIGTERM; it is continued, so that it can
#[test]
fn a_stopped_server_is_terminated_not_killed() {
    let script =
        format!("trap 'exit 7' TERM; echo \"pid $$\" >&2; {SERVE}\n kill -STOP $$; cat >/dev/null; sleep 1000");
    let (ended, events) = shell(&["--grace", "2000"], &script);
    assert_eq!(ended.code(), Some(0), "{events:?}");
    let (exit, escalation) = closed(&events);
    // The shell sees its trap only between two commands, so `cat` may end by its own end of input first.
    assert_ne!(escalation, "kill", "{exit}");
    told(&events).into_iter().for_each(dies);
}

// RST-04, case 176: after a crash the old tree is entirely gone before there is a new one
#[test]
fn the_old_tree_is_gone_before_the_new_one_starts() {
    let directory = std::env::temp_dir().join(format!("mcp-call-{}-{}-tree", std::process::id(), on().runtime()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let (first, directory) = (directory.join("first"), directory.to_str().expect("UTF-8"));
    // The first life leaves a helper and crashes; the second looks whether the helper is still there.
    let script = format!(
        r#"if mkdir "{directory}/once" 2>/dev/null; then
            sleep 1000 & echo $! > "{first}"; {SERVE}
            exit 9
        fi
        state=$(sed 's/.*) //; s/ .*//' "/proc/$(cat "{first}")/stat" 2>/dev/null)
        case $state in ''|Z|X) echo "it is gone" >&2 ;; *) echo "it lives: $state" >&2 ;; esac
        exec "$0""#,
        first = first.display()
    );
    let requests = r#"{"op":"request","key":"a","method":"tools/list"}
        {"op":"wait_event","event":"restarted"}
        {"op":"request","key":"b","method":"tools/list"}"#;
    let arguments = ["--stderr", "events", "--restarts", "1", "--script", "-", "--", "sh", "-c", &*script, DEMO];
    let (ended, events) = on().call(arguments, requests);
    let _ = std::fs::remove_dir_all(directory);
    assert_eq!(ended.code(), Some(0), "{events:?}");
    let lines: Vec<&Value> = events.iter().filter_map(|event| event.get("line")).collect();
    assert_eq!(lines, [&json!("it is gone")]);
    let restarted = events.iter().find(|event| event["event"] == "restarted").expect("a restart");
    assert_eq!(restarted["exit"], json!({"code": 9}));
}

// RST-06: half a line before a crash is a dropped frame of the old life, and not glued to the first of the new one
#[test]
fn half_a_line_before_a_crash_stays_in_its_life() {
    let directory = std::env::temp_dir().join(format!("mcp-call-{}-{}-half", std::process::id(), on().runtime()));
    let directory = directory.to_str().expect("UTF-8");
    let script = format!(
        r#"if mkdir "{directory}" 2>/dev/null; then {SERVE}
            printf '{{"jsonrpc":"2.0","id":3,'; exit 9
        fi
        exec "$0""#
    );
    let requests = r#"{"op":"request","key":"a","method":"tools/list"}
        {"op":"wait_event","event":"restarted"}
        {"op":"request","key":"b","method":"tools/list"}"#;
    let arguments = ["--restarts", "1", "--script", "-", "--", "sh", "-c", &*script, DEMO];
    let (ended, events) = on().call(arguments, requests);
    let _ = std::fs::remove_dir(directory);
    assert_eq!(ended.code(), Some(0), "{events:?}");
    let dropped: Vec<&Value> = events.iter().filter(|event| event["event"] == "dropped").collect();
    assert_eq!(dropped, [&json!({"event": "dropped", "reason": "truncated", "id": 3, "code": null})]);
}

// LOG-05, case 086: a flood on standard error, more than any pipe holds, before each answer: it is drained in each mode
#[test]
fn a_flood_on_stderr_stops_nothing() {
    for mode in ["inherit", "null", "tee", "events"] {
        let flood = "head -c 300000 /dev/zero | tr '\\0' x >&2; echo >&2;";
        let script = format!("{flood} {SERVE}\n {flood} cat >/dev/null");
        let arguments = ["--stderr", mode, "tools/list", "--", "sh", "-c", &*script];
        let (ended, events) = on().call(arguments, "");
        assert_eq!(ended.code(), Some(0), "{mode}: {events:?}");
        assert_eq!(closed(&events), (&json!({"code": 0}), &json!("none")), "{mode}");
        let copied = ended.stderr.bytes().filter(|byte| *byte == b'x').count();
        let all = if matches!(mode, "inherit" | "tee") { 600_000 } else { 0 };
        // A copy is bounded; what was too much is told of.
        assert!(copied == all || (mode == "tee" && ended.stderr.contains("left out")), "{mode}: {copied}");
    }
}

// PRC-04: SIGCHLD is ignored by whoever starts us, so the system reaps: the exit is seen, its status is not known, and nothing hangs
#[test]
fn an_ignored_sigchld_leaves_the_status_unknown() {
    let mut command = Command::new("env");
    command.args(["--ignore-signal=CHLD", CALL, "--runtime", on().runtime(), "--json", "tools/list", "--", DEMO]);
    let ended = Program::spawn(command).end();
    let events = ended.json();
    assert_eq!((ended.code(), kinds(&events)), (Some(0), vec!["started", "era", "result", "closed"]));
    assert_eq!(closed(&events), (&Value::Null, &json!("none")));
    dies(events[0]["pid"].as_u64().expect("a pid"));
}

// case 152: whoever starts us ignores the signals that end a server: the server does not inherit that
#[test]
fn a_server_heeds_the_signals_that_its_host_ignores() {
    let mut command = Command::new("sh");
    let server = format!("{SERVE}\n exec sleep 1000");
    let script = r#"trap '' TERM INT HUP; exec "$0" --runtime "$1" --grace 300 --json tools/list -- sh -c "$2""#;
    command.args(["-c", script, CALL, on().runtime(), &*server]);
    let ended = Program::spawn(command).end();
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    assert_eq!(closed(&ended.json()), (&json!({"signal": 15}), &json!("terminate")));
}

// case 146: Ctrl+C in the host's terminal goes to the host's group, which the server is not in; the host closes it in the usual way
#[test]
fn a_signal_to_the_hosts_group_does_not_reach_the_server() {
    let mut command = Command::new("setsid");
    let server = format!("trap 'echo interrupted >&2' INT; echo ready >&2; {SERVE}\n cat >/dev/null; exit 5");
    let sleep = r#"{"op":"sleep","ms":600000}"#;
    command.args(["-w", CALL, "--runtime", on().runtime(), "--json", "--stderr", "events", "--script", "-"]);
    command.args(["--", "sh", "-c", &*server]);
    let mut program = Program::spawn(command);
    program.line(r#"{"op":"request","key":"a","method":"tools/list"}"#);
    program.line(sleep);
    let mut lines = Vec::new();
    let mut until = |program: &mut Program, kind: &str| {
        program.until(|event| {
            lines.extend(event["line"].as_str().map(str::to_owned));
            event["event"] == kind
        })
    };
    let group = parent_of(until(&mut program, "started")["pid"].as_u64().expect("a pid"));
    until(&mut program, "result");
    let status = Command::new("kill").args(["-INT", "--", &format!("-{group}")]).status();
    assert!(status.expect("kill runs").success());
    let last = until(&mut program, "closed");
    assert_eq!((&last["exit"], &last["escalation"]), (&json!({"code": 5}), &json!("none")));
    assert_eq!(lines, ["ready"]);
}

// PRC-06, case 129: a server has its three streams and no other descriptor of ours
#[test]
fn a_server_gets_three_descriptors_and_no_more() {
    let look = "ls /proc/self/fd | tr '\\n' ' ' >&2; echo >&2";
    // What a shell has of this test's own, without any client between them.
    let bare = Command::new("sh").args(["-c", look]).output().expect("it runs");
    let (_, events) = shell(&["--probe-timeout", "60000"], &format!("{look}; exec \"$0\""));
    let line = events.iter().find_map(|event| event["line"].as_str()).expect("it was told");
    assert_eq!(line.trim(), String::from_utf8_lossy(&bare.stderr).trim());
}

// case 125: a host may start us with any of the standard streams closed
#[test]
fn closed_standard_streams_of_the_host_are_no_trouble() {
    for closed in ["<&-", "2>&-", "<&- 2>&-"] {
        let mut command = Command::new("sh");
        let script = format!(r#"exec "$0" --runtime "$1" --json tools/list -- "$2" {closed}"#);
        command.args(["-c", &script, CALL, on().runtime(), DEMO]);
        let ended = Program::spawn(command).end();
        assert_eq!(
            (ended.code(), kinds(&ended.json())),
            (Some(0), vec!["started", "era", "result", "closed"]),
            "{closed}"
        );
    }
    let mut command = Command::new("sh");
    command.args(["-c", r#"exec "$0" --runtime "$1" --json tools/list -- "$2" >&-"#, CALL, on().runtime(), DEMO]);
    let ended = Program::spawn(command).end();
    assert_eq!((ended.code().is_some(), ended.lines.len()), (true, 0), "{}", ended.stderr);
}

/// The parent of a process: the program that has started it.
fn parent_of(pid: u64) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let fields = stat.rsplit(')').next().expect("a whole line");
    fields.split_ascii_whitespace().nth(1).expect("a parent").parse().expect("a number")
}
