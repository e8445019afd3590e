//! What the shared tests have in common, on any runtime: deadlines, pipes in memory, peers written by hand.

#![allow(dead_code, reason = "each test program takes what it needs")]

use std::future::Future;
use std::time::{Duration, Instant};

use crate::rt;

pub(crate) mod client;
pub(crate) mod faulty;
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

/// Runs this for each seed of a range, 150 if `MCP_WIRE_FAULT_SEEDS=FROM..TO` does not say otherwise, and tells the one that fails.
pub(crate) fn each_seed(run: impl Fn(u64)) {
    struct Tell(u64);

    impl Drop for Tell {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("again: MCP_WIRE_FAULT_SEEDS={}..{}", self.0, self.0 + 1);
            }
        }
    }

    let range = std::env::var("MCP_WIRE_FAULT_SEEDS").unwrap_or_else(|_| "0..150".to_owned());
    let (from, to) = range.split_once("..").expect("FROM..TO");
    let number = |text: &str| text.parse::<u64>().expect("FROM..TO are numbers");
    for seed in number(from)..number(to) {
        let tell = Tell(seed);
        run(seed);
        drop(tell);
    }
}
