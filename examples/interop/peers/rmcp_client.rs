//! A client made with rmcp, the published Rust SDK, against a demo server: it does one thing of each kind and prints what it saw as one
//! JSON object, for the interop suite to check. It knows nothing of mcp-wire. Usage: rmcp_client modern|legacy SERVER [ARG]...

#![expect(deprecated, reason = "what rmcp deprecates is what the legacy era is made of")]

#[path = "../../tests/support/rmcp_handler.rs"]
mod rmcp_handler;

use std::env;
use std::error::Error;

use rmcp::model::{ProtocolVersion, ServerNotification, SubscribeRequestParams, SubscriptionFilter};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientLifecycleMode, ClientServiceExt, ServiceError};
use rmcp_handler::{Handler, begin, steps, text, tool, until};
use serde_json::{Value, json};
use tokio::process::Command;

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

    let (slept, progress) = steps(&client, &handler).await?;
    saw.insert("slept".into(), slept.into());
    saw.insert("progress".into(), progress.into());

    let asleep = begin(&client, tool("sleep", json!({"ms": 600_000, "steps": 1000}))).await?;
    until(|| handler.progress().len() > 3).await;
    asleep.cancel(Some("enough".to_owned())).await?;
    saw.insert("cancelled".into(), true.into());
    let echo = client.peer().call_tool(tool("echo", json!({"text": "still here"}))).await?;
    saw.insert("echo".into(), text(&echo).into());

    let failed = client.peer().call_tool(tool("fail", json!({"code": -5, "message": "no"}))).await;
    if let Err(ServiceError::McpError(error)) = failed {
        saw.insert("error".into(), error.code.0.into());
    }
    // On the service, not on its peer: it is the service that takes the second round of a modern question.
    let answer = client.call_tool(tool("ask", json!({"question": "Why?"}))).await?;
    saw.insert("answer".into(), text(&answer).into());

    let (counter, touch) = ("demo://counter", || tool("touch", json!({"uri": "demo://counter"})));
    let updated = if legacy {
        client.peer().subscribe(SubscribeRequestParams::new(counter)).await?;
        client.peer().call_tool(touch()).await?;
        until(|| !handler.updates().is_empty()).await;
        handler.updates().first().cloned()
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
