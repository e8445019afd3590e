//! `mcp-call` and the lives of a server: how each ends, what the next one is asked, and that there is one at a time.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::support::{CALL, DEMO, Ended, On, Program, dies, kinds, lives, of_key};

fn on() -> On {
    On::the_runtime_of(module_path!())
}

/// A file of this test's own, that is not there yet.
fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("mcp-call-{}-{}-{name}", std::process::id(), on().runtime()));
    let _ = (std::fs::remove_file(&path), std::fs::remove_dir_all(&path));
    path
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn shell(options: &[&str], server: &str, script: &str) -> (Ended, Vec<Value>) {
    on().call([options, &["--script", "-", "--", "sh", "-c", server, DEMO]].concat(), script)
}

const LIST: &str = r#"{"op":"request","key":"a","method":"tools/list"}
    {"op":"wait","key":"a"}"#;

const DISCOVER: &str = r#"read probe; echo '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}'"#;

/// Answers one request with a list that has this tool.
fn tool_list(id: u32, name: &str) -> String {
    format!(
        r#"read request; echo '{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","tools":[{{"name":"{name}","inputSchema":{{"type":"object"}}}}],"ttlMs":0,"cacheScope":"private"}}}}'"#
    )
}

// SHD-01, case 130 and 151: the input is closed first, and the server has its grace to clean up by itself: no signal comes before that. So the client
// of a container ends its container, which a kill of the client would leave alive
#[test]
fn a_server_that_cleans_up_at_the_end_of_its_input_is_let_to() {
    let (log, container) = (file("clean"), file("container"));
    let server = format!(
        "trap 'echo term >> {log}' TERM; touch {container}\n {DISCOVER}\n {list}\n cat >/dev/null; sleep 0.3; rm {container}; echo clean >> {log}",
        log = shown(&log),
        container = shown(&container),
        list = tool_list(2, "x"),
    );
    let (ended, events) = shell(&["--grace", "20000"], &server, LIST);
    assert_eq!(ended.code(), Some(0), "{events:?}");
    let closed = events.last().expect("events");
    assert_eq!((&closed["exit"], &closed["escalation"]), (&json!({"code": 0}), &json!("none")));
    assert_eq!(std::fs::read_to_string(&log).expect("it was written"), "clean\n");
    assert!(!container.exists());
    let _ = std::fs::remove_file(log);
}

// SHD-01, case 135: a request of which the pipe has taken a part only does not keep the input open: the ladder goes on
#[test]
fn a_write_that_is_stuck_does_not_hold_up_the_end() {
    let params = json!({"x": "x".repeat(1 << 20)});
    let script = format!(
        "{LIST}\n{}\n{}\n{}\n{}",
        json!({"op": "request", "key": "big", "method": "tools/call", "params": params}),
        // Its first byte has arrived.
        r#"{"op":"wait_event","event":"stderr"}"#,
        // Another one that is not begun.
        r#"{"op":"request","key":"next","method":"tools/list"}"#,
        r#"{"op":"close"}"#
    );
    let server = format!("{DISCOVER}\n {}\n head -c 1 >/dev/null; echo begun >&2; exec sleep 1000", tool_list(2, "x"));
    let (ended, events) = shell(&["--grace", "300", "--stderr", "events"], &server, &script);
    assert_eq!(ended.code(), Some(4));
    for (key, delivery) in [("big", "partly_sent"), ("next", "not_sent")] {
        let failed = of_key(&events, "failed", key);
        assert_eq!((&failed["cause"], &failed["delivery"]), (&json!("closed"), &json!(delivery)), "{key}");
    }
    let closed = events.last().expect("events");
    assert_eq!((&closed["exit"], &closed["escalation"]), (&json!({"signal": 15}), &json!("terminate")));
}

/// The session, a field of `/proc/PID/stat`.
fn session(pid: u64) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let fields = stat.rsplit(')').next().expect("a whole line");
    fields.split_ascii_whitespace().nth(3).expect("a session").parse().expect("a number")
}

// PRC-06, case 147: the client is killed and can do nothing any more: its server sees the end of its input. It is in the session of its host, so
// that the end of a terminal reaches it, and in a group of its own
#[test]
fn a_server_sees_the_end_of_a_client_that_was_killed() {
    let mut program = on().start_call(["--json", "--script", "-", "--", DEMO]);
    let pid = program.until(|event| event["event"] == "started")["pid"].as_u64().expect("a pid");
    program.until(|event| event["event"] == "era");
    assert_eq!(session(pid), session(program.pid().into()));
    program.signal("KILL");
    dies(pid);
}

// case 148: the server reads from the terminal, which stops it: it is not the terminal's foreground. Its streams are pipes, the host is not disturbed,
// and the close continues it, so that it can act on SIGTERM
#[test]
fn a_server_that_is_stopped_by_the_terminal_is_ended() {
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let ours =
        rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).expect("a terminal");
    rustix::pty::grantpt(&ours).and_then(|()| rustix::pty::unlockpt(&ours)).expect("ours");
    let name = rustix::pty::ptsname(&ours, Vec::new()).expect("it has a name");
    let theirs = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).expect("can be opened");
    let server = format!(
        "{DISCOVER}\n for n in 0 1 2; do [ -t $n ] && exit 9; done\n {}\n read x < /dev/tty; exec sleep 1000",
        tool_list(2, "x")
    );
    // Its standard input becomes the controlling terminal of a session of its own.
    let mut command = Command::new("setsid");
    command.args(["-c", "-w", CALL, "--runtime", on().runtime(), "--json", "--stderr", "null", "--grace", "300"]);
    command
        .args(["tools/list", "--", "sh", "-c", &*server])
        .stdin(theirs.as_fd().try_clone_to_owned().expect("a copy"));
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts").wait_with_output();
    let output = output.expect("it ends");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(kinds(&events), ["started", "era", "result", "closed"], "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((&events[3]["exit"], &events[3]["escalation"]), (&json!({"signal": 15}), &json!("terminate")));
}

// RST-01, case 173: the server is killed between two calls. With a restart left the next call gets its answer from a new one; without, it fails at
// once, unsent
#[test]
fn a_server_that_was_killed_between_two_calls() {
    for restarts in [1, 0] {
        let mut program = on().start_call(["--json", "--restarts", &restarts.to_string(), "--script", "-", "--", DEMO]);
        let pid = program.until(|event| event["event"] == "started")["pid"].as_u64().expect("a pid");
        program.line(r#"{"op":"request","key":"a","method":"tools/list"}"#);
        program.until(|event| event["event"] == "result");
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().expect("kill runs").success());
        program.line(r#"{"op":"wait_event","event":"restarted"}"#);
        program.line(r#"{"op":"request","key":"b","method":"tools/list"}"#);
        let last = program.until(|event| event["key"] == "b");
        if restarts > 0 {
            assert_eq!(last["event"], "result");
        } else {
            assert_eq!((&last["cause"], &last["delivery"]), (&json!("closed"), &json!("not_sent")));
        }
        let ended: Vec<Value> = program.end().json();
        assert_eq!(ended.last().expect("the last event")["restarts"], restarts);
        assert!(!lives(pid));
    }
}

// RST-06, case 178: the second life of a server is seen to begin, and its list is the one that it gives
#[test]
fn a_new_life_gives_its_own_answers() {
    let once = file("once");
    let server = format!(
        "if mkdir {once} 2>/dev/null; then {DISCOVER}\n {}\n exit 9; fi\n {}\n cat >/dev/null",
        tool_list(2, "A"),
        tool_list(3, "B"),
        once = shown(&once),
    );
    let script = format!(
        "{LIST}\n{}\n{}",
        r#"{"op":"wait_event","event":"restarted"}"#, r#"{"op":"request","key":"b","method":"tools/list"}"#
    );
    let (ended, events) = shell(&["--restarts", "1"], &server, &script);
    let _ = std::fs::remove_dir(once);
    assert!(events.iter().any(|event| event["event"] == "restarted"), "{events:?}");
    let name = |key: &str| of_key(&events, "result", key)["result"]["tools"][0]["name"].clone();
    assert_eq!((ended.code(), name("a"), name("b")), (Some(0), json!("A"), json!("B")));
}

// RST-08, case 177: thirty calls, one process
#[test]
fn many_calls_share_one_process() {
    for options in [&[][..], &["--lazy"]] {
        let call = |n| json!({"op": "request", "key": format!("{n}"), "method": "tools/list"}).to_string();
        let script: Vec<String> = (0..30).map(call).collect();
        let (ended, events) = on().call([options, &["--script", "-", "--", DEMO]].concat(), &script.join("\n"));
        assert_eq!(ended.code(), Some(0), "{events:?}");
        assert_eq!(kinds(&events).into_iter().filter(|kind| *kind == "result").count(), 30);
        assert_eq!(kinds(&events).into_iter().filter(|kind| *kind == "started").count(), 1);
    }
}

// SHD-04, case 154: a kill while the restart's delay runs, or while it spawns, leaves nothing
#[test]
fn a_kill_during_a_restart_leaves_nothing() {
    for wait in [r#"{"op":"sleep","ms":1}"#, r#"{"op":"wait_event","event":"restarted"}"#] {
        let script = format!(
            "{LIST}\n{}\n{wait}\n{}",
            r#"{"op":"request","key":"x","method":"tools/call","params":{"name":"exit","arguments":{"code":3}}}"#,
            r#"{"op":"kill"}"#
        );
        let (_, events) = on().call(["--restarts", "3", "--script", "-", "--", DEMO], &script);
        assert_eq!(events.last().expect("events")["event"], "closed");
        for started in events.iter().filter(|event| event["event"] == "started") {
            dies(started["pid"].as_u64().expect("a pid"));
        }
    }
}

// SHD-01, case 158: the client is killed in the middle of a close. A server that was asked to end and heeds it ends all the same; one that is deaf to
// all of it stays, which is a documented limit
#[test]
fn a_client_that_is_killed_while_it_closes_has_closed_the_input_already() {
    let server = format!("{DISCOVER}\n echo ready >&2; cat >/dev/null; echo ending >&2; sleep 0.2; exit 0");
    let mut program: Program =
        on().start_call(["--json", "--stderr", "events", "--script", "-", "--", "sh", "-c", &server]);
    let pid = program.until(|event| event["event"] == "started")["pid"].as_u64().expect("a pid");
    program.until(|event| event["line"] == "ready");
    program.line(r#"{"op":"close"}"#);
    program.until(|event| event["line"] == "ending");
    program.signal("KILL");
    dies(pid);
}
