//! The short examples run, and do what they say.

#![cfg(unix)]

mod support;

use serde_json::Value;
use support::{DEMO, call, example, of_key, run};

const NONE: [&str; 0] = [];

#[test]
fn the_tour_shows_everything() {
    let ended = run(&example("tour"), NONE, b"");
    let text = ended.lines.join("\n");
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), ""), "{text}");
    for part in [
        "speaks revision 2026-07-28",
        "progress 5 of 5",
        "slept 1000 ms",
        "given up: true",
        "notifications/resources/updated: it is \"2\" now",
        "Ended(Closed)",
        "ended with exit code 0",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

#[test]
fn the_client_calls_a_server() {
    let ended = run(&example("tokio_client"), [DEMO], b"");
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), ""));
    assert!(ended.lines[0].starts_with("tools: echo add "), "{:?}", ended.lines);
    assert_eq!(ended.lines[1..], ["40 + 2 = 42", "ended: Some(Code(0))"]);
}

// LOG-04: what the server prints by `println!` does not reach the wire.
#[test]
fn the_server_serves() {
    let shout = r#"{"name":"shout","arguments":{"text":"hello"}}"#;
    let (ended, events) = call(["--progress", "tools/call", shout, "--", &*example("tokio_server")], "");
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), "shouting 5 bytes"));
    assert_eq!(of_key(&events, "result", "1")["result"]["content"][0]["text"], "HELLO");
    assert_eq!(of_key(&events, "notification", "1")["params"]["message"], "taking a breath");
}

#[test]
fn the_core_runs_in_a_loop_written_by_hand() {
    let ended = run(&example("embedded_loop"), NONE, b"");
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), ""));
    let result: Value = serde_json::from_str(&ended.lines[0]).expect("JSON");
    assert_eq!(result["method"], "my/method");
}

// They are for reading in one go.
#[test]
fn they_are_short() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    for file in std::fs::read_dir(folder).expect("the folder is there") {
        let path = file.expect("an entry").path();
        let lines = std::fs::read_to_string(&path).expect("text").lines().count();
        assert!(lines < 80, "{} has {lines} lines", path.display());
    }
}
