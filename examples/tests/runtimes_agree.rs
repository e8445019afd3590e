//! Both programs on each runtime against each other: the same events and answers, but for process ids and words for people.

#![cfg(unix)]

mod support;

use serde_json::{Value, json};
use support::{DEMO, On, request, tool};

/// The first is what the others are compared with.
const RUNTIMES: [On; 3] = [On::named("tokio"), On::named("smol"), On::named("poll")];

/// The events of a run, and those of standard error, which are a sequence of their own.
fn events(on: On, arguments: &[&str], script: &str) -> (Option<i32>, Vec<Value>, Vec<Value>) {
    let (ended, mut events) = on.call(arguments, script);
    for event in &mut events {
        for member in ["pid", "detail"] {
            if let Some(value) = event.get_mut(member) {
                *value = Value::Null;
            }
        }
    }
    let (stderr, events) = events.into_iter().partition(|event| event["event"] == "stderr");
    (ended.code(), events, stderr)
}

/// Scripts whose events have one order only: each waits for what it has begun.
#[test]
fn the_events_are_the_same() {
    let busy = r#"{"op":"listen","key":"s","filter":{"toolsListChanged":true,"resourceSubscriptions":["demo://clock"]}}
        {"op":"wait","key":"s"}
        {"op":"request","key":"a","method":"tools/call","params":{"name":"sleep","arguments":{"ms":60,"steps":3}}}
        {"op":"wait","key":"a"}
        {"op":"request","key":"t","method":"tools/call","params":{"name":"touch","arguments":{"uri":"demo://clock"}}}
        {"op":"wait","key":"t"}
        {"op":"request","key":"e","method":"tools/call","params":{"name":"fail","arguments":{"code":-5,"message":"no"}}}
        {"op":"wait","key":"e"}
        {"op":"request","key":"late","method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}},"timeout_ms":40}
        {"op":"wait","key":"late"}
        {"op":"request","key":"c","method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}}}
        {"op":"notify","method":"notifications/x","params":{"y":1.0}}
        {"op":"sleep","ms":30}
        {"op":"cancel","key":"c","reason":"enough"}
        {"op":"wait","key":"c"}
        {"op":"cancel","key":"s"}
        {"op":"wait_event","event":"listen_ended"}
        {"op":"request","key":"big","method":"tools/call","params":{"name":"big","arguments":{"bytes":300000}}}
        {"op":"wait","key":"big"}"#;
    let crashes = r#"{"op":"listen","key":"s","filter":{"toolsListChanged":true}}
        {"op":"wait","key":"s"}
        {"op":"request","key":"x","method":"tools/call","params":{"name":"exit","arguments":{"code":3}}}
        {"op":"wait_event","event":"resubscribed"}
        {"op":"request","key":"a","method":"tools/list"}
        {"op":"wait","key":"a"}
        {"op":"request","key":"y","method":"tools/call","params":{"name":"exit","arguments":{"code":4}}}
        {"op":"wait_event","event":"closed"}
        {"op":"request","key":"after","method":"tools/list"}"#;
    let idle = r#"{"op":"request","key":"a","method":"tools/list"}
        {"op":"wait_event","event":"idle_stopped"}
        {"op":"request","key":"b","method":"tools/list"}
        {"op":"wait","key":"b"}
        {"op":"close"}
        {"op":"request","key":"c","method":"tools/list"}"#;
    let kill = r#"{"op":"request","key":"a","method":"tools/list"}
        {"op":"wait","key":"a"}
        {"op":"kill"}"#;
    let demo = ["--script", "-", "--", DEMO];
    let with = |options: &[&'static str]| [options, &demo].concat();
    let print = ["tools/call", r#"{"name":"print","arguments":{"text":"from println"}}"#, "--", DEMO];
    let serve = r#"read probe; echo '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}'
        read request; echo noise; printf '\377\n'; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":['
        cat >/dev/null; echo one >&2; printf two >&2; trap '' TERM; while :; do sleep 1000; done"#;
    let cases: [(&str, Vec<&str>, &str); 12] = [
        ("busy", with(&["--progress"]), busy),
        ("cut", with(&["--progress", "--max-line", "65536"]), busy),
        ("crashes", with(&["--restarts", "1"]), crashes),
        ("idle", with(&["--idle-stop", "50"]), idle),
        ("kill", with(&["--grace", "600000"]), kill),
        ("lazy", with(&["--lazy"]), r#"{"op":"sleep","ms":1}"#),
        ("stderr", [&["--stderr", "events"][..], &print].concat(), ""),
        ("noise", vec!["--stderr", "events", "--grace", "100", "tools/list", "--", "sh", "-c", serve], ""),
        ("silent", vec!["--probe-timeout", "80", "--grace", "80", "x", "--", "sleep", "1000"], ""),
        ("dead", vec!["--stderr", "events", "x", "--", "sh", "-c", "read probe; echo gone >&2; exit 3"], ""),
        ("absent", vec!["x", "--", "/nowhere/at/all"], ""),
        ("usage", vec!["--script", "-", "--", DEMO], "{\"op\":\"wait_event\",\"event\":\"era\"}\nnonsense"),
    ];
    for (name, arguments, script) in cases {
        let [expected, others @ ..] = RUNTIMES.map(|on| events(on, &arguments, script));
        assert!(name == "usage" || expected.1.last().is_some_and(|last| last["event"] == "closed"), "{name}");
        for (found, on) in others.into_iter().zip(&RUNTIMES[1..]) {
            assert_eq!(found, expected, "{name} on {}", on.runtime());
        }
    }
}

/// A tape is the same tape whoever recorded it: it replays to the events of its run.
#[test]
fn a_tape_of_one_runtime_replays_like_that_of_another() {
    for on in RUNTIMES {
        let path = std::env::temp_dir().join(format!("mcp-call-{}-{}-agree", std::process::id(), on.runtime()));
        let path = path.to_str().expect("UTF-8");
        let sleep = r#"{"name":"sleep","arguments":{"ms":30,"steps":2}}"#;
        let (ended, events) = on.call(["--tape", path, "--progress", "tools/call", sleep, "--", DEMO], "");
        let replayed = support::run(support::CALL, ["--json", "--replay", path], b"");
        assert_eq!((replayed.code(), replayed.json()), (ended.code(), events), "{}", on.runtime());
    }
}

/// The answers of the server to the same bytes, where their order is given.
#[test]
fn the_answers_are_the_same() {
    let mut input = Vec::new();
    for line in [
        request(1, "server/discover", json!({})),
        request("two", "tools/list", json!({})),
        tool(3, "add", json!({"a": 40, "b": 2})),
        tool(4, "fail", json!({"code": -5, "message": "no"})),
        tool(5, "panic", json!({})),
        tool(6, "nosuch", json!({})),
        request(7, "no/such/method", json!({})),
        request(8, "subscriptions/listen", json!({"notifications": {"resourceSubscriptions": ["demo://clock"]}})),
        tool(9, "touch", json!({"uri": "demo://clock"})),
        tool(10, "big", json!({"bytes": 200_000})),
        "nonsense".to_owned(),
        "{\"jsonrpc\":\"2.0\",\"id\":11,\"method\":\"tools/list\"}".to_owned(),
        tool(12, "sleep", json!({"ms": 50})),
    ] {
        input.extend(line.into_bytes());
        input.push(b'\n');
    }
    let [expected, others @ ..] = RUNTIMES.map(|on| {
        let ended = on.run_demo([] as [&str; 0], &input);
        (ended.code(), ended.lines)
    });
    assert_eq!(expected.0, Some(0));
    for (found, on) in others.into_iter().zip(&RUNTIMES[1..]) {
        assert_eq!(found, expected, "on {}", on.runtime());
    }
}
