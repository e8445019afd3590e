//! `mcp-call` from outside: scripts against `mcp-demo-server`, their events and exit statuses.

use super::support::{self, DEMO, On, kinds, of_key};
use serde_json::{Value, json};

fn on() -> On {
    On::the_runtime_of(module_path!())
}

/// Runs a script that stands in a file, as `call` gives it on standard input line by line.
fn script_file(name: &str, script: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("mcp-call-{}-{}-{name}.jsonl", std::process::id(), on().runtime()));
    std::fs::write(&path, script).expect("a file can be written");
    path
}

fn scripted(options: &[&str], script: &str) -> (support::Ended, Vec<Value>) {
    let arguments = options.iter().copied().chain(["--script", "-", "--", DEMO]);
    on().call(arguments, script)
}

fn position(events: &[Value], kind: &str, key: &str) -> usize {
    let found = events.iter().position(|event| event["event"] == kind && event["key"] == key);
    found.unwrap_or_else(|| panic!("no {kind} of {key}: {events:#?}"))
}

#[test]
fn the_sum() {
    let (ended, events) = on().call(["tools/call", r#"{"name":"add","arguments":{"a":40,"b":2}}"#, "--", DEMO], "");
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), ""));
    assert_eq!(kinds(&events), ["started", "era", "result", "closed"]);
    assert_eq!(events[1], json!({"event": "era", "era": "modern", "version": "2026-07-28"}));
    assert_eq!(events[2]["key"], "1");
    assert_eq!(events[2]["result"]["structuredContent"], json!({"sum": 42}));
    assert_eq!(ended.lines[3], r#"{"event":"closed","exit":{"code":0},"escalation":"none","restarts":0}"#);
    #[cfg(target_os = "linux")]
    assert!(!support::lives(events[0]["pid"].as_u64().expect("a pid")), "no process is left");
}

// CAN-01, CAN-05: a cancelled request ends at once, with what is known of its delivery; the server's silence about it is no failure of others.
#[test]
fn a_request_is_cancelled() {
    let script = r#"{"op":"request","key":"a","method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}}}
        {"op":"request","key":"b","method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}
        {"op":"wait","key":"b"}
        {"op":"cancel","key":"a","reason":"changed my mind"}
        {"op":"cancel","key":"a"}"#;
    let (ended, events) = scripted(&[], script);
    assert_eq!(ended.code(), Some(4));
    let failed = of_key(&events, "failed", "a");
    assert_eq!((&failed["cause"], &failed["delivery"]), (&json!("cancelled"), &json!("sent")));
    of_key(&events, "result", "b");
}

// Dropping a call is a cancellation without a reason.
#[test]
fn a_cancellation_needs_no_reason() {
    let script = r#"{"op":"request","key":"a","method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}}}
        {"op":"cancel","key":"a"}
        {"op":"wait","key":"a"}
        {"op":"request","key":"b","method":"tools/list"}"#;
    let (ended, events) = scripted(&[], script);
    assert_eq!(ended.code(), Some(4));
    assert_eq!(of_key(&events, "failed", "a")["cause"], "cancelled");
    assert!(position(&events, "failed", "a") < position(&events, "result", "b"));
}

// TMO-01: the deadline of one request, and another that has more time.
#[test]
fn a_request_times_out() {
    let script = r#"{"op":"request","key":"a","method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}},"timeout_ms":50}
        {"op":"request","key":"b","method":"tools/call","params":{"name":"sleep","arguments":{"ms":200}}}"#;
    let (ended, events) = scripted(&[], script);
    assert_eq!(ended.code(), Some(4));
    let failed = of_key(&events, "failed", "a");
    assert_eq!((&failed["cause"], &failed["delivery"]), (&json!("timeout"), &json!("sent")));
    of_key(&events, "result", "b");
    assert_eq!(events.last().expect("events")["escalation"], "none");
}

// TMO-02: progress restarts the clock, under a ceiling.
#[test]
fn progress_restarts_the_clock_under_a_ceiling() {
    let sleep = |ms: u32| format!(r#"{{"name":"sleep","arguments":{{"ms":{ms},"steps":{}}}}}"#, ms / 100);
    let options = ["--timeout", "1000", "--max-timeout", "60000", "tools/call"];
    let (ended, events) = on().call(options.into_iter().chain([&*sleep(1600), "--", DEMO]), "");
    assert_eq!(ended.code(), Some(0), "{events:?}");
    assert_eq!(events.iter().filter(|event| event["method"] == "notifications/progress").count(), 16);
    let options = ["--timeout", "1000", "--max-timeout", "1000", "tools/call"];
    let (ended, events) = on().call(options.into_iter().chain([&*sleep(60_000), "--", DEMO]), "");
    assert_eq!(ended.code(), Some(4));
    let failed = of_key(&events, "failed", "1");
    assert_eq!((&failed["cause"], &failed["delivery"]), (&json!("timeout"), &json!("started")));
}

// PRG-02: without --progress the server is given no token.
#[test]
fn progress_is_asked_for_only_where_wanted() {
    let sleep = r#"{"name":"sleep","arguments":{"ms":20,"steps":2}}"#;
    let (_, events) = on().call(["tools/call", sleep, "--", DEMO], "");
    assert_eq!(kinds(&events), ["started", "era", "result", "closed"]);
    let (_, events) = on().call(["--progress", "tools/call", sleep, "--", DEMO], "");
    assert_eq!(kinds(&events), ["started", "era", "notification", "notification", "result", "closed"]);
    assert_eq!((&events[2]["key"], &events[2]["params"]["progress"]), (&json!("1"), &json!(1)));
}

// SUB-01, SUB-03, SUB-07, SHD-01: a listen is acknowledged, told of its resource, and ends gracefully with the connection.
#[test]
fn a_listen_hears_of_its_resource() {
    let script = r#"{"op":"listen","key":"s","filter":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["demo://clock"]}}
        {"op":"wait","key":"s"}
        {"op":"request","key":"t","method":"tools/call","params":{"name":"touch","arguments":{"uri":"demo://clock"}}}
        {"op":"wait_event","event":"notification"}"#;
    let (ended, events) = scripted(&[], script);
    assert_eq!(ended.code(), Some(0));
    assert_eq!(
        of_key(&events, "acknowledged", "s")["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": ["demo://clock"]})
    );
    let told = of_key(&events, "notification", "s");
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!("demo://clock"))
    );
    of_key(&events, "listen_ended", "s");
    assert_eq!(events.last().expect("events")["event"], "closed");
}

// SUB-08: a listen that its caller cancels says so.
#[test]
fn a_listen_is_cancelled() {
    let script = r#"{"op":"listen","key":"s","filter":{"toolsListChanged":true}}
        {"op":"wait","key":"s"}
        {"op":"cancel","key":"s","reason":"enough"}
        {"op":"wait_event","event":"listen_ended"}"#;
    let (ended, events) = scripted(&[], script);
    assert_eq!(ended.code(), Some(0));
    assert_eq!(of_key(&events, "listen_ended", "s")["how"], "cancelled");
}

// Many changes of many resources in one go are all shown: this program never lags behind its own listen.
#[test]
fn a_listen_keeps_up() {
    let uris: Vec<String> = (0..200).map(|n| format!("demo://{n}")).collect();
    let mut script = json!({"op": "listen", "key": "s", "filter": {"resourceSubscriptions": uris}}).to_string();
    script += "\n{\"op\":\"wait\",\"key\":\"s\"}\n";
    for (n, uri) in uris.iter().enumerate() {
        let params = json!({"name": "touch", "arguments": {"uri": uri}});
        script += &json!({"op": "request", "key": n.to_string(), "method": "tools/call", "params": params}).to_string();
        script.push('\n');
    }
    let (ended, events) = scripted(&[], &script);
    assert_eq!(ended.code(), Some(0));
    assert_eq!(events.iter().filter(|event| event["event"] == "notification" && event["key"] == "s").count(), 200);
}

// SHD-03: after the close later requests fail at once, unsent; `closed` is the last line all the same.
#[test]
fn requests_after_a_close_fail_unsent() {
    let script = r#"{"op":"request","key":"a","method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}}}
        {"op":"request","key":"b","method":"tools/list"}
        {"op":"wait","key":"b"}
        {"op":"close"}
        {"op":"request","key":"c","method":"tools/list"}
        {"op":"listen","key":"s","filter":{}}
        {"op":"wait","key":"c"}
        {"op":"wait_event","event":"closed"}
        {"op":"request","key":"d","method":"tools/list"}
        {"op":"cancel","key":"d"}
        {"op":"kill"}"#;
    let path = script_file("after-close", script);
    let path = path.to_str().expect("UTF-8");
    let (ended, events) = on().call(["--grace", "300", "--script", path, "--", DEMO], "");
    assert_eq!(ended.code(), Some(4));
    of_key(&events, "result", "b");
    for (key, delivery) in [("a", "sent"), ("c", "not_sent"), ("s", "not_sent"), ("d", "not_sent")] {
        let failed = of_key(&events, "failed", key);
        assert_eq!((&failed["cause"], &failed["delivery"]), (&json!("closed"), &json!(delivery)), "{key}");
    }
    assert_eq!(events.iter().filter(|event| event["event"] == "closed").count(), 1);
    assert_eq!(events.last().expect("events")["event"], "closed");
}

// SHD-04: kill ends the server at once.
#[test]
fn a_kill_is_a_kill() {
    let script = r#"{"op":"request","key":"a","method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000,"ignore_cancel":true}}}
        {"op":"wait_event","event":"era"}
        {"op":"kill"}"#;
    let (ended, events) = scripted(&["--grace", "600000"], script);
    assert_eq!(ended.code(), Some(4));
    assert_eq!(of_key(&events, "failed", "a")["cause"], "closed");
    let closed = events.last().expect("events");
    assert_eq!(*closed, json!({"event": "closed", "exit": support::killed(), "escalation": "kill", "restarts": 0}));
}

// Exit 1 for an error response; 4 wins over 1; an error before a listen's acknowledgment counts.
#[test]
fn errors_decide_the_exit_status() {
    let fail = r#"{"op":"request","key":"f","method":"tools/call","params":{"name":"fail","arguments":{"code":-5,"message":"no"}}}"#;
    let (ended, events) = scripted(&[], fail);
    assert_eq!(ended.code(), Some(1));
    assert_eq!(of_key(&events, "error", "f")["error"], json!({"code": -5, "message": "no"}));
    let late = r#"{"op":"request","key":"l","method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}},"timeout_ms":20}"#;
    let (ended, _) = scripted(&[], &format!("{fail}\n{late}"));
    assert_eq!(ended.code(), Some(4));
    let (ended, _) = on().call(["no/such/method", "--", DEMO], "");
    assert_eq!(ended.code(), Some(1));
    // A tool that says that it failed has answered.
    let (ended, events) = on().call(["tools/call", r#"{"name":"echo"}"#, "--", DEMO], "");
    assert_eq!((ended.code(), &of_key(&events, "result", "1")["result"]["isError"]), (Some(0), &json!(true)));
}

// RST-01, RST-03, SUB-10: a crash in mid-flight: the idempotent request is sent again, the listen too, the other fails with its delivery.
#[test]
fn a_crash_is_survived_with_a_restart() {
    let script = r#"{"op":"listen","key":"s","filter":{"toolsListChanged":true}}
        {"op":"wait","key":"s"}
        {"op":"request","key":"slow","method":"tools/call","params":{"name":"sleep","arguments":{"ms":300}},"idempotent":true}
        {"op":"request","key":"lost","method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}}}
        {"op":"request","key":"x","method":"tools/call","params":{"name":"exit","arguments":{"code":3}}}
        {"op":"wait_event","event":"resubscribed"}
        {"op":"wait","key":"slow"}"#;
    let (ended, events) = scripted(&["--restarts", "1"], script);
    assert_eq!(ended.code(), Some(4));
    for key in ["lost", "x"] {
        let failed = of_key(&events, "failed", key);
        assert_eq!((&failed["cause"], &failed["delivery"]), (&json!("closed"), &json!("sent")), "{key}");
    }
    of_key(&events, "result", "slow");
    of_key(&events, "resubscribed", "s");
    let restarted = events.iter().find(|event| event["event"] == "restarted").expect("a restart");
    assert_eq!(*restarted, json!({"event": "restarted", "restarts": 1, "exit": {"code": 3}}));
    let started: Vec<&Value> =
        events.iter().filter(|event| event["event"] == "started").map(|event| &event["restarts"]).collect();
    assert_eq!(started, [&json!(0), &json!(1)]);
    assert_eq!(events.last().expect("events")["restarts"], 1);
}

// RST-01: without restarts a crash closes the connection; its exit status is told.
#[test]
fn a_crash_without_restarts_closes() {
    let exit = r#"{"name":"exit","arguments":{"code":3}}"#;
    let (ended, events) = on().call(["tools/call", exit, "--", DEMO], "");
    assert_eq!(ended.code(), Some(4));
    assert_eq!(kinds(&events), ["started", "era", "failed", "closed"]);
    assert_eq!(events[3], json!({"event": "closed", "exit": {"code": 3}, "escalation": "none", "restarts": 0}));
}

// RST-08: a lazy start waits for the first request, and without one there is no process.
#[test]
fn a_lazy_start_waits_for_the_first_request() {
    let (ended, events) = scripted(&["--lazy"], r#"{"op":"sleep","ms":10}"#);
    assert_eq!((ended.code(), kinds(&events)), (Some(0), vec!["closed"]));
    assert_eq!(events[0]["exit"], Value::Null);
    let (ended, events) = scripted(&["--lazy"], r#"{"op":"request","key":"a","method":"tools/list"}"#);
    assert_eq!((ended.code(), kinds(&events)), (Some(0), vec!["started", "era", "result", "closed"]));
}

// RST-09: an idle server is stopped, and the next request starts it again; that is no restart.
#[test]
fn an_idle_server_is_stopped_and_started_again() {
    let script = r#"{"op":"request","key":"a","method":"tools/list"}
        {"op":"wait_event","event":"idle_stopped"}
        {"op":"request","key":"b","method":"tools/list"}"#;
    let (ended, events) = scripted(&["--idle-stop", "50"], script);
    assert_eq!(ended.code(), Some(0));
    let kinds: Vec<&str> = kinds(&events).into_iter().filter(|kind| *kind != "era").collect();
    assert_eq!(kinds, ["started", "result", "idle_stopped", "started", "result", "closed"]);
}

// LOG-05, case 110: standard error goes where the option says: lines of it become events, or it is dropped, copied or left alone; text in it is no
// failure.
#[test]
fn stderr_becomes_events() {
    let print = r#"{"name":"print","arguments":{"text":"from println"}}"#;
    let (ended, events) = on().call(["--stderr", "events", "tools/call", print, "--", DEMO], "");
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), ""));
    assert!(events.contains(&json!({"event": "stderr", "line": "from println"})), "{events:?}");
    let (ended, _) = on().call(["--stderr", "null", "tools/call", print, "--", DEMO], "");
    assert_eq!(ended.stderr, "");
    for mode in ["tee", "inherit"] {
        let (ended, _) = on().call(["--stderr", mode, "tools/call", print, "--", DEMO], "");
        assert_eq!(ended.stderr, "from println", "{mode}");
    }
}

// A file is checked whole before anything starts; a bad line is named by its number.
#[test]
fn a_bad_script_starts_nothing() {
    let good = r#"{"op":"request","key":"a","method":"tools/list"}"#;
    for bad in
        ["nonsense", r#"{"op":"dance"}"#, good, r#"{"op":"wait","key":"zzz"}"#, r#"{"op":"wait","key":"a","x":1}"#]
    {
        let path = script_file("bad", &format!("{good}\n{bad}\n"));
        let (ended, events) = on().call(["--script", path.to_str().expect("UTF-8"), "--", DEMO], "");
        assert_eq!((ended.code(), events.len()), (Some(2), 0), "{bad}");
        assert!(ended.stderr.contains("line 2 "), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1);
        // Line by line it is found when its turn comes.
        let (ended, _) = scripted(&[], &format!("{good}\n{bad}\n"));
        assert_eq!(ended.code(), Some(2), "{bad}");
        assert!(ended.stderr.contains("line 2 "), "{}", ended.stderr);
    }
}

// A script on standard input is performed line by line, so a program can wait for an event before it goes on.
#[test]
fn a_script_on_standard_input_is_a_dialogue() {
    let mut program = on().start_call(["--json", "--script", "-", "--", DEMO]);
    program.until(|event| event["event"] == "era");
    program.line(
        r#"{"op":"request","key":"a","method":"tools/call","params":{"name":"echo","arguments":{"text":"one"}}}"#,
    );
    let result = program.until(|event| event["event"] == "result");
    assert_eq!(result["result"]["content"][0]["text"], "one");
    program.line(
        r#"{"op":"request","key":"b","method":"tools/call","params":{"name":"echo","arguments":{"text":"two"}}}"#,
    );
    assert_eq!(program.until(|event| event["event"] == "result")["key"], "b");
    let ended = program.end();
    assert_eq!((ended.code(), ended.json().len()), (Some(0), 1));
}

// SHD-03: whoever writes a script line by line may wait for the last event: it comes though the script is not ended.
#[test]
fn a_dialogue_ends_with_its_connection() {
    let mut program = on().start_call(["--json", "--script", "-", "--", DEMO]);
    program.until(|event| event["event"] == "era");
    program.line(r#"{"op":"close"}"#);
    program.line(r#"{"op":"request","key":"a","method":"tools/list"}"#);
    assert_eq!(program.until(|event| event["event"] == "failed")["delivery"], "not_sent");
    assert_eq!(program.next_json()["event"], "closed");
    assert_eq!(program.next(), None, "it has ended, with its standard input still open");
    assert_eq!(program.end().code(), Some(4));
}

// More requests than may be in flight wait for their turn: none is lost, none is refused.
#[test]
fn more_requests_than_fit_wait_for_their_turn() {
    let mut script = String::new();
    for n in 0..3000 {
        let params = json!({"name": "echo", "arguments": {"text": n.to_string()}});
        script += &json!({"op": "request", "key": n.to_string(), "method": "tools/call", "params": params}).to_string();
        script.push('\n');
    }
    let path = script_file("many", &script);
    let (ended, events) =
        on().call(["--script", path.to_str().expect("UTF-8"), "--", DEMO, "--max-in-flight", "4096"], "");
    assert_eq!(ended.code(), Some(0));
    let results = events.iter().filter(|event| event["event"] == "result");
    for event in results.clone() {
        assert_eq!(event["result"]["content"][0]["text"], event["key"]);
    }
    assert_eq!(results.count(), 3000);
}

// MSG-15: `input_required` is a result like others; the second round is a request of its own.
#[test]
fn input_required_is_a_result() {
    let ask = r#"{"name":"ask","arguments":{"question":"Why?"}}"#;
    let (ended, events) = on().call(["tools/call", ask, "--", DEMO], "");
    // This client cannot ask anybody, and says so in its capabilities.
    assert_eq!(ended.code(), Some(1));
    assert_eq!(of_key(&events, "error", "1")["error"]["code"], -32021);
}

// For people: the result and nothing else on standard output, one sentence for a failure on standard error.
#[test]
fn people_get_text() {
    let ended = on().run_call(["tools/call", r#"{"name":"add","arguments":{"a":40,"b":2}}"#, "--", DEMO], b"");
    assert_eq!((ended.code(), ended.lines, &*ended.stderr), (Some(0), vec!["42".to_owned()], ""));
    let ended = on().run_call(["tools/list", "--", DEMO], b"");
    assert!(
        ended.lines.iter().any(|line| line.starts_with("add ") && line.ends_with("Adds two numbers.")),
        "{:?}",
        ended.lines
    );
    let ended = on().run_call(["tools/call", r#"{"name":"nope"}"#, "--", DEMO], b"");
    assert_eq!((ended.code(), ended.lines.len(), ended.stderr.lines().count()), (Some(1), 0, 1));
    assert!(ended.stderr.contains("-32602") && ended.stderr.contains("Unknown tool: nope"), "{}", ended.stderr);
    // What to do where a server asks, or would if it could.
    let ask = r#"{"name":"ask","arguments":{"question":"Why?"}}"#;
    let ended = on().run_call(["tools/call", ask, "--", DEMO], b"");
    assert!(ended.code() == Some(1) && ended.stderr.contains("--capabilities"), "{}", ended.stderr);
    let ended = on().run_call(["--capabilities", r#"{"elicitation":{}}"#, "tools/call", ask, "--", DEMO], b"");
    assert!(ended.code() == Some(0) && ended.lines.iter().any(|line| line.contains("Why?")), "{:?}", ended.lines);
    assert!(ended.stderr.contains("wants input") && ended.stderr.contains("requestState"), "{}", ended.stderr);
    // SEC-03: what a tool says never drives the terminal.
    let ended = on().run_call(["tools/call", r#"{"name":"echo","arguments":{"text":"\u001b[2J"}}"#, "--", DEMO], b"");
    assert_eq!(ended.lines, [r"\u{1b}[2J"]);
}

// MSG-15, META-04: who says what it can answer is asked, and a second request brings the answer.
#[test]
fn a_question_is_answered_in_a_second_round() {
    let script = r#"{"op":"request","key":"a","method":"tools/call","params":{"name":"ask","arguments":{"question":"Why?"}}}
        {"op":"wait","key":"a"}
        {"op":"request","key":"b","method":"tools/call","params":{"name":"ask","arguments":{"question":"Why?"},"requestState":"ask/1",
            "inputResponses":{"answer":{"action":"accept","content":{"answer":"Because"}}}}}"#;
    let script = script.replace(",\n", ",");
    let (ended, events) = scripted(&["--capabilities", r#"{"elicitation":{}}"#], &script);
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), ""));
    let asked = &of_key(&events, "result", "a")["result"];
    assert_eq!((&asked["resultType"], &asked["requestState"]), (&json!("input_required"), &json!("ask/1")));
    assert_eq!(asked["inputRequests"]["answer"]["params"]["message"], "Why?");
    assert_eq!(of_key(&events, "result", "b")["result"]["content"][0]["text"], "Because");
}
