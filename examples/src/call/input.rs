//! Owns the thread that reads a script from standard input line by line. It must not know what a line means, nor which runtime waits: it
//! speaks in wakers.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Lines that are read ahead.
const AHEAD: usize = 16;

/// Lines of standard input. A thread reads them, as a blocked read can be stopped by nobody; it ends with the process.
#[derive(Debug)]
pub(super) struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<io::Result<String>>,
    ended: bool,
    waker: Option<Waker>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        while state.lines.len() >= AHEAD {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Lines {
    pub(super) fn read() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let inner = Arc::clone(&shared);
        let read = move || {
            for line in io::stdin().lines() {
                let failed = line.is_err();
                inner.tell(|state| state.lines.push_back(line));
                if failed {
                    break;
                }
            }
            inner.tell(|state| state.ended = true);
        };
        std::thread::Builder::new().name("script".to_owned()).spawn(read)?;
        Ok(Self(shared))
    }

    /// The next line; `None` at the end.
    pub(super) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<io::Result<String>>> {
        let mut state = self.0.lock();
        if let Some(line) = state.lines.pop_front() {
            drop(state);
            self.0.changed.notify_one();
            return Poll::Ready(Some(line));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
