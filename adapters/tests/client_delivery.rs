//! What a client says of a request's delivery when its peer is faster than the driver's own bookkeeping, and how it holds back a caller when its
//! peer is slower.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::rt::adapter::{CallError, Cause, Delivery, SendError};
use crate::rt::io::{AsyncRead, AsyncWrite};
use crate::rt::{self, block_on};
use crate::support::client::{DISCOVER, Peer, builder};
use crate::support::in_time;
use serde_json::json;

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
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock().expect("no test panics under it");
        match (state.writes, state.answered) {
            (1, false) => {
                state.answered = true;
                let line = format!("{DISCOVER}\n");
                buf[..line.len()].copy_from_slice(line.as_bytes());
                Poll::Ready(Ok(line.len()))
            }
            (2.., true) => Poll::Ready(Ok(0)),
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

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

// RST-02: a peer that ends as soon as it has the request does not make it a request that was never sent: a retry could do harm
#[test]
fn a_peer_that_ends_at_the_request_has_been_sent_it() {
    block_on(async {
        let stream = Abrupt::default();
        let client = in_time("the start", builder().connect(rt::reader(stream.clone()), rt::writer(stream)))
            .await
            .expect("it answers the probe");
        let call = client.request("tools/call", json!({"name": "x"})).send();
        match in_time("the end of the call", call).await {
            Err(CallError::Failed { cause: Cause::Closed, delivery, .. }) => assert_eq!(delivery, Delivery::Sent),
            other => panic!("{other:?}"),
        }
    });
}

// LIM-04, case 097: a proxy whose far side does not read: what it forwards waits in a queue and behind it, both bounded; what is too much is refused
// at once, so that the proxy can wait; what was taken leaves in order once the far side reads
#[test]
fn a_peer_that_does_not_read_holds_back_who_sends() {
    block_on(async {
        const LIMIT: usize = 1 << 20;
        let (client, mut peer) = Peer::established(builder().queue_limit(LIMIT)).await;
        let text = "x".repeat(64 << 10);
        let (mut taken, mut refused) = (Vec::new(), 0);
        for n in 0..64 {
            let mut call = client.request("forward", json!({"n": n, "text": text})).send();
            match poll_fn(|cx| Poll::Ready(Pin::new(&mut call).poll(cx))).await {
                Poll::Pending => taken.push((n, call)),
                Poll::Ready(Err(CallError::Send(SendError::Full))) => refused += 1,
                Poll::Ready(other) => panic!("{other:?}"),
            }
            assert!(client.pending_output() <= LIMIT, "{} bytes", client.pending_output());
        }
        // A queue, as much behind it, and no more.
        assert!((16..=33).contains(&taken.len()) && refused > 0, "{} taken", taken.len());
        for (n, call) in taken {
            let request = peer.next().await;
            assert_eq!(request["params"]["n"], n);
            peer.answer(&request, "{}").await;
            in_time("the call", call).await.expect("it was answered");
        }
    });
}
