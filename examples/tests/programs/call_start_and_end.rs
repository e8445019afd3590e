//! `mcp-call` from outside: servers that do not start, do not speak, do not end; signals; readers that go away; tapes.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::support::{self, CALL, DEMO, On, Program, kinds, of_key, run};
use serde_json::{Value, json};

fn on() -> On {
    On::the_runtime_of(module_path!())
}

fn shell<'a>(options: &[&'a str], script: &'a str) -> Vec<&'a str> {
    options.iter().copied().chain(["tools/list", "--", "sh", "-c", script]).collect()
}

/// A server that answers the probe with this, and nothing after it.
fn answering(answer: &str) -> String {
    format!("read probe; echo '{answer}'; cat >/dev/null")
}

// PRC-05, RST-01: failed starts are told apart; each ends with exit 3, the request unsent, `closed` last.
#[test]
fn a_failed_start_says_which() {
    let directory = std::env::temp_dir();
    let plain = directory.join(format!("mcp-call-{}-{}-plain", std::process::id(), on().runtime()));
    std::fs::write(&plain, "no program").expect("a file can be written");
    let plain = plain.to_str().expect("UTF-8");
    let legacy = answering(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#);
    let other = answering(
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported","data":{"supported":["2099-01-01"],"requested":"2026-07-28"}}}"#,
    );
    let cases: [(Vec<&str>, &str, Value); 5] = [
        (vec!["tools/list", "--", "/nowhere/at/all"], "not_found", Value::Null),
        (vec!["tools/list", "--", plain], "permission", Value::Null),
        (shell(&[], "exit 3"), "exited", json!({"code": 3})),
        (shell(&["--era", "modern"], &legacy), "legacy_server", json!({"code": 0})),
        (shell(&[], &other), "no_common_version", json!({"code": 0})),
    ];
    for (arguments, kind, exit) in cases {
        let (ended, events) = on().call(&arguments, "");
        assert_eq!(ended.code(), Some(3), "{kind}: {events:?}");
        let all = kinds(&events);
        // One that ends on the probe is started twice (VER-05).
        let starts = all.iter().take_while(|kind| **kind == "started").count();
        assert!(starts <= 1 + usize::from(kind == "exited"), "{all:?}");
        assert_eq!(all[starts..], ["start_failed", "failed", "closed"], "{kind}");
        let failed = events.iter().find(|event| event["event"] == "start_failed").expect("there");
        assert_eq!(failed["kind"], kind);
        assert!(failed["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
        let failed = of_key(&events, "failed", "1");
        assert_eq!((&failed["cause"], &failed["delivery"]), (&json!("closed"), &json!("not_sent")), "{kind}");
        assert_eq!(events.last().expect("events")["exit"], exit, "{kind}");
    }
}

// A script goes on after a failed start: each of its requests and listens fails in the same way.
#[test]
fn a_failed_start_fails_each_key() {
    let script = r#"{"op":"request","key":"a","method":"tools/list"}
        {"op":"listen","key":"s","filter":{"toolsListChanged":true}}
        {"op":"wait","key":"a"}
        {"op":"request","key":"b","method":"tools/list"}
        {"op":"wait_event","event":"result"}"#;
    let (ended, events) = on().call(["--script", "-", "--", "/nowhere/at/all"], script);
    assert_eq!(ended.code(), Some(3));
    for key in ["a", "s", "b"] {
        let failed = of_key(&events, "failed", key);
        assert_eq!((&failed["cause"], &failed["delivery"]), (&json!("closed"), &json!("not_sent")), "{key}");
    }
    assert_eq!(
        (events[0]["event"].as_str(), events.last().expect("events")["event"].as_str()),
        (Some("start_failed"), Some("closed"))
    );
}

// PRC-05: a script that asks for nothing still says whether the server could be started; with `--lazy` it starts none.
#[test]
fn an_empty_script_waits_for_the_start() {
    let (ended, events) = on().call(["--script", "-", "--", "/nowhere/at/all"], "");
    assert_eq!((ended.code(), kinds(&events)), (Some(3), vec!["start_failed", "closed"]));
    let (ended, events) = on().call(["--script", "-", "--", DEMO], "");
    assert_eq!((ended.code(), kinds(&events).first()), (Some(0), Some(&"started")));
    assert_eq!(events.last().expect("events")["exit"], json!({"code": 0}));
    let (ended, events) = on().call(["--lazy", "--script", "-", "--", "/nowhere/at/all"], "");
    assert_eq!((ended.code(), kinds(&events)), (Some(0), vec!["closed"]));
}

// VER-04, VER-09: a server that is silent for the probe's time counts as one of the legacy era; one that is silent to the handshake too is given up.
#[test]
fn a_silent_server_is_given_up() {
    for (era, kind) in [("modern", "legacy_server"), ("auto", "timeout"), ("legacy", "timeout")] {
        let options = ["--era", era, "--probe-timeout", "100", "--start-timeout", "300"];
        let (ended, events) = on().call(shell(&options, "cat >/dev/null"), "");
        assert_eq!(ended.code(), Some(3), "{events:?}");
        assert_eq!(events[1]["kind"], kind, "{era}");
    }
}

// RST-01: the end of a dead server's stderr explains its start to a person.
#[test]
fn a_dead_server_is_explained() {
    let ended = on().run_call(shell(&["--stderr", "events"], "echo 'no such module' >&2; exit 3"), b"");
    assert_eq!((ended.code(), ended.lines.len()), (Some(3), 0));
    assert!(ended.stderr.contains("exit code 3") && ended.stderr.contains("no such module"), "{}", ended.stderr);
}

// SHD-01: a server that does not end with its input is terminated, then killed; the events say how far it went.
#[test]
fn a_deaf_server_is_terminated_and_killed() {
    let serve = r#"read probe; echo '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}'
        read request; echo '{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}}'"#;
    for (end, escalation, exit) in [
        ("exec sleep 1000", "terminate", json!({"signal": 15})),
        ("trap '' TERM; while :; do sleep 1000; done", "kill", json!({"signal": 9})),
    ] {
        let (ended, events) = on().call(shell(&["--grace", "200"], &format!("{serve}\n{end}")), "");
        assert_eq!(ended.code(), Some(0), "{events:?}");
        let closed = events.last().expect("events");
        assert_eq!((&closed["escalation"], &closed["exit"]), (&json!(escalation), &exit));
    }
}

// UNR-04: a damaged answer fails the one request it can be pinned on: the frame is reported, then the failure.
#[test]
fn a_damaged_answer_is_dropped_and_fails_its_request() {
    let serve = r#"read probe; echo '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}'
        read request; echo 'a banner'; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":['; cat >/dev/null"#;
    let (ended, events) = on().call(shell(&[], serve), "");
    assert_eq!(ended.code(), Some(4));
    assert_eq!(kinds(&events), ["started", "era", "dropped", "dropped", "failed", "closed"]);
    assert_eq!(events[2], json!({"event": "dropped", "reason": "invalid_json", "id": null, "code": null}));
    assert_eq!(events[3], json!({"event": "dropped", "reason": "invalid_json", "id": 2, "code": null}));
    assert_eq!(events[4]["cause"], "invalid_response");
}

// LIM-01, UNR-02: an answer over the limit fails its request by the id at its end.
#[test]
fn an_answer_too_long_fails_its_request() {
    let big = r#"{"name":"big","arguments":{"bytes":100000}}"#;
    let (ended, events) = on().call(["--max-line", "65536", "tools/call", big, "--", DEMO], "");
    assert_eq!(ended.code(), Some(4));
    assert_eq!(kinds(&events), ["started", "era", "dropped", "failed", "closed"]);
    assert_eq!((&events[2]["reason"], &events[3]["cause"]), (&json!("line_too_long"), &json!("invalid_response")));
    let (ended, _) = on().call(["--max-line", "200000", "tools/call", big, "--", DEMO], "");
    assert_eq!(ended.code(), Some(0));
}

// PRC-01: a minimal environment holds no secret.
#[test]
fn a_minimal_environment_is_minimal() {
    let show = "env >&2; exit 1";
    for (mode, seen) in [("inherit", true), ("minimal", false)] {
        let mut command = on().command(CALL);
        command.env("MY_SECRET", "hunter2").args(shell(&["--env", mode], show));
        let ended = Program::spawn(command).end();
        assert_eq!(ended.stderr.contains("hunter2"), seen, "{mode}");
        assert!(ended.stderr.contains("PATH="), "{mode}");
    }
}

// A signal closes gracefully: the request in flight fails, the server ends by itself, the exit status names the signal.
#[test]
fn a_signal_closes_gracefully() {
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let sleep = r#"{"name":"sleep","arguments":{"ms":600000}}"#;
        let mut program = on().start_call(["--json", "tools/call", sleep, "--", DEMO, "--drain", "0"]);
        let server = program.next_json()["pid"].as_u64().expect("a pid");
        program.until(|event| event["event"] == "era");
        program.signal(signal);
        let ended = program.end();
        assert_eq!(ended.code(), Some(status), "{}", ended.stderr);
        let events = ended.json();
        // What the server says while it winds up is of no concern any more.
        assert_eq!(kinds(&events), ["failed", "closed"]);
        assert_eq!(events[1], json!({"event": "closed", "exit": {"code": 0}, "escalation": "none", "restarts": 0}));
        #[cfg(target_os = "linux")]
        assert!(!support::lives(server));
        let _ = server;
    }
}

// A second signal kills: nobody waits for the grace of a server that does not end.
#[test]
fn a_second_signal_kills() {
    let deaf = "trap '' TERM; while :; do sleep 1000; done";
    let mut program = on().start_call([&["--json"][..], &shell(&["--grace", "600000"], deaf)].concat());
    assert_eq!(program.next_json()["event"], "started");
    program.signal("INT");
    assert_eq!(program.until(|event| event["key"] == "1")["event"], "failed");
    program.signal("INT");
    let ended = program.end();
    assert_eq!(ended.code(), Some(130));
    let events = ended.json();
    assert_eq!(events[0], json!({"event": "closed", "exit": {"signal": 9}, "escalation": "kill", "restarts": 0}));
}

// A closed standard output closes the server too, exit 1, with no death by SIGPIPE and no panic; also while nothing is written.
#[test]
fn a_reader_that_goes_away_closes_the_server() {
    let sleep = r#"{"name":"sleep","arguments":{"ms":600000}}"#;
    let mut command = Command::new("sh");
    let pipeline =
        r#"{ "$0" --runtime "$3" --json tools/call "$1" -- "$2" --drain 0; echo "status $?" >&2; } | head -n 2"#;
    command.args(["-c", pipeline, CALL, sleep, DEMO, on().runtime()]);
    let ended = Program::spawn(command).end();
    assert_eq!((ended.lines.len(), ended.stderr.lines().last()), (2, Some("status 1")));
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

// PRC-03: what a server leaves behind when it ends is ended too; with --no-process-group it is left alone.
#[cfg(target_os = "linux")]
#[test]
fn a_helper_left_behind_is_ended_with_its_group() {
    for (options, survives) in [(&[][..], false), (&["--no-process-group"][..], true)] {
        let (_, events) = on().call(
            shell(
                &[options, &["--stderr", "events"]].concat(),
                "sleep 1000 >/dev/null 2>&1 </dev/null & echo helper $! >&2; exit 3",
            ),
            "",
        );
        let line = events.iter().find_map(|event| event["line"].as_str()?.strip_prefix("helper ")).expect("the helper");
        let helper: u64 = line.parse().expect("a pid");
        if !survives {
            // It is killed by now; when the kernel is done with it is the kernel's business.
            support::dies(helper);
        } else {
            assert!(support::lives(helper));
            assert!(Command::new("kill").arg(line).status().expect("kill runs").success());
        }
    }
}

fn tape_path(name: &str) -> String {
    let path = std::env::temp_dir().join(format!("mcp-call-{}-{}-{name}.tape", std::process::id(), on().runtime()));
    path.to_str().expect("UTF-8").to_owned()
}

/// Records a run, and gives its tape, its exit status and its events.
fn recorded(name: &str, arguments: &[&str], script: &str) -> (String, Option<i32>, Vec<Value>) {
    let path = tape_path(name);
    let (ended, events) = on().call([&["--tape", &*path][..], arguments].concat(), script);
    (path, ended.code(), events)
}

// A tape replays with no process and no clock, and gives the same events and the same exit status.
#[test]
fn a_tape_replays_to_the_same_events() {
    let busy = r#"{"op":"listen","key":"s","filter":{"resourceSubscriptions":["demo://clock"]}}
        {"op":"wait","key":"s"}
        {"op":"request","key":"a","method":"tools/call","params":{"name":"sleep","arguments":{"ms":100,"steps":3}}}
        {"op":"request","key":"late","method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}},"timeout_ms":30}
        {"op":"request","key":"c","method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}}}
        {"op":"request","key":"t","method":"tools/call","params":{"name":"touch","arguments":{"uri":"demo://clock"}}}
        {"op":"request","key":"big","method":"tools/call","params":{"name":"big","arguments":{"bytes":100000}}}
        {"op":"notify","method":"notifications/x","params":{"y":1.0}}
        {"op":"wait","key":"t"}
        {"op":"cancel","key":"c","reason":"enough"}
        {"op":"wait","key":"late"}
        {"op":"wait","key":"a"}
        {"op":"request","key":"x","method":"tools/call","params":{"name":"exit","arguments":{"code":3}}}
        {"op":"wait_event","event":"resubscribed"}
        {"op":"close"}
        {"op":"request","key":"after","method":"tools/list"}"#;
    let deaf = shell(&["--grace", "100", "--probe-timeout", "100"], "echo noise; exec sleep 1000");
    let dead = shell(&["--stderr", "events"], "echo on stderr >&2; printf 'no line end'; exit 3");
    let demo = ["--script", "-", "--", DEMO];
    let cases: [(&str, Vec<&str>, &str); 5] = [
        ("busy", [&["--progress", "--restarts", "1", "--max-line", "65536"][..], &demo].concat(), busy),
        ("deaf", deaf, ""),
        ("dead", dead, ""),
        ("absent", vec!["tools/list", "--", "/nowhere/at/all"], ""),
        ("bytes", shell(&[], r"read probe; printf '\377\376\n'; exit 1"), ""),
    ];
    for (name, arguments, script) in cases {
        let (tape, status, mut events) = recorded(name, &arguments, script);
        let replayed = run(CALL, ["--json", "--replay", &*tape], b"");
        assert_eq!(replayed.stderr, "", "{name}");
        let mut again = replayed.json();
        if name == "absent" {
            // The system's own words for it are not on the tape.
            for event in events.iter_mut().chain(&mut again) {
                event["detail"] = Value::Null;
            }
        }
        assert_eq!(again, events, "{name}");
        assert_eq!(replayed.code(), status, "{name}");
    }
}

// What the core would write differently now is an error that names the line.
#[test]
fn a_tape_whose_output_differs_is_refused() {
    let (tape, status, _) = recorded("differs", &["tools/list", "--", DEMO], "");
    assert_eq!(status, Some(0));
    let text = std::fs::read_to_string(&tape).expect("the tape is there");
    assert!(text.lines().next().is_some_and(|line| line.contains(r#""config":{"#)));
    let changed = text.replace(r#"\"method\":\"tools/list\""#, r#"\"method\":\"tools/lost\""#);
    let number = 1 + changed.lines().zip(text.lines()).position(|(a, b)| a != b).expect("a line was changed");
    std::fs::write(&tape, changed).expect("the tape can be written");
    let replayed = run(CALL, ["--json", "--replay", &*tape], b"");
    assert_eq!(replayed.code(), Some(4));
    assert!(replayed.stderr.contains(&format!("line {number} ")), "{}", replayed.stderr);
    std::fs::write(&tape, "{\"t_us\":0}\n").expect("the tape can be written");
    let replayed = run(CALL, ["--json", "--replay", &*tape], b"");
    assert_eq!((replayed.code(), replayed.lines.len()), (Some(2), 0));
}

// A standard output that nobody reads holds up neither the close nor the kill.
#[test]
fn a_stopped_reader_does_not_hold_up_a_signal() {
    let flood = r#"read probe; echo '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}'
        echo flooding >&2
        while :; do echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'; done"#;
    let mut command = on().command(CALL);
    command.args([&["--json"][..], &shell(&["--grace", "600000", "--stderr", "inherit"], flood)].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started");
    // Held and not read.
    let stdout = child.stdout.take().expect("piped");
    let mut line = String::new();
    BufReader::new(child.stderr.take().expect("piped")).read_line(&mut line).expect("a line");
    assert_eq!(line, "flooding\n");
    let until = Instant::now() + support::DEADLINE;
    loop {
        // The second of two signals at once may merge with the first, so it is sent until it has worked.
        std::thread::sleep(Duration::from_millis(20));
        if let Some(status) = child.try_wait().expect("can be waited for") {
            assert_eq!(status.code(), Some(130));
            break;
        }
        assert!(Instant::now() < until, "it does not end");
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    }
    drop(stdout);
}
