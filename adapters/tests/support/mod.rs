//! What the shared tests have in common, on any runtime: deadlines, pipes in memory, peers written by hand.

#![allow(dead_code, reason = "each test program takes what it needs")]

use std::future::Future;
use std::time::{Duration, Instant};

use crate::rt;

pub(crate) mod client;
pub(crate) mod pipe;
pub(crate) mod served;
pub(crate) mod server;

/// After so long a test has hung. Nothing waits for it to pass.
pub(crate) const HANG: Duration = Duration::from_secs(30);

/// Fails the test if it takes too long.
pub(crate) async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    match rt::timeout(HANG, future).await {
        Some(value) => value,
        None => panic!("hung: {what}"),
    }
}

/// Waits for an outside fact, such as the end of a process, by looking again and again.
pub(crate) async fn until(what: &str, mut fact: impl FnMut() -> bool) {
    let started = Instant::now();
    while !fact() {
        assert!(started.elapsed() < HANG, "this never came true: {what}");
        rt::sleep(Duration::from_millis(2)).await;
    }
}
