//! A client made with rmcp against `mcp-demo-server`, in both eras: list, call, progress, cancellation, what a legacy session is told and
//! asked, the end.

#![cfg(unix)]
#![expect(deprecated, reason = "what rmcp deprecates is what the legacy era is made of")]

mod support;

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
    ContentBlock, ElicitRequestParams, ElicitResult, ElicitationAction, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam, ServerResult, SetLevelRequestParams,
    SubscribeRequestParams,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient, ServiceError};
use serde_json::{Value, json};
use support::{DEADLINE, DEMO};
use tokio::process::Command;
use tokio::time::timeout;

/// Keeps what it is told of, and answers what it is asked.
#[derive(Clone, Default)]
struct Handler {
    progress: Arc<Mutex<Vec<f64>>>,
    logs: Arc<Mutex<Vec<Value>>>,
    updates: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities = ClientCapabilities::builder().enable_elicitation().build();
        info
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().expect("not poisoned").push(params.progress);
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.logs.lock().expect("not poisoned").push(params.data);
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.updates.lock().expect("not poisoned").push(params.uri);
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"answer": "Because"})))
    }
}

fn tool(name: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { unreachable!("an object literal") };
    CallToolRequestParams::new(name).with_arguments(arguments)
}

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

    // rmcp gives each request a progress token.
    let request = |params| ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let steps = request(tool("sleep", json!({"ms": 60, "steps": 3})));
    let steps = client.send_cancellable_request(steps, PeerRequestOptions::no_options()).await.expect("it is sent");
    let ServerResult::CallToolResult(result) = steps.await_response().await.expect("a result") else {
        panic!("the result of a tool")
    };
    let Some(ContentBlock::Text(content)) = result.content.first() else { panic!("a text") };
    assert_eq!(content.text, "slept 60 ms");
    let told = || handler.progress.lock().expect("not poisoned").clone();
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

    if legacy {
        session(&client, &handler).await;
    }
    client.close().await.expect("it closes");
}

/// What only a legacy session has: questions of the server, a log level, subscriptions (LEG-07, LEG-08).
async fn session(client: &RunningService<RoleClient, Handler>, handler: &Handler) {
    let text = |result: CallToolResult| match result.content.into_iter().next() {
        Some(ContentBlock::Text(content)) => content.text,
        other => panic!("a text: {other:?}"),
    };
    let answer = client.peer().call_tool(tool("ask", json!({"question": "Why?"}))).await.expect("an answer");
    assert_eq!(text(answer), "Because");

    client.peer().set_level(SetLevelRequestParams::new(LoggingLevel::Warning)).await.expect("it is set");
    for level in ["info", "error"] {
        client.peer().call_tool(tool("log", json!({"level": level}))).await.expect("an answer");
    }
    let subscribe = SubscribeRequestParams::new("demo://counter");
    client.peer().subscribe(subscribe).await.expect("it is subscribed to");
    client.peer().call_tool(tool("touch", json!({"uri": "demo://counter"}))).await.expect("an answer");
    // rmcp hands notifications to tasks of their own, which may come after the result.
    while handler.updates.lock().expect("not poisoned").is_empty()
        || handler.logs.lock().expect("not poisoned").is_empty()
    {
        tokio::task::yield_now().await;
    }
    assert_eq!(*handler.updates.lock().expect("not poisoned"), ["demo://counter"]);
    assert_eq!(*handler.logs.lock().expect("not poisoned"), ["message 1"]);
}
