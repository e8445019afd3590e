//! What differs between the runtimes in the tests on Windows: here tokio.

use std::future::Future;

pub(crate) use mcp_wire_tokio::{Client, ClientBuilder, ClientEvent};

use super::windows_support::DEADLINE;

/// Runs it on the runtime, and fails if it takes too long.
pub(crate) fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(DEADLINE, test).await.expect("it ends in time") })
}

/// A client that restarts nothing unless told to.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1.0").restarts(0)
}
