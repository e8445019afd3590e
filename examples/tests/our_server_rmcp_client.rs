//! A client made with rmcp against `mcp-demo-server`, in both eras: list, call, progress, cancellation, what a legacy session is told and
//! asked, the end.

#![cfg(unix)]
#![expect(deprecated, reason = "what rmcp deprecates is what the legacy era is made of")]

#[path = "support/rmcp_handler.rs"]
mod rmcp_handler;
mod support;

use rmcp::model::{LoggingLevel, ProtocolVersion, SetLevelRequestParams, SubscribeRequestParams};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientLifecycleMode, ClientServiceExt, ServiceError};
use rmcp_handler::{Client, Handler, begin, steps, text, tool, until};
use serde_json::json;
use support::{DEADLINE, DEMO};
use tokio::process::Command;
use tokio::time::timeout;

#[tokio::test]
async fn rmcp_drives_it() {
    let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    timeout(DEADLINE, drive(mode)).await.expect("it ends before the deadline");
}

// LEG-03: the same through the handshake of the legacy era.
#[tokio::test]
async fn rmcp_drives_it_in_the_legacy_era() {
    timeout(DEADLINE, drive(ClientLifecycleMode::Initialize)).await.expect("it ends before the deadline");
}

async fn drive(mode: ClientLifecycleMode) {
    let legacy = matches!(mode, ClientLifecycleMode::Initialize);
    let transport = TokioChildProcess::new(Command::new(DEMO)).expect("it can be spawned");
    let handler = Handler::default();
    let mut client = handler.clone().serve_with_lifecycle(transport, mode).await.expect("it comes up");

    let tools = client.peer().list_all_tools().await.expect("a list");
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(
        names,
        ["echo", "add", "sleep", "log", "print", "spawn_echo", "big", "ask", "fail", "panic", "touch", "exit"]
    );
    let resources = client.peer().list_all_resources().await.expect("a list");
    assert_eq!(resources.len(), 2);

    let sum = client.peer().call_tool(tool("add", json!({"a": 40, "b": 2}))).await.expect("a sum");
    assert_eq!(sum.structured_content, Some(json!({"sum": 42})));

    let (slept, progress) = steps(&client, &handler).await.expect("a result");
    assert_eq!((&*slept, &*progress), ("slept 60 ms", &[1.0, 2.0, 3.0][..]));

    // CAN-06, CAN-07: a cancelled tool stops at once and is answered no more: with a single permit the next call would wait for it.
    let asleep = begin(&client, tool("sleep", json!({"ms": 600_000}))).await.expect("it is sent");
    asleep.cancel(Some("enough".to_owned())).await.expect("it is cancelled");
    let echo = client.peer().call_tool(tool("echo", json!({"text": "still here"}))).await.expect("an answer");
    assert_eq!(text(&echo), "still here");

    let error =
        client.peer().call_tool(tool("fail", json!({"code": -5, "message": "no"}))).await.expect_err("an error");
    assert!(matches!(&error, ServiceError::McpError(error) if error.code.0 == -5 && error.message == "no"), "{error}");

    if legacy {
        session(&client, &handler).await;
    }
    client.close().await.expect("it closes");
}

/// What only a legacy session has: questions of the server, a log level, subscriptions (LEG-07, LEG-08).
async fn session(client: &Client, handler: &Handler) {
    let answer = client.peer().call_tool(tool("ask", json!({"question": "Why?"}))).await.expect("an answer");
    assert_eq!(text(&answer), "Because");

    client.peer().set_level(SetLevelRequestParams::new(LoggingLevel::Warning)).await.expect("it is set");
    for level in ["info", "error"] {
        client.peer().call_tool(tool("log", json!({"level": level}))).await.expect("an answer");
    }
    let subscribe = SubscribeRequestParams::new("demo://counter");
    client.peer().subscribe(subscribe).await.expect("it is subscribed to");
    client.peer().call_tool(tool("touch", json!({"uri": "demo://counter"}))).await.expect("an answer");
    until(|| !handler.updates().is_empty() && !handler.logs().is_empty()).await;
    assert_eq!(handler.updates(), ["demo://counter"]);
    assert_eq!(handler.logs(), ["message 1"]);
}
