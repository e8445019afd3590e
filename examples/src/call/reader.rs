//! Owns the watch over whoever reads standard output. It must not know what is done once nobody does, nor which runtime waits: it speaks
//! in wakers.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Whoever reads standard output, where that can be seen without writing: behind a pipe or a socket.
#[derive(Debug, Default)]
pub(super) struct Reader(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    gone: bool,
    waker: Option<Waker>,
}

impl Reader {
    /// A thread waits, as the descriptor is shared with others and must stay as it is; it ends with the process.
    pub(super) fn watch() -> Self {
        let reader = Self::default();
        let shared = Arc::clone(&reader.0);
        let watch = move || {
            let stdout = io::stdout();
            loop {
                // Errors and hang-ups are reported whether asked for or not, and nothing else is asked for.
                let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
                match poll(&mut fds, None) {
                    Err(Errno::INTR) => {}
                    Ok(_) if fds.iter().any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP)) => break,
                    // It cannot be watched.
                    _ => return,
                }
            }
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            state.gone = true;
            let waker = state.waker.take();
            drop(state);
            waker.into_iter().for_each(Waker::wake);
        };
        // Without a thread nobody notices before the next write.
        let _ = std::thread::Builder::new().name("reader".to_owned()).spawn(watch);
        reader
    }

    /// Ready once it is gone.
    pub(super) fn poll_gone(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.gone {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
