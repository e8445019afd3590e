//! A serving loop on one thread, handlers and those who publish and stop on others.

use std::future::{Future, poll_fn};
use std::sync::{Arc, PoisonError};
use std::task::Poll;

use loom::future::block_on;
use loom::thread;
use mcp_wire::RecvBuffer;
use serde_json::{Value, json};

use super::{explore, explore_three};
use crate::server::{Call, Engine, RpcError, Server, Task};
use crate::sync::Mutex;

fn request(id: u32) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"_meta": meta}}).to_string() + "\n"
}

fn cancel(id: u32) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string() + "\n"
}

/// A loop that has read all there is.
struct Serving {
    engine: Engine,
    recv: RecvBuffer,
    written: Vec<Value>,
}

impl Serving {
    fn new(server: Server, input: &str) -> Self {
        let engine = Engine::new(server);
        let mut recv = engine.recv_buffer();
        recv.extend(input.as_bytes());
        Self { engine, recv, written: Vec::new() }
    }

    fn ids(&self) -> Vec<i64> {
        self.written.iter().filter_map(|message| message["id"].as_i64()).collect()
    }

    /// What an adapter's loop does, with a writer that is always ready, until the end or until so many messages are written.
    fn serve(&mut self, messages: usize, start: &mut impl FnMut(Call)) -> impl Future<Output = ()> {
        poll_fn(move |cx| {
            loop {
                let turn = self.engine.turn();
                if turn.wants_read {
                    self.engine.feed(&mut self.recv, &mut *start);
                }
                self.engine.start_waiting(&mut *start);
                while let Some(bytes) = self.engine.take_output() {
                    let text = std::str::from_utf8(&bytes).expect("UTF-8");
                    self.written.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")));
                    self.engine.accepted(bytes.len(), Some(bytes));
                }
                if turn.ended.is_some() || self.written.len() >= messages {
                    return Poll::Ready(());
                }
                if self.engine.sleep(cx.waker(), false) {
                    return Poll::Pending;
                }
            }
        })
    }
}

/// Runs a handler on a thread of its own, as a runtime does.
fn on_a_thread(task: Task) -> thread::JoinHandle<()> {
    thread::spawn(move || block_on(task))
}

/// What a legacy client sends to open a session, and one call.
fn session() -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"}});
    let lines = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}),
    ];
    lines.map(|line| line.to_string() + "\n").concat()
}

fn answers(call: Call) -> Task {
    Task::new(call, |_| async { Ok::<_, RpcError>(json!({})) })
}

// RTE-03: an answer that is given while the loop goes to sleep wakes it
#[test]
fn an_answer_from_another_thread_is_written() {
    explore(|| {
        let mut threads = Vec::new();
        let mut serving = Serving::new(Server::builder("model", "1").build().expect("sound"), &request(1));
        block_on(serving.serve(1, &mut |call| threads.push(on_a_thread(answers(call)))));
        assert_eq!(serving.ids(), [1]);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

// LIM-02, CAN-09: a permit that comes back on another thread starts the request that waits for it
#[test]
fn a_permit_that_comes_back_starts_who_waits() {
    explore_three(|| {
        let mut threads = Vec::new();
        let server = Server::builder("model", "1").max_in_flight(1).build().expect("sound");
        let mut serving = Serving::new(server, &(request(1) + &request(2)));
        block_on(serving.serve(2, &mut |call| threads.push(on_a_thread(answers(call)))));
        assert_eq!(serving.ids(), [1, 2]);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

// CAN-07: a cancellation that comes while its handler begins to wait for it is seen by it
#[test]
fn a_cancellation_reaches_a_handler_that_begins_to_wait() {
    explore(|| {
        let mut serving = Serving::new(Server::builder("model", "1").build().expect("sound"), &request(1));
        let mut task = None;
        block_on(serving.serve(0, &mut |call| {
            task = Some(Task::new(call, |call: Call| async move {
                call.cancelled().await;
                Ok::<_, RpcError>(json!({}))
            }));
        }));
        let handler = on_a_thread(task.expect("it was started"));
        serving.recv.extend(cancel(1).as_bytes());
        block_on(serving.serve(0, &mut |_| {}));
        handler.join().expect("no panic");
        block_on(serving.serve(0, &mut |_| {}));
        assert_eq!(serving.ids(), [0; 0], "nothing for a cancelled request (CAN-06)");
    });
}

// CAN-09: who waits for the cancellation of a call learns that its handler has returned: there is nothing to wait for
#[test]
fn whoever_waits_for_a_cancellation_hears_of_the_answer() {
    explore_three(|| {
        let mut threads = Vec::new();
        let mut serving = Serving::new(Server::builder("model", "1").build().expect("sound"), &request(1));
        block_on(serving.serve(1, &mut |call| {
            let cancelled = call.cancelled();
            threads.push(thread::spawn(move || drop(block_on(cancelled))));
            threads.push(on_a_thread(answers(call)));
        }));
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

// LEG-06: a handler asks its legacy client: the question leaves a loop that goes to sleep, and the answer wakes the handler on its thread
#[test]
fn what_a_handler_asks_its_legacy_client_is_answered() {
    explore(|| {
        let mut threads = Vec::new();
        let mut serving = Serving::new(Server::builder("model", "1").build().expect("sound"), &session());
        let mut start = |call: Call| {
            let task = Task::new(call, |call: Call| async move {
                let client = call.legacy_client().expect("the call is legacy");
                let roots = client.request("roots/list", &json!({})).await;
                Ok::<_, RpcError>(json!({"asked": roots.is_ok()}))
            });
            threads.push(on_a_thread(task));
        };
        block_on(serving.serve(2, &mut start));
        let asked = serving.written.last().expect("the question").clone();
        assert_eq!(asked["method"], "roots/list");
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}});
        serving.recv.extend(format!("{answer}\n").as_bytes());
        block_on(serving.serve(3, &mut start));
        let last = serving.written.last().expect("an answer");
        assert_eq!((&last["id"], &last["result"]["asked"]), (&json!(1), &json!(true)));
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

// SHD-06: a stop from another thread ends a loop that goes to sleep, and a handler that runs then ends too
#[test]
fn a_stop_from_another_thread_ends_the_loop() {
    explore(|| {
        let server = Server::builder("model", "1").build().expect("sound");
        let (stop, publisher) = (server.stop_handle(), server.publisher());
        let mut serving = Serving::new(server, "");
        let stopper = thread::spawn(move || {
            publisher.tools_changed();
            stop.stop();
        });
        block_on(serving.serve(usize::MAX, &mut |_| {}));
        stopper.join().expect("no panic");
    });
}

// SHD-07: the loop is dropped: a handler that waits, and one who publishes at the same moment, leave nothing behind
#[test]
fn a_loop_that_is_dropped_leaves_no_handler_waiting() {
    explore_three(|| {
        let server = Server::builder("model", "1").build().expect("sound");
        let publisher = server.publisher();
        let mut serving = Serving::new(server, &request(1));
        let task = Arc::new(Mutex::new(None));
        block_on(serving.serve(0, &mut |call| {
            let waits = Task::new(call, |call: Call| async move {
                call.cancelled().await;
                Ok::<_, RpcError>(json!({}))
            });
            *task.lock().unwrap_or_else(PoisonError::into_inner) = Some(waits);
        }));
        let task = task.lock().unwrap_or_else(PoisonError::into_inner).take().expect("it was started");
        let handler = on_a_thread(task);
        let other = thread::spawn(move || publisher.tools_changed());
        drop(serving);
        handler.join().expect("no panic");
        assert_eq!(other.join().expect("no panic"), 0);
    });
}
