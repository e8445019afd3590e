//! `adapters/tests/server_logs.rs`, on smol, in a process of its own.

#[path = "../../tests/server_logs.rs"]
mod on_smol;
#[path = "../../tests/rt_smol.rs"]
mod rt;
#[path = "../../tests/support/mod.rs"]
mod support;
