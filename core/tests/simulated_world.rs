//! Client, server and lifecycle in one simulated world, with every fault that a pipe and a process can have.
//!
//! `cargo test --test simulated_world` runs a fixed set of seeds. `MCP_WIRE_SEED=n` replays one with its whole history printed (add
//! `-- --nocapture`), `MCP_WIRE_SEEDS=a..b` runs a range, `MCP_WIRE_MINUTES=n` runs new seeds for that long; each
//! prints what it saw. A seed that fails prints itself.

// The world's clock is virtual; only the minutes of a long run are real ones.
#![allow(clippy::disallowed_types)]

#[path = "support/world/mod.rs"]
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use world::{Record, Summary, Trace, World};

/// The seeds of a normal run: a few seconds in a debug build.
const SEEDS: core::ops::Range<u64> = 0..300;

fn run(seed: u64) -> Summary {
    let history = |record| {
        let trace = Trace::new(record);
        let end = catch_unwind(AssertUnwindSafe(|| World::new(seed, &trace).run()));
        (trace, end)
    };
    match history(Record::Nothing).1 {
        Ok(summary) => summary,
        Err(panic) => {
            // One seed is one history: the second time it is written down.
            history(Record::End).0.print();
            println!("the simulated world failed: replay with MCP_WIRE_SEED={seed}");
            resume_unwind(panic);
        }
    }
}

/// What a run saw. Violations are not in it: the first one ends the run.
fn report(seeds: u64, all: &Summary) {
    println!("{seeds} histories, {} steps, no violation", all.acts);
    println!("{} requests ended, {} of them with a result", all.ended, all.results);
    println!(
        "{} lives, {} restarts, {} of the legacy era, {} questions answered",
        all.lives, all.restarts, all.legacy, all.answered
    );
    println!("{} faults:", all.faults.values().sum::<u64>());
    for (kind, times) in &all.faults {
        println!("{times:>12}  {kind}");
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn add(all: &mut Summary, one: Summary) {
    all.acts += one.acts;
    all.ended += one.ended;
    all.results += one.results;
    all.lives += one.lives;
    all.restarts += one.restarts;
    all.legacy += one.legacy;
    all.answered += one.answered;
    for (kind, times) in one.faults {
        *all.faults.entry(kind).or_default() += times;
    }
}

/// RST-02, RST-06, SHD-02, CAN-02, LIM-04 and the one invariant above all: every request ends exactly once.
#[test]
fn every_request_ends_once_whatever_happens() {
    let number = |text: &str| text.trim().parse::<u64>().expect("a number");
    if let Some(seed) = variable("MCP_WIRE_SEED") {
        let summary = World::new(number(&seed), &Trace::new(Record::Aloud)).run();
        println!("seed {seed}: {summary:?}");
        return;
    }
    let (range, minutes) = if let Some(range) = variable("MCP_WIRE_SEEDS") {
        let (from, to) = range.split_once("..").expect("a range a..b");
        (number(from)..number(to), None)
    } else if let Some(minutes) = variable("MCP_WIRE_MINUTES") {
        let from = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
        (from << 20..u64::MAX, Some(Duration::from_secs(60 * number(&minutes))))
    } else {
        (SEEDS, None)
    };
    let start = Instant::now();
    let (mut all, mut seeds) = (Summary::default(), 0_u64);
    for seed in range {
        if minutes.is_some_and(|limit| start.elapsed() >= limit) {
            break;
        }
        add(&mut all, run(seed));
        seeds += 1;
    }
    report(seeds, &all);
    if seeds >= 200 {
        // A world in which nothing happens proves nothing.
        assert!(all.results > seeds && all.restarts > seeds / 10 && all.ended > 5 * seeds, "{all:?}");
        assert!(all.acts > 200 * seeds && all.faults.len() > 40, "{all:?}");
        assert!(all.legacy > seeds / 10 && all.answered > seeds / 4, "{all:?}");
    }
}

/// The same seed is the same history, always: the core has no clock and no chance of its own (TMO-05).
#[test]
fn one_seed_is_one_history() {
    for seed in [3, 17, 99] {
        assert_eq!(format!("{:?}", run(seed)), format!("{:?}", run(seed)));
    }
}
