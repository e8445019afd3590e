//! What the shared tests take from a runtime, on tokio. It must not know what is tested. Its twin is `rt_smol.rs`: same names, same meaning.

#![allow(dead_code, unused_imports, reason = "each test program takes what it needs")]

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::JoinHandle;
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt, FuturesAsyncWriteCompatExt, TokioAsyncReadCompatExt};

// Words that no runtime is needed for: the same as smol has them.
pub(crate) use async_channel as channel;
pub(crate) use async_lock as lock;
pub(crate) use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, StreamExt, future, io};
pub(crate) use mcp_wire_tokio as adapter;

/// Runs a test: its own tasks, and those of the adapter, share its thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Runs a test whose tasks run beside it.
pub(crate) fn block_on_threads<F: Future>(future: F) -> F::Output {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime").block_on(future)
}

/// A runtime of its own, which can be dropped: with threads beside the one that blocks on it, or without.
#[derive(Debug)]
pub(crate) struct Executor(tokio::runtime::Runtime);

impl Executor {
    pub(crate) fn new(threads: bool) -> Self {
        let mut builder = if threads { Builder::new_multi_thread() } else { Builder::new_current_thread() };
        Self(builder.enable_all().build().expect("a runtime"))
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.0.block_on(future)
    }

    /// Runs it as long as the executor lives.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(future);
    }
}

/// The first SIGTERM, which from the call on does nothing else. Only within [`Executor::block_on`].
#[cfg(unix)]
pub(crate) fn terminated() -> impl Future<Output = ()> + Send + 'static {
    let mut signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).expect("a handler");
    async move {
        signal.recv().await;
    }
}

pub(crate) async fn sleep(time: Duration) {
    tokio::time::sleep(time).await;
}

/// What the future gives; nothing if it takes longer than this.
pub(crate) async fn timeout<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    tokio::time::timeout(limit, future).await.ok()
}

/// A task. It goes on when this is dropped; a panic in it is one in whoever waits for it.
#[derive(Debug)]
pub(crate) struct Task<T>(JoinHandle<T>);

pub(crate) fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Task<T> {
    Task(tokio::spawn(future))
}

impl<T> Task<T> {
    /// Drops its future, sooner or later.
    pub(crate) fn abort(self) {
        self.0.abort();
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match ready!(Pin::new(&mut self.0).poll(cx)) {
            Ok(value) => Poll::Ready(value),
            Err(error) => resume_unwind(error.into_panic()),
        }
    }
}

/// An input with the traits that all runtimes can have, as the adapter takes it.
pub(crate) fn reader<R: io::AsyncRead>(reader: R) -> Compat<R> {
    reader.compat()
}

/// An output with the traits that all runtimes can have, as the adapter takes it.
pub(crate) fn writer<W: io::AsyncWrite>(writer: W) -> Compat<W> {
    writer.compat_write()
}

/// Two ends of a Unix socket: as a user of the adapter has it, and for the peer that a test writes by hand.
#[cfg(unix)]
pub(crate) fn socket_pair() -> (tokio::net::UnixStream, impl io::AsyncRead + io::AsyncWrite + Unpin + Send + 'static) {
    let (ours, theirs) = tokio::net::UnixStream::pair().expect("a pair");
    (ours, TokioAsyncReadCompatExt::compat(theirs))
}

/// Our end, in the two halves that the runtime makes of it.
#[cfg(unix)]
pub(crate) fn halves(
    ours: tokio::net::UnixStream,
) -> (tokio::net::unix::OwnedReadHalf, tokio::net::unix::OwnedWriteHalf) {
    ours.into_split()
}
