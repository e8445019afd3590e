//! `mcp-demo-server` from outside, on each runtime: standard streams of every kind. The name of each module is `on_` and the runtime's.

#![cfg(unix)]
#![allow(clippy::incompatible_msrv, reason = "the programs promise an older compiler, the tests do not")]
#![allow(clippy::duplicate_mod, reason = "the same tests, on each runtime")]

mod support;

#[path = "programs/demo_streams.rs"]
mod on_poll;
#[path = "programs/demo_streams.rs"]
mod on_smol;
#[path = "programs/demo_streams.rs"]
mod on_tokio;
