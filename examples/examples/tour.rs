//! The first look: starts `mcp-demo-server` (this program once more), and shows a call with progress, a cancellation, a listen and a
//! graceful end.  `cargo run -p mcp-wire-examples --example tour`

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mcp_wire_tokio::{Client, Filter, ListenEvent, ServerCommand};
use serde_json::{Value, json};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return Ok(mcp_wire_examples::demo::main([]));
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(tour())?;
    Ok(ExitCode::SUCCESS)
}

fn tool(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

async fn tour() -> Result<(), Box<dyn Error>> {
    println!("1. Start a server.");
    let client = Client::spawn(ServerCommand::new(std::env::current_exe()?).arg("serve")).await?;
    let (pid, version) = (client.pid().unwrap_or_default(), client.version().unwrap_or_default());
    println!("   mcp-demo-server runs as process {pid} and speaks revision {version}.");

    println!("2. A call with progress: `sleep` for a second, in five steps.");
    let params = tool("sleep", json!({"ms": 1000, "steps": 5}));
    let mut call = client.request("tools/call", params).progress().timeout(Duration::from_secs(10)).send();
    while let Some(note) = call.next_notification().await {
        let params: Value = note.params.map_or(Ok(Value::Null), |params| params.as_json().deserialize())?;
        println!("   progress {} of {}", params["progress"], params["total"]);
    }
    println!("   result: {}", first_text(&call.await?.as_json().deserialize()?));

    println!("3. A cancellation: `sleep` for an hour, given up after 0.2 seconds by dropping the call.");
    let asleep = client.call_raw("tools/call", tool("sleep", json!({"ms": 3_600_000})));
    let given_up = tokio::time::timeout(Duration::from_millis(200), asleep).await.is_err();
    let start = Instant::now();
    let echo: Value = client.call("tools/call", tool("echo", json!({"text": "at your service"}))).await?;
    println!("   given up: {given_up}. The next call takes {:?}: {}.", start.elapsed(), first_text(&echo));

    println!("4. A listen: changes of demo://counter, which the tool `touch` makes.");
    let mut changes = client.listen(Filter::default().resource("demo://counter")).await?;
    for _ in 0..2 {
        client.call_raw("tools/call", tool("touch", json!({"uri": "demo://counter"}))).await?;
        if let Some(ListenEvent::Notification(note)) = changes.next().await {
            let counter: Value = client.call("resources/read", json!({"uri": "demo://counter"})).await?;
            println!("   {}: it is {} now", note.method, counter["contents"][0]["text"]);
        }
    }

    println!("5. A graceful end: the server's input is closed, and it ends by itself.");
    let start = Instant::now();
    let outcome = client.close().await?;
    while let Some(event) = changes.next().await {
        println!("   the listen: {event:?}");
    }
    let exit = outcome.exit.map_or_else(|| "gone".to_owned(), |exit| exit.to_string());
    println!("   process {pid} ended with {exit} after {:?}.", start.elapsed());
    Ok(())
}

fn first_text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or("(no text)")
}
