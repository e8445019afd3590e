//! Owns the threads for streams without readiness: one that reads into a bounded buffer, one that writes from one.
//! It must not know runtimes: it speaks in wakers.
//!
//! A thread that is blocked in a system call cannot be stopped. It is detached, holds nothing but its descriptor and the buffer, keeps neither
//! process nor runtime alive, and ends with the call it is in.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
#[cfg(unix)]
use std::os::fd::{AsFd as AsStream, OwnedFd as OwnedStream};
#[cfg(windows)]
use std::os::windows::io::{AsHandle as AsStream, OwnedHandle as OwnedStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Bytes that a pump holds at most.
const CAPACITY: usize = 256 << 10;
/// Bytes of one system call.
const CHUNK: usize = 64 << 10;

#[derive(Debug, Default)]
struct Buffer {
    bytes: VecDeque<u8>,
    /// The thread is in the middle of a chunk that has left `bytes`.
    busy: bool,
    /// Reading: the input has ended. Writing: no more will come.
    closed: bool,
    /// The other end of the pump is gone.
    abandoned: bool,
    error: Option<io::Error>,
    waker: Option<Waker>,
}

#[derive(Debug, Default)]
struct Pump {
    buffer: Mutex<Buffer>,
    changed: Condvar,
}

impl Pump {
    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, guard: MutexGuard<'a, Buffer>) -> MutexGuard<'a, Buffer> {
        self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut buffer: MutexGuard<'_, Buffer>) {
    let waker = buffer.waker.take();
    drop(buffer);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Reads a blocking descriptor with a thread of its own.
///
/// ```
/// use std::task::{Context, Poll, Waker};
/// use mcp_wire_driver::stdio::ReadPump;
///
/// let file = std::fs::File::open(if cfg!(windows) { "NUL" } else { "/dev/null" })?;
/// let mut pump = ReadPump::start(file.into())?;
/// let mut cx = Context::from_waker(Waker::noop());
/// while pump.poll_read(&mut cx, &mut [0; 16]).is_pending() {
///     std::thread::yield_now();
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ReadPump(Arc<Pump>);

impl ReadPump {
    /// Starts the thread.
    ///
    /// # Errors
    /// No thread is left.
    pub fn start(input: OwnedStream) -> io::Result<Self> {
        Self::run("mcp-wire-stdin", File::from(input))
    }

    /// Starts the thread for our end of a child's pipe, which std made and alone reads in the right way. The thread ends with the last process that
    /// holds the other end.
    ///
    /// # Errors
    /// No thread is left.
    #[cfg(windows)]
    pub fn of_pipe(input: impl Read + AsStream + Send + 'static) -> io::Result<Self> {
        Self::run("mcp-wire-output", input)
    }

    fn run(name: &str, input: impl Read + AsStream + Send + 'static) -> io::Result<Self> {
        let pump = Arc::new(Pump::default());
        let inner = pump.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10);
        thread.spawn(move || read_all(&inner, input))?;
        Ok(Self(pump))
    }

    /// Reads what is there; 0 is the end of the input. Cancel-safe: nothing lives in the call.
    ///
    /// # Errors
    /// What the system said, once; the end after that.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, to: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = self.0.lock();
        if buffer.bytes.is_empty() {
            if let Some(error) = buffer.error.take() {
                return Poll::Ready(Err(error));
            }
            if buffer.closed {
                return Poll::Ready(Ok(0));
            }
            buffer.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let n = buffer.bytes.read(to)?;
        self.0.changed.notify_all();
        Poll::Ready(Ok(n))
    }
}

impl Drop for ReadPump {
    fn drop(&mut self) {
        self.0.lock().abandoned = true;
        self.0.changed.notify_all();
    }
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy)]
enum Direction {
    Read,
    Write,
}

/// Does it until it is done or fails. Somebody who shares the description may have made it non-blocking: then we wait ourselves.
fn retry<S: AsStream, T>(
    stream: &mut S,
    direction: Direction,
    mut act: impl FnMut(&mut S) -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match act(stream) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_ready(stream, direction, error)?,
            done => return done,
        }
    }
}

#[cfg(unix)]
fn wait_ready(stream: &impl AsStream, direction: Direction, _: io::Error) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};

    let ready = match direction {
        Direction::Read => PollFlags::IN,
        Direction::Write => PollFlags::OUT,
    };
    match poll(&mut [PollFd::new(stream, ready)], None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// No handle is non-blocking here.
#[cfg(windows)]
fn wait_ready(_: &impl AsStream, _: Direction, error: io::Error) -> io::Result<()> {
    Err(error)
}

/// Whether a read of nothing is the end.
#[cfg(unix)]
const fn has_ended(_: &impl AsStream) -> bool {
    true
}

/// Whether a read of nothing is the end. Somebody who writes nothing to a pipe makes such a read too (case 190).
#[cfg(windows)]
fn has_ended(stream: &impl AsStream) -> bool {
    !crate::windows::is_open_pipe(stream.as_handle())
}

fn read_all(pump: &Pump, mut input: impl Read + AsStream) {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = retry(&mut input, Direction::Read, |input| input.read(&mut chunk));
        if matches!(read, Ok(0)) && !has_ended(&input) {
            continue;
        }
        let mut buffer = pump.lock();
        match read {
            Ok(n) if n > 0 => {
                while !buffer.abandoned && buffer.bytes.len() + n > CAPACITY {
                    buffer = pump.wait(buffer);
                }
                if buffer.abandoned {
                    return;
                }
                buffer.bytes.extend(chunk.get(..n).unwrap_or_default());
                wake(buffer);
            }
            ended => {
                buffer.error = ended.err();
                buffer.closed = true;
                wake(buffer);
                return;
            }
        }
    }
}

/// Writes a blocking descriptor with a thread of its own.
///
/// ```
/// use std::task::{Context, Poll, Waker};
/// use mcp_wire_driver::stdio::WritePump;
///
/// let file = std::fs::OpenOptions::new().write(true).open(if cfg!(windows) { "NUL" } else { "/dev/null" })?;
/// let mut pump = WritePump::start(file.into())?;
/// let mut cx = Context::from_waker(Waker::noop());
/// assert!(matches!(pump.poll_write(&mut cx, b"x"), Poll::Ready(Ok(1))));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct WritePump(Arc<Pump>);

impl WritePump {
    /// Starts the thread.
    ///
    /// # Errors
    /// No thread is left.
    pub fn start(output: OwnedStream) -> io::Result<Self> {
        Self::run("mcp-wire-stdout", File::from(output))
    }

    /// Starts the thread for our end of a child's pipe, which std made and alone writes in the right way. It is closed by the drop of the pump, once
    /// everything taken over is written or nobody reads it any more.
    ///
    /// # Errors
    /// No thread is left.
    #[cfg(windows)]
    pub fn of_pipe(output: impl Write + AsStream + Send + 'static) -> io::Result<Self> {
        Self::run("mcp-wire-input", output)
    }

    fn run(name: &str, output: impl Write + AsStream + Send + 'static) -> io::Result<Self> {
        let pump = Arc::new(Pump::default());
        let inner = pump.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10);
        thread.spawn(move || write_all(&inner, output))?;
        Ok(Self(pump))
    }

    /// Takes bytes over, as many as there is room for. They are written in order; [`poll_flush`](Self::poll_flush) tells when.
    ///
    /// # Errors
    /// What the system said of an earlier write.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut buffer = self.0.lock();
        if let Some(error) = &buffer.error {
            return Poll::Ready(Err(copy(error)));
        }
        let room = CAPACITY.saturating_sub(buffer.bytes.len());
        if room == 0 {
            buffer.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let n = room.min(bytes.len());
        buffer.bytes.extend(bytes.get(..n).unwrap_or_default());
        self.0.changed.notify_all();
        Poll::Ready(Ok(n))
    }

    /// Ready once everything taken over has been written.
    ///
    /// # Errors
    /// What the system said of a write.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut buffer = self.0.lock();
        if let Some(error) = &buffer.error {
            return Poll::Ready(Err(copy(error)));
        }
        if buffer.bytes.is_empty() && !buffer.busy {
            return Poll::Ready(Ok(()));
        }
        buffer.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for WritePump {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

/// An error that stays for every later call.
fn copy(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

fn write_all(pump: &Pump, mut output: impl Write + AsStream) {
    let mut chunk = vec![0; CHUNK];
    loop {
        let mut buffer = pump.lock();
        while buffer.bytes.is_empty() {
            if buffer.closed {
                return;
            }
            buffer = pump.wait(buffer);
        }
        let n = buffer.bytes.read(&mut chunk).unwrap_or(0);
        buffer.busy = true;
        drop(buffer);
        let mut rest = chunk.get(..n).unwrap_or_default();
        let mut written = Ok(());
        while !rest.is_empty() && written.is_ok() {
            written = match retry(&mut output, Direction::Write, |output| output.write(rest)) {
                Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    rest = rest.get(n..).unwrap_or_default();
                    Ok(())
                }
                Err(error) => Err(error),
            };
        }
        let mut buffer = pump.lock();
        buffer.busy = false;
        let failed = written.is_err();
        buffer.error = written.err();
        wake(buffer);
        if failed {
            return;
        }
    }
}

// The child's pipes of the process tests pass them on Windows.
#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn block<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(value) = poll(&mut cx) {
                return value;
            }
            std::thread::yield_now();
        }
    }

    // FRM-10: whatever the sizes of the calls, the bytes arrive whole and in order
    #[test]
    fn bytes_pass_both_pumps_whole_and_in_order() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let (mut from, mut to) =
            (ReadPump::start(reader).expect("a thread"), WritePump::start(writer).expect("a thread"));
        let sent: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let expected = sent.clone();
        let sender = std::thread::spawn(move || {
            let mut rest = &sent[..];
            while !rest.is_empty() {
                let n = block(|cx| to.poll_write(cx, rest)).expect("can be written");
                rest = &rest[n..];
            }
            block(|cx| to.poll_flush(cx)).expect("can be flushed");
        });
        let (mut got, mut chunk) = (Vec::new(), [0; 1000]);
        loop {
            match block(|cx| from.poll_read(cx, &mut chunk)).expect("can be read") {
                0 => break,
                n => got.extend_from_slice(&chunk[..n]),
            }
        }
        sender.join().expect("the sender ends");
        assert!(got == expected);
    }

    // SHD-07: a reader that is gone is an error of every later write
    #[test]
    fn a_vanished_reader_is_an_error_and_stays_one() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        drop(reader);
        let mut to = WritePump::start(writer).expect("a thread");
        let _ = block(|cx| to.poll_write(cx, b"x"));
        for _ in 0..2 {
            let error = block(|cx| to.poll_flush(cx)).expect_err("nobody reads");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
    }
}
