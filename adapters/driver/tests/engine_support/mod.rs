//! A serving loop made by hand, for tests of the engine. It knows no runtime and no rule.

// Each test file includes this whole and uses a part of it.
#![allow(dead_code)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use mcp_wire::RecvBuffer;
use mcp_wire_driver::server::{Call, Engine, Server};
use serde_json::Value;

#[derive(Debug, Default)]
pub(crate) struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

pub(crate) struct Bench {
    pub(crate) engine: Engine,
    recv: RecvBuffer,
}

impl Bench {
    pub(crate) fn new(server: Server) -> Self {
        let engine = Engine::new(server);
        let recv = engine.recv_buffer();
        Self { engine, recv }
    }

    pub(crate) fn feed(&mut self, text: &str, start: impl FnMut(Call)) {
        self.recv.extend(text.as_bytes());
        self.engine.feed(&mut self.recv, start);
    }

    /// Writes all there is.
    pub(crate) fn frames(&self) -> Vec<Value> {
        let mut frames = Vec::new();
        while let Some(bytes) = self.engine.take_output() {
            let text = String::from_utf8(bytes.clone()).expect("UTF-8");
            frames.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")));
            self.engine.accepted(bytes.len(), Some(bytes));
        }
        frames
    }
}

pub(crate) fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

pub(crate) fn ids(frames: &[Value]) -> Vec<i64> {
    frames.iter().filter_map(|frame| frame["id"].as_i64()).collect()
}
