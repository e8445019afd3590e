//! `mcp-call` from outside, on each runtime: scripts. The name of each module is `on_` and the runtime's.

#![cfg(unix)]
#![allow(clippy::duplicate_mod, reason = "the same tests, on each runtime")]

mod support;

#[path = "programs/call_script.rs"]
mod on_poll;
#[path = "programs/call_script.rs"]
mod on_smol;
#[path = "programs/call_script.rs"]
mod on_tokio;
