//! The engine of a server without any runtime: what a serving loop can rely on, turn by turn.

mod engine_support;

use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use engine_support::{Bench, Count, ids, poll};
use mcp_wire::server::Ended;
use mcp_wire::{Json, JsonBuf};
use mcp_wire_driver::server::{Call, RpcError, Server, Task};
use serde_json::{Value, json};

fn request(id: impl Into<Value>, method: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": "t",
    });
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": {"_meta": meta}}).to_string() + "\n"
}

fn cancel(id: impl Into<Value>) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id.into()}}).to_string()
        + "\n"
}

fn server() -> Server {
    Server::builder("test", "1").max_in_flight(2).build().expect("sound")
}

/// A handler that waits for its cancellation.
fn waiting(call: Call) -> Task {
    Task::new(call, |call: Call| async move {
        call.cancelled().await;
        Ok::<_, RpcError>(json!({}))
    })
}

/// Runs a handler that answers at once with so many bytes.
fn answer(call: Call, size: usize) {
    let mut task = Task::new(call, |_: Call| async move { Ok::<_, RpcError>(json!({"text": "x".repeat(size)})) });
    assert!(poll(&mut task, Waker::noop()).is_ready());
}

// CAN-07: the token fires before the next frame is dispatched, though all came in one read
#[test]
fn a_cancellation_is_told_before_the_next_frame() {
    let mut bench = Bench::new(server());
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let tasks = Mutex::new(Vec::new());
    let mut told_when_started = Vec::new();
    let text = request(1, "a") + &cancel(1) + &request(2, "b");
    bench.feed(&text, |call| {
        told_when_started.push(count.get());
        let mut task = waiting(call);
        assert!(poll(&mut task, &waker).is_pending());
        tasks.lock().expect("no panic").push(task);
    });
    assert_eq!(told_when_started, [0, 1]);
    assert!(poll(&mut tasks.lock().expect("no panic")[0], &waker).is_ready());
    assert_eq!(bench.frames(), Vec::<Value>::new(), "nothing for a cancelled request (CAN-06)");
}

// A loop that looked, and sleeps after somebody else has changed something, would sleep for ever
#[test]
fn nothing_that_changes_between_a_look_and_the_sleep_is_missed() {
    let nobody = Waker::noop();
    let stopped = server();
    let stop = stopped.stop_handle();
    let bench = Bench::new(stopped);
    let turn = bench.engine.turn();
    assert_eq!((turn.ended, turn.timeout), (None, None));
    stop.stop();
    assert!(!bench.engine.sleep(nobody, false), "serving has ended");
    assert_eq!(bench.engine.turn().ended, Some(Ended::Stopped));

    // A deadline that is nearer than the one the loop has set its timer to
    let draining = server();
    let stop = draining.stop_handle();
    let mut bench = Bench::new(draining);
    let mut tasks = Vec::new();
    bench.feed(&request(1, "a"), |call| tasks.push(waiting(call)));
    assert_eq!(bench.engine.turn().timeout, None);
    stop.stop();
    assert!(!bench.engine.sleep(nobody, false), "the drain has a deadline");
    assert!(bench.engine.turn().timeout.is_some());
    assert!(bench.engine.sleep(nobody, false));

    // Room again, where reading pauses for a full house
    let paused = Server::builder("test", "1").max_in_flight(1).configure(|config| config.pause_when_full = true);
    let mut bench = Bench::new(paused.build().expect("sound"));
    let mut tasks = Vec::new();
    let text = request(1, "a") + &request(2, "b") + &request(3, "c");
    bench.feed(&text, |call| tasks.push(waiting(call)));
    assert!(!bench.engine.turn().wants_read);
    drop(tasks.pop());
    assert!(!bench.engine.sleep(nobody, true), "a request may start, and reading may go on");
}

// A wake that the loop does not need costs it a whole turn
#[test]
fn a_sleeping_loop_is_woken_and_one_that_is_awake_is_not() {
    let mut bench = Bench::new(server());
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut calls = Vec::new();
    bench.feed(&request(1, "a"), |call| calls.push(call));
    let call = calls.pop().expect("started");
    let _ = bench.engine.turn();
    assert!(bench.engine.sleep(&waker, false));
    call.progress(1.0, None, None).expect("can be told");
    assert_eq!(count.get(), 1);
    assert_eq!(bench.frames().len(), 1);
    // It sleeps, and the reactor wakes it: what it then does itself wakes nobody.
    let _ = bench.engine.turn();
    assert!(bench.engine.sleep(&waker, false));
    let _ = bench.engine.turn();
    answer(call, 1);
    assert_eq!(count.get(), 1);
    assert!(!bench.engine.sleep(&waker, false), "there is an answer to write");
    assert_eq!(ids(&bench.frames()), [1]);
}

// LIM-04: an answer that does not fit stays with its request, which keeps its permit, and leaves once there is room
#[test]
fn an_answer_that_does_not_fit_is_owed_and_paid() {
    let builder = Server::builder("test", "1").max_in_flight(2).configure(|config| config.queue_limit = 4096);
    let mut bench = Bench::new(builder.build().expect("sound"));
    let mut started = 0;
    let text = request(1, "a") + &request(2, "b") + &request(3, "c") + &request(4, "d");
    bench.feed(&text, |call| {
        started += 1;
        answer(call, 3000);
    });
    // The first answer fills the queue; the next two are owed and keep their permits, so the fourth waits for one.
    assert_eq!(started, 3);
    let mut frames = Vec::new();
    loop {
        let more = bench.frames();
        if more.is_empty() {
            break;
        }
        frames.extend(more);
        bench.engine.start_waiting(|call| answer(call, 3000));
    }
    assert_eq!(ids(&frames), [1, 2, 3, 4]);
}

// LIM-04: owed answers leave in the order in which they were given, whichever slots their requests have, and also over several rounds
#[test]
fn owed_answers_are_paid_oldest_first() {
    let builder = Server::builder("test", "1").max_in_flight(5).configure(|config| config.queue_limit = 4096);
    let mut bench = Bench::new(builder.build().expect("sound"));
    let mut calls = Vec::new();
    let text: String = (1..=5).map(|id| request(id, "a")).collect();
    bench.feed(&text, |call| calls.push(call));
    // The first fills the queue; the others are owed from here on, the last to come first.
    let order = [1, 5, 3, 4, 2];
    for id in order {
        let at = calls.iter().position(|call| call.id() == id.to_string()).expect("it runs");
        answer(calls.swap_remove(at), 3000);
    }
    let mut paid = Vec::new();
    loop {
        let more = bench.frames();
        if more.is_empty() {
            break;
        }
        paid.extend(ids(&more));
    }
    assert_eq!(paid, order);
}

// CAN-06, LIM-04: an owed answer whose request is cancelled is forgotten, and its permit comes back
#[test]
fn an_owed_answer_ends_with_its_cancellation() {
    let builder = Server::builder("test", "1").max_in_flight(1).configure(|config| config.queue_limit = 4096);
    let mut bench = Bench::new(builder.build().expect("sound"));
    let mut started = Vec::new();
    let mut start = |call: Call| {
        started.push(call.id().to_owned());
        answer(call, 3000);
    };
    bench.feed(&(request(1, "a") + &request(2, "b") + &request(3, "c")), &mut start);
    bench.feed(&cancel(2), &mut start);
    bench.engine.start_waiting(&mut start);
    assert_eq!(started, ["1", "2", "3"], "the one that waited got the permit");
    assert_eq!(ids(&bench.frames()), [1, 3]);
}

// A result may be a value or JSON text; text is not read again
#[test]
fn a_result_that_is_json_already_is_taken_as_it_is() {
    let mut bench = Bench::new(server());
    let text = "{\"a\":1.50,\"b\":[ ]}";
    bench.feed(&request(1, "a"), |call| {
        let json = JsonBuf::from(Json::parse(text).expect("JSON"));
        let mut task = Task::new(call, |_: Call| async move { Ok::<_, RpcError>(json) });
        assert!(poll(&mut task, Waker::noop()).is_ready());
    });
    let bytes = bench.engine.take_output().expect("an answer");
    assert!(String::from_utf8_lossy(&bytes).contains("\"a\":1.50,\"b\":[ ]"));
}

// case 223: a handler that panics, or is dropped before it has answered, costs its request only
#[test]
fn a_handler_that_is_gone_is_an_internal_error() {
    let mut bench = Bench::new(server());
    bench.feed(&(request(1, "a") + &request(2, "b")), |call| drop(waiting(call)));
    bench.feed(&request(3, "c"), |call| {
        let mut task = Task::new(call, |call: Call| async move {
            assert_eq!(call.method(), "another", "as the test wants");
            Ok::<_, RpcError>(json!({}))
        });
        assert!(poll(&mut task, Waker::noop()).is_ready());
    });
    let frames = bench.frames();
    assert_eq!(ids(&frames), [1, 2, 3]);
    assert!(frames.iter().all(|frame| frame["error"]["code"] == -32603), "{frames:?}");
}

// RTE-09: one that waits for the cancellation of a call that is over learns that there is nothing to wait for
#[test]
fn the_wait_for_a_cancellation_ends_with_the_call() {
    let mut bench = Bench::new(server());
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut watch = None;
    bench.feed(&request(1, "a"), |call| {
        let mut cancelled = call.cancelled();
        assert!(poll(&mut cancelled, &waker).is_pending());
        // One that is dropped is not woken.
        let mut dropped = call.cancelled();
        assert!(poll(&mut dropped, &waker).is_pending());
        drop(dropped);
        assert_eq!(count.get(), 0);
        watch = Some(cancelled);
        answer(call, 1);
    });
    assert_eq!(count.get(), 1);
    assert_eq!(poll(watch.as_mut().expect("started"), &waker), Poll::Ready(None));
}

// SEC-03, case 224: nothing that is printed for people shows what a client sent
#[test]
fn printing_a_call_or_the_engine_shows_no_params() {
    let mut bench = Bench::new(server());
    let mut kept = Vec::new();
    for id in 1..=3 {
        let text = request(id, "tools/call").replace("\"params\":{", "\"params\":{\"token\":\"SENTINEL-SECRET\",");
        bench.feed(&text, |call| kept.push(call));
    }
    assert_eq!(kept.len(), 2, "the third waits, with its params");
    let printed = format!("{kept:?} {:?}", bench.engine);
    assert!(printed.contains("tools/call"));
    assert!(!printed.contains("SENTINEL"), "{printed}");
}

// SHD-07: a publisher and a handler's task may outlive serving: they find an ended connection
#[test]
fn an_engine_that_is_gone_leaves_nothing_to_write_to() {
    let server = Server::builder("test", "1").capabilities(json!({"tools": {"listChanged": true}}));
    let server = server.build().expect("sound");
    let publisher = server.publisher();
    let mut bench = Bench::new(server);
    let mut calls = Vec::new();
    let listen = request("L", "subscriptions/listen")
        .replace("\"params\":{", "\"params\":{\"notifications\":{\"toolsListChanged\":true},");
    bench.feed(&(request(1, "a") + &listen), |call| calls.push(call));
    assert_eq!(publisher.tools_changed(), 1);
    drop(bench);
    assert!(calls[0].is_cancelled());
    assert_eq!(publisher.tools_changed(), 0);
}
