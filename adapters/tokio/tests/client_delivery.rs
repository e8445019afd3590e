//! What a client says of a request's delivery when its peer is faster than the driver's own bookkeeping.

mod client_support;

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use client_support::{DISCOVER, builder, in_time};
use mcp_wire_tokio::{CallError, Cause, Delivery};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A peer that answers the probe, and is gone the moment it gets anything else.
#[derive(Clone, Default)]
struct Abrupt(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    writes: usize,
    answered: bool,
    reader: Option<Waker>,
}

impl AsyncRead for Abrupt {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock().expect("no test panics under it");
        match (state.writes, state.answered) {
            (1, false) => {
                state.answered = true;
                buf.put_slice(format!("{DISCOVER}\n").as_bytes());
                Poll::Ready(Ok(()))
            }
            (2.., true) => Poll::Ready(Ok(())),
            _ => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl AsyncWrite for Abrupt {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock().expect("no test panics under it");
        state.writes += 1;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

// RST-02: a peer that ends as soon as it has the request does not make it a request that was never sent: a retry could do harm
#[tokio::test]
async fn a_peer_that_ends_at_the_request_has_been_sent_it() {
    let stream = Abrupt::default();
    let client = in_time("the start", builder().connect(stream.clone(), stream)).await.expect("it answers the probe");
    let call = client.request("tools/call", json!({"name": "x"})).send();
    match in_time("the end of the call", call).await {
        Err(CallError::Failed { cause: Cause::Closed, delivery, .. }) => assert_eq!(delivery, Delivery::Sent),
        other => panic!("{other:?}"),
    }
}
