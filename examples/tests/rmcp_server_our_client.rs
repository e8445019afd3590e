//! Our client against a server made with rmcp: list, call, progress, cancellation, the end; from the library and from `mcp-call`.

#![cfg(unix)]

mod support;

use std::time::Duration;

use mcp_wire_tokio::{CallError, Client, ClientEvent, ServerCommand, Stderr};
use serde_json::{Value, json};
use support::{DEADLINE, call, example, kinds, of_key};
use tokio::time::timeout;

#[tokio::test]
async fn the_library_drives_it() {
    timeout(DEADLINE, drive()).await.expect("it ends before the deadline");
}

async fn drive() {
    let mut builder = Client::builder("test", "1.0");
    let mut events = builder.events();
    let server = ServerCommand::new(example("rmcp_server")).stderr(Stderr::Lines);
    let client = builder.spawn(server).await.expect("it comes up");
    assert_eq!(client.version().as_deref(), Some("2026-07-28"));

    let tools: Value = client.call("tools/list", json!({})).await.expect("a list");
    let names: Vec<&str> =
        tools["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["echo", "add", "steps", "hang", "change", "input"]);

    let params = json!({"name": "add", "arguments": {"a": 40, "b": 2}});
    let sum: Value = client.call("tools/call", params).await.expect("a sum");
    assert_eq!(sum["structuredContent"], json!({"sum": 42}));

    let mut call = client.request("tools/call", json!({"name": "steps"})).progress().send();
    let mut steps = Vec::new();
    while let Some(note) = call.next_notification().await {
        let params: Value = note.params.expect("params").as_json().deserialize().expect("JSON");
        steps.push(params["progress"].as_f64().expect("a number"));
    }
    assert_eq!(steps, [1.0, 2.0, 3.0]);
    let done: Value = call.await.expect("a result").as_json().deserialize().expect("JSON");
    assert_eq!(done["content"][0]["text"], "done");

    // CAN-01, CAN-04: a dropped call reaches the server as a cancellation.
    let hang = client.request("tools/call", json!({"name": "hang"})).timeout(Duration::from_secs(600)).send();
    let echo = json!({"name": "echo", "arguments": {"text": "x"}});
    client.call::<Value>("tools/call", echo).await.expect("the request before it has arrived");
    drop(hang);
    while events.next().await.expect("an event") != (ClientEvent::Stderr { line: "hang was cancelled".into() }) {}

    let error = client.call::<Value>("tools/call", json!({"name": "nope"})).await.expect_err("no such tool");
    assert!(matches!(error, CallError::Rpc { code: -32602, .. }), "{error}");

    let outcome = client.close().await.expect("it closes");
    assert_eq!(outcome.exit.map(|exit| exit.to_string()).as_deref(), Some("exit code 0"));
}

// MSG-15: a question of the server's comes as one, its state goes back to the letter, and the answers in a request of their own.
#[tokio::test]
async fn a_question_is_answered_in_a_second_round() {
    let (server, can) = (ServerCommand::new(example("rmcp_server")).stderr(Stderr::Null), abilities());
    let answer = async {
        let client = Client::builder("test", "1.0").capabilities(can).spawn(server).await.expect("it comes up");
        answer(&client).await;
        client.close().await.expect("it closes");
    };
    timeout(DEADLINE, answer).await.expect("it ends before the deadline");
}

// MSG-15, on smol.
#[test]
fn a_question_is_answered_in_a_second_round_on_smol() {
    let (server, can) = (ServerCommand::new(example("rmcp_server")).stderr(Stderr::Null), abilities());
    let answer = async {
        let builder = mcp_wire_smol::Client::builder("test", "1.0").capabilities(can);
        let client = builder.spawn(server).await.expect("it comes up");
        answer(&client).await;
        client.close().await.expect("it closes");
    };
    let deadline = async {
        smol::Timer::after(DEADLINE).await;
        panic!("it does not end before the deadline");
    };
    smol::block_on(smol::future::or(answer, deadline));
}

fn abilities() -> Value {
    json!({"elicitation": {}, "roots": {}})
}

async fn answer(client: &mcp_wire_driver::client::Client) {
    let params = json!({"name": "input", "arguments": {}});
    let error = client.call::<Value>("tools/call", &params).await.expect_err("no result before it knows more");
    let CallError::InputRequired(required) = error else { panic!("{error}") };
    let asks: Value = required.as_json().deserialize().expect("JSON");
    assert_eq!(asks["inputRequests"]["name"]["params"]["message"], "Who are you?");
    assert_eq!(asks["inputRequests"]["where"]["method"], "roots/list");
    assert_eq!(asks["requestState"], "state “1”/\\\n");
    let answers = json!({
        "name": {"action": "accept", "content": {"name": "Ada"}},
        "where": {"roots": [{"uri": "file:///a%20b"}]},
    });
    let result = client.answer_input("tools/call", &params, &required, answers).send().await.expect("a result");
    let result: Value = result.as_json().deserialize().expect("JSON");
    assert_eq!(result["content"][0]["text"], "Ada in file:///a%20b");
}

#[test]
fn the_program_lists_and_calls() {
    let server = example("rmcp_server");
    let (ended, events) = call(["tools/list", "--", &*server], "");
    assert_eq!((ended.code(), &*ended.stderr), (Some(0), ""));
    assert_eq!(kinds(&events), ["started", "era", "result", "closed"]);
    assert_eq!(of_key(&events, "result", "1")["result"]["tools"][1]["name"], "add");
    let script = r#"{"op":"request","key":"a","method":"tools/call","params":{"name":"add","arguments":{"a":40,"b":2}}}
        {"op":"request","key":"p","method":"tools/call","params":{"name":"steps"}}
        {"op":"request","key":"h","method":"tools/call","params":{"name":"hang"}}
        {"op":"wait","key":"p"}
        {"op":"cancel","key":"h","reason":"enough"}"#;
    let (ended, events) = call(["--progress", "--script", "-", "--", &*server], script);
    assert_eq!(ended.code(), Some(4));
    assert_eq!(of_key(&events, "result", "a")["result"]["structuredContent"], json!({"sum": 42}));
    assert_eq!(events.iter().filter(|event| event["event"] == "notification" && event["key"] == "p").count(), 3);
    assert_eq!(of_key(&events, "failed", "h")["cause"], "cancelled");
    assert_eq!(events.last().expect("events")["escalation"], "none");
}
