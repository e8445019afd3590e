//! `adapters/tests/client_foreign_wait.rs`, on tokio, in a process of its own.

#[path = "../../tests/client_foreign_wait.rs"]
mod on_tokio;
#[path = "../../tests/rt_tokio.rs"]
mod rt;
#[path = "../../tests/support/mod.rs"]
mod support;
