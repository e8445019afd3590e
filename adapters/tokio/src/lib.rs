//! mcp-wire on tokio: spawn, call and serve MCP servers over stdio or any byte stream.

mod server;
#[cfg(unix)]
mod stdio;

pub use mcp_wire::server::{Ended, LogLevel};
pub use mcp_wire_driver::server::{
    Builder as ServerBuilder, Call, Cancelled, Publisher, RpcError, ServeError, Server, StopHandle,
};
#[cfg(unix)]
pub use server::stdio;
pub use server::{ServeExt, Transport};
