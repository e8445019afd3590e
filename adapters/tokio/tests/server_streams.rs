//! A server over any pair of streams: concurrency, cancellation, panics, order, backpressure and the ways to end, all in one process.

mod support;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_wire_tokio::{
    Call, Ended, LogLevel, Publisher, RpcError, ServeError, ServeExt, Server, ServerBuilder, StopHandle, Transport,
};
use serde_json::{Value, json};
use support::{Client, cancel, code, in_time, request, request_with};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinHandle;

/// What the handlers of a test and the test itself share.
#[derive(Debug)]
struct World {
    /// Handlers of `hold` wait for one permit each.
    gate: Semaphore,
    started: AtomicUsize,
    /// Reasons of cancellations that reached a handler.
    cancelled: mpsc::UnboundedSender<Option<String>>,
    /// Handlers alive.
    alive: AtomicUsize,
    kept: Mutex<Option<Arc<Call>>>,
}

struct Alive(Arc<World>);

impl Alive {
    fn new(world: &Arc<World>) -> Self {
        world.alive.fetch_add(1, Ordering::SeqCst);
        Self(world.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn handle(world: Arc<World>, call: Call) -> Result<Value, RpcError> {
    let _alive = Alive::new(&world);
    world.started.fetch_add(1, Ordering::SeqCst);
    match call.method() {
        "echo" => Ok(json!({"echo": call.params::<Value>()?["text"]})),
        "hold" => {
            let permit = world.gate.acquire().await.map_err(|_| RpcError::internal("closed"))?;
            permit.forget();
            Ok(json!({}))
        }
        "until_cancelled" => {
            let reason = call.cancelled().await;
            let _ = world.cancelled.send(reason);
            Ok(json!({"nobody": "reads this"}))
        }
        "panic" => panic!("as the test wants"),
        "panic_later" => {
            tokio::task::yield_now().await;
            panic!("as the test wants")
        }
        "progress" => {
            let steps = call.params::<Value>()?["steps"].as_u64().unwrap_or(0);
            for step in 1..=steps {
                call.progress(step as f64, Some(steps as f64), None)
                    .map_err(|error| RpcError::internal(error.to_string()))?;
                if step % 3 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            Ok(json!({}))
        }
        "log" => {
            call.log(LogLevel::Warning, None, "seen").map_err(|error| RpcError::internal(error.to_string()))?;
            call.log(LogLevel::Debug, None, "not seen").map_err(|error| RpcError::internal(error.to_string()))?;
            Ok(json!({}))
        }
        "big" => {
            let size = call.params::<Value>()?["size"].as_u64().unwrap_or(0);
            Ok(json!({"text": "x".repeat(usize::try_from(size).unwrap_or(0))}))
        }
        "keep" => {
            *world.kept.lock().expect("no panic under it") = Some(Arc::new(call));
            Ok(json!({}))
        }
        "needs_sampling" => {
            call.require_client_capability("sampling")?;
            Ok(json!({}))
        }
        "forbidden_code" => Err(RpcError::new(-32000, "mine")),
        "no_json" => Err(RpcError::invalid_params("no")),
        _ => Err(call.method_not_found()),
    }
}

struct Served {
    client: Client<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>,
    serving: JoinHandle<Result<Ended, ServeError>>,
    world: Arc<World>,
    cancelled: mpsc::UnboundedReceiver<Option<String>>,
    stop: StopHandle,
    publisher: Publisher,
}

fn builder() -> ServerBuilder {
    Server::builder("test", "1").capabilities(json!({"tools": {"listChanged": true}, "logging": {}}))
}

/// Serves over a pipe in memory that holds so many bytes in each direction.
fn serve(builder: ServerBuilder, pipe: usize) -> Served {
    let (ours, theirs) = tokio::io::duplex(pipe);
    let (reader, writer) = tokio::io::split(ours);
    let (sender, cancelled) = mpsc::unbounded_channel();
    let world = Arc::new(World {
        gate: Semaphore::new(0),
        started: AtomicUsize::new(0),
        cancelled: sender,
        alive: AtomicUsize::new(0),
        kept: Mutex::new(None),
    });
    let server = builder.build().expect("a sound configuration");
    let (stop, publisher) = (server.stop_handle(), server.publisher());
    let shared = world.clone();
    let serving = tokio::spawn(server.serve(Transport::stream(theirs), move |call| handle(shared.clone(), call)));
    Served { client: Client::new(reader, writer), serving, world, cancelled, stop, publisher }
}

impl Served {
    async fn ended(self) -> Ended {
        in_time("the end of serving", self.serving).await.expect("serve does not panic").expect("a clean end")
    }

    async fn started(&self, n: usize) {
        in_time("handlers to start", async {
            while self.world.started.load(Ordering::SeqCst) < n {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    async fn none_alive(&self) {
        in_time("handlers to end", async {
            while self.world.alive.load(Ordering::SeqCst) > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

fn ids(frames: &[Value]) -> BTreeSet<i64> {
    frames.iter().filter_map(|frame| frame["id"].as_i64()).collect()
}

#[tokio::test]
async fn a_slow_handler_holds_up_nobody() {
    let mut served = serve(builder(), 4096);
    served.client.send(&request(1, "hold", json!({}))).await;
    served.client.send(&request("two", "echo", json!({"text": "hi"}))).await;
    let frame = served.client.frame().await;
    assert_eq!((&frame["id"], &frame["result"]["echo"]), (&json!("two"), &json!("hi")));
    assert_eq!(frame["result"]["resultType"], "complete"); // MSG-12
    served.world.gate.add_permits(1);
    assert_eq!(served.client.frame().await["id"], 1);
    served.client.close().await;
    assert_eq!(served.ended().await, Ended::EndOfInput);
}

// case 092: the very first handler may speak before it answers. RTE-09: what it says precedes its answer, in order
#[tokio::test]
async fn progress_precedes_the_answer_in_order() {
    let mut served = serve(builder(), 1 << 20);
    for round in 0..20 {
        let token = format!("t{round}");
        served
            .client
            .send(&request_with(round, "progress", json!({"steps": 10}), json!({"progressToken": token})))
            .await;
        let mut last = 0;
        loop {
            let frame = served.client.frame().await;
            if frame["id"] == round {
                break;
            }
            assert_eq!(frame["method"], "notifications/progress");
            assert_eq!(frame["params"]["progressToken"], token);
            let step = frame["params"]["progress"].as_i64().expect("a number");
            assert!(step > last, "{step} after {last}");
            last = step;
        }
        assert_eq!(last, 10, "the last value survives (PRG-05)");
    }
}

// RTE-09: emit after the answer ⇒ an error, and no byte
#[tokio::test]
async fn a_call_that_outlives_its_handler_says_nothing() {
    let mut served = serve(builder(), 4096);
    let meta = json!({"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"});
    served.client.send(&request_with(1, "keep", json!({}), meta)).await;
    assert_eq!(served.client.frame().await["id"], 1);
    let kept = served.world.kept.lock().expect("no panic").take().expect("kept");
    assert!(kept.progress(1.0, None, None).is_err());
    assert!(kept.log(LogLevel::Error, None, "late").is_err());
    in_time("a call that is over", kept.cancelled()).await;
    served.client.close().await;
    assert_eq!(served.client.rest().await, Vec::<Value>::new());
}

// LOG-01: only what the request asked for
#[tokio::test]
async fn a_handler_logs_at_the_level_the_request_asked_for() {
    let mut served = serve(builder(), 4096);
    served.client.send(&request(1, "log", json!({}))).await;
    assert_eq!(served.client.frame().await["id"], 1);
    let meta = json!({"io.modelcontextprotocol/logLevel": "info"});
    served.client.send(&request_with(2, "log", json!({}), meta)).await;
    let frame = served.client.frame().await;
    assert_eq!((&frame["method"], &frame["params"]["data"]), (&json!("notifications/message"), &json!("seen")));
    assert_eq!(served.client.frame().await["id"], 2);
}

// CAN-06: nothing more for a cancelled request, whatever its handler returns. CAN-07: the handler is told, with the reason
#[tokio::test]
async fn a_cancelled_request_is_never_answered() {
    let mut served = serve(builder(), 4096);
    served.client.send(&request(1, "until_cancelled", json!({}))).await;
    served.client.send(&cancel(1)).await;
    let reason = in_time("the cancellation", served.cancelled.recv()).await.expect("told");
    assert_eq!(reason.as_deref(), Some("changed my mind"));
    served.client.send(&request(2, "echo", json!({}))).await;
    assert_eq!(served.client.frame().await["id"], 2);
    served.client.close().await;
    assert_eq!(served.client.rest().await, Vec::<Value>::new());
}

// CAN-09: with all 256 permits taken a cancellation still gets through; the permit comes back, and a waiting request that is cancelled never starts
#[tokio::test]
async fn a_cancellation_gets_through_a_full_house() {
    let mut served = serve(builder(), 64 << 10);
    for id in 0..256 {
        served.client.send(&request(id, "until_cancelled", json!({}))).await;
    }
    served.started(256).await;
    served.client.send(&request("waits", "until_cancelled", json!({}))).await;
    served.client.send(&request("next", "echo", json!({"text": "in"}))).await;
    served.client.send(&cancel("waits")).await;
    assert_eq!(served.world.started.load(Ordering::SeqCst), 256);
    served.client.send(&cancel(7)).await;
    let frame = served.client.frame().await;
    assert_eq!((&frame["id"], &frame["result"]["echo"]), (&json!("next"), &json!("in")));
    assert_eq!(served.world.started.load(Ordering::SeqCst), 257, "the one that waited and was cancelled did not start");
}

// LIM-02: N = 2 and five requests: two run, two wait, one is refused at once
#[tokio::test]
async fn beyond_the_limit_requests_wait_and_then_are_refused() {
    let mut served = serve(builder().max_in_flight(2), 64 << 10);
    for id in 1..=5 {
        served.client.send(&request(id, "hold", json!({}))).await;
    }
    let refused = served.client.frame().await;
    assert_eq!((&refused["id"], code(&refused)), (&json!(5), Some(-32603)));
    assert_eq!(served.world.started.load(Ordering::SeqCst), 2);
    served.world.gate.add_permits(4);
    let mut answered = Vec::new();
    for _ in 0..4 {
        answered.push(served.client.frame().await);
    }
    assert_eq!(ids(&answered), BTreeSet::from([1, 2, 3, 4]));
}

// LIM-02, the option: a full house stops reading, and what waits in the pipe is served once there is room, though no byte arrives then
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_house_that_pauses_when_full_refuses_nobody() {
    let builder = builder().max_in_flight(2).configure(|config| config.pause_when_full = true);
    let mut served = serve(builder, 1 << 20);
    for id in 0..200 {
        served.client.send(&request(id, "hold", json!({}))).await;
    }
    served.world.gate.add_permits(200);
    let mut answered = Vec::new();
    for _ in 0..200 {
        answered.push(served.client.frame().await);
    }
    assert!(answered.iter().all(|frame| code(frame).is_none()), "none is refused");
    assert_eq!(ids(&answered).len(), 200);
}

// case 223: a panic ends its request with -32603 and nothing else, whenever it comes
#[tokio::test]
async fn a_panic_costs_its_request_only() {
    let mut served = serve(builder().max_in_flight(2), 4096);
    served.client.send(&request(0, "hold", json!({}))).await;
    for id in 1..=10 {
        let method = if id % 2 == 0 { "panic" } else { "panic_later" };
        served.client.send(&request(id, method, json!({}))).await;
        let frame = served.client.frame().await;
        assert_eq!((&frame["id"], code(&frame)), (&json!(id), Some(-32603)));
        assert!(!frame.to_string().contains("as the test wants"), "what a panic says stays here");
    }
    served.world.gate.add_permits(1);
    assert_eq!(served.client.frame().await["id"], 0);
    served.client.close().await;
    assert_eq!(served.ended().await, Ended::EndOfInput);
}

// META-04: a capability that the client did not declare. MSG-11: a code that is not for applications leaves as -32603 with its message
#[tokio::test]
async fn errors_of_handlers_leave_with_codes_that_are_theirs() {
    let mut served = serve(builder(), 4096);
    served.client.send(&request(1, "needs_sampling", json!({}))).await;
    let frame = served.client.frame().await;
    assert_eq!(code(&frame), Some(-32021));
    assert_eq!(frame["error"]["data"], json!({"requiredCapabilities": {"sampling": {}}}));
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}});
    served.client.send(&request_with(2, "needs_sampling", json!({}), meta)).await;
    assert!(served.client.frame().await["result"].is_object());
    // RTE-10: nothing is inferred from an earlier request
    served.client.send(&request(3, "needs_sampling", json!({}))).await;
    assert_eq!(code(&served.client.frame().await), Some(-32021));
    served.client.send(&request(4, "forbidden_code", json!({}))).await;
    let frame = served.client.frame().await;
    assert_eq!((code(&frame), &frame["error"]["message"]), (Some(-32603), &json!("mine")));
    served.client.send(&request(5, "no_such_method", json!({}))).await;
    assert_eq!(code(&served.client.frame().await), Some(-32601));
}

// SHD-05: after the end of the input a handler in flight still answers, and serving ends with it, not with the drain time
#[tokio::test]
async fn the_end_of_input_waits_for_handlers() {
    let mut served = serve(builder().drain(Duration::from_secs(3600)), 4096);
    served.client.send(&request(1, "hold", json!({}))).await;
    served
        .client
        .send(&request("L1", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})))
        .await;
    assert_eq!(served.client.frame().await["method"], "notifications/subscriptions/acknowledged");
    served.client.close().await;
    // SUB-07: result, then cancellation, in this order
    let result = served.client.frame().await;
    assert_eq!((&result["id"], &result["result"]["resultType"]), (&json!("L1"), &json!("complete")));
    let cancelled = served.client.frame().await;
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!("L1"))
    );
    served.world.gate.add_permits(1);
    assert_eq!(served.client.frame().await["id"], 1);
    assert_eq!(served.ended().await, Ended::EndOfInput);
}

// SHD-05: a handler that is stuck does not keep serving past the drain time
#[tokio::test]
async fn the_drain_time_ends_a_stuck_handler() {
    let mut served = serve(builder().drain(Duration::from_millis(50)), 4096);
    served.client.send(&request(1, "hold", json!({}))).await;
    served.client.close().await;
    let frame = served.client.frame().await;
    assert_eq!((code(&frame), &frame["error"]["message"]), (Some(-32603), &json!("Server shutting down")));
    served.none_alive().await;
    assert_eq!(served.ended().await, Ended::EndOfInput);
}

// case 210, case 212: the end before the first frame is a clean end
#[tokio::test]
async fn an_empty_input_is_a_clean_end() {
    let mut served = serve(builder(), 4096);
    served.client.close().await;
    assert_eq!(served.client.rest().await, Vec::<Value>::new());
    assert_eq!(served.ended().await, Ended::EndOfInput);
}

// SHD-06, case 217: stop() ends serving though the input stays open: W-12, W-02, W-20, the end
#[tokio::test]
async fn stop_ends_serving_with_the_input_open() {
    let mut served = serve(builder().drain(Duration::from_millis(50)), 4096);
    served
        .client
        .send(&request("L1", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})))
        .await;
    served.client.send(&request(7, "hold", json!({}))).await;
    assert_eq!(served.client.frame().await["method"], "notifications/subscriptions/acknowledged");
    served.started(1).await;
    served.stop.stop();
    let frames = [served.client.frame().await, served.client.frame().await, served.client.frame().await];
    assert_eq!(frames[0]["id"], "L1");
    assert_eq!(frames[1]["method"], "notifications/cancelled");
    assert_eq!((&frames[2]["id"], code(&frames[2])), (&json!(7), Some(-32603)));
    assert_eq!(served.client.next().await, None);
    assert_eq!(served.ended().await, Ended::Stopped);
}

// SHD-06: whenever stop() comes, also between a look and the sleep of the loop, it is not missed
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_from_another_thread_is_never_missed() {
    for round in 0_u32..200 {
        let mut served = serve(builder(), 4096);
        served.client.send(&request(round, "echo", json!({}))).await;
        let stop = served.stop.clone();
        let stopper = std::thread::spawn(move || {
            (0..round % 50).for_each(|_| std::hint::spin_loop());
            stop.stop();
        });
        assert_eq!(served.ended().await, Ended::Stopped);
        stopper.join().expect("stop does not panic");
    }
}

// SIGTERM: no drain for a handler that does not stop; what it owes is told
#[tokio::test]
async fn terminate_waits_for_nobody() {
    let mut served = serve(builder().drain(Duration::from_secs(3600)), 4096);
    served.client.send(&request(1, "hold", json!({}))).await;
    served.started(1).await;
    served.stop.terminate();
    let frame = served.client.frame().await;
    assert_eq!((&frame["id"], &frame["error"]["message"]), (&json!(1), &json!("Server shutting down")));
    assert_eq!(served.ended().await, Ended::Stopped);
}

// SHD-06, SHD-07: a client that does not read cannot keep a server that was told to end
#[tokio::test]
async fn terminate_gives_up_on_a_client_that_does_not_read() {
    let mut served = serve(builder(), 1024);
    served.client.send(&request(1, "big", json!({"size": 100_000}))).await;
    served.started(1).await;
    served.stop.terminate();
    let Served { client, serving, .. } = served;
    let ended = in_time("the end", serving).await.expect("no panic").expect("no error");
    assert_eq!(ended, Ended::PeerGone);
    drop(client);
}

// SHD-07: a client that is gone ends serving without an error and without a panic
#[tokio::test]
async fn a_vanished_client_ends_serving() {
    let served = serve(builder().drain(Duration::from_millis(50)), 4096);
    let Served { mut client, serving, world, .. } = served;
    client.send(&request(1, "until_cancelled", json!({}))).await;
    client.send(&request(2, "echo", json!({}))).await;
    client.frame().await;
    drop(client);
    let ended = in_time("the end", serving).await.expect("no panic").expect("no error");
    // The end of its output and the end of its input came at once: which one was seen first makes no difference.
    assert!(matches!(ended, Ended::PeerGone | Ended::EndOfInput), "{ended:?}");
    in_time("the handler's end", async {
        while world.alive.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

// SHD-07: dropping the future ends its handlers too, and leaves publishers with nothing to write to
#[tokio::test]
async fn a_dropped_serve_leaves_no_task() {
    let mut served = serve(builder(), 4096);
    served.client.send(&request(1, "hold", json!({}))).await;
    served
        .client
        .send(&request("L", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})))
        .await;
    served.client.frame().await;
    assert_eq!(served.publisher.tools_changed(), 1);
    served.serving.abort();
    served.none_alive().await;
    assert_eq!(served.publisher.tools_changed(), 0);
}

// SUB-05: a change goes to those who listen, and to nobody else
#[tokio::test]
async fn a_publisher_tells_those_who_listen() {
    let mut served = serve(builder(), 4096);
    assert_eq!(served.publisher.tools_changed(), 0);
    served
        .client
        .send(&request("L", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})))
        .await;
    assert_eq!(served.client.frame().await["method"], "notifications/subscriptions/acknowledged");
    let publisher = served.publisher.clone();
    std::thread::spawn(move || publisher.tools_changed()).join().expect("no panic");
    let frame = served.client.frame().await;
    assert_eq!(frame["method"], "notifications/tools/list_changed");
    assert_eq!(frame["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "L");
}

// case 094, RTE-11: large answers to a client that reads nothing block neither timers nor cancellations; an answer cancelled before a byte
// of it was lent never comes
#[tokio::test]
async fn a_client_that_does_not_read_is_still_listened_to() {
    let mut served = serve(builder(), 1024);
    for id in 0..10 {
        served.client.send(&request(id, "big", json!({"size": 1 << 20}))).await;
    }
    served.client.send(&request(99, "until_cancelled", json!({}))).await;
    served.started(11).await;
    // The pipe has been full since the first answer, and all the same:
    served.client.send(&cancel(99)).await;
    served.client.send(&cancel(9)).await;
    in_time("the cancellation", served.cancelled.recv()).await.expect("told");
    served.client.close().await;
    let frames = served.client.rest().await;
    assert_eq!(ids(&frames), (0..9).collect(), "the first one is being written; the last one was cancelled in time");
    assert_eq!(served.ended().await, Ended::EndOfInput);
}

// LIM-04: answers beyond the outgoing queue stay with their requests, none is lost, and memory stays bounded meanwhile
#[tokio::test]
async fn answers_that_do_not_fit_are_owed() {
    let builder = builder().configure(|config| config.queue_limit = 64 << 10);
    let mut served = serve(builder, 1024);
    for id in 0..64 {
        served.client.send(&request(id, "big", json!({"size": 20_000}))).await;
    }
    served.started(64).await;
    // CAN-06: an owed answer of a cancelled request is not written
    served.client.send(&cancel(63)).await;
    served.client.send(&request(1000, "until_cancelled", json!({}))).await;
    served.client.send(&cancel(1000)).await;
    in_time("the cancellation", served.cancelled.recv()).await.expect("told");
    served.client.close().await;
    let frames = served.client.rest().await;
    assert_eq!(ids(&frames), (0..63).collect());
    assert!(frames.iter().all(|frame| frame["result"]["text"].as_str().map(str::len) == Some(20_000)));
    assert_eq!(served.ended().await, Ended::EndOfInput);
}

// LIM-04: while the core's own answers have used up their budget reading pauses; it goes on once they are read, and nothing is lost
#[tokio::test]
async fn reading_pauses_for_unread_refusals_and_goes_on() {
    let builder = builder().configure(|config| config.own_answers_limit = 4 << 10);
    let served = serve(builder, 256);
    let Served { client, serving, .. } = served;
    let (mut reader, mut writer) = client.into_parts();
    let sender = tokio::spawn(async move {
        for id in 0..2000 {
            let line = json!({"jsonrpc": "2.0", "id": id, "method": "x"}).to_string() + "\n";
            writer.write_all(line.as_bytes()).await.expect("read sooner or later");
        }
        writer.shutdown().await.expect("can be closed");
    });
    let mut text = String::new();
    in_time("all refusals", reader.read_to_string(&mut text)).await.expect("UTF-8");
    in_time("the sender", sender).await.expect("no panic");
    let frames: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(frames.iter().all(|frame| code(frame) == Some(-32602)));
    assert_eq!(ids(&frames), (0..2000).collect());
    assert_eq!(in_time("the end", serving).await.expect("no panic").expect("no error"), Ended::EndOfInput);
}

// case 032, FRM-10: half a line, then the rest; and a writer that takes one byte a call
#[tokio::test]
async fn lines_may_come_and_go_in_pieces() {
    let mut served = serve(builder(), 1);
    let line = request(1, "echo", json!({"text": "ümlaut"}));
    let (head, tail) = line.split_at(line.len() / 2);
    let Served { client, .. } = &mut served;
    client.send(head).await;
    client.send(tail).await;
    assert_eq!(client.frame().await["result"]["echo"], "ümlaut");
}

// FRM-09: an unclosed last line that is whole counts
#[tokio::test]
async fn a_last_line_without_its_end_is_served() {
    let mut served = serve(builder(), 4096);
    served.client.send(request(1, "echo", json!({"text": "hi"})).trim_end()).await;
    served.client.close().await;
    assert_eq!(served.client.frame().await["result"]["echo"], "hi");
    assert_eq!(served.ended().await, Ended::EndOfInput);
}

// The loop hands its thread to others though its input never runs dry
#[tokio::test]
async fn a_flood_of_requests_starves_no_handler() {
    let line = request_with(0, "echo", json!({}), json!({}));
    let notified = Arc::new(Notify::new());
    let (flood, seen) = (Flood { line, at: 0, id: 0 }, notified.clone());
    let server = builder().build().expect("sound");
    let stop = server.stop_handle();
    let handler = move |call: Call| {
        let seen = seen.clone();
        async move {
            if call.id() == "3" {
                tokio::task::yield_now().await;
                seen.notify_one();
            }
            Ok::<_, RpcError>(json!({}))
        }
    };
    let serving = tokio::spawn(server.serve((flood, Void), handler));
    in_time("the handler that waits", notified.notified()).await;
    stop.terminate();
    assert_eq!(in_time("the end", serving).await.expect("no panic").expect("no error"), Ended::Stopped);
}

/// An input that is always ready.
struct Flood {
    line: String,
    at: usize,
    id: u64,
}

impl tokio::io::AsyncRead for Flood {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.at == self.line.len() {
            self.id += 1;
            self.at = 0;
            self.line = request(self.id, "echo", json!({}));
        }
        let n = buf.remaining().min(self.line.len() - self.at);
        buf.put_slice(&self.line.as_bytes()[self.at..self.at + n]);
        self.at += n;
        Poll::Ready(Ok(()))
    }
}

/// An output that is always ready. (Those of tokio say now and then that they are not, for the sake of other tasks.)
struct Void;

impl tokio::io::AsyncWrite for Void {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

// The same suite of rules holds over a socket pair (FRM-11)
#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_is_served_as_any_stream() {
    let (ours, theirs) = tokio::net::UnixStream::pair().expect("a pair");
    let serving = tokio::spawn(builder().serve(Transport::stream(theirs), |call: Call| async move {
        Ok::<_, RpcError>(json!({"method": call.method()}))
    }));
    let (reader, writer) = ours.into_split();
    let mut client = Client::new(reader, writer);
    for id in 0..100 {
        client.send(&request(id, "tools/list", json!({}))).await;
        assert_eq!(client.frame().await["result"]["method"], "tools/list");
    }
    client.close().await;
    assert_eq!(client.rest().await, Vec::<Value>::new());
    assert_eq!(in_time("the end", serving).await.expect("no panic").expect("no error"), Ended::EndOfInput);
}

// A configuration that contradicts itself is an error before anything is claimed or read
#[tokio::test]
async fn a_wrong_configuration_does_not_serve() {
    let served =
        builder().capabilities("no object").serve((tokio::io::empty(), tokio::io::sink()), |call: Call| async move {
            Err::<(), _>(call.method_not_found())
        });
    assert!(matches!(in_time("the refusal", served).await, Err(ServeError::Config(_))));
}
