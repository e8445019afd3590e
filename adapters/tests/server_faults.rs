//! A server on streams that misbehave at any call, and a serving that is dropped at any point. Whatever happens, no request is answered
//! twice, nothing hangs, no handler stays behind, and the client reads whole lines; on streams that do not break nothing is lost either.
//!
//! A seed that fails is told; `MCP_WIRE_FAULT_SEEDS=17..18` tries that one alone, and a larger range more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::rt::adapter::{Call, Ended, RpcError, ServeError, ServeExt, Server, Transport};
use crate::rt::io::BufReader;
use crate::rt::{self, AsyncBufReadExt, AsyncWriteExt, block_on, block_on_threads, future};
use crate::support::faulty::{Faulty, Random};
use crate::support::pipe::{Reader, pipes};
use crate::support::server::{cancel, request, request_with};
use crate::support::{each_seed, in_time};

/// What a run allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Faults {
    /// Nothing that loses anything.
    Benign,
    /// A stream breaks.
    Breaking,
    /// The serving is dropped.
    Dropping,
}

struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn handle(call: Call, alive: Arc<AtomicUsize>) -> Result<Value, RpcError> {
    alive.fetch_add(1, Ordering::SeqCst);
    let _alive = Alive(alive);
    let n = call.params::<Value>()?["n"].as_u64().unwrap_or(0);
    match call.method() {
        "at_once" => {}
        "later" => {
            for step in 1..=n % 9 {
                // Nobody needs to know that nobody listens any more.
                let _ = call.progress(step as f64, None, None);
                future::yield_now().await;
            }
        }
        _ => {
            call.cancelled().await;
        }
    }
    Ok(json!({"n": n, "pad": "x".repeat(usize::try_from(n % 5).expect("small") * 100)}))
}

/// Reads answers to the end, and counts them. Half a line may be the last thing that comes.
async fn read_answers(reader: Reader, whole: bool) -> BTreeMap<u64, u32> {
    let (mut reader, mut answers, mut progress) = (BufReader::new(reader), BTreeMap::new(), BTreeMap::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).await.expect("UTF-8") == 0 {
            return answers;
        }
        if !line.ends_with('\n') {
            assert!(!whole, "half a line at the end: {line}");
            return answers;
        }
        let frame: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("torn: {error}: {line}"));
        if let Some(n) = frame["id"].as_u64() {
            // It shuts down, or the request was the line that is cut.
            let ended = !whole && [-32603, -32700].contains(&frame["error"]["code"].as_i64().unwrap_or(0));
            assert!(ended || frame["result"]["n"] == n, "{line}");
            *answers.entry(n).or_default() += 1;
        } else if frame["method"] == "notifications/progress" {
            let token = frame["params"]["progressToken"].as_u64().expect("ours");
            let step = frame["params"]["progress"].as_u64().expect("a number");
            assert!(progress.insert(token, step) < Some(step), "progress goes on: {line}");
            assert!(!answers.contains_key(&token), "nothing after the answer: {line}");
        } else {
            // The line that is cut may have no id.
            assert!(!whole && frame["error"]["code"] == -32700, "nobody asked for {line}");
        }
    }
}

async fn run(seed: u64, faults: Faults) {
    let mut random = Random::new(seed);
    let ((reader, mut writer), (their_reader, their_writer)) =
        pipes(1 + usize::try_from(random.below(500)).expect("small"));
    let breaks = |random: &mut Random| (faults == Faults::Breaking && random.one_in(2)).then(|| random.below(200));
    let (reads_until, writes_until) = (breaks(&mut random), breaks(&mut random));
    let input = rt::reader(Faulty::new(their_reader, random.fork(), reads_until));
    let output = rt::writer(Faulty::new(their_writer, random.fork(), writes_until));

    let alive = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&alive);
    let serving = Server::builder("test", "1")
        .drain(Duration::from_millis(20))
        .serve(Transport::from((input, output)), move |call| handle(call, Arc::clone(&counted)));
    let (stop, stopped) = rt::channel::bounded::<()>(1);
    let serving = rt::spawn(future::or(async { Some(serving.await) }, async move {
        _ = stopped.recv().await;
        None
    }));
    let benign = faults == Faults::Benign;
    let reading = rt::spawn(read_answers(reader, benign));

    let requests = 5 + random.below(25);
    let drop_at = random.below(requests);
    let mut cancelled = Vec::new();
    for n in 1..=requests {
        let method = ["at_once", "later", "until_cancelled"][usize::try_from(random.below(3)).expect("small")];
        let mut lines = request_with(n, method, json!({"n": n}), json!({"progressToken": n}));
        if method == "until_cancelled" || random.one_in(5) {
            lines += &cancel(n);
            cancelled.push(n);
        }
        // Whole, or in two pieces.
        let (head, tail) = lines.split_at(usize::try_from(random.below(lines.len() as u64)).expect("small"));
        for piece in [head, tail] {
            let written = in_time("a write", writer.write_all(piece.as_bytes())).await;
            assert!(written.is_ok() || !benign, "{written:?}");
            if random.one_in(2) {
                future::yield_now().await;
            }
        }
        if faults == Faults::Dropping && n == drop_at {
            let _ = stop.try_send(());
        }
    }
    if benign {
        let last = request(0, "at_once", json!({"n": 0}));
        in_time("the last request", writer.write_all(last.as_bytes())).await.expect("it is read");
    }
    drop(writer);
    let ended = in_time("the end of serving", serving).await;
    let answers = in_time("the end of the answers", reading).await;
    drop(stop);
    match &ended {
        None => assert_eq!(faults, Faults::Dropping),
        Some(Ok(Ended::EndOfInput)) => {}
        Some(Ok(Ended::PeerGone) | Err(ServeError::Read(_))) if faults == Faults::Breaking => {}
        Some(other) => panic!("{other:?}"),
    }
    assert!(answers.values().all(|count| *count == 1), "answered twice: {answers:?}");
    if benign {
        for n in 0..=requests {
            assert!(answers.contains_key(&n) || cancelled.contains(&n), "{n} was not answered: {answers:?}");
        }
    }
    in_time("the handlers' end", async {
        while alive.load(Ordering::SeqCst) > 0 {
            future::yield_now().await;
        }
    })
    .await;
}

// FRM-10, case 032, case 107: streams that are not ready, interrupted, short, or keep bytes until they are flushed: nothing is lost or torn
#[test]
fn a_server_loses_nothing_on_difficult_streams() {
    each_seed(|seed| block_on(run(seed, Faults::Benign)));
}

// The same, with the handlers and the serving on threads of their own
#[test]
fn a_server_beside_its_handlers_loses_nothing_on_difficult_streams() {
    each_seed(|seed| block_on_threads(run(seed, Faults::Benign)));
}

// SHD-07: a stream that ends or fails at any call ends the serving, and its handlers with it
#[test]
fn a_server_ends_when_a_stream_breaks() {
    each_seed(|seed| block_on(run(seed, Faults::Breaking)));
}

// SHD-07: a serving that is dropped at any point leaves no handler
#[test]
fn a_server_that_is_dropped_leaves_nothing() {
    each_seed(|seed| block_on(run(seed, Faults::Dropping)));
}
