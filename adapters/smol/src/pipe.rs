//! Owns how a descriptor in smol's reactor is read and written: on readiness, with one call where one is enough. It must not know whose
//! descriptor it is. (tokio has this in `net::unix::pipe`.)

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use smol::Async;
use smol::io::{AsyncRead, AsyncWrite};

/// A peer that is gone is an error, not a signal, also in a program that has SIGPIPE at its default. (Apple's systems have no such flag; the
/// Rust runtime ignores the signal unless told otherwise.)
#[cfg(not(target_vendor = "apple"))]
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(target_vendor = "apple")]
const SEND: SendFlags = SendFlags::DONTWAIT;

/// What a descriptor is, as far as reading and writing it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Its description is non-blocking, and ours alone.
    Own,
    /// A socket with a description that others share, so it stays blocking.
    SharedSocket,
}

/// The reading end of a pipe, or a socket that is read.
#[derive(Debug)]
pub(crate) struct Receiver {
    fd: Async<OwnedFd>,
    kind: Kind,
    /// The last read has emptied it. What comes next is told by the reactor: that saves the read which would find nothing.
    emptied: bool,
}

/// The writing end of a pipe, or a socket that is written.
#[derive(Debug)]
pub(crate) struct Sender {
    fd: Async<OwnedFd>,
    kind: Kind,
}

impl Receiver {
    /// A pipe of our own. It is made non-blocking.
    pub(crate) fn pipe(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { fd: Async::new(fd)?, kind: Kind::Own, emptied: true })
    }

    /// A socket whose description others share. That stays as it is.
    pub(crate) fn shared_socket(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { fd: Async::new_nonblocking(fd)?, kind: Kind::SharedSocket, emptied: true })
    }
}

impl Sender {
    /// A pipe of our own. It is made non-blocking.
    pub(crate) fn pipe(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { fd: Async::new(fd)?, kind: Kind::Own })
    }

    /// A socket whose description others share. That stays as it is.
    pub(crate) fn shared_socket(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { fd: Async::new_nonblocking(fd)?, kind: Kind::SharedSocket })
    }
}

impl AsyncRead for Receiver {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        loop {
            if this.emptied {
                ready!(this.fd.poll_readable(cx))?;
                this.emptied = false;
            }
            let fd = this.fd.get_ref();
            let read = match this.kind {
                Kind::Own => rustix::io::read(fd, &mut *buf),
                Kind::SharedSocket => rustix::net::recv(fd, &mut *buf, RecvFlags::DONTWAIT).map(|(n, _)| n),
            };
            match read {
                Ok(n) => {
                    this.emptied = (1..buf.len()).contains(&n);
                    return Poll::Ready(Ok(n));
                }
                Err(Errno::AGAIN) => this.emptied = true,
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

impl AsyncWrite for Sender {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let fd = self.fd.get_ref();
            let written = match self.kind {
                Kind::Own => rustix::io::write(fd, bytes),
                Kind::SharedSocket => rustix::net::send(fd, bytes, SEND),
            };
            match written {
                Err(Errno::AGAIN) => ready!(self.fd.poll_writable(cx))?,
                written => return Poll::Ready(written.map_err(io::Error::from)),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Only the drop closes it.
    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
