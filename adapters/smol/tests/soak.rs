//! `adapters/tests/soak.rs`, on smol, in a process of its own.

#[path = "../../tests/soak.rs"]
mod on_smol;
#[path = "../../tests/rt_smol.rs"]
mod rt;
#[path = "../../tests/support/mod.rs"]
mod support;
