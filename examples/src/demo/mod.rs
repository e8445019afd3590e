//! Owns `mcp-demo-server`: a server with one tool for each thing that a client should be tried against. It must not know frames;
//! the adapter does.

mod args;
mod describe;
#[cfg(unix)]
mod poll;
mod resources;
mod serve;
mod smol;
mod tools;

pub use serve::{Host, main, serve_tokio};
