//! A client's handles on one thread, the loop that drives its link on another, and a server that answers what is written.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use loom::future::block_on;
use loom::thread;
use mcp_wire::{Cause, Eras, Instant, JsonBuf};
use serde_json::{Value, json};

use super::tasks::Signal;
use super::{explore, explore_three};
use crate::client::{CallError, Client, ClientEvent, CloseError, Link, Options, Output, Todo, Wrote};
use crate::server::RpcError;

const VERSION: &str = "2026-07-28";

/// Answers one line of the client's with any number of lines.
type Peer = fn(&Value) -> Vec<Value>;

fn answer(request: &Value) -> Vec<Value> {
    if request.get("id").is_none() {
        return Vec::new();
    }
    vec![json!({"jsonrpc": "2.0", "id": request["id"], "result": {"resultType": "complete"}})]
}

fn silence(_: &Value) -> Vec<Value> {
    Vec::new()
}

fn options() -> Options {
    Options::new("model", "1").eras(Eras::Modern).known_version(VERSION)
}

fn start(options: Options) -> (Client, Link) {
    options.with_stream(|| Instant::EPOCH).expect("a sound configuration")
}

/// What an adapter's loop does, with a writer and a reader that are always ready: it sleeps only when the link has nothing to do, and is woken by
/// nothing but the waker that it gave with the turn.
fn drive(mut link: Link, peer: Peer) -> impl Future<Output = ()> {
    let mut wrote = Wrote::default();
    let mut answers: Vec<Value> = Vec::new();
    poll_fn(move |cx| {
        loop {
            let turn = link.turn(cx.waker(), Output::Wanted, std::mem::take(&mut wrote));
            if turn.over {
                return Poll::Ready(());
            }
            match turn.todo {
                Some(Todo::CloseInput) => link.read_ended(),
                Some(todo) => panic!("a stream has no {todo:?}"),
                None => {}
            }
            if let Some(bytes) = turn.output {
                let text = std::str::from_utf8(&bytes).expect("UTF-8");
                answers.extend(text.lines().flat_map(|line| peer(&serde_json::from_str(line).expect("JSON"))));
                wrote = Wrote { accepted: bytes.len(), spent: Some(bytes), failed: false };
            } else if !answers.is_empty() {
                for answer in answers.drain(..) {
                    let line = format!("{answer}\n");
                    link.spare_mut()[..line.len()].copy_from_slice(line.as_bytes());
                    link.read(line.len());
                }
            } else if turn.todo.is_none() {
                return Poll::Pending;
            }
        }
    })
}

fn driven(link: Link, peer: Peer) -> thread::JoinHandle<()> {
    thread::spawn(move || block_on(drive(link, peer)))
}

async fn call(client: &Client) -> Result<JsonBuf, CallError> {
    client.request("tools/list", ()).send().await
}

fn is_closed(result: &Result<JsonBuf, CallError>) -> bool {
    matches!(result, Err(CallError::Failed { cause: Cause::Closed, .. } | CallError::Send(mcp_wire::SendError::Closed)))
}

// RTE-03, SHD-03: a call that is made while the loop goes to sleep leaves, its answer wakes who waits for it, and a close ends the loop
#[test]
fn a_call_is_sent_and_answered_and_a_close_ends_all() {
    explore(|| {
        let (client, link) = start(options());
        let driver = driven(link, answer);
        block_on(call(&client)).expect("it is answered");
        block_on(client.close()).expect("a stream ends");
        driver.join().expect("no panic");
        assert_eq!(client.in_flight(), 0);
    });
}

// RTE-03: two handles on two threads, and each gets its own answer
#[test]
fn calls_from_two_threads_are_both_answered() {
    explore_three(|| {
        let (client, link) = start(options());
        let driver = driven(link, answer);
        let other = client.clone();
        let caller = thread::spawn(move || block_on(call(&other)).map(drop));
        block_on(call(&client)).expect("it is answered");
        caller.join().expect("no panic").expect("it is answered");
        drop(client);
        driver.join().expect("no panic");
    });
}

// SHD-03, case 159: requests in flight at close are left without outcome: each ends, whichever comes first, its call or the close
#[test]
fn a_call_and_a_close_at_once_both_end() {
    explore_three(|| {
        let (client, link) = start(options());
        let driver = driven(link, answer);
        let other = client.clone();
        let caller = thread::spawn(move || {
            let result = block_on(call(&other));
            assert!(result.is_ok() || is_closed(&result), "{result:?}");
        });
        block_on(client.close()).expect("a stream ends");
        caller.join().expect("no panic");
        driver.join().expect("no panic");
    });
}

// CAN-04, CAN-05: a call is dropped before, while and after it is written or answered; the connection serves the next one
#[test]
fn a_dropped_call_leaves_nothing_behind() {
    explore(|| {
        let (client, link) = start(options());
        let driver = driven(link, answer);
        drop(client.request("tools/call", ()).send());
        block_on(call(&client)).expect("it is answered");
        block_on(client.close()).expect("a stream ends");
        assert_eq!(client.in_flight(), 0);
        driver.join().expect("no panic");
    });
}

// CAN-01: a call that is cancelled from another thread ends, whether or not it has left
#[test]
fn a_cancelled_call_ends() {
    explore(|| {
        let (client, link) = start(options());
        let driver = driven(link, silence);
        let sent = client.request("tools/call", ()).send();
        sent.cancel("enough");
        let result = block_on(sent);
        assert!(matches!(result, Err(CallError::Failed { cause: Cause::Cancelled, .. })), "{result:?}");
        drop(client);
        driver.join().expect("no panic");
    });
}

// SHD-04: the last handle is dropped while the loop works or goes to sleep: the loop ends
#[test]
fn the_drop_of_the_last_handle_ends_the_loop() {
    explore(|| {
        let (client, link) = start(options());
        let driver = driven(link, answer);
        let closing = client.closed();
        drop(client.request("tools/call", ()).send());
        drop(client);
        driver.join().expect("no panic");
        // Nobody has asked for the end in order, but who waits for it hears of it.
        let _ = block_on(closing);
    });
}

// case 159: requests in flight at close are left without outcome: the loop is dropped with the runtime that polled it, and who waits is told
#[test]
fn the_drop_of_the_loop_ends_calls_and_closes() {
    explore(|| {
        let (client, link) = start(options());
        let driver = thread::spawn(move || drop(link));
        let result = block_on(call(&client));
        assert!(is_closed(&result), "{result:?}");
        assert_eq!(block_on(client.close()), Err(CloseError::DriverStopped));
        driver.join().expect("no panic");
    });
}

// SHD-03: all who close, kill or wait share one outcome
#[test]
fn a_close_and_a_kill_share_one_outcome() {
    explore_three(|| {
        let (client, link) = start(options());
        let driver = driven(link, answer);
        let other = client.clone();
        let killer = thread::spawn(move || block_on(other.kill()));
        let outcome = block_on(client.close());
        assert_eq!(killer.join().expect("no panic"), outcome);
        driver.join().expect("no panic");
    });
}

// RTE-08: whoever reads the tap on a thread of its own sees the connection to its end
#[test]
fn a_tap_is_read_to_its_end() {
    explore_three(|| {
        let mut options = options();
        let mut events = options.events();
        let (client, link) = start(options);
        let driver = driven(link, answer);
        let reader = thread::spawn(move || {
            let mut last = None;
            while let Some(event) = block_on(events.next()) {
                last = Some(event);
            }
            last
        });
        drop(client.close());
        let last = reader.join().expect("no panic");
        assert!(matches!(last, Some(ClientEvent::Closed { .. })), "{last:?}");
        driver.join().expect("no panic");
    });
}

// LIM-04: a call that waits for room is sent when there is some, though its caller sleeps
#[test]
fn a_call_that_waits_for_room_is_sent() {
    explore(|| {
        let (client, link) = start(options().in_flight_limit(1));
        let first = client.request("tools/call", ()).send();
        let second = client.request("tools/call", ()).send();
        let driver = driven(link, answer);
        block_on(second).expect("it is answered");
        block_on(first).expect("it is answered");
        drop(client);
        driver.join().expect("no panic");
    });
}

/// A legacy server that asks for roots when it is told that the session is open, and is done with its client's answer.
fn asks(message: &Value) -> Vec<Value> {
    match message["method"].as_str() {
        Some("initialize") => {
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
            vec![json!({"jsonrpc": "2.0", "id": message["id"], "result": result})]
        }
        Some("notifications/initialized") => vec![json!({"jsonrpc": "2.0", "id": 7, "method": "roots/list"})],
        _ => Vec::new(),
    }
}

/// The same, but it does not wait for the answer.
fn asks_and_cancels(message: &Value) -> Vec<Value> {
    let mut lines = asks(message);
    if message["method"] == "notifications/initialized" {
        let params = json!({"requestId": 7});
        lines.push(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }
    lines
}

// LEG-06: a handler of the server's requests is woken from another thread, while the loop works or goes to sleep: its answer leaves. One whose request
// is cancelled is dropped, and nothing hangs.
#[test]
fn a_handler_that_is_woken_elsewhere_answers_or_is_dropped() {
    for peer in [asks as Peer, asks_and_cancels] {
        explore_three(move || {
            let ready = Arc::new(Signal::default());
            let waits = Arc::clone(&ready);
            let options = Options::new("model", "1").eras(Eras::Legacy).on_request(move |_| {
                let waits = Arc::clone(&waits);
                async move {
                    poll_fn(|cx| waits.poll(cx)).await;
                    Ok::<_, RpcError>(json!({"roots": []}))
                }
            });
            let mut options = options;
            let mut events = options.events();
            let (client, link) = start(options);
            let driver = driven(link, peer);
            let waker = thread::spawn(move || ready.set());
            if peer as usize == asks as Peer as usize {
                let told = block_on(async {
                    while let Some(event) = events.next().await {
                        if let ClientEvent::ServerRequest { answered, .. } = event {
                            return Some(answered);
                        }
                    }
                    None
                });
                assert_eq!(told, Some("result"));
            }
            block_on(client.close()).expect("a stream ends");
            waker.join().expect("no panic");
            driver.join().expect("no panic");
        });
    }
}
