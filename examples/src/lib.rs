//! Owns the two programs of the project: [`call`] is `mcp-call`, [`demo`] is `mcp-demo-server`. It must not know the protocol:
//! whatever a program says about a frame, it was told by the adapter below.

pub mod call;
pub mod demo;
#[cfg(unix)]
pub mod poll;
mod runtime;
