//! The edges that both adapters share (`adapters/tests`), on smol.

#[path = "../../tests/all.rs"]
mod on_smol;
#[path = "../../tests/rt_smol.rs"]
mod rt;
#[path = "../../tests/support/mod.rs"]
mod support;
