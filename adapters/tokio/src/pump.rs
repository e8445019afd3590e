//! Gives the driver's pumps tokio's traits. It must not know what is read or written, or why it takes a thread.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mcp_wire_driver::stdio::{ReadPump, WritePump};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a thread reads.
#[derive(Debug)]
pub(crate) struct Receiver(pub(crate) ReadPump);

/// What a thread writes.
#[derive(Debug)]
pub(crate) struct Sender(pub(crate) WritePump);

impl AsyncRead for Receiver {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let n = ready!(self.0.poll_read(cx, buf.initialize_unfilled()))?;
        buf.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Sender {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
