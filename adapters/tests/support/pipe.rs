//! A pipe in memory that holds so many bytes and works on any runtime, as those of the system do: dropping the writer ends it, and a write
//! to a pipe that nobody reads is an error. It must not know what passes through.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use crate::rt::io::{AsyncRead, AsyncWrite};

#[derive(Debug, Default)]
struct State {
    bytes: VecDeque<u8>,
    room: usize,
    no_reader: bool,
    no_writer: bool,
    waits_to_read: Option<Waker>,
    waits_to_write: Option<Waker>,
}

impl State {
    fn wake(&mut self) {
        for waker in [self.waits_to_read.take(), self.waits_to_write.take()].into_iter().flatten() {
            waker.wake();
        }
    }
}

/// The end to read from.
#[derive(Debug)]
pub(crate) struct Reader(Arc<Mutex<State>>);

/// The end to write to.
#[derive(Debug)]
pub(crate) struct Writer(Arc<Mutex<State>>);

/// One direction.
pub(crate) fn pipe(room: usize) -> (Reader, Writer) {
    let state = Arc::new(Mutex::new(State { room, ..State::default() }));
    (Reader(Arc::clone(&state)), Writer(state))
}

/// Two ends that hold so many bytes in each direction.
pub(crate) fn pipes(room: usize) -> ((Reader, Writer), (Reader, Writer)) {
    let (our_reader, their_writer) = pipe(room);
    let (their_reader, our_writer) = pipe(room);
    ((our_reader, our_writer), (their_reader, their_writer))
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("nothing panics under it")
}

impl AsyncRead for Reader {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.0);
        if state.bytes.is_empty() && !state.no_writer {
            state.waits_to_read = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let n = io::Read::read(&mut state.bytes, buf)?;
        state.wake();
        Poll::Ready(Ok(n))
    }
}

impl AsyncWrite for Writer {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.0);
        if state.no_reader || state.no_writer {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let n = bytes.len().min(state.room - state.bytes.len());
        if n == 0 && !bytes.is_empty() {
            state.waits_to_write = Some(cx.waker().clone());
            return Poll::Pending;
        }
        state.bytes.extend(&bytes[..n]);
        state.wake();
        Poll::Ready(Ok(n))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = lock(&self.0);
        state.no_writer = true;
        state.wake();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.no_reader = true;
        state.wake();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.no_writer = true;
        state.wake();
    }
}
