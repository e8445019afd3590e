//! `mcp-call` from outside, on each runtime: servers of either era. The name of each module is `on_` and the runtime's.

#![cfg(target_os = "linux")]
#![allow(clippy::duplicate_mod, reason = "the same tests, on each runtime")]

mod support;

#[path = "programs/call_eras.rs"]
mod on_poll;
#[path = "programs/call_eras.rs"]
mod on_smol;
#[path = "programs/call_eras.rs"]
mod on_tokio;
