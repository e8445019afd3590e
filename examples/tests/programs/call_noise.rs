//! `mcp-call` and servers with noise on their output: banners, tracebacks, floods. Noise costs its own lines, is told of, and hides nothing.

use serde_json::{Value, json};

use super::support::{DEMO, Ended, On, kinds, of_key};

fn on() -> On {
    On::the_runtime_of(module_path!())
}

fn shell(options: &[&str], script: &str) -> (Ended, Vec<Value>) {
    on().call([options, &["tools/list", "--", "sh", "-c", script, DEMO]].concat(), "")
}

/// Answers the probe.
const DISCOVER: &str = r#"read probe; echo '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}'"#;

const TOOLS: &str =
    r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}}"#;

// UNR-01, case 102: what a launcher prints before the server starts costs that line
#[test]
fn a_launchers_words_are_dropped() {
    let (ended, events) = shell(&[], r#"echo "npm notice New minor version"; echo; exec "$0""#);
    assert_eq!(ended.code(), Some(0), "{events:?}");
    assert_eq!(kinds(&events), ["started", "dropped", "era", "result", "closed"]);
    assert_eq!(events[1], json!({"event": "dropped", "reason": "invalid_json", "id": null, "code": null}));
}

// UNR-07, case 104: words that are glued to a frame cost that frame; its id is not looked for behind them, nor in what stands before others
#[test]
fn words_glued_to_a_frame_cost_it() {
    let glued = format!("{DISCOVER}\n read request; echo 'Loading... {TOOLS}'; cat >/dev/null");
    let (ended, events) = shell(&["--timeout", "300"], &glued);
    assert_eq!(ended.code(), Some(4), "{events:?}");
    assert_eq!(kinds(&events), ["started", "era", "dropped", "failed", "closed"]);
    assert_eq!(events[2], json!({"event": "dropped", "reason": "invalid_json", "id": null, "code": null}));
    assert_eq!(events[3]["cause"], "timeout");
    // Behind a frame that has been whole, its id is known: the request fails at once.
    let glued = format!("{DISCOVER}\n read request; echo '{TOOLS}done'; cat >/dev/null");
    let (ended, events) = shell(&["--timeout", "600000"], &glued);
    assert_eq!(ended.code(), Some(4), "{events:?}");
    assert_eq!((&events[2]["id"], &events[3]["cause"]), (&json!(2), &json!("invalid_response")));
}

// RST-01, case 106: a traceback on the standard output of a server that does not start is part of what explains it
#[test]
fn a_traceback_explains_a_failed_start() {
    let traceback = "echo 'Traceback (most recent call last):'; echo '  File \"server.py\", line 3'; \
        echo \"ModuleNotFoundError: No module named 'mcp'\"; exit 1";
    let (ended, events) = shell(&[], traceback);
    assert_eq!(ended.code(), Some(3), "{events:?}");
    let failed = events.iter().find(|event| event["event"] == "start_failed").expect("it did not start");
    assert_eq!(failed["kind"], "exited");
    let detail = failed["detail"].as_str().expect("a text");
    assert!(detail.contains("exit code 1") && detail.contains("No module named"), "{detail}");
}

// case 108: words in place of an answer are no answer: they are told of, and the request waits for its time
#[test]
fn an_error_in_words_is_no_answer() {
    let script = format!("{DISCOVER}\n read request; echo 'Error: no such table'; cat >/dev/null");
    let (ended, events) = shell(&["--timeout", "300"], &script);
    assert_eq!(ended.code(), Some(4), "{events:?}");
    assert_eq!(kinds(&events), ["started", "era", "dropped", "failed", "closed"]);
    let failed = of_key(&events, "failed", "1");
    assert_eq!((&failed["cause"], &failed["delivery"]), (&json!("timeout"), &json!("sent")));
}

// case 127: a process that runs and says nothing but words on its standard error is not up
#[test]
fn a_process_that_only_logs_is_not_up() {
    let options = ["--era", "modern", "--stderr", "events", "--probe-timeout", "200", "--grace", "100"];
    let (ended, events) = shell(&options, "echo 'listening' >&2; exec sleep 1000");
    assert_eq!(ended.code(), Some(3), "{events:?}");
    let told: Vec<&str> = kinds(&events).into_iter().filter(|kind| *kind != "stderr").collect();
    assert_eq!(told, ["started", "start_failed", "failed", "closed"]);
}

// case 091: a hundred thousand frames that nobody asked for, and the log has a line for each time that there are ten times as many, not for each
#[test]
fn a_flood_of_noise_does_not_flood_the_log() {
    let flood =
        r#"awk 'BEGIN { for (i = 0; i < 100000; i++) print "{\"jsonrpc\":\"2.0\",\"id\":\"nobody\",\"result\":{}}" }'"#;
    let script = format!("{DISCOVER}\n read request; {flood}; echo '{TOOLS}'; cat >/dev/null");
    let mut arguments = vec!["-vv", "--json", "tools/list", "--", "sh", "-c"];
    arguments.push(&script);
    let ended = on().run_call(arguments, b"");
    assert_eq!(ended.code(), Some(0));
    let dropped = ended.stderr.lines().filter(|line| line.contains("router") && line.contains("drop")).count();
    assert!((1..=10).contains(&dropped), "{dropped} lines of the log");
}

// SEC-01, SEC-03: credentials go to the server as variables of its environment, and nowhere into the protocol or a log
#[test]
fn credentials_are_in_the_environment_alone() {
    let tape = std::env::temp_dir().join(format!("mcp-call-{}-{}-secret", std::process::id(), on().runtime()));
    let mut command = on().command(super::support::CALL);
    command.args(["-vv", "--json", "--stderr", "events", "--tape"]).arg(&tape);
    command.args([
        "tools/list",
        "--",
        "sh",
        "-c",
        r#"[ "$API_TOKEN" = hunter2 ] && echo "it has it" >&2; exec "$0""#,
        DEMO,
    ]);
    command.env("API_TOKEN", "hunter2");
    let ended = super::support::Program::spawn(command).end();
    let tape = std::fs::read_to_string(tape).expect("the tape is there");
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    assert!(ended.lines.iter().any(|line| line.contains("it has it")));
    for (place, text) in [("events", ended.lines.join("\n")), ("log", ended.stderr), ("tape", tape)] {
        assert!(!text.contains("hunter2"), "in the {place}");
        assert!(!text.to_lowercase().contains("authorization"), "in the {place}");
    }
}
