//! The edges that both adapters share (`adapters/tests`), on tokio.

#[path = "../../tests/all.rs"]
mod on_tokio;
#[path = "../../tests/rt_tokio.rs"]
mod rt;
#[path = "../../tests/support/mod.rs"]
mod support;
