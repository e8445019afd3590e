//! Gives the driver's pumps smol's traits. It must not know what is read or written, or why it takes a thread.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcp_wire_driver::stdio::{ReadPump, WritePump};
use smol::io::{AsyncRead, AsyncWrite};

/// What a thread reads.
#[derive(Debug)]
pub(crate) struct Receiver(pub(crate) ReadPump);

/// What a thread writes.
#[derive(Debug)]
pub(crate) struct Sender(pub(crate) WritePump);

impl AsyncRead for Receiver {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_read(cx, buf)
    }
}

impl AsyncWrite for Sender {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
