//! `adapters/tests/client_foreign_wait.rs`, on smol, in a process of its own.

#[path = "../../tests/client_foreign_wait.rs"]
mod on_smol;
#[path = "../../tests/rt_smol.rs"]
mod rt;
#[path = "../../tests/support/mod.rs"]
mod support;
