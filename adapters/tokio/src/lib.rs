//! mcp-wire on tokio: spawn, call and serve MCP servers over stdio or any byte stream.

mod client;
mod clock;
mod driver;
#[cfg(unix)]
mod process;
mod server;
#[cfg(unix)]
mod stdio;

pub use client::{Builder as ClientBuilder, Client};
pub use driver::Driver;
pub use mcp_wire::server::{Ended, LogLevel};
pub use mcp_wire::{Cause, Delivery, Filter, Json, JsonBuf, SendError};
pub use mcp_wire_driver::client::{
    CallError, ClientEvent, CloseError, Events, Listen, ListenEvent, Notification, Notifications, StartError,
    StartFailedKind,
};
pub use mcp_wire_driver::process::{Environment, ServerCommand, SpawnError, Stderr};
pub use mcp_wire_driver::server::{
    Builder as ServerBuilder, Call, Cancelled, Publisher, RpcError, ServeError, Server, StopHandle,
};
#[cfg(unix)]
pub use server::stdio;
pub use server::{ServeExt, Transport};
// All other words: the core, and what the runtimes share (`mcp_wire_driver::client::Call` is a request of the client's).
#[doc(no_inline)]
pub use {mcp_wire, mcp_wire_driver};
