//! A client on tokio: starts a server, lists its tools, calls one, and closes it.
//! `cargo run -p mcp-wire-examples --example tokio_client -- target/debug/mcp-demo-server`

use mcp_wire_tokio::{CallError, Client, ServerCommand, Stderr};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Tools {
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
}

#[derive(Deserialize)]
struct Sum {
    #[serde(rename = "structuredContent")]
    content: SumContent,
}

#[derive(Deserialize)]
struct SumContent {
    sum: i64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut command = std::env::args_os().skip(1);
    let program = command.next().ok_or("usage: tokio_client SERVER [ARG]...")?;
    // Its standard error goes on to ours, and its tail explains a start that fails.
    let client = Client::spawn(ServerCommand::new(program).args(command).stderr(Stderr::Tee)).await?;

    let Tools { tools } = client.call("tools/list", json!({})).await?;
    println!("tools: {}", tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>().join(" "));

    let params = json!({"name": "add", "arguments": {"a": 40, "b": 2}});
    match client.call::<Sum>("tools/call", params).await {
        Ok(sum) => println!("40 + 2 = {}", sum.content.sum),
        // What is known of the delivery says whether a retry can do harm.
        Err(CallError::Failed { cause, delivery, .. }) => {
            println!("no answer: {} ({})", cause.as_str(), delivery.as_str());
        }
        Err(error) => return Err(error.into()),
    }

    let outcome = client.close().await?;
    println!("ended: {:?}", outcome.exit);
    Ok(())
}
