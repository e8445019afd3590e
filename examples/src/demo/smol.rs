//! The demo server on smol: what its tools need of a host, and the signal that ends it. It must not know what a tool does.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mcp_wire::server::Ended;
use mcp_wire_driver::server::{Call, ServeError};
use mcp_wire_smol::{ServeExt, stdio};
use smol::Timer;

use super::args::Options;
use super::resources::Resources;
use super::serve::{Host, build, handle};

#[derive(Debug, Clone)]
struct Smol;

impl Host for Smol {
    async fn sleep(&self, time: Duration) {
        Timer::after(time).await;
    }

    fn blocking<T: Send + 'static>(&self, run: impl FnOnce() -> T + Send + 'static) -> impl Future<Output = T> + Send {
        smol::unblock(run)
    }
}

pub(super) fn run(options: &Options) -> Result<Ended, ServeError> {
    smol::block_on(serve(options))
}

async fn serve(options: &Options) -> Result<Ended, ServeError> {
    let server = build(options)?;
    let (publisher, stop) = (server.publisher(), server.stop_handle());
    let resources = Arc::new(Resources::default());
    let handler = move |call: Call| handle(call, Smol, resources.clone(), publisher.clone());
    let mut serving = pin!(server.serve(stdio(), handler));
    let mut terminated = pin!(terminated().map_err(ServeError::Stdio)?);
    let first = poll_fn(|cx| match serving.as_mut().poll(cx) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending => terminated.as_mut().poll(cx).map(|()| None),
    });
    if let Some(ended) = first.await {
        return ended;
    }
    stop.terminate();
    serving.await
}

/// Resolves at the first SIGTERM, which from the call on does nothing else.
#[cfg(unix)]
fn terminated() -> std::io::Result<impl Future<Output = ()>> {
    use async_signal::{Signal, Signals};
    use smol::stream::StreamExt;
    let mut signals = Signals::new([Signal::Term])?;
    Ok(async move {
        if !matches!(signals.next().await, Some(Ok(_))) {
            std::future::pending::<()>().await;
        }
    })
}

#[cfg(not(unix))]
fn terminated() -> std::io::Result<impl Future<Output = ()>> {
    Ok(std::future::pending())
}
