//! Owns the thread that writes to the standard streams, so that a reader who does not read stops nothing but the next event. It must
//! not know what an event means, nor which runtime hands it in: it speaks in wakers.

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::session::Shown;

/// Events that wait for the terminal.
const QUEUE: usize = 256;

/// How events are shown.
pub(super) trait Printer: Send + 'static {
    /// Writes one, to `out` or to standard error.
    fn show(&mut self, shown: &Shown, out: &mut dyn Write) -> io::Result<()>;

    /// Nothing more comes.
    fn finish(&mut self) {}
}

/// The writing thread. Its queue is bounded: who has an event waits for a place.
pub(super) struct Output(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Shown>,
    /// Nothing more comes.
    ended: bool,
    /// The thread has ended, and how. `None` where that was told already.
    done: Option<Option<io::Result<()>>>,
    waker: Option<Waker>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes whoever waits for room or the end.
    fn tell(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Output {
    pub(super) fn start(printer: impl Printer) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let inner = Arc::clone(&shared);
        let write = move || {
            let written = catch_unwind(AssertUnwindSafe(|| write_all(printer, &inner)));
            let written = written.unwrap_or_else(|_| Err(io::Error::other("the output thread panicked")));
            inner.tell(|state| state.done = Some(Some(written)));
        };
        std::thread::Builder::new().name("output".to_owned()).spawn(write)?;
        Ok(Self(shared))
    }

    /// Takes what is pending as soon as there is room; `false` once standard output cannot be written any more.
    pub(super) fn poll_take(&self, pending: &mut Option<Shown>, cx: &Context<'_>) -> Poll<bool> {
        let mut state = self.0.lock();
        if state.done.is_some() {
            return Poll::Ready(false);
        }
        if state.queue.len() >= QUEUE {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        state.queue.extend(pending.take());
        drop(state);
        self.0.changed.notify_one();
        Poll::Ready(true)
    }

    /// Ready once standard output cannot be written any more.
    pub(super) fn poll_gone(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.done.is_some() {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Nothing more comes. Ready once what the queue still holds is shown, however long that takes.
    pub(super) fn poll_finish(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        if let Some(done) = &mut state.done {
            return Poll::Ready(done.take().unwrap_or(Ok(())));
        }
        state.ended = true;
        state.waker = Some(cx.waker().clone());
        drop(state);
        self.0.changed.notify_one();
        Poll::Pending
    }
}

/// What it waits for may be lost, and the thread ends with the write that it is in.
impl Drop for Output {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_one();
    }
}

fn write_all(mut printer: impl Printer, shared: &Shared) -> io::Result<()> {
    // One write for all that is there, none held back while nothing more comes.
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    loop {
        let mut state = shared.lock();
        while state.queue.is_empty() && !state.ended {
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut events = std::mem::take(&mut state.queue);
        drop(state);
        if events.is_empty() {
            break;
        }
        // There is room again.
        shared.tell(|_| {});
        for event in events.drain(..) {
            printer.show(&event, &mut out)?;
        }
        out.flush()?;
    }
    printer.finish();
    out.flush()
}
