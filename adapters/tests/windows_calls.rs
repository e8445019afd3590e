//! Real servers under a client on Windows: starts, calls and standard error. Compiled for each runtime, which `super::runtime` names.

use std::sync::mpsc;
use std::time::Duration;

use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_driver::client::{Events, StartFailedKind};
use mcp_wire_driver::process::{ServerCommand, Stderr};
use serde_json::{Value, json};

use super::runtime::{ClientBuilder, ClientEvent, builder, run};
use super::windows_support::{TempDir, helper_ends, misbehaving};

/// All events until there are no more.
async fn all(mut events: Events) -> Vec<ClientEvent> {
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(event);
    }
    seen
}

/// Starts a server that never comes up.
async fn start_error(builder: ClientBuilder, command: ServerCommand) -> mcp_wire_driver::client::StartError {
    builder.spawn(command).await.expect_err("it never comes up")
}

// PRC-01, FRM-10: calls go out and come back, many at once, through pipes that a thread reads and writes
#[test]
fn calls_are_answered() {
    run(async {
        let client = builder().spawn(misbehaving(&["serve"])).await.expect("it starts");
        let calls: Vec<_> = (0..50).map(|n| client.request("x", json!({"n": n})).send()).collect();
        for (n, call) in calls.into_iter().enumerate() {
            let result: Value = serde_json::from_str(call.await.expect("a result").as_json().get()).expect("JSON");
            assert_eq!(result["echo"]["n"], n);
        }
        let text = "x".repeat(100_000);
        let large: Value = client.call("x", json!({"text": text})).await.expect("a result");
        assert_eq!(large["echo"]["text"], text.as_str(), "it is larger than a pipe holds");
        client.close().await.expect("an outcome");
    });
}

// PRC-05, case 118: command not found because a GUI host has a short PATH; case 181: the names that were looked for are told
#[test]
fn a_missing_program_is_a_start_error() {
    run(async {
        let error = start_error(builder(), ServerCommand::new("no-such-program-anywhere")).await;
        assert_eq!(error.kind(), StartFailedKind::NotFound);
        assert!(error.to_string().contains("no-such-program-anywhere.exe"), "{error}");
    });
}

// RST-01, case 111: an exit before the handshake is told with its status and the end of standard error
#[test]
fn an_early_exit_is_explained() {
    run(async {
        let command = misbehaving(&["stderr:Cannot find module x", "exit:3"]).stderr(Stderr::Lines);
        let error = start_error(builder(), command).await;
        assert_eq!((error.kind(), error.exit()), (StartFailedKind::Exited, Some(ExitStatus::Code(3))));
        assert_eq!(error.stderr(), "Cannot find module x");
    });
}

// case 191: npx waits on stdin although told not to ask: what reads its input to the end before it answers is a failed start that says so, and no
// hang; nothing of it is left
#[test]
fn a_server_that_reads_to_the_end_before_it_answers_is_a_start_error() {
    run(async {
        let dir = TempDir::new();
        let file = dir.file("helper");
        let builder = builder().start_timeout(Duration::from_millis(1500)).grace(Duration::from_millis(100));
        let error = start_error(builder, misbehaving(&[&format!("helper:{file}:-"), "drain", "sleep"])).await;
        assert_eq!(error.kind(), StartFailedKind::Timeout);
        assert!(error.to_string().contains("wrote nothing"), "{error}");
        helper_ends(&file);
    });
}

// LOG-05, case 086: lines of standard error go to events and callback, and a flood of them holds up no answer
#[test]
fn standard_error_is_drained() {
    run(async {
        let (send, seen) = mpsc::channel();
        let mut builder = builder().on_stderr(move |line| _ = send.send(line.to_owned()));
        let events = builder.events();
        let steps = ["stderr:one", "serve:1", "flood:stderr:300000", "stderr:", "stderr:two", "serve"];
        let client = builder.spawn(misbehaving(&steps).stderr(Stderr::Lines)).await.expect("it starts");
        client.call::<Value>("x", ()).await.expect("a result");
        client.close().await.expect("an outcome");
        let lines: Vec<String> = seen.try_iter().collect();
        assert_eq!((lines.first().map(String::as_str), lines.last().map(String::as_str)), (Some("one"), Some("two")));
        assert!(lines.iter().map(String::len).sum::<usize>() > 290_000, "nothing is lost");
        let told = all(events).await;
        assert!(told.iter().any(|event| matches!(event, ClientEvent::Stderr { line } if line == "one")));
    });
}
