//! A client's byte streams at their worst: one byte a write, one byte a read, floods, peers that do not read, giant lines.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::rt::adapter::{CallError, Cause, ClientEvent, Delivery};
use crate::rt::io::{AsyncRead, AsyncWrite, BufReader};
use crate::rt::{self, AsyncBufReadExt, AsyncWriteExt, StreamExt, block_on};
use crate::support::client::{DISCOVER, Peer, builder, events_until};
use crate::support::in_time;
use crate::support::pipe::{pipe, pipes};
use serde_json::{Value, json};

/// A stream that moves one byte a call, and is not ready every other time.
struct Trickle<T> {
    inner: T,
    ready: bool,
}

impl<T> Trickle<T> {
    fn stumbles(&mut self, cx: &Context<'_>) -> bool {
        self.ready = !self.ready;
        if self.ready {
            cx.waker().wake_by_ref();
        }
        self.ready
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Trickle<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.stumbles(cx) {
            return Poll::Pending;
        }
        let room = buf.len().min(1);
        Pin::new(&mut self.inner).poll_read(cx, &mut buf[..room])
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Trickle<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.stumbles(cx) {
            return Poll::Pending;
        }
        Pin::new(&mut self.inner).poll_write(cx, &bytes[..bytes.len().min(1)])
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(cx)
    }
}

fn trickle<T>(inner: T) -> Trickle<T> {
    Trickle { inner, ready: false }
}

// FRM-10, case 030, case 032: a writer that takes one byte a call, calls dropped at random points: the peer reads whole frames only, and
// every call that is kept is answered
#[test]
fn dropped_calls_never_tear_a_frame() {
    block_on(async {
        let ((read, write), (their_read, mut their_write)) = pipes(16);
        let connected = builder().connect_parts(rt::reader(trickle(read)), rt::writer(trickle(write)));
        let (client, driver) = connected.expect("a valid configuration");
        drop(rt::spawn(driver));
        let server = rt::spawn(async move {
            let mut lines = BufReader::new(their_read).lines();
            let mut served = 0;
            while let Some(line) = lines.next().await {
                let line = line.expect("the pipe works");
                let message: Value =
                    serde_json::from_str(&line).unwrap_or_else(|error| panic!("torn: {error}: {line}"));
                let Some(id) = message.get("id") else { continue };
                let result = if message["method"] == "server/discover" {
                    r#"{"supportedVersions":["2026-07-28"]}"#.to_owned()
                } else {
                    served += 1;
                    message["params"]["n"].to_string()
                };
                let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"n\":{result}}}}}\n");
                let answer = if message["method"] == "server/discover" { format!("{DISCOVER}\n") } else { answer };
                if their_write.write_all(answer.as_bytes()).await.is_err() {
                    break;
                }
            }
            served
        });
        in_time("established", client.established()).await.expect("established");
        let mut seed = 7_u64;
        let mut kept = Vec::new();
        for n in 0..60 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let call = client.request("x", json!({"n": n, "pad": "p".repeat((seed >> 60) as usize * 8)})).send();
            // Some are dropped before a byte leaves, some in the middle, some after the end.
            for _ in 0..(seed >> 56) % 64 {
                rt::future::yield_now().await;
            }
            if seed & (1 << 40) == 0 { drop(call) } else { kept.push((n, call)) }
        }
        for (n, call) in kept {
            let result = in_time("an answer", call).await.expect("a result");
            assert_eq!(result.as_json().get(), format!(r#"{{"n":{n}}}"#));
        }
        drop(client);
        assert!(in_time("the server", server).await > 0);
    });
}

// RTE-11: the peer floods and does not read: the client goes on reading, its memory stays bounded, and a call that cannot leave times out
// as not sent or partly sent
#[test]
fn a_peer_that_floods_and_does_not_read_is_drained() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder().queue_limit(1 << 20)).await;
        // More than the pipe takes: the writer is stuck.
        let big = "x".repeat(200 << 10);
        let stuck = client.request("stuck", json!({"big": big})).timeout(Duration::from_secs(600)).send();
        let behind = client.request("behind", ()).queue_timeout(Duration::from_millis(50)).send();
        let flood = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"0123456789"}}"#;
        in_time("the flood", async {
            for _ in 0..50_000 {
                peer.say(flood).await;
            }
        })
        .await;
        match in_time("the one behind", behind).await {
            Err(CallError::Failed { cause: Cause::TimedOut, delivery: Delivery::NotSent, .. }) => {}
            end => panic!("{end:?}"),
        }
        assert!(client.pending_output() <= 1 << 20);
        let request = peer.next().await;
        peer.answer(&request, "{}").await;
        in_time("the stuck one", stuck).await.expect("a result once the peer reads");
    });
}

// CAN-04, case 099: the cancellation of a call whose bytes are stuck half written is not lost, and closing settles everything
#[test]
fn a_cancellation_behind_a_stuck_write_arrives() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let big = "x".repeat(300 << 10);
        let stuck = client.request("stuck", json!({"big": big})).send();
        // The pipe of 64 KiB is full once nothing more is taken.
        let mut last = usize::MAX;
        while std::mem::replace(&mut last, client.pending_output()) != client.pending_output() || last > 250 << 10 {
            rt::future::yield_now().await;
        }
        drop(stuck);
        let request = peer.next().await;
        assert_eq!(request["method"], "stuck");
        assert_eq!(peer.next().await["params"], json!({"requestId": request["id"]}));

        let stuck = client.request("stuck", json!({"big": big})).send();
        let queued = client.request("queued", ()).send();
        let closing = client.close();
        for call in [stuck, queued] {
            match in_time("its end", call).await {
                Err(CallError::Failed { cause: Cause::Closed, .. }) => {}
                end => panic!("{end:?}"),
            }
        }
        drop(peer);
        in_time("the close", closing).await.expect("an outcome");
    });
}

// LIM-01, UNR-02, UNR-04: a line over the limit costs itself and the request whose id stands at its end
#[test]
fn a_giant_line_costs_its_own_request_only() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder().line_limit(64 << 10)).await;
        let mut events = client.events();
        let one = client.request("one", ()).send();
        let two = client.request("two", ()).send();
        let (first, second) = (peer.next().await, peer.next().await);
        let giant = "y".repeat(1 << 20);
        peer.say(&format!(r#"{{"jsonrpc":"2.0","result":{{"big":"{giant}"}},"id":{}}}"#, first["id"])).await;
        peer.answer(&second, "{}").await;
        match in_time("one", one).await {
            Err(CallError::Failed { cause: Cause::InvalidResponse { .. }, .. }) => {}
            end => panic!("{end:?}"),
        }
        in_time("two", two).await.expect("a result");
        assert_eq!(peer.next().await["params"], json!({"requestId": first["id"], "reason": "unreadable response"}));
        let seen = events_until(&mut events, "the failure", |e| matches!(e, ClientEvent::Failed { .. })).await;
        assert!(
            matches!(seen.as_slice(), [ClientEvent::Dropped { reason, .. }, _] if reason.as_str() == "line_too_long"),
            "{seen:?}"
        );
    });
}

// FRM-09, case 022: the last answer of a server that ends without a line end is delivered
#[test]
fn the_last_answer_without_a_line_end_is_delivered() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let call = client.request("x", ()).send();
        let request = peer.next().await;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"last":1}}}}"#, request["id"]);
        peer.write.write_all(answer.as_bytes()).await.expect("the pipe works");
        drop(peer);
        let result = in_time("the result", call).await.expect("a result");
        assert_eq!(result.as_json().get(), r#"{"last":1}"#);
        in_time("the end", client.closed()).await.expect("an outcome");
    });
}

// FRM-11, SHD-01 over a stream: a Unix socket carries the same, and closing ends our side so that the peer sees it
#[cfg(unix)]
#[test]
fn a_unix_socket_works_like_a_pipe() {
    block_on(async {
        let (ours, theirs) = rt::socket_pair();
        let server = rt::spawn(async move {
            let (read, mut write) = rt::io::split(theirs);
            let mut lines = BufReader::new(read).lines();
            let mut seen = 0;
            while let Some(line) = lines.next().await {
                let line = line.expect("the socket works");
                let message: Value = serde_json::from_str(&line).expect("JSON");
                let answer = match message["method"].as_str() {
                    Some("server/discover") => DISCOVER.to_owned(),
                    _ => format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, message["id"]),
                };
                write.write_all(format!("{answer}\n").as_bytes()).await.expect("the socket works");
                seen += 1;
            }
            seen
        });
        let (read, write) = rt::halves(ours);
        let client = in_time("the connection", rt::adapter::Client::connect(read, write)).await.expect("established");
        in_time("the answer", client.call::<Value>("x", ())).await.expect("a result");
        let outcome = in_time("the close", client.close()).await.expect("an outcome");
        assert_eq!(outcome.exit, None);
        assert_eq!(in_time("the server", server).await, 2);
    });
}

// LIM-05, case 071: a hundred thousand calls, dropped at once or answered, leave nothing in flight
#[test]
fn nothing_is_left_of_calls_that_ended() {
    block_on(async {
        let (client, mut peer) = Peer::new(builder(), 1 << 20);
        for _ in 0..100_000 {
            drop(client.request("x", ()).send());
        }
        assert_eq!((client.in_flight(), client.pending_output() < 1024), (0, true));
        assert_eq!(peer.next().await["method"], "server/discover");
        peer.say(DISCOVER).await;
        in_time("established", client.established()).await.expect("established");
        client.notify("notifications/marker", ()).expect("taken");
        assert_eq!(peer.next().await["method"], "notifications/marker", "nothing of the dropped calls is written");
    });
}

/// A reader that is always ready with the same frame: the worst flood. Once told to, it answers the probe in between.
struct Flood {
    answer: Arc<AtomicBool>,
}

impl AsyncRead for Flood {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let answer = if self.answer.swap(false, Ordering::Relaxed) { DISCOVER } else { "" };
        let text = format!("{answer}\n{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}}\n");
        buf[..text.len()].copy_from_slice(text.as_bytes());
        Poll::Ready(Ok(text.len()))
    }
}

// RTE-11: a flood that never ends starves neither the writer nor other tasks of the same thread
#[test]
fn an_endless_flood_starves_nobody() {
    block_on(async {
        let (theirs, ours) = pipe(64 << 10);
        let answer = Arc::new(AtomicBool::new(false));
        let flood = Flood { answer: Arc::clone(&answer) };
        let (client, driver) =
            builder().connect_parts(rt::reader(flood), rt::writer(ours)).expect("a valid configuration");
        let driver = rt::spawn(driver);
        let mut lines = BufReader::new(theirs).lines();
        let probe = in_time("the probe", lines.next()).await.expect("a line").expect("the pipe works");
        assert!(probe.contains("server/discover"));
        answer.store(true, Ordering::Relaxed);
        in_time("established", client.established()).await.expect("established");
        client.notify("notifications/marker", ()).expect("taken");
        let marker = in_time("the marker", lines.next()).await.expect("a line").expect("the pipe works");
        assert!(marker.contains("notifications/marker"));
        drop(client);
        in_time("the driver ends", driver).await;
    });
}
