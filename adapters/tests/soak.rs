//! The soak: clients of misbehaving children of every kind, started, used and ended in every way at random moments, eight at a time. After
//! it nothing is left: no process, no zombie, no descriptor, no thread, no memory to speak of. It has a process to itself, and one test.
//!
//! `MCP_WIRE_SOAK=2000` says how many rounds; `MCP_WIRE_SEED` which ones. A seed gives the same rounds, though not at the same moments.

#![cfg(target_os = "linux")]

#[path = "../driver/tests/support/mod.rs"]
mod children;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use self::children::{TempDir, children, misbehave::descriptors, misbehaving, threads};
use crate::rt::adapter::{Client, ClientEvent, Events, ServerCommand, Stderr};
use crate::rt::{self, block_on_threads, future};
use crate::support::faulty::Random;
use crate::support::in_time;

const MS: fn(u64) -> Duration = Duration::from_millis;
/// Rounds at a time.
const AT_A_TIME: u64 = 8;
/// A variable that all of a round's processes have, by which they are found: they stay in their group, or they leave it.
const STAYS: &str = "MCP_WIRE_SOAK_CHILD=stays";
const LEAVES: &str = "MCP_WIRE_SOAK_CHILD=leaves";

#[global_allocator]
static ALLOCATED: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, usize::MAX);

/// How often each thing happened.
type Counts = Arc<Mutex<BTreeMap<&'static str, u64>>>;

/// A child and its name. F is a file of its own.
const KINDS: [(&str, &[&str]); 24] = [
    ("serves", &["serve"]),
    ("serves, exits", &["serve:2", "exit:3"]),
    ("serves once, crashes", &["serve:1", "crash:11"]),
    ("serves, half a line, exits", &["serve:2", "half", "exit:0"]),
    ("exits at once", &["exit:1"]),
    ("exits on the first byte", &["first-byte", "exit:0"]),
    ("half a line, exits", &["half", "exit:0"]),
    ("silent", &["sleep"]),
    ("reads only", &["drain"]),
    ("ignores the end of its input", &["serve", "sleep"]),
    ("deaf", &["deaf", "serve", "sleep"]),
    ("handles SIGTERM", &["on-term:F", "serve:2", "sleep"]),
    ("stops itself", &["serve:1", "stop"]),
    ("closes its output", &["serve:1", "close:stdout", "sleep"]),
    ("closes its output at once", &["close:stdout", "sleep"]),
    ("closes its input", &["serve:1", "close:stdin", "sleep"]),
    ("floods its output", &["serve:1", "flood:stdout"]),
    ("floods its output at once", &["flood:stdout"]),
    ("floods standard error", &["flood:stderr:200000", "serve"]),
    ("a helper holds everything", &["helper:F:ioe", "serve:2"]),
    ("a deaf helper holds the output", &["helper:F:od", "serve"]),
    ("a helper stays behind", &["helper:F:-", "serve:1", "exit:0"]),
    ("a helper leaves the group", &["helper:F:x", "serve"]),
    ("crashes the first time", &["once:F:crash:9", "serve"]),
];

/// Starts, uses and ends one client.
async fn round(mut random: Random, counts: Counts) {
    let dir = TempDir::new();
    let (name, steps) = KINDS[usize::try_from(random.below(KINDS.len() as u64)).expect("small")];
    let steps: Vec<String> = steps.iter().map(|step| step.replace('F', &dir.file("F"))).collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let stderr = [Stderr::Lines, Stderr::Null][usize::try_from(random.below(2)).expect("small")];
    let mark = if name == "a helper leaves the group" { LEAVES } else { STAYS };
    let (variable, value) = mark.split_once('=').expect("a variable");
    let command = match random.below(30) {
        0 => ServerCommand::new("no-such-program-anywhere"),
        _ => misbehaving(&steps).env(variable, value).stderr(stderr),
    };
    let mut builder = Client::builder("soak", "1.0")
        .grace(MS(30))
        .start_timeout(MS(200 + random.below(2000)))
        .probe_timeout(MS(100 + random.below(1000)))
        .restarts(u32::try_from(random.below(3)).expect("small"))
        .restart_delay(MS(1), MS(3))
        .line_limit(64 << 10);
    let mut events = builder.events();
    let (client, driver) = builder.start_parts(command).expect("a good configuration");
    let (stop, stopped) = rt::channel::bounded::<()>(1);
    drop(rt::spawn(future::or(driver, async move { _ = stopped.recv().await })));
    count(&counts, name);
    use_it(&client, &mut random).await;
    let how = end(client, &stop, &mut random).await;
    count(&counts, how);
    let starts = closed(&mut events).await;
    *counts.lock().expect("no panic").entry("processes").or_default() += starts;
}

fn count(counts: &Counts, what: &'static str) {
    *counts.lock().expect("no panic").entry(what).or_default() += 1;
}

/// Goes on to a random moment of its life.
async fn use_it(client: &Client, random: &mut Random) {
    match random.below(5) {
        0 => {}
        // The moment is the input here, not something that is waited for.
        1 => rt::sleep(Duration::from_micros(random.below(20_000))).await,
        2 => _ = rt::timeout(MS(300), client.established()).await,
        3 => {
            let calls: Vec<_> = (0..4).map(|n| client.request("x", json!({"n": n})).timeout(MS(150)).send()).collect();
            for call in calls {
                let limit = Duration::from_micros(random.below(50_000));
                if let Some(Ok(result)) = rt::timeout(limit, call).await {
                    assert!(result.as_json().get().contains("\"echo\":"), "{result:?}");
                }
            }
        }
        _ => {
            let _ = rt::timeout(MS(100), client.call::<Value>("x", json!({}))).await;
            client.retry_now();
            rt::sleep(Duration::from_micros(random.below(5_000))).await;
        }
    }
}

/// Ends it, in one of the ways there are.
async fn end(client: Client, stop: &rt::channel::Sender<()>, random: &mut Random) -> &'static str {
    match random.below(6) {
        0 => {
            let _ = in_time("a close", client.close()).await;
            "closed"
        }
        1 => {
            let _ = in_time("a kill", client.kill()).await;
            "killed"
        }
        2 => {
            let closing = client.close();
            rt::sleep(Duration::from_micros(random.below(40_000))).await;
            let _ = in_time("a kill", client.kill()).await;
            let _ = in_time("a close", closing).await;
            "killed while closing"
        }
        3 => {
            drop(client);
            "dropped"
        }
        4 => {
            std::thread::spawn(move || drop(client)).join().expect("no panic");
            "dropped elsewhere"
        }
        _ => {
            let _ = stop.try_send(());
            let _ = in_time("the end", client.closed()).await;
            "lost its driver"
        }
    }
}

/// Waits for the end of the connection. How many processes were started for it.
async fn closed(events: &mut Events) -> u64 {
    let mut starts = 0;
    while let Some(event) = in_time("the end of the events", events.next()).await {
        starts += u64::from(matches!(event, ClientEvent::Started { .. }));
    }
    starts
}

/// So many rounds, eight at a time, on a runtime that is gone afterwards if the runtime can go.
fn soak(rounds: u64, seed: u64, counts: &Counts) {
    let next = Arc::new(AtomicU64::new(0));
    block_on_threads(async {
        let workers: Vec<_> = (0..AT_A_TIME)
            .map(|_| {
                let (next, counts) = (Arc::clone(&next), Arc::clone(counts));
                rt::spawn(async move {
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if n >= rounds {
                            return;
                        }
                        round(Random::new(seed ^ (n << 20)), Arc::clone(&counts)).await;
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await;
        }
    });
}

/// Processes with this mark.
fn marked(mark: &str) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").expect("there is /proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |pid: &i32| {
        let variables = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    pids.filter(has).collect()
}

/// What a process has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Belongings {
    descriptors: usize,
    /// Without those of the pool for blocking work, which smol keeps: as many as it needed at a time, and we do not ask for many.
    threads: usize,
    /// KiB that are allocated.
    allocated: usize,
    /// KiB that the system counts, what the allocator keeps for its threads included.
    resident: usize,
}

impl Belongings {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").expect("there is /proc");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        let resident = resident.trim().trim_end_matches(" kB").parse().expect("a number");
        let allocated = ALLOCATED.allocated() >> 10;
        let kept = threads().iter().filter(|name| !name.starts_with("blocking-")).count();
        Self { descriptors: descriptors().len(), threads: kept, allocated, resident }
    }
}

/// Waits until nothing of the rounds is left, and kills what has left its group, as is its right.
fn settle(before: Option<&Belongings>) -> Belongings {
    children::nothing_is_left();
    children::wait_until("no descendant lives", || marked(STAYS).is_empty());
    for pid in marked(LEAVES) {
        let _ = kill_process(Pid::from_raw(pid).expect("a pid is not 0"), Signal::KILL);
    }
    if let Some(before) = before {
        children::wait_until("no descriptor and no thread more than before", || {
            let now = Belongings::now();
            now.descriptors <= before.descriptors && now.threads <= before.threads
        });
    }
    Belongings::now()
}

// PRC-01, PRC-02, PRC-03, PRC-05, SHD-04, RST-02, case 154, case 161: rounds of every kind leave nothing behind
#[test]
fn rounds_of_every_kind_leave_nothing_behind() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let (rounds, seed) = (number("MCP_WIRE_SOAK", 100), number("MCP_WIRE_SEED", 1));
    // What is made once, for ever, is made now: the executor's thread, the reactor, the allocator's arenas.
    soak(rounds.min(200), seed ^ 0xffff, &Counts::default());
    let before = settle(None);
    let (counts, begun) = (Counts::default(), Instant::now());
    soak(rounds, seed, &counts);
    let took = begun.elapsed();
    let after = settle(Some(&before));
    println!("soak: {rounds} rounds, seed {seed}, {AT_A_TIME} at a time, {:.1} s", took.as_secs_f64());
    for (what, n) in counts.lock().expect("no panic").iter() {
        println!("  {n:6} {what}");
    }
    println!(
        "  before {before:?}\n  after  {after:?}\n  children {:?}, living descendants {:?}",
        children(),
        marked(STAYS)
    );
    // The reactor's tables and the counts above may have grown once. A leak would grow with the rounds.
    let more = after.allocated.saturating_sub(before.allocated);
    assert!(more < 64, "{more} KiB more than before");
}
