//! Wraps the standard streams of a server as tokio wants them: readiness where it exists, a pump where it does not.
//! It must not know frames, nor decide which kind a stream is; the driver does.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mcp_wire_driver::server::ServeError;
use mcp_wire_driver::stdio::{self, ReadPump, StdioGuard, WritePump};
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::unix::pipe;

/// A peer that is gone is an error, not a signal, also in a program that has SIGPIPE at its default. (Apple's systems have no such flag; the
/// Rust runtime ignores the signal unless told otherwise.)
#[cfg(not(target_vendor = "apple"))]
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(target_vendor = "apple")]
const SEND: SendFlags = SendFlags::DONTWAIT;

/// Claims and opens the standard streams.
pub(crate) fn open(guarded: bool) -> Result<(Input, Output, StdioGuard), ServeError> {
    let guard = stdio::claim(guarded)?;
    let input = stdio::Input::of(guard.input()).and_then(Input::new).map_err(ServeError::Stdio)?;
    let output = stdio::Output::of(guard.output()).and_then(Output::new).map_err(ServeError::Stdio)?;
    Ok((input, output, guard))
}

#[derive(Debug)]
pub(crate) enum Input {
    Pipe(pipe::Receiver),
    Socket(AsyncFd<OwnedFd>),
    Pump(ReadPump),
}

#[derive(Debug)]
pub(crate) enum Output {
    Pipe(pipe::Sender),
    Socket(AsyncFd<OwnedFd>),
    Pump(WritePump),
}

/// A socket in the reactor, without touching its description.
fn socket(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // The constructor is deprecated for one that is unsafe because a descriptor could be closed while registered; an `OwnedFd` that nobody else
    // can reach is not.
    #[allow(deprecated, reason = "an owned descriptor stays open as long as it is registered")]
    AsyncFd::with_interest(fd, interest)
}

impl Input {
    fn new(input: stdio::Input) -> io::Result<Self> {
        Ok(match input {
            stdio::Input::Pipe(fd) => Self::Pipe(pipe::Receiver::from_owned_fd_unchecked(fd)?),
            stdio::Input::Socket(fd) => Self::Socket(socket(fd, Interest::READABLE)?),
            stdio::Input::Blocking(fd) => Self::Pump(ReadPump::start(fd)?),
            other => return Err(io::Error::other(format!("no way to read {other:?}"))),
        })
    }
}

impl Output {
    fn new(output: stdio::Output) -> io::Result<Self> {
        Ok(match output {
            stdio::Output::Pipe(fd) => Self::Pipe(pipe::Sender::from_owned_fd_unchecked(fd)?),
            stdio::Output::Socket(fd) => Self::Socket(socket(fd, Interest::WRITABLE)?),
            stdio::Output::Blocking(fd) => Self::Pump(WritePump::start(fd)?),
            other => return Err(io::Error::other(format!("no way to write {other:?}"))),
        })
    }
}

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buf),
            Self::Socket(socket) => loop {
                let mut ready = ready!(socket.poll_read_ready(cx))?;
                let room = buf.remaining();
                let read = ready.try_io(|fd| {
                    let (n, _) = rustix::net::recv(fd, buf.initialize_unfilled(), RecvFlags::DONTWAIT)?;
                    Ok(n)
                });
                let Ok(read) = read else { continue };
                let n = read?;
                if (1..room).contains(&n) {
                    // It was emptied, and what comes next is told anew: that saves the read which would find nothing.
                    ready.clear_ready();
                }
                buf.advance(n);
                return Poll::Ready(Ok(()));
            },
            Self::Pump(pump) => {
                let n = ready!(pump.poll_read(cx, buf.initialize_unfilled()))?;
                buf.advance(n);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            Self::Socket(socket) => loop {
                let mut ready = ready!(socket.poll_write_ready(cx))?;
                if let Ok(written) = ready.try_io(|fd| Ok(rustix::net::send(fd, bytes, SEND)?)) {
                    return Poll::Ready(written);
                }
            },
            Self::Pump(pump) => pump.poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pump(pump) => pump.poll_flush(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
