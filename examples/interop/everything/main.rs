//! A server with the tools, resources and prompts that the official conformance suite asks for, in both eras and on both
//! runtimes, over standard input and output. It owns what is served under which method; the suite reaches it through `bridge`, of which it knows nothing.

mod content;
mod prompts;
mod questions;
mod resources;
mod rounds;
mod tools;

use std::future::Future;
use std::hash::RandomState;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use mcp_wire_driver::server::{Call, Publisher, RpcError, ServeError, Server};
use serde_json::{Value, json};

/// A sleep of the runtime's.
type Sleep = fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// What the handlers share.
struct Everything {
    publisher: Publisher,
    /// The secret under which the state of a round is signed; a new one each start.
    secret: RandomState,
    sleep: Sleep,
}

/// How long the lists and the resources may be kept. None of them changes, whatever `test_trigger_tool_change` says.
const KEPT_MS: u64 = 300_000;

fn main() -> ExitCode {
    let served = match std::env::args().nth(1).as_deref() {
        Some("tokio") => on_tokio(),
        Some("smol") => on_smol(),
        _ => {
            eprintln!("usage: everything tokio|smol");
            return ExitCode::from(2);
        }
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("everything: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn on_tokio() -> Result<(), ServeError> {
    use mcp_wire_tokio::{ServeExt, stdio};
    let (server, handler) = build(|time| Box::pin(tokio::time::sleep(time)))?;
    server.serve(stdio(), handler).await.map(drop)
}

fn on_smol() -> Result<(), ServeError> {
    use mcp_wire_smol::{ServeExt, stdio};
    let (server, handler) = build(|time| {
        Box::pin(async move {
            smol::Timer::after(time).await;
        })
    })?;
    smol::block_on(server.serve(stdio(), handler)).map(drop)
}

type Answer = Pin<Box<dyn Future<Output = Result<Value, RpcError>> + Send>>;

fn build(sleep: Sleep) -> Result<(Server, impl Fn(Call) -> Answer + Send + Sync + 'static), ServeError> {
    let server = Server::builder("everything", env!("CARGO_PKG_VERSION"))
        .capabilities(json!({
            "tools": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true},
            "prompts": {"listChanged": true},
            "completions": {},
            "logging": {},
        }))
        .build()?;
    let everything = Arc::new(Everything { publisher: server.publisher(), secret: RandomState::new(), sleep });
    Ok((server, move |call| Box::pin(handle(call, everything.clone())) as Answer))
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
