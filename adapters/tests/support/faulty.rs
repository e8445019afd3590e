//! A stream that misbehaves as a stream may, at any call, drawn from a seed: not ready, interrupted, short, bytes kept back until they are
//! flushed; and, if it is to break, an end, a zero write or an error of any kind in the middle. It must not know what passes through.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::rt::io::{AsyncRead, AsyncWrite};

/// Numbers from a seed (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than this.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A generator of its own.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }
}

/// What breaks a stream for good.
const ENDS: [Option<io::ErrorKind>; 8] = [
    None,
    None,
    Some(io::ErrorKind::WouldBlock),
    Some(io::ErrorKind::WriteZero),
    Some(io::ErrorKind::BrokenPipe),
    Some(io::ErrorKind::ConnectionReset),
    Some(io::ErrorKind::UnexpectedEof),
    Some(io::ErrorKind::Other),
];

/// A stream with faults.
#[derive(Debug)]
pub(crate) struct Faulty<T> {
    inner: T,
    random: Random,
    /// Calls until it breaks, if it does.
    left: Option<u64>,
    /// How it has broken: an end, or an error.
    broken: Option<Option<io::ErrorKind>>,
    /// Bytes that it has accepted and not passed on; it keeps them back, as a buffered writer does, if it has room for any.
    held: Vec<u8>,
    room: usize,
}

/// What is to be done with a call.
enum Fault {
    None,
    NotReady,
    Interrupted,
    Broken(Option<io::ErrorKind>),
}

impl<T> Faulty<T> {
    pub(crate) fn new(inner: T, mut random: Random, breaks_after: Option<u64>) -> Self {
        let room = if random.one_in(2) { usize::try_from(random.below(200)).expect("small") } else { 0 };
        Self { inner, random, left: breaks_after, broken: None, held: Vec::new(), room }
    }

    fn fault(&mut self, cx: &Context<'_>) -> Fault {
        if let Some(left) = &mut self.left {
            if *left == 0 {
                let at = usize::try_from(self.random.below(ENDS.len() as u64)).expect("small");
                self.broken = Some(self.broken.unwrap_or(ENDS[at]));
            } else {
                *left -= 1;
            }
        }
        if let Some(broken) = self.broken {
            return Fault::Broken(broken);
        }
        match self.random.below(8) {
            0 | 1 => {
                // At once, or from somewhere else a little later.
                if self.random.one_in(2) {
                    cx.waker().wake_by_ref();
                } else {
                    let waker = cx.waker().clone();
                    std::thread::spawn(move || waker.wake());
                }
                Fault::NotReady
            }
            2 => Fault::Interrupted,
            _ => Fault::None,
        }
    }

    fn short(&mut self, len: usize) -> usize {
        if len == 0 || self.random.one_in(3) {
            return len;
        }
        1 + usize::try_from(self.random.below(len.min(64) as u64)).expect("small")
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Faulty<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        match self.fault(cx) {
            Fault::NotReady => Poll::Pending,
            Fault::Interrupted => Poll::Ready(Err(io::ErrorKind::Interrupted.into())),
            Fault::Broken(None) => Poll::Ready(Ok(0)),
            Fault::Broken(Some(kind)) => Poll::Ready(Err(kind.into())),
            Fault::None => {
                let n = self.short(buf.len());
                Pin::new(&mut self.inner).poll_read(cx, &mut buf[..n])
            }
        }
    }
}

impl<W: AsyncWrite + Unpin> Faulty<W> {
    /// Passes on what is held.
    fn poll_pass_on(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let n = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.held))?;
            self.held.drain(..n);
        }
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Faulty<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.fault(cx) {
            Fault::NotReady => return Poll::Pending,
            Fault::Interrupted => return Poll::Ready(Err(io::ErrorKind::Interrupted.into())),
            Fault::Broken(None) => return Poll::Ready(Ok(0)),
            Fault::Broken(Some(kind)) => return Poll::Ready(Err(kind.into())),
            Fault::None => {}
        }
        let n = self.short(bytes.len());
        if self.room == 0 {
            return Pin::new(&mut self.inner).poll_write(cx, &bytes[..n]);
        }
        if self.held.len() >= self.room {
            ready!(self.poll_pass_on(cx))?;
        }
        self.held.extend_from_slice(&bytes[..n]);
        Poll::Ready(Ok(n))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.fault(cx) {
            Fault::NotReady => return Poll::Pending,
            Fault::Interrupted => return Poll::Ready(Err(io::ErrorKind::Interrupted.into())),
            Fault::Broken(None) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Fault::Broken(Some(kind)) => return Poll::Ready(Err(kind.into())),
            Fault::None => {}
        }
        ready!(self.poll_pass_on(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        Pin::new(&mut self.inner).poll_close(cx)
    }
}
