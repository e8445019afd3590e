//! Owns the copying of a server's standard error to ours, on a thread of its own: ours may be a pipe that nobody reads or a stopped terminal, and
//! nothing that moves frames may wait for it. It must not know what is copied.

use std::collections::VecDeque;
use std::fmt;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Bytes that may wait; what comes on top is dropped and counted.
const LIMIT: usize = 256 << 10;
/// Bytes of one write.
const PIECE: usize = 16 << 10;

/// Copies bytes to this process's standard error without ever blocking whoever hands them in.
///
/// The thread starts with the first byte and ends once this is dropped and all is written.
///
/// ```
/// use mcp_wire_driver::client::Tee;
///
/// let mut tee = Tee::default();
/// tee.push(b"a line of the server's\n");
/// ```
#[derive(Default)]
pub struct Tee {
    shared: Arc<Shared>,
    started: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    bytes: VecDeque<u8>,
    dropped: usize,
    /// The thread holds bytes that are not written yet.
    writing: bool,
    /// Nothing more comes.
    ended: bool,
    flushed: Option<Waker>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, out: &mut dyn Write) {
        let mut piece = Vec::with_capacity(PIECE);
        let mut state = self.lock();
        loop {
            if state.bytes.is_empty() && state.dropped == 0 {
                state.writing = false;
                if let Some(waker) = state.flushed.take() {
                    drop(state);
                    waker.wake();
                    state = self.lock();
                    continue;
                }
                if state.ended {
                    return;
                }
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            piece.clear();
            let n = state.bytes.len().min(PIECE);
            piece.extend(state.bytes.drain(..n));
            if state.bytes.is_empty() && state.dropped > 0 {
                let dropped = std::mem::take(&mut state.dropped);
                piece.extend(format!("\n[{dropped} bytes of the server's standard error left out]\n").bytes());
            }
            state.writing = true;
            drop(state);
            // Where ours is closed there is nobody to tell.
            let _ = out.write_all(&piece).and_then(|()| out.flush());
            state = self.lock();
        }
    }
}

impl Tee {
    /// Takes bytes to copy, as many as fit.
    pub fn push(&mut self, bytes: &[u8]) {
        if !self.started {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("mcp-wire-stderr".to_owned()).stack_size(128 << 10);
            self.started = thread.spawn(move || shared.run(&mut std::io::stderr())).is_ok();
            if !self.started {
                return;
            }
        }
        self.shared.take(bytes);
    }

    /// Ready once all that was handed in is written.
    pub fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.shared.lock();
        if !self.started || (state.bytes.is_empty() && state.dropped == 0 && !state.writing) {
            return Poll::Ready(());
        }
        state.flushed = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Shared {
    fn take(&self, bytes: &[u8]) {
        let mut state = self.lock();
        let room = LIMIT.saturating_sub(state.bytes.len());
        // Nothing joins the queue behind a gap before the gap was told.
        let n = if state.dropped > 0 { 0 } else { bytes.len().min(room) };
        state.bytes.extend(bytes.get(..n).unwrap_or_default());
        state.dropped += bytes.len() - n;
        drop(state);
        self.wake.notify_one();
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.wake.notify_one();
    }
}

impl fmt::Debug for Tee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tee").field("started", &self.started).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A sink that takes a piece only when it is told to.
    struct Held(mpsc::Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Held {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            // Once the test is done, everything is taken.
            let _ = self.0.recv();
            self.1.lock().expect("no test panics under it").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    // LOG-05, case 086: our own standard error is stuck; handing bytes in never waits, memory is bounded, and the gap is told
    #[test]
    fn a_stuck_stderr_blocks_nobody_and_memory_is_bounded() {
        let shared = Arc::new(Shared::default());
        let (go, wait) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let thread = std::thread::spawn({
            let (shared, written) = (Arc::clone(&shared), Arc::clone(&written));
            move || shared.run(&mut Held(wait, written))
        });
        for _ in 0..64 {
            shared.take(&[b'x'; 64 << 10]);
        }
        assert!(shared.lock().bytes.len() <= LIMIT);
        drop(go);
        shared.lock().ended = true;
        shared.wake.notify_one();
        thread.join().expect("the thread ends");
        let written = written.lock().expect("no test panics under it");
        let text = String::from_utf8_lossy(&written);
        assert!(text.contains("bytes of the server's standard error left out"), "{} bytes", text.len());
        let copied = text.bytes().filter(|b| *b == b'x').count();
        assert!((LIMIT..=LIMIT + PIECE).contains(&copied), "{copied}");
    }
}
