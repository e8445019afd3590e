//! mcp-wire on smol: spawn, call and serve MCP servers over stdio or any byte stream.
//!
//! Works on any executor: `smol`, `async-executor`, or `block_on` alone. It moves bytes, sleeps and spawns, and decides nothing: the rules are in [`mcp_wire`], what a user holds and the process tree in
//! [`mcp_wire_driver`].
//!
//! # A client
//!
//! ```no_run
//! use mcp_wire_smol::{Client, Filter, ServerCommand};
//! use serde_json::{Value, json};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::spawn(ServerCommand::new("my-server").arg("--stdio")).await?;
//! let sum: Value = client.call("tools/call", json!({"name": "add", "arguments": {"a": 40, "b": 2}})).await?;
//! let changes = client.listen(Filter::default().tools_list_changed()).await?; // resolves at the acknowledgment
//! drop(changes); // cancels it on the wire
//! let outcome = client.close().await?; // stdin closed, then a grace, SIGTERM, a grace, SIGKILL
//! println!("{sum} {:?}", outcome.exit);
//! # Ok(())
//! # }
//! ```
//!
//! # A server
//!
//! ```no_run
//! use mcp_wire_smol::{Call, ServeExt, Server, stdio};
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder("demo", "1.0").capabilities(&json!({"tools": {}})).build()?;
//! let handler = |call: Call| async move {
//!     match call.method() {
//!         "tools/list" => Ok(json!({"tools": [], "ttlMs": 0, "cacheScope": "private"})),
//!         _ => Err(call.method_not_found()),
//!     }
//! };
//! server.serve(stdio(), handler).await?; // until the input ends
//! # Ok(())
//! # }
//! ```
//!
//! Clients of both eras are served, each request judged by itself; [`ServerBuilder::eras`] narrows that. The handler is the same. What only a legacy
//! client can do (be asked something before the answer) takes [`Call::legacy_client`], which a modern call does not have.

mod client;
mod clock;
mod driver;
#[cfg(unix)]
mod pipe;
#[cfg_attr(windows, path = "process_windows.rs")]
mod process;
#[cfg(windows)]
mod pump;
mod server;
#[cfg_attr(windows, path = "stdio_windows.rs")]
mod stdio;

pub use client::{Builder as ClientBuilder, Client};
pub use driver::Driver;
pub use mcp_wire::server::{Ended, LogLevel};
pub use mcp_wire::{Cause, Delivery, Era, Eras, Filter, Json, JsonBuf, SendError};
pub use mcp_wire_driver::client::{
    CallError, ClientEvent, CloseError, Events, Listen, ListenEvent, Notification, Notifications, StartError,
    StartFailedKind,
};
pub use mcp_wire_driver::process::{Environment, ServerCommand, SpawnError, Stderr};
pub use mcp_wire_driver::server::{
    Builder as ServerBuilder, Call, Cancelled, LegacyClient, LegacyRequest, LegacyRequestError, Publisher, RpcError,
    ServeError, Server, StopHandle, TaskProgress,
};
pub use server::{ServeExt, Transport, stdio};
// All other words: the core, and what the runtimes share (`mcp_wire_driver::client::Call` is a request of the client's).
#[doc(no_inline)]
pub use {mcp_wire, mcp_wire_driver};
