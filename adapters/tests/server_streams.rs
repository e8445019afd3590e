//! A server's byte streams: lines in pieces, an unclosed last line, floods, sockets.

use std::pin::Pin;
use std::task::{Context, Poll};

use serde_json::json;

use crate::rt::adapter::{Call, Ended, RpcError, ServeError, ServeExt};
use crate::rt::channel::unbounded;
use crate::rt::io::{AsyncRead, AsyncWrite};
use crate::rt::{self, block_on};
use crate::support::in_time;
use crate::support::served::{Served, builder, serve};
use crate::support::server::{request, request_with};

// case 032, FRM-10: half a line, then the rest; and a writer that takes one byte a call
#[test]
fn lines_may_come_and_go_in_pieces() {
    block_on(async {
        let mut served = serve(builder(), 1);
        let line = request(1, "echo", json!({"text": "ümlaut"}));
        let (head, tail) = line.split_at(line.len() / 2);
        let Served { client, .. } = &mut served;
        client.send(head).await;
        client.send(tail).await;
        assert_eq!(client.frame().await["result"]["echo"], "ümlaut");
    });
}

// FRM-09: an unclosed last line that is whole counts
#[test]
fn a_last_line_without_its_end_is_served() {
    block_on(async {
        let mut served = serve(builder(), 4096);
        served.client.send(request(1, "echo", json!({"text": "hi"})).trim_end()).await;
        served.client.close().await;
        assert_eq!(served.client.frame().await["result"]["echo"], "hi");
        assert_eq!(served.ended().await, Ended::EndOfInput);
    });
}

// The loop hands its thread to others though its input never runs dry
#[test]
fn a_flood_of_requests_starves_no_handler() {
    block_on(async {
        let line = request_with(0, "echo", json!({}), json!({}));
        let (seen, waited) = unbounded();
        let flood = Flood { line, at: 0, id: 0 };
        let server = builder().build().expect("sound");
        let stop = server.stop_handle();
        let handler = move |call: Call| {
            let seen = seen.clone();
            async move {
                if call.id() == "3" {
                    rt::future::yield_now().await;
                    let _ = seen.send(()).await;
                }
                Ok::<_, RpcError>(json!({}))
            }
        };
        let serving = rt::spawn(server.serve((rt::reader(flood), rt::writer(Void)), handler));
        in_time("the handler that waits", waited.recv()).await.expect("it goes on");
        stop.terminate();
        assert_eq!(in_time("the end", serving).await.expect("no error"), Ended::Stopped);
    });
}

/// An input that is always ready.
struct Flood {
    line: String,
    at: usize,
    id: u64,
}

impl AsyncRead for Flood {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut [u8]) -> Poll<std::io::Result<usize>> {
        if self.at == self.line.len() {
            self.id += 1;
            self.at = 0;
            self.line = request(self.id, "echo", json!({}));
        }
        let n = buf.len().min(self.line.len() - self.at);
        buf[..n].copy_from_slice(&self.line.as_bytes()[self.at..self.at + n]);
        self.at += n;
        Poll::Ready(Ok(n))
    }
}

/// An output that is always ready. (Those of a runtime may say now and then that they are not, for the sake of other tasks.)
struct Void;

impl AsyncWrite for Void {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

// The same suite of rules holds over a socket pair (FRM-11)
#[cfg(unix)]
#[test]
fn a_unix_socket_is_served_as_any_stream() {
    block_on(async {
        let (ours, theirs) = rt::socket_pair();
        let serving = rt::spawn(builder().serve(rt::adapter::Transport::stream(ours), |call: Call| async move {
            Ok::<_, RpcError>(json!({"method": call.method()}))
        }));
        let (reader, writer) = rt::io::split(theirs);
        let mut client = crate::support::server::Client::new(reader, writer);
        for id in 0..100 {
            client.send(&request(id, "tools/list", json!({}))).await;
            assert_eq!(client.frame().await["result"]["method"], "tools/list");
        }
        client.close().await;
        assert_eq!(client.rest().await, Vec::<serde_json::Value>::new());
        assert_eq!(in_time("the end", serving).await.expect("no error"), Ended::EndOfInput);
    });
}

// A configuration that contradicts itself is an error before anything is claimed or read
#[test]
fn a_wrong_configuration_does_not_serve() {
    block_on(async {
        let served = builder()
            .capabilities("no object")
            .serve((rt::reader(rt::io::empty()), rt::writer(rt::io::sink())), |call: Call| async move {
                Err::<(), _>(call.method_not_found())
            });
        assert!(matches!(in_time("the refusal", served).await, Err(ServeError::Config(_))));
    });
}
