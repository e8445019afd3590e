//! `adapters/tests/soak.rs`, on tokio, in a process of its own.

#[path = "../../tests/soak.rs"]
mod on_tokio;
#[path = "../../tests/rt_tokio.rs"]
mod rt;
#[path = "../../tests/support/mod.rs"]
mod support;
