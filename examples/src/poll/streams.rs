//! Owns how a server's standard streams are read and written without ever blocking the loop. It must not know frames, nor decide which kind
//! a stream is; the driver does.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll};

use mcp_wire_driver::stdio::{self, ReadPump, WritePump};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// A peer that is gone is an error, not a signal. (Apple's systems have no such flag; the Rust runtime ignores the signal.)
#[cfg(not(target_vendor = "apple"))]
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(target_vendor = "apple")]
const SEND: SendFlags = SendFlags::DONTWAIT;

/// `O_NONBLOCK` belongs to a description, and others share those that we inherit: each kind has a way of its own.
#[derive(Debug)]
pub(crate) enum Input {
    /// Opened anew, so the description is ours alone and does not block.
    Pipe(OwnedFd),
    /// Each call says that it must not block.
    Socket(OwnedFd),
    /// A file or a terminal has no readiness: a thread reads it.
    Pump(ReadPump),
}

#[derive(Debug)]
pub(crate) enum Output {
    Pipe(OwnedFd),
    Socket(OwnedFd),
    Pump(WritePump),
}

/// Interrupted is tried again by the next turn, like what would block.
fn later<T>(done: Result<T, Errno>) -> Poll<io::Result<T>> {
    match done {
        Err(Errno::AGAIN | Errno::INTR) => Poll::Pending,
        done => Poll::Ready(done.map_err(io::Error::from)),
    }
}

impl Input {
    pub(crate) fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(match stdio::Input::of(fd)? {
            stdio::Input::Pipe(fd) => Self::Pipe(fd),
            stdio::Input::Socket(fd) => Self::Socket(fd),
            stdio::Input::Blocking(fd) => Self::Pump(ReadPump::start(fd)?),
            other => return Err(io::Error::other(format!("no way to read {other:?}"))),
        })
    }

    /// What poll(2) can wait for; a pump wakes by itself.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Pipe(fd) | Self::Socket(fd) => Some(fd.as_fd()),
            Self::Pump(_) => None,
        }
    }

    pub(crate) fn read(&mut self, cx: &mut Context<'_>, to: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Pipe(fd) => later(rustix::io::read(fd, to)),
            Self::Socket(fd) => later(rustix::net::recv(fd, to, RecvFlags::DONTWAIT).map(|(n, _)| n)),
            Self::Pump(pump) => pump.poll_read(cx, to),
        }
    }
}

impl Output {
    pub(crate) fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(match stdio::Output::of(fd)? {
            stdio::Output::Pipe(fd) => Self::Pipe(fd),
            stdio::Output::Socket(fd) => Self::Socket(fd),
            stdio::Output::Blocking(fd) => Self::Pump(WritePump::start(fd)?),
            other => return Err(io::Error::other(format!("no way to write {other:?}"))),
        })
    }

    /// What poll(2) can wait for; a pump wakes by itself.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Pipe(fd) | Self::Socket(fd) => Some(fd.as_fd()),
            Self::Pump(_) => None,
        }
    }

    pub(crate) fn write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Pipe(fd) => later(rustix::io::write(fd, bytes)),
            Self::Socket(fd) => later(rustix::net::send(fd, bytes, SEND)),
            Self::Pump(pump) => pump.poll_write(cx, bytes),
        }
    }

    /// Ready once what was taken has left this process.
    pub(crate) fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Pump(pump) => pump.poll_flush(cx),
            _ => Poll::Ready(Ok(())),
        }
    }
}
