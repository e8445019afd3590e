//! What differs between the runtimes in the tests on Windows: here smol.

use std::future::Future;

pub(crate) use mcp_wire_smol::{Client, ClientBuilder, ClientEvent};

use super::windows_support::DEADLINE;

/// Runs it on the runtime, and fails if it takes too long.
pub(crate) fn run<F: Future>(test: F) -> F::Output {
    smol::block_on(smol::future::or(test, async {
        smol::Timer::after(DEADLINE).await;
        panic!("it ends in time");
    }))
}

/// A client that restarts nothing unless told to.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1.0").restarts(0)
}
