//! A client made with rmcp against `mcp-demo-server`: list, call, progress, cancellation, the end.

#![cfg(unix)]

mod support;

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ContentBlock, ProgressNotificationParam, ProtocolVersion,
    ServerResult,
};
use rmcp::service::{NotificationContext, PeerRequestOptions};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceError};
use serde_json::{Value, json};
use support::{DEADLINE, DEMO};
use tokio::process::Command;
use tokio::time::timeout;

/// Keeps the progress that it is told of.
#[derive(Clone, Default)]
struct Handler(Arc<Mutex<Vec<f64>>>);

impl ClientHandler for Handler {
    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.lock().expect("not poisoned").push(params.progress);
    }
}

fn tool(name: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { unreachable!("an object literal") };
    CallToolRequestParams::new(name).with_arguments(arguments)
}

#[tokio::test]
async fn rmcp_drives_it() {
    timeout(DEADLINE, drive()).await.expect("it ends before the deadline");
}

async fn drive() {
    let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
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

    // rmcp gives each request a progress token.
    let request = |params| ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let steps = request(tool("sleep", json!({"ms": 60, "steps": 3})));
    let steps = client.send_cancellable_request(steps, PeerRequestOptions::no_options()).await.expect("it is sent");
    let ServerResult::CallToolResult(result) = steps.await_response().await.expect("a result") else {
        panic!("the result of a tool")
    };
    let Some(ContentBlock::Text(content)) = result.content.first() else { panic!("a text") };
    assert_eq!(content.text, "slept 60 ms");
    let told = || handler.0.lock().expect("not poisoned").clone();
    // rmcp hands notifications to tasks of their own, which may come after the result.
    while told().len() < 3 {
        tokio::task::yield_now().await;
    }
    let mut told = told();
    told.sort_by(f64::total_cmp);
    assert_eq!(told, [1.0, 2.0, 3.0]);

    // CAN-06, CAN-07: a cancelled tool stops at once and is answered no more: with a single permit the next call would wait for it.
    let asleep = request(tool("sleep", json!({"ms": 600_000})));
    let asleep = client.send_cancellable_request(asleep, PeerRequestOptions::no_options()).await.expect("it is sent");
    asleep.cancel(Some("enough".to_owned())).await.expect("it is cancelled");
    let echo = client.peer().call_tool(tool("echo", json!({"text": "still here"}))).await.expect("an answer");
    let Some(ContentBlock::Text(content)) = echo.content.first() else { panic!("a text") };
    assert_eq!(content.text, "still here");

    let error =
        client.peer().call_tool(tool("fail", json!({"code": -5, "message": "no"}))).await.expect_err("an error");
    assert!(matches!(&error, ServiceError::McpError(error) if error.code.0 == -5 && error.message == "no"), "{error}");

    client.close().await.expect("it closes");
}
