//! The hand-over between handles, handlers and driver, in every order of their steps (`.ci/model`): the real code, with locks and flags of the
//! checker `loom`. It owns how far a search goes; what may happen at once is in the files below it.
//!
//! A step is what happens between two locks. What the checker finds is a wake that is lost (everybody sleeps: it calls that a deadlock), two locks taken
//! in both orders, and a broken assertion. loom and not a random scheduler, since there are few locks: all orders can be tried.

mod client;
mod server;
mod tasks;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tries each order in which the two threads of a scenario may run, with up to three switches where a thread could have gone on: most faults of
/// this kind need one or two. `MCP_WIRE_MODEL_PREEMPTIONS` sets another bound.
fn explore(scenario: impl Fn() + Send + Sync + 'static) {
    explore_up_to(3, scenario);
}

/// The same for three threads, with up to two switches: with three it would take minutes.
fn explore_three(scenario: impl Fn() + Send + Sync + 'static) {
    explore_up_to(2, scenario);
}

fn explore_up_to(preemptions: usize, scenario: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    let asked = std::env::var("MCP_WIRE_MODEL_PREEMPTIONS").ok();
    builder.preemption_bound = Some(asked.map_or(preemptions, |text| text.parse().expect("a number")));
    builder.max_branches = 10_000;
    let orders = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&orders);
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        scenario();
    });
    let (thread, orders) = (std::thread::current(), orders.load(Ordering::Relaxed));
    println!("{}: {orders} orders", thread.name().unwrap_or("?"));
    assert!(orders > 1, "nothing ran at once");
}
