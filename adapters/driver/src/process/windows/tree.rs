//! Owns one child and its job: its exit, its end and what it leaves behind. It must not know when an end is due.

use std::io;
use std::os::windows::io::AsHandle;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_wire::lifecycle::ExitStatus;

use super::notice::ExitNotice;
use crate::windows::Job;

/// The exit code of what is ended, as the system's own tools give it.
const ENDED: u32 = 1;

/// A child, its job, and the right to end them.
///
/// The job holds whatever the child starts, and the child itself (PRC-02): a process is ended by the handles that this holds and never by an
/// id, which could have been given to somebody else (PRC-04, case 144). Dropping it ends the tree; that neither blocks nor needs a runtime
/// (SHD-04). There is nothing to reap on Windows: a process is gone when its last handle is closed.
///
/// ```no_run
/// use mcp_wire_driver::process::{ServerCommand, spawn};
///
/// let server = spawn(&ServerCommand::new("my-server"))?;
/// assert_eq!(server.child.try_exit(), None);
/// server.child.kill();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ChildTree {
    pid: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Held {
        child: Child,
        /// `None`: what the child starts is not ours to end.
        job: Option<Job>,
    },
    Reaped(ExitStatus),
}

impl ChildTree {
    pub(super) fn new(child: Child, job: Option<Job>) -> Self {
        Self { pid: child.id(), state: Mutex::new(State::Held { child, job }) }
    }

    /// The process id of the child. It is nobody else's until the child is reaped.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock panics halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What tells of the exit. Each costs a thread that lives as long as the child.
    ///
    /// # Errors
    /// The system has no handle or no thread left, or the child is reaped.
    pub fn exit_notice(&self) -> io::Result<ExitNotice> {
        match &*self.state() {
            State::Held { child, .. } => ExitNotice::of(child.as_handle()),
            State::Reaped(_) => Err(io::Error::other("the process is gone and its handle is closed")),
        }
    }

    /// How the child has exited, if it has.
    #[must_use]
    pub fn try_exit(&self) -> Option<ExitStatus> {
        exit(&mut self.state())
    }

    /// The same as [`kill`](Self::kill): there is no milder way to end a process here (case 189), so the ladder has no such step.
    pub fn terminate(&self) {
        self.kill();
    }

    /// Ends the job, or without one the child.
    pub fn kill(&self) {
        match &mut *self.state() {
            State::Held { job: Some(job), .. } => job.terminate(ENDED),
            // An error means that it has exited.
            State::Held { child, job: None } => _ = child.kill(),
            State::Reaped(_) => {}
        }
    }

    /// The child has exited: says whether nobody else is in its job (PRC-03). Nobody there can be asked to end.
    ///
    /// Before the exit, after the reap and without a job that counts as nobody. The console host that the system gave the child counts as somebody,
    /// though it goes by itself a moment after its last client: ending it then does no harm.
    pub fn terminate_group(&self) -> bool {
        nobody_survives(&mut self.state())
    }

    /// The same, and ends them.
    pub fn kill_group(&self) -> bool {
        let mut state = self.state();
        let nobody = nobody_survives(&mut state);
        if let (State::Held { job: Some(job), .. }, false) = (&*state, nobody) {
            job.terminate(ENDED);
        }
        nobody
    }

    /// Closes the handles of an exited child, and ends what is left in its job before that: afterwards nothing could. `None` if it has not exited
    /// yet; it does not wait.
    pub fn reap(&self) -> Option<ExitStatus> {
        let mut state = self.state();
        let status = exit(&mut state)?;
        // Closing the job ends its members. That is said once more in words: not each system that has jobs does it.
        if let State::Held { job: Some(job), .. } = &*state {
            job.terminate(ENDED);
        }
        *state = State::Reaped(status);
        Some(status)
    }
}

/// How the child has exited, if it has.
fn exit(state: &mut State) -> Option<ExitStatus> {
    match state {
        State::Reaped(status) => Some(*status),
        State::Held { child, .. } => match child.try_wait() {
            Ok(status) => status.map(|status| status.code().map_or(ExitStatus::Unknown, ExitStatus::Code)),
            Err(_) => Some(ExitStatus::Unknown),
        },
    }
}

fn nobody_survives(state: &mut State) -> bool {
    let exited = exit(state).is_some();
    match state {
        State::Held { job: Some(job), .. } if exited => job.is_empty(),
        _ => true,
    }
}

impl Drop for ChildTree {
    fn drop(&mut self) {
        self.kill();
    }
}
