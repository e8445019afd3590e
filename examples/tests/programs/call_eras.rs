//! `mcp-call` and servers of either era, and of none: what each answer to the probe leads to. Each ends connected, or with an error that says what
//! to do.

use serde_json::{Value, json};

use super::support::{Ended, On, kinds, of_key};

fn on() -> On {
    On::the_runtime_of(module_path!())
}

/// A server made of a shell script. It gets lines on its input, one for each `read`.
fn call(options: &[&str], script: &str) -> (Ended, Vec<Value>) {
    on().call([options, &["tools/list", "--", "sh", "-c", script]].concat(), "")
}

/// Reads a line and answers it. What it is asked goes to standard error.
fn answer(line: &str) -> String {
    format!("read asked; echo \"asked $asked\" >&2; echo '{line}'\n")
}

fn error(id: u32, code: i32, data: &str) -> String {
    answer(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"{data}}}}}"#))
}

/// The legacy session from `initialize` with this id to the answer of the one request.
fn session(id: u32, version: &str) -> String {
    let initialized = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"{version}","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
    );
    let tools = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":[]}}}}"#, id + 1);
    format!(
        "{}read initialized; echo \"asked $initialized\" >&2\n{}cat >/dev/null",
        answer(&initialized),
        answer(&tools)
    )
}

/// The methods that the server was asked, in their order.
fn asked(ended: &Ended) -> Vec<String> {
    let lines = ended.stderr.lines().filter_map(|line| line.strip_prefix("asked "));
    let method = |line: &str| serde_json::from_str::<Value>(line).ok()?["method"].as_str().map(str::to_owned);
    lines.filter_map(method).collect()
}

#[track_caller]
fn is_legacy(ended: &Ended, events: &[Value], version: &str) {
    assert_eq!(ended.code(), Some(0), "{events:?}\n{}", ended.stderr);
    let told: Vec<&str> = kinds(events).into_iter().filter(|kind| !["started", "dropped"].contains(kind)).collect();
    assert_eq!(told, ["era", "result", "closed"]);
    let era = events.iter().find(|event| event["event"] == "era").expect("it is told");
    assert_eq!(*era, json!({"event": "era", "era": "legacy", "version": version}));
    assert_eq!(of_key(events, "result", "1")["result"], json!({"tools": []}));
}

// VER-04, LEG-01: an error that no modern server has, with whatever code and id, leads to the handshake.
#[test]
fn any_other_error_leads_to_the_handshake() {
    let probe_errors = [
        error(1, -32601, ""),
        error(1, -32602, ""),
        error(1, -32000, r#","data":{"x":1}"#),
        answer(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#),
        answer(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#),
        // VER-09: a server that answers anything to anything
        answer(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
    ];
    for probe in probe_errors {
        let (ended, events) = call(&[], &format!("{probe}{}", session(2, "2025-11-25")));
        is_legacy(&ended, &events, "2025-11-25");
        assert_eq!(asked(&ended), ["server/discover", "initialize", "notifications/initialized", "tools/list"]);
    }
}

// VER-04, CAN-12, case 193: silence is an answer too; nothing stands between the probe and the handshake.
#[test]
fn silence_leads_to_the_handshake() {
    let (ended, events) = call(&["--probe-timeout", "200"], &format!("read probe\n{}", session(2, "2025-06-18")));
    is_legacy(&ended, &events, "2025-06-18");
    assert_eq!(asked(&ended), ["initialize", "notifications/initialized", "tools/list"]);
}

// VER-07: a list without a modern version of ours but with a legacy one leads to the handshake in that one; one with neither names both sides.
#[test]
fn a_list_of_versions_decides() {
    let listed = error(1, -32022, r#","data":{"supported":["2025-03-26"],"requested":"2026-07-28"}"#);
    let (ended, events) = call(&[], &format!("{listed}{}", session(2, "2025-03-26")));
    is_legacy(&ended, &events, "2025-03-26");
    assert!(ended.stderr.contains(r#""protocolVersion":"2025-03-26""#), "{}", ended.stderr);
    for data in [r#","data":{"supported":["2099-01-01"]}"#, r#","data":{"supported":"2026-07-28"}"#, ""] {
        let (ended, events) = call(&[], &format!("{}cat >/dev/null", error(1, -32022, data)));
        assert_eq!(ended.code(), Some(3), "{events:?}");
        assert_eq!(events[1]["kind"], "no_common_version", "{data}");
        assert!(events[1]["detail"].as_str().is_some_and(|detail| detail.contains("2026-07-28")), "{events:?}");
    }
}

// VER-03: a modern version that the server names is taken, with one more probe.
#[test]
fn a_listed_modern_version_is_taken() {
    let listed = error(1, -32022, r#","data":{"supported":["2026-07-28"],"requested":"2027-01-01"}"#);
    let discovered = answer(
        r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}"#,
    );
    let tools = answer(r#"{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","tools":[]}}"#);
    let (ended, events) = call(&["--protocol", "2027-01-01"], &format!("{listed}{discovered}{tools}cat >/dev/null"));
    assert_eq!(ended.code(), Some(0), "{events:?}");
    assert_eq!(events[1], json!({"event": "era", "era": "modern", "version": "2026-07-28"}));
}

// VER-05, case 192: a server that exits on the probe is started once more and gets the handshake; one that exits on that too never came up.
#[test]
fn a_server_that_exits_on_the_probe_gets_the_handshake() {
    let serve = session(2, "2025-11-25");
    let script = format!(
        "{{ read asked; case $asked in *server/discover*) exit 1;; esac; echo \"asked $asked\" >&2; \
         echo '{}'; }}\n{}",
        r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
        serve.split_once('\n').expect("more than a line").1
    );
    let (ended, events) = call(&[], &script);
    is_legacy(&ended, &events, "2025-11-25");
    assert_eq!(kinds(&events).iter().filter(|kind| **kind == "started").count(), 2);
    assert_eq!(events.last().expect("events")["restarts"], 0, "it is no restart");
    let (ended, events) = call(&[], "read asked; exit 5");
    assert_eq!(ended.code(), Some(3), "{events:?}");
    assert_eq!(kinds(&events), ["started", "started", "start_failed", "failed", "closed"]);
    assert_eq!((&events[2]["kind"], &events[4]["exit"]), (&json!("exited"), &json!({"code": 5})));
}

// VER-06, case 195: the probe's answer comes after its time: the server is modern, and its answer to the handshake is ignored.
#[test]
fn a_late_answer_to_the_probe_settles_it() {
    let discovered = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}"#;
    let refused = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32022,"message":"no"}}"#;
    let tools = answer(r#"{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","tools":[]}}"#);
    let script = format!("read probe; read initialize; echo '{discovered}'; echo '{refused}'\n{tools}cat >/dev/null");
    let (ended, events) = call(&["--probe-timeout", "200"], &script);
    assert_eq!(ended.code(), Some(0), "{events:?}");
    assert_eq!(kinds(&events), ["started", "era", "result", "closed"]);
    assert_eq!(events[1]["era"], "modern");
}

// UNR-01: what a server prints before it answers costs that line, in either era.
#[test]
fn a_banner_hinders_nothing() {
    let script = format!("echo 'Welcome to s 1.0'\n{}echo 'ready'\n{}", error(1, -32601, ""), session(2, "2024-11-05"));
    let (ended, events) = call(&[], &script);
    is_legacy(&ended, &events, "2024-11-05");
    let dropped: Vec<&Value> = events.iter().filter(|event| event["event"] == "dropped").collect();
    assert!(dropped.len() == 2 && dropped.iter().all(|event| event["reason"] == "invalid_json"), "{events:?}");
}

// LEG-02, LEG-01: a version that nobody asked for, and a refused handshake, are errors that say so.
#[test]
fn a_handshake_that_fails_says_why() {
    for (second, kind, word) in [
        (
            answer(r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2030-01-01","capabilities":{}}}"#),
            "no_common_version",
            "2030-01-01",
        ),
        (error(2, -32603, ""), "refused", "-32603"),
        (answer(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#), "refused", "protocolVersion"),
    ] {
        let (ended, events) = call(&[], &format!("{}{second}cat >/dev/null", error(1, -32601, "")));
        assert_eq!(ended.code(), Some(3), "{events:?}");
        assert_eq!(kinds(&events), ["started", "start_failed", "failed", "closed"]);
        assert_eq!(events[1]["kind"], kind);
        assert!(events[1]["detail"].as_str().is_some_and(|detail| detail.contains(word)), "{events:?}");
    }
}

// VER-09: a client that speaks the modern era only has one clear error for a legacy server; one that speaks the legacy era only asks nothing else.
#[test]
fn an_era_can_be_insisted_on() {
    let (ended, events) = call(&["--era", "modern"], &format!("{}cat >/dev/null", error(1, -32601, "")));
    assert_eq!((ended.code(), &events[1]["kind"]), (Some(3), &json!("legacy_server")));
    let options = ["--era", "legacy", "--protocol", "2025-06-18"];
    let (ended, events) = call(&options, &session(1, "2025-06-18"));
    is_legacy(&ended, &events, "2025-06-18");
    assert_eq!(asked(&ended), ["initialize", "notifications/initialized", "tools/list"]);
    assert!(ended.stderr.contains(r#""protocolVersion":"2025-06-18""#));
}

// LEG-05, LEG-06: a ping is answered, another request refused, both are told of; the server reads both answers.
#[test]
fn the_servers_requests_are_answered() {
    let initialized = answer(r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#);
    let rest = r#"read initialized; read request
        echo '{"jsonrpc":"2.0","id":"p","method":"ping"}'; read pong
        echo '{"jsonrpc":"2.0","id":7,"method":"roots/list"}'; read refused; echo "got $pong $refused" >&2
        echo '{"jsonrpc":"2.0","id":3,"result":{}}'; cat >/dev/null"#;
    let script = format!("{}{initialized}{rest}", error(1, -32601, ""));
    let (ended, events) = call(&[], &script);
    assert_eq!(ended.code(), Some(0), "{events:?}\n{}", ended.stderr);
    let asked: Vec<&Value> = events.iter().filter(|event| event["event"] == "server_request").collect();
    assert_eq!(asked.len(), 2, "{events:?}");
    assert_eq!(*asked[0], json!({"event": "server_request", "method": "ping", "answered": "result"}));
    assert_eq!(*asked[1], json!({"event": "server_request", "method": "roots/list", "answered": "error"}));
    let got = ended.stderr.lines().find(|line| line.starts_with("got ")).expect("it got the answers");
    assert!(got.contains(r#"{"jsonrpc":"2.0","id":"p","result":{}}"#) && got.contains("-32601"), "{got}");
}

// SEC-03: a tape of a legacy session plays again to the same events.
#[test]
fn a_legacy_tape_replays_to_the_same_events() {
    let tape = std::env::temp_dir().join(format!("mcp-call-{}-{}-legacy.tape", std::process::id(), on().runtime()));
    let path = tape.to_str().expect("UTF-8");
    let script = format!("{}{}", error(1, -32601, ""), session(2, "2025-11-25"));
    let (ended, events) = call(&["--tape", path], &script);
    is_legacy(&ended, &events, "2025-11-25");
    let again = super::support::run(super::support::CALL, ["--json", "--replay", path], b"");
    std::fs::remove_file(&tape).expect("it was written");
    assert_eq!(again.code(), Some(0));
    assert_eq!(again.json(), events);
}

// case 191: npx waits on stdin although told not to ask: a server that answers only once its input has ended is not helped by ending it early;
// its start fails in time, and says that nothing was written.
#[test]
fn a_server_that_waits_for_the_end_of_its_input_fails_to_start() {
    let options = ["--probe-timeout", "100", "--start-timeout", "300"];
    let (ended, events) = call(&options, "cat >/dev/null; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}'; exit 7");
    assert_eq!(ended.code(), Some(3), "{events:?}");
    assert_eq!(kinds(&events), ["started", "start_failed", "failed", "closed"]);
    // Had its input ended before, it would have exited.
    assert_eq!(events[1]["kind"], "timeout");
    assert!(events[1]["detail"].as_str().is_some_and(|detail| detail.contains("wrote nothing")), "{events:?}");
    assert_eq!((&events[3]["exit"], &events[3]["escalation"]), (&json!({"code": 7}), &json!("none")));
}

// For people standard output has what they asked for: what a legacy server says unasked goes to standard error.
#[test]
fn what_nobody_asked_for_is_no_output() {
    let changed = r#"echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'"#;
    let script = format!("{}{changed}\n{}", error(1, -32601, ""), session(2, "2025-11-25"));
    let script = script.replace("read initialized;", &format!("read initialized; {changed};"));
    let ended = on().run_call(["tools/list", "--", "sh", "-c", &script], b"");
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    assert_eq!(ended.lines, ["(no tools)"], "{}", ended.stderr);
    assert!(ended.stderr.contains("mcp-call: the server says: notifications/tools/list_changed"), "{}", ended.stderr);
}
