//! A server with the tools, resources and prompts that the official conformance suite asks for, in both eras, over standard input and
//! output. It owns what is served under which method; the suite reaches it through `bridge`, of which it knows nothing.

mod content;
mod prompts;
mod questions;
mod resources;
mod rounds;
mod tools;

use std::hash::RandomState;
use std::sync::Arc;

use mcp_wire_tokio::{Call, Publisher, RpcError, ServeExt, Server, stdio};
use serde_json::{Value, json};

/// What the handlers share.
struct Everything {
    publisher: Publisher,
    /// The secret under which the state of a round is signed; a new one each start.
    secret: RandomState,
}

/// How long the lists and the resources may be kept. None of them changes, whatever `test_trigger_tool_change` says.
const KEPT_MS: u64 = 300_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("everything", env!("CARGO_PKG_VERSION"))
        .capabilities(json!({
            "tools": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true},
            "prompts": {"listChanged": true},
            "completions": {},
            "logging": {},
        }))
        .build()?;
    let everything = Arc::new(Everything { publisher: server.publisher(), secret: RandomState::new() });
    server.serve(stdio(), move |call: Call| handle(call, everything.clone())).await?;
    Ok(())
}

async fn handle(call: Call, everything: Arc<Everything>) -> Result<Value, RpcError> {
    match call.method() {
        "tools/list" => Ok(tools::list()),
        "tools/call" => tools::call(&call, &everything).await,
        "resources/list" => Ok(resources::list()),
        "resources/templates/list" => Ok(resources::templates()),
        "resources/read" => resources::read(&call),
        "prompts/list" => Ok(prompts::list()),
        "prompts/get" => prompts::get(&call).await,
        "completion/complete" => prompts::complete(&call),
        _ => Err(call.method_not_found()),
    }
}
