//! What clients made with rmcp, the published Rust SDK, share: a handler that keeps what it is told and answers what it is asked, and a call
//! with progress. It knows nothing of mcp-wire, nor of what a test expects.

#![allow(unreachable_pub, dead_code, reason = "a test and a program of the interop suite, each with its part")]
#![expect(deprecated, reason = "what rmcp deprecates is what the legacy era is made of")]

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
    ContentBlock, ElicitRequestParams, ElicitResult, ElicitationAction, LoggingMessageNotificationParam,
    ProgressNotificationParam, ResourceUpdatedNotificationParam, ServerResult,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestContext, RequestHandle, RunningService};
use rmcp::{ClientHandler, ErrorData, RoleClient, ServiceError};
use serde_json::{Value, json};

pub type Client = RunningService<RoleClient, Handler>;

/// Keeps what it is told of, and answers what it is asked.
#[derive(Clone, Default)]
pub struct Handler {
    progress: Arc<Mutex<Vec<f64>>>,
    logs: Arc<Mutex<Vec<Value>>>,
    updates: Arc<Mutex<Vec<String>>>,
}

/// A copy of what is there.
fn told<T: Clone>(kept: &Mutex<Vec<T>>) -> Vec<T> {
    kept.lock().expect("not poisoned").clone()
}

impl Handler {
    pub fn progress(&self) -> Vec<f64> {
        told(&self.progress)
    }

    pub fn logs(&self) -> Vec<Value> {
        told(&self.logs)
    }

    pub fn updates(&self) -> Vec<String> {
        told(&self.updates)
    }
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

pub fn tool(name: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { unreachable!("an object literal") };
    CallToolRequestParams::new(name).with_arguments(arguments)
}

/// The first text of a result, or nothing.
pub fn text(result: &CallToolResult) -> &str {
    match result.content.first() {
        Some(ContentBlock::Text(content)) => &content.text,
        _ => "",
    }
}

/// rmcp hands notifications to tasks of their own, which may come after the result.
pub async fn until(came: impl Fn() -> bool) {
    while !came() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A call that goes on while others do. rmcp gives each request a progress token.
pub async fn begin(client: &Client, params: CallToolRequestParams) -> Result<RequestHandle<RoleClient>, ServiceError> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    client.send_cancellable_request(request, PeerRequestOptions::no_options()).await
}

/// What a call of 60 ms in three steps says in the end, and its progress, in order of size.
pub async fn steps(client: &Client, handler: &Handler) -> Result<(String, Vec<f64>), Box<dyn Error>> {
    let call = begin(client, tool("sleep", json!({"ms": 60, "steps": 3}))).await?;
    let ServerResult::CallToolResult(result) = call.await_response().await? else {
        return Err("the result of something else".into());
    };
    until(|| handler.progress().len() >= 3).await;
    let mut progress = handler.progress();
    progress.sort_by(f64::total_cmp);
    Ok((text(&result).to_owned(), progress))
}
