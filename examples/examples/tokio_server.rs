//! A server on tokio, over standard input and output.
//! `cargo run -p mcp-wire-examples --bin mcp-call -- tools/list -- target/debug/examples/tokio_server`

use mcp_wire_tokio::{Call, RpcError, ServeExt, Server, stdio};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("shout", "1.0").capabilities(json!({"tools": {}})).build()?;
    server.serve(stdio(), handle).await?;
    Ok(())
}

/// One request. Requests run side by side; one that is cancelled is dropped by nobody, but what it answers is not written.
async fn handle(call: Call) -> Result<Value, RpcError> {
    match call.method() {
        "tools/list" => Ok(json!({"tools": [tool()], "ttlMs": 60_000, "cacheScope": "public"})),
        "tools/call" => {
            let params: Value = call.params()?;
            let (Some("shout"), Some(text)) = (params["name"].as_str(), params["arguments"]["text"].as_str()) else {
                return Err(RpcError::invalid_params("the only tool is shout, and it wants a text"));
            };
            // Written only if the client asked for progress.
            call.progress(1.0, Some(2.0), Some("taking a breath"))
                .map_err(|error| RpcError::internal(error.to_string()))?;
            // This goes to standard error: the guard keeps stray prints out of the protocol.
            println!("shouting {} bytes", text.len());
            Ok(json!({"content": [{"type": "text", "text": text.to_uppercase()}]}))
        }
        _ => Err(call.method_not_found()),
    }
}

fn tool() -> Value {
    json!({
        "name": "shout",
        "description": "Returns the text in capitals.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    })
}
