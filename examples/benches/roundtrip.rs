//! Round trips, pipelining and large echoes over a real child: ours against the bare pipe, tokio pipes without JSON, a hand-written client
//! and rmcp. Prints ratios of one run, in interleaved rounds; says no absolute time that anybody should quote.
//!
//! `cargo bench -p mcp-wire-examples --bench roundtrip [-- rt|pipelined|large|idle]`, `ROUNDS=5`.

#[path = "support/clients.rs"]
mod clients;
#[path = "support/servers.rs"]
mod servers;
#[path = "support/stats.rs"]
mod stats;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clients::Client;
use serde_json::{Value, json};

/// Line lengths of rmcp for an echo of 200 bytes, used by everybody who sends no JSON.
const REQUEST: usize = 499;
const RESPONSE: usize = 319;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["server", kind] => server(kind),
        ["client", kind, phase, place, n] => {
            if place == "pinned" {
                stats::pin();
            }
            let n = n.parse().expect("a number of calls");
            println!("{}", client(kind, phase, n));
        }
        [] => ["rt", "pipelined", "large", "idle"].into_iter().for_each(table),
        [phase] => table(phase),
        _ => panic!("usage: roundtrip [rt|pipelined|large|idle]"),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built")
}

fn server(kind: &str) {
    match kind {
        "pipe" => servers::pipe(RESPONSE),
        "pipe-echo" => servers::pipe(0),
        "hand" => runtime().block_on(servers::hand()),
        "rmcp" => runtime().block_on(servers::rmcp()),
        "ours" => runtime().block_on(servers::ours()),
        "ours-json" => runtime().block_on(servers::ours_json()),
        other => panic!("no server {other}"),
    }
}

fn client(kind: &str, phase: &str, n: usize) -> Value {
    let me = std::env::current_exe().expect("the own path is known").to_string_lossy().into_owned();
    let command = |server: &str| vec![me.clone(), "server".to_owned(), server.to_owned()];
    if kind == "pipe" {
        let (server, request, window) = match phase {
            "rt" => ("pipe", REQUEST, 1),
            "pipelined" => ("pipe", REQUEST, 64),
            _ => ("pipe-echo", (1 << 20) + 256, 1),
        };
        let mut laps = clients::pipe_ping_pong(&command(server), request, window, n);
        let secs = laps.iter().sum::<u64>() as f64 * window as f64 / 1e9;
        laps.sort_unstable();
        return json!({"p50": stats::percentile(&laps, 0.5), "rps": n as f64 / secs, "client_cpu": 0, "server_cpu": 0});
    }
    runtime().block_on(async {
        match kind {
            "tokio" => spawned(clients::TokioPipe::connect(&command("pipe"), REQUEST), phase, n).await,
            "hand" if phase == "idle" => idle(n, async || clients::Hand::connect(&command("hand"))).await,
            "rmcp" if phase == "idle" => idle(n, async || clients::Rmcp::connect(&command("rmcp")).await).await,
            "ours" if phase == "idle" => idle(n, async || clients::Ours::connect(&command("ours")).await).await,
            "hand" => spawned(clients::Hand::connect(&command("hand")), phase, n).await,
            "rmcp" => spawned(clients::Rmcp::connect(&command("rmcp")).await, phase, n).await,
            "ours" => spawned(clients::Ours::connect(&command("ours")).await, phase, n).await,
            "ours-json" => spawned(clients::OursJson::connect(&command("ours-json")).await, phase, n).await,
            other => panic!("no client {other}"),
        }
    })
}

async fn server_cpu<C: Client>(client: &C) -> u64 {
    let text = client.call("stats", "").await;
    text.split(' ').next().and_then(|n| n.parse().ok()).expect("the server tells its time")
}

/// One call after another; nanoseconds of each.
async fn sequential<C: Client>(client: &C, n: usize, text: &str) -> Vec<u64> {
    let mut laps = Vec::with_capacity(n);
    for _ in 0..n {
        let start = Instant::now();
        let echo = client.call("echo", text).await;
        laps.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        assert!(echo.is_empty() || echo.len() == text.len(), "the echo is whole");
    }
    laps
}

/// 64 callers that share one client.
async fn pipelined<C: Client>(client: &Arc<C>, n: usize, text: &str) {
    let left = Arc::new(AtomicU64::new(n as u64));
    let callers: Vec<_> = (0..64)
        .map(|_| {
            let (client, left, text) = (client.clone(), left.clone(), text.to_owned());
            tokio::spawn(async move {
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    client.call("echo", &text).await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("the caller ends");
    }
}

/// As a task, as callers mostly are: the root of `block_on` costs an extra look at the reactor for each wake.
async fn spawned<C: Client>(client: C, phase: &str, n: usize) -> Value {
    let phase = phase.to_owned();
    tokio::spawn(async move { run(client, &phase, n).await }).await.expect("the bench goes on")
}

async fn run<C: Client>(client: C, phase: &str, n: usize) -> Value {
    let text = if phase == "large" { stats::prose(1 << 20) } else { "x".repeat(200) };
    sequential(&client, (n / 10).clamp(2, 1000), &text).await;
    let client = Arc::new(client);
    let (server_before, client_before, start) = (server_cpu(&*client).await, stats::cpu_us(), Instant::now());
    let mut laps = Vec::new();
    if phase == "pipelined" {
        pipelined(&client, n, &text).await;
    } else {
        laps = sequential(&*client, n, &text).await;
    }
    let (secs, client_after) = (start.elapsed().as_secs_f64(), stats::cpu_us());
    let server_after = server_cpu(&*client).await;
    let Some(client) = Arc::into_inner(client) else { panic!("every caller has ended") };
    client.close().await;
    laps.sort_unstable();
    json!({
        "p50": if laps.is_empty() { 0 } else { stats::percentile(&laps, 0.5) },
        "rps": n as f64 / secs,
        "client_cpu": (client_after - client_before) as f64 / n as f64,
        "server_cpu": (server_after - server_before) as f64 / n as f64,
    })
}

/// Resident memory that each further idle child costs the client.
async fn idle<C: Client>(n: usize, connect: impl AsyncFn() -> C) -> Value {
    let first = connect().await;
    first.call("echo", "x").await;
    let before = stats::memory_kb("VmRSS");
    let mut clients = vec![first];
    for _ in 0..n {
        let client = connect().await;
        client.call("echo", "x").await;
        clients.push(client);
    }
    let each = stats::memory_kb("VmRSS").saturating_sub(before) as f64 / n as f64;
    for client in clients {
        client.close().await;
    }
    json!({"kb": each})
}

/// Runs each peer once a round in a process of its own, and prints the ratios of the medians.
fn table(phase: &str) {
    let rounds = std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    let (kinds, place, n): (&[&str], _, _) = match phase {
        "rt" => (&["pipe", "tokio", "hand", "rmcp", "ours"], "pinned", 10_000),
        "pipelined" => (&["pipe", "hand", "rmcp", "ours"], "free", 20_000),
        "large" => (&["pipe", "hand", "rmcp", "ours", "ours-json"], "free", 50),
        "idle" => (&["hand", "rmcp", "ours"], "free", 50),
        other => panic!("no phase {other}"),
    };
    let mut all: Vec<Vec<Value>> = vec![Vec::new(); kinds.len()];
    for _ in 0..rounds {
        for (kind, samples) in kinds.iter().zip(&mut all) {
            samples.push(sample(kind, phase, place, n));
        }
    }
    let middle = |samples: &[Value], key: &str| {
        let mut values: Vec<f64> = samples.iter().map(|sample| sample[key].as_f64().unwrap_or(0.0)).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!("\n## {phase}, {place}, {rounds} rounds of {n}\n");
    if phase == "idle" {
        println!("| peer | kB for each further child |\n|---|---|");
        for (kind, samples) in kinds.iter().zip(&all) {
            println!("| {kind} | {:.1} |", middle(samples, "kb"));
        }
        return;
    }
    let at = |name: &str| kinds.iter().position(|kind| *kind == name).map(|i| &all[i]);
    println!("| peer | time / pipe | time / tokio pipes | requests/s / rmcp | client CPU / rmcp | server CPU / rmcp |");
    println!("|---|---|---|---|---|---|");
    for (kind, samples) in kinds.iter().zip(&all) {
        let time = |samples: &[Value]| match phase {
            "pipelined" => 1e9 / middle(samples, "rps"),
            _ => middle(samples, "p50"),
        };
        let ratio = |to: Option<&Vec<Value>>, value: &dyn Fn(&[Value]) -> f64| match to {
            Some(other) if value(other) > 0.0 => format!("{:.2}", value(samples) / value(other)),
            _ => "-".to_owned(),
        };
        println!(
            "| {kind} | {} | {} | {} | {} | {} |",
            ratio(at("pipe"), &time),
            ratio(at("tokio"), &time),
            ratio(at("rmcp"), &|s| middle(s, "rps")),
            ratio(at("rmcp"), &|s| middle(s, "client_cpu")),
            ratio(at("rmcp"), &|s| middle(s, "server_cpu")),
        );
    }
}

fn sample(kind: &str, phase: &str, place: &str, n: usize) -> Value {
    let me = std::env::current_exe().expect("the own path is known");
    let n = if kind == "pipe" && phase != "large" { n * 5 } else { n };
    let output = std::process::Command::new(me)
        .args(["client", kind, phase, place, &n.to_string()])
        .output()
        .expect("the bench can start itself");
    assert!(output.status.success(), "{kind} {phase}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one line of JSON")
}
