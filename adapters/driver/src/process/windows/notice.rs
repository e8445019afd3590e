//! Owns the notice that a child has exited: a small thread that waits for it and wakes whoever asked. It must not know what an exit means.

use std::io;
use std::os::windows::io::{AsHandle, BorrowedHandle};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::windows::wait;

#[derive(Debug, Default)]
struct State {
    exited: bool,
    waker: Option<Waker>,
}

/// The notice that a child has exited, for any runtime.
///
/// A thread waits for it, which ends with the child, whatever becomes of the notice.
///
/// ```no_run
/// use std::future::poll_fn;
/// use mcp_wire_driver::process::{ServerCommand, spawn};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = spawn(&ServerCommand::new("my-server"))?;
/// let notice = server.child.exit_notice()?;
/// poll_fn(|cx| notice.poll(cx)).await;
/// println!("{:?}", server.child.try_exit());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ExitNotice(Arc<Mutex<State>>);

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing under the lock panics halfway through a change.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ExitNotice {
    pub(super) fn of(process: BorrowedHandle<'_>) -> io::Result<Self> {
        let process = process.try_clone_to_owned()?;
        let state = Arc::new(Mutex::new(State::default()));
        let told = Arc::clone(&state);
        std::thread::Builder::new().name("mcp-wire-exit".to_owned()).stack_size(64 << 10).spawn(move || {
            wait(process.as_handle());
            let mut state = lock(&told);
            state.exited = true;
            let waker = state.waker.take();
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        })?;
        Ok(Self(state))
    }

    /// Ready once the child has exited, and from then on. The last waker is woken.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0);
        if state.exited {
            return Poll::Ready(());
        }
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}
