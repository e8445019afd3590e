//! A small server made with rmcp, the published Rust SDK: what the tests drive our client against.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult, JsonObject,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ServerCapabilities,
    ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::watch;

#[derive(Clone, Default)]
struct Small {
    /// How often the tools have changed; each listen waits for that.
    changes: watch::Sender<u32>,
}

fn schema(value: Value) -> Arc<JsonObject> {
    let Value::Object(object) = value else { unreachable!("an object literal") };
    Arc::new(object)
}

/// What must come back to the letter.
const STATE: &str = "state “1”/\\\n";

fn asks() -> InputRequiredResult {
    let asks = json!({
        "name": {"method": "elicitation/create", "params": {
            "mode": "form",
            "message": "Who are you?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        }},
        "where": {"method": "roots/list"},
    });
    let asks = serde_json::from_value(asks).expect("two questions");
    InputRequiredResult::new(Some(asks), Some(STATE.to_owned()))
}

impl ServerHandler for Small {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let text = schema(json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}));
        let numbers = schema(json!({
            "type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"],
        }));
        let nothing = schema(json!({"type": "object"}));
        Ok(ListToolsResult::with_all_items(vec![
            Tool::new("echo", "Returns the text.", text),
            Tool::new("add", "Adds two numbers.", numbers),
            Tool::new("steps", "Reports three steps of progress.", nothing.clone()),
            Tool::new("hang", "Waits until it is cancelled, and says so on standard error.", nothing.clone()),
            Tool::new("change", "Says that the tools have changed.", nothing.clone()),
            Tool::new("input", "Asks for a name and for the roots, then says both; of the modern era.", nothing),
        ]))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(params.arguments.unwrap_or_default());
        let text = match &*params.name {
            "echo" => arguments["text"].as_str().unwrap_or_default().to_owned(),
            "add" => {
                let sum = arguments["a"].as_i64().unwrap_or_default() + arguments["b"].as_i64().unwrap_or_default();
                return Ok(CallToolResult::structured(json!({"sum": sum})).into());
            }
            "steps" => {
                let token = context.meta.get_progress_token();
                for step in 1..=3_u32 {
                    if let Some(token) = &token {
                        let progress = ProgressNotificationParam::new(token.clone(), f64::from(step)).with_total(3.0);
                        context.peer.notify_progress(progress).await.expect("the client is there");
                    }
                    // rmcp hands notifications to tasks of their own; without a pause they may overtake each other.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                "done".to_owned()
            }
            "hang" => {
                context.ct.cancelled().await;
                eprintln!("hang was cancelled");
                String::new()
            }
            "change" => {
                if context.protocol_version() == Some(ProtocolVersion::V_2026_07_28) {
                    self.changes.send_modify(|changes| *changes += 1);
                } else {
                    context.peer.notify_tool_list_changed().await.expect("the client is there");
                }
                "changed".to_owned()
            }
            "input" => {
                let given = params.input_responses.unwrap_or_default();
                let (Some(user), Some(place)) = (given.get("name"), given.get("where")) else {
                    return Ok(asks().into());
                };
                if params.request_state.as_deref() != Some(STATE) {
                    return Err(ErrorData::invalid_params("another state", None));
                }
                let (user, place) = (&user["content"]["name"], &place["roots"][0]["uri"]);
                format!("{} in {}", user.as_str().unwrap_or_default(), place.as_str().unwrap_or_default())
            }
            other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        // From the first on: rmcp acknowledges before it calls this, so a change may have come in between.
        let (mut changes, mut told) = (self.changes.subscribe(), 0);
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                Ok(now) = changes.wait_for(|changes| *changes != told) => told = *now,
            }
            context.sink().notify_tool_list_changed().await.expect("the client is there");
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let service = Small::default().serve(rmcp::transport::stdio()).await.expect("the client opens");
    service.waiting().await.expect("the service ends well");
}
