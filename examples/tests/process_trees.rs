//! `mcp-call` from outside, on each runtime: the process trees of its servers. The name of each module is `on_` and the runtime's.

#![cfg(target_os = "linux")]
#![allow(clippy::duplicate_mod, reason = "the same tests, on each runtime")]

mod support;

#[path = "programs/process_trees.rs"]
mod on_poll;
#[path = "programs/process_trees.rs"]
mod on_smol;
#[path = "programs/process_trees.rs"]
mod on_tokio;
