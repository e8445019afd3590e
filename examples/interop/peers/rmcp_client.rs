//! A client made with rmcp, the published Rust SDK, against a demo server: it does one thing of each kind and prints what it saw as one
//! JSON object, for the interop suite to check. It knows nothing of mcp-wire. Usage: rmcp_client modern|legacy SERVER [ARG]...

#![expect(deprecated, reason = "what rmcp deprecates is what the legacy era is made of")]

use std::env;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
    ContentBlock, ElicitRequestParams, ElicitResult, ElicitationAction, ProgressNotificationParam, ProtocolVersion,
    ResourceUpdatedNotificationParam, ServerNotification, ServerResult, SubscribeRequestParams, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestContext};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient, ServiceError};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::sleep;

/// Keeps what it is told of, and answers what it is asked.
#[derive(Clone, Default)]
struct Handler {
    progress: Arc<Mutex<Vec<f64>>>,
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

fn text(result: &CallToolResult) -> Value {
    match result.content.first() {
        Some(ContentBlock::Text(content)) => json!(content.text),
        _ => Value::Null,
    }
}

/// rmcp hands notifications to tasks of their own, which may come after the result.
async fn until(told: impl Fn() -> bool) {
    while !told() {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let legacy = words.next().as_deref() == Some("legacy");
    let mut command = Command::new(words.next().ok_or("the command of a server is missing")?);
    command.args(words);
    let mode = if legacy {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    };
    let handler = Handler::default();
    let mut client = handler.clone().serve_with_lifecycle(TokioChildProcess::new(command)?, mode).await?;
    let mut saw = serde_json::Map::new();

    let tools = client.peer().list_all_tools().await?;
    saw.insert("tools".into(), tools.iter().map(|tool| &*tool.name).collect());
    let sum = client.peer().call_tool(tool("add", json!({"a": 40, "b": 2}))).await?;
    saw.insert("sum".into(), sum.structured_content.map_or(Value::Null, |content| content["sum"].clone()));

    // rmcp gives each request a progress token.
    let request = |params| ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let steps = request(tool("sleep", json!({"ms": 60, "steps": 3})));
    let steps = client.send_cancellable_request(steps, PeerRequestOptions::no_options()).await?;
    if let ServerResult::CallToolResult(result) = steps.await_response().await? {
        saw.insert("slept".into(), text(&result));
    }
    let told = || handler.progress.lock().expect("not poisoned").clone();
    until(|| told().len() >= 3).await;
    let mut told = told();
    told.sort_by(f64::total_cmp);
    saw.insert("progress".into(), told.into());

    let asleep = request(tool("sleep", json!({"ms": 600_000, "steps": 1000})));
    let asleep = client.send_cancellable_request(asleep, PeerRequestOptions::no_options()).await?;
    until(|| handler.progress.lock().expect("not poisoned").len() > 3).await;
    asleep.cancel(Some("enough".to_owned())).await?;
    saw.insert("cancelled".into(), true.into());
    let echo = client.peer().call_tool(tool("echo", json!({"text": "still here"}))).await?;
    saw.insert("echo".into(), text(&echo));

    let failed = client.peer().call_tool(tool("fail", json!({"code": -5, "message": "no"}))).await;
    if let Err(ServiceError::McpError(error)) = failed {
        saw.insert("error".into(), error.code.0.into());
    }
    // On the service, not on its peer: it is the service that takes the second round of a modern question.
    let answer = client.call_tool(tool("ask", json!({"question": "Why?"}))).await?;
    saw.insert("answer".into(), text(&answer));

    let (counter, touch) = ("demo://counter", || tool("touch", json!({"uri": "demo://counter"})));
    let updated = if legacy {
        client.peer().subscribe(SubscribeRequestParams::new(counter)).await?;
        client.peer().call_tool(touch()).await?;
        until(|| !handler.updates.lock().expect("not poisoned").is_empty()).await;
        handler.updates.lock().expect("not poisoned").first().cloned()
    } else {
        let mut filter = SubscriptionFilter::new();
        filter.resource_subscriptions = Some(vec![counter.to_owned()]);
        let mut listen = client.peer().listen(filter).await?;
        saw.insert("listens".into(), json!(listen.acknowledged().resource_subscriptions));
        client.peer().call_tool(touch()).await?;
        let update = match listen.next().await? {
            Some(ServerNotification::ResourceUpdatedNotification(update)) => Some(update.params.uri),
            _ => None,
        };
        listen.cancel().await?;
        update
    };
    saw.insert("updated".into(), json!(updated));
    client.close().await?;
    println!("{}", Value::Object(saw));
    Ok(())
}
