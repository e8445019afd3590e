//! A client on streams that misbehave at any call, with calls, and the driver itself, dropped at any point. Whatever happens, each request
//! ends once, nothing hangs, and the peer reads whole lines; on streams that do not break nothing is lost either.
//!
//! A seed that fails is told; `MCP_WIRE_FAULT_SEEDS=17..18` tries that one alone, and a larger range more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::rt::adapter::{CallError, Cause, ClientEvent};
use crate::rt::io::BufReader;
use crate::rt::{self, AsyncBufReadExt, AsyncWriteExt, block_on, block_on_threads, future};
use crate::support::client::{DISCOVER, builder};
use crate::support::faulty::{Faulty, Random};
use crate::support::pipe::{Reader, Writer, pipes};
use crate::support::{each_seed, in_time};

/// What a run allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Faults {
    /// Nothing that loses anything.
    Benign,
    /// A stream breaks.
    Breaking,
    /// The driver is dropped.
    Dropping,
}

/// What the peer has read: `n` of each call, `n` of each notification, and whether it got the cancellations' ids right.
#[derive(Debug, Default)]
struct Seen {
    calls: Vec<u64>,
    notes: Vec<u64>,
}

/// Answers each call, and says something between, numbered. It reads whole lines only; half a line may be the last thing that it gets.
async fn peer(reader: Reader, mut writer: Writer, whole: bool) -> Seen {
    let (mut reader, mut seen, mut said, mut ids) = (BufReader::new(reader), Seen::default(), 0, BTreeSet::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).await.expect("UTF-8") == 0 {
            return seen;
        }
        if !line.ends_with('\n') {
            assert!(!whole, "half a line at the end: {line}");
            return seen;
        }
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("torn: {error}: {line}"));
        let n = message["params"]["n"].as_u64().unwrap_or(0);
        let answer = match message["method"].as_str().expect("a method") {
            "server/discover" => format!("{DISCOVER}\n"),
            "call" => {
                assert!(ids.insert(message["id"].as_u64()), "an id that was used before: {line}");
                seen.calls.push(n);
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"n\":{n}}}}}\n", message["id"])
            }
            "note" => {
                seen.notes.push(n);
                said += 1;
                let params = json!({"n": said, "pad": "x".repeat(usize::try_from(n % 7).expect("small") * 40)});
                format!("{}\n", json!({"jsonrpc": "2.0", "method": "notifications/said", "params": params}))
            }
            "notifications/cancelled" => {
                assert!(ids.contains(&message["params"]["requestId"].as_u64()), "nobody asked: {line}");
                continue;
            }
            other => panic!("nobody sends {other}"),
        };
        if writer.write_all(answer.as_bytes()).await.is_err() {
            assert!(!whole, "the client closed its input");
            return seen;
        }
    }
}

async fn run(seed: u64, faults: Faults) {
    let mut random = Random::new(seed);
    let ((read, write), (their_read, their_write)) = pipes(1 + usize::try_from(random.below(500)).expect("small"));
    let breaks = |random: &mut Random| (faults == Faults::Breaking && random.one_in(2)).then(|| random.below(150));
    let (reads_until, writes_until) = (breaks(&mut random), breaks(&mut random));
    let read = Faulty::new(read, random.fork(), reads_until);
    let write = Faulty::new(write, random.fork(), writes_until);

    let heard = Arc::new(AtomicU64::new(0));
    let hears = Arc::clone(&heard);
    let mut builder = builder().on_notification(move |note| {
        let params: Value = note.params.expect("params").as_json().deserialize().expect("JSON");
        assert_eq!(params["n"], hears.fetch_add(1, Ordering::SeqCst) + 1, "in order, none lost");
    });
    let mut events = builder.events();
    let (client, driver) = builder.connect_parts(rt::reader(read), rt::writer(write)).expect("a good configuration");
    let (stop, stopped) = rt::channel::bounded::<()>(1);
    let driver = rt::spawn(future::or(driver, async move { _ = stopped.recv().await }));
    let benign = faults == Faults::Benign;
    let server = rt::spawn(peer(their_read, their_write, benign));

    let (mut kept, mut sent, mut handles, mut noted) = (Vec::new(), BTreeSet::new(), BTreeMap::new(), Vec::new());
    let calls = 5 + random.below(25);
    let drop_at = random.below(calls);
    for n in 1..=calls {
        let call = client.request("call", json!({"n": n, "pad": "p".repeat(random.below(120) as usize)})).send();
        sent.insert(n);
        if let Some(handle) = call.handle() {
            handles.insert(handle, 0);
        }
        if random.one_in(2) && client.notify("note", json!({"n": n})).is_ok() {
            noted.push(n);
        }
        // Some are dropped before a byte leaves, some in the middle, some after the end: polled so many times.
        let mut call = Box::pin(call);
        let mut done = None;
        for _ in 0..random.below(12) {
            done = done.or(future::poll_once(&mut call).await);
            future::yield_now().await;
        }
        match (done, random.below(5)) {
            (Some(result), _) => check(n, &result, benign),
            (None, 0) => drop(call),
            (None, 1) => {
                call.cancel("enough");
                match in_time("a cancelled call", call).await {
                    Err(CallError::Failed { cause: Cause::Cancelled, .. }) => {}
                    result => check(n, &result, benign),
                }
            }
            _ => kept.push((n, call)),
        }
        if faults == Faults::Dropping && n == drop_at {
            let _ = stop.try_send(());
        }
    }
    for (n, call) in kept {
        check(n, &in_time("a call", call).await, benign);
    }
    if benign {
        // What was notified before this has been read, and what came of it is here.
        let last = client.request("call", json!({"n": 0})).send();
        in_time("the last call", last).await.expect("a result");
        assert_eq!(heard.load(Ordering::SeqCst), noted.len() as u64, "each notification was answered by one");
    }
    let closed = in_time("the close", client.close()).await;
    assert!(faults == Faults::Dropping || closed.is_ok(), "{closed:?}");
    in_time("the driver", driver).await;
    let seen = in_time("the peer", server).await;
    drop(stop);
    if benign {
        assert_eq!(seen.notes, noted);
    }
    assert!(noted.starts_with(&seen.notes), "{:?} of {noted:?}", seen.notes);
    assert!(seen.calls.iter().all(|n| *n == 0 || sent.remove(n)), "each at most once");
    while let Some(event) = in_time("an event", events.next()).await {
        match event {
            ClientEvent::Result { request, .. }
            | ClientEvent::Error { request, .. }
            | ClientEvent::Failed { request, .. } => {
                *handles.entry(request).or_default() += 1;
            }
            ClientEvent::Dropped { reason, .. } => {
                let broken = faults == Faults::Breaking && reason.as_str() == "truncated";
                assert!(broken || reason.as_str() == "late_response", "{reason:?}");
            }
            _ => {}
        }
    }
    let most = handles.values().max();
    assert!(most <= Some(&1), "ended more than once: {handles:?}");
    // With its driver gone nobody tells of endings, though each call has had its own.
    assert!(faults == Faults::Dropping || handles.values().min() != Some(&0), "not ended: {handles:?}");
}

/// How a call may end that nobody gave up.
fn check(n: u64, result: &Result<mcp_wire::JsonBuf, CallError>, benign: bool) {
    match result {
        Ok(result) => assert_eq!(result.as_json().get(), format!("{{\"n\":{n}}}")),
        // Its answer may be the line that is cut.
        Err(
            CallError::Failed { cause: Cause::Closed | Cause::InvalidResponse { .. }, .. }
            | CallError::Send(_)
            | CallError::Start(_),
        ) if !benign => {}
        Err(error) => panic!("call {n}: {error:?}"),
    }
}

// FRM-10, case 032, case 107: streams that are not ready, interrupted, short, or keep bytes until they are flushed: nothing is lost or torn
#[test]
fn a_client_loses_nothing_on_difficult_streams() {
    each_seed(|seed| block_on(run(seed, Faults::Benign)));
}

// The same, with the calls and the driver on threads of their own
#[test]
fn a_client_beside_its_driver_loses_nothing_on_difficult_streams() {
    each_seed(|seed| block_on_threads(run(seed, Faults::Benign)));
}

// RST-02, FRM-10: a stream that ends or fails at any call: each request ends once, and nothing hangs
#[test]
fn a_client_settles_everything_when_a_stream_breaks() {
    each_seed(|seed| block_on(run(seed, Faults::Breaking)));
}

// case 159: a driver that is dropped at any point: each call resolves
#[test]
fn a_client_settles_everything_when_its_driver_is_dropped() {
    each_seed(|seed| block_on(run(seed, Faults::Dropping)));
}
