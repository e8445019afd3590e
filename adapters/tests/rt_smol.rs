//! What the shared tests take from a runtime, on smol. It must not know what is tested. Its twin is `rt_tokio.rs`: same names, same meaning.

#![allow(dead_code, unused_imports, reason = "each test program takes what it needs")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

pub(crate) use mcp_wire_smol as adapter;
// Words that no runtime is needed for.
pub(crate) use smol::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
pub(crate) use smol::stream::StreamExt;
pub(crate) use smol::{channel, future, io, lock};

/// Runs a test: its own tasks, and those of the adapter, are on smol's executor, which has a thread of its own.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    smol::block_on(future)
}

/// Runs a test whose tasks run beside it: here they always do.
pub(crate) fn block_on_threads<F: Future>(future: F) -> F::Output {
    smol::block_on(future)
}

/// An executor of its own, which can be dropped: with threads beside the one that blocks on it, or without. (Not the one of `smol::spawn`.)
#[derive(Debug)]
pub(crate) struct Executor {
    tasks: Arc<smol::Executor<'static>>,
    /// The threads end when this is dropped.
    running: Option<channel::Sender<()>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Executor {
    pub(crate) fn new(threads: bool) -> Self {
        let tasks = Arc::new(smol::Executor::new());
        let (running, over) = channel::bounded::<()>(1);
        let run = || {
            let (tasks, over) = (Arc::clone(&tasks), over.clone());
            std::thread::spawn(move || _ = smol::block_on(tasks.run(over.recv())))
        };
        let threads = (0..if threads { 2 } else { 0 }).map(|_| run()).collect();
        Self { tasks, running: Some(running), threads }
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        smol::block_on(self.tasks.run(future))
    }

    /// Runs it as long as the executor lives.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(future).detach();
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        drop(self.running.take());
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The first SIGTERM, which from the call on does nothing else. Only within [`Executor::block_on`].
#[cfg(unix)]
pub(crate) fn terminated() -> impl Future<Output = ()> + Send + 'static {
    let mut signals = async_signal::Signals::new([async_signal::Signal::Term]).expect("a handler");
    async move {
        let _ = signals.next().await;
    }
}

pub(crate) async fn sleep(time: Duration) {
    smol::Timer::after(time).await;
}

/// What the future gives; nothing if it takes longer than this.
pub(crate) async fn timeout<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let late = async {
        smol::Timer::after(limit).await;
        None
    };
    future::or(async { Some(future.await) }, late).await
}

/// A task. It goes on when this is dropped; a panic in it is one in whoever waits for it.
#[derive(Debug)]
pub(crate) struct Task<T>(Option<smol::Task<T>>);

pub(crate) fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Task<T> {
    Task(Some(smol::spawn(future)))
}

impl<T> Task<T> {
    /// Drops its future, sooner or later.
    pub(crate) fn abort(mut self) {
        drop(self.0.take());
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(self.0.as_mut().expect("not aborted")).poll(cx)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.detach();
        }
    }
}

/// An input with the traits that all runtimes can have, as the adapter takes it.
pub(crate) fn reader<R: io::AsyncRead>(reader: R) -> R {
    reader
}

/// An output with the traits that all runtimes can have, as the adapter takes it.
pub(crate) fn writer<W: io::AsyncWrite>(writer: W) -> W {
    writer
}

/// Two ends of a Unix socket: as a user of the adapter has it, and for the peer that a test writes by hand.
#[cfg(unix)]
pub(crate) fn socket_pair()
-> (smol::net::unix::UnixStream, impl io::AsyncRead + io::AsyncWrite + Unpin + Send + 'static) {
    smol::net::unix::UnixStream::pair().expect("a pair")
}

/// Our end, in the two halves that the runtime makes of it.
#[cfg(unix)]
pub(crate) fn halves(ours: smol::net::unix::UnixStream) -> (smol::net::unix::UnixStream, smol::net::unix::UnixStream) {
    (ours.clone(), ours)
}
