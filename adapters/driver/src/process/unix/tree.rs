//! Owns one child and its process group: its exit, the signals to it and its reap, which exclude each other. It must not know when a signal is due.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use mcp_wire::lifecycle::ExitStatus;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group};

use super::{group, notice, reaper};

/// A child, its group, and the right to signal and to reap them.
///
/// Signals and the reap exclude each other under one lock, and the group is signalled only while the leader's id is held by the leader, alive
/// or unreaped: no signal can reach an id that was given to somebody else (PRC-04). Dropping it kills the tree and hands the leader to the
/// reaper thread; that neither blocks nor needs a runtime (SHD-04).
///
/// A process that leaves the group by `setsid` or `setpgid` is no longer reached; on Unix nothing but the server can prevent that.
/// Where SIGCHLD is ignored, or somebody else in this process waits for every child, the exit is seen, its status is [`ExitStatus::Unknown`],
/// and nothing is signalled any more.
///
/// ```
/// use mcp_wire_driver::process::{ServerCommand, spawn};
///
/// let server = spawn(&ServerCommand::new("sleep").arg("1000"))?;
/// assert_eq!(server.child.try_exit(), None);
/// server.child.kill();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ChildTree {
    pid: Pid,
    /// The child leads a group of its own; only then is a group signalled, and only that one (case 142).
    group: bool,
    pidfd: Option<OwnedFd>,
    /// Stands in for the pidfd where there is none, once somebody has asked.
    exit: OnceLock<OwnedFd>,
    state: Mutex<State>,
    seam: seam::Seam,
}

#[derive(Debug)]
enum State {
    /// Alive, or exited and not reaped: the id is ours.
    Held(Child),
    Reaped(ExitStatus),
}

impl ChildTree {
    /// Takes over a child that was spawned into a group of its own, if `group` says so.
    ///
    /// # Errors
    /// There is no descriptor left to see its exit by; the child is killed and reaped.
    pub(super) fn new(child: Child, group: bool) -> io::Result<Self> {
        let pid = Pid::from_child(&child);
        let mut tree = Self {
            pid,
            group,
            pidfd: None,
            exit: OnceLock::new(),
            state: Mutex::new(State::Held(child)),
            seam: seam::Seam::default(),
        };
        // On an error the drop of the tree ends the child.
        tree.pidfd = notice::pidfd(pid)?;
        Ok(tree)
    }

    /// The process id of the leader.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock panics halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A descriptor that becomes readable once the leader has exited: a pidfd, or where there is none a socket that a thread writes to.
    ///
    /// # Errors
    /// The system has no descriptor or no thread left.
    pub fn exit_notice(&self) -> io::Result<OwnedFd> {
        if let Some(fd) = self.notice() {
            return fd.try_clone_to_owned();
        }
        // Two callers at once start two threads, which is harmless; one is kept.
        let made = notice::by_thread(self.pid)?;
        self.exit.get_or_init(|| made).try_clone()
    }

    /// The descriptor of [`exit_notice`](Self::exit_notice), if there is one already.
    pub(super) fn notice(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().or_else(|| self.exit.get()).map(AsFd::as_fd)
    }

    /// How the leader has exited, if it has. Does not reap.
    #[must_use]
    pub fn try_exit(&self) -> Option<ExitStatus> {
        self.look(&mut self.state())
    }

    fn look(&self, state: &mut State) -> Option<ExitStatus> {
        if let State::Reaped(status) = state {
            return Some(*status);
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        loop {
            match rustix::process::waitid(WaitId::Pid(self.pid), options) {
                Ok(status) => return status.map(|status| exit_status(&status)),
                Err(Errno::INTR) => {}
                Err(_) => {
                    // ECHILD: SIGCHLD is ignored or somebody else has waited. The id may be anybody's now: no signal after this.
                    self.seam.reaped();
                    *state = State::Reaped(ExitStatus::Unknown);
                    return Some(ExitStatus::Unknown);
                }
            }
        }
    }

    /// SIGTERM, and SIGCONT so that a stopped one can act on it. To the group if there is one.
    pub fn terminate(&self) {
        self.signal(&[Signal::TERM, Signal::CONT]);
    }

    /// SIGKILL, to the group if there is one.
    pub fn kill(&self) {
        self.signal(&[Signal::KILL]);
    }

    fn signal(&self, signals: &[Signal]) {
        let mut state = self.state();
        self.look(&mut state);
        if let State::Held(_) = *state {
            self.send(signals);
        }
    }

    /// The caller holds the lock and has seen the child held.
    fn send(&self, signals: &[Signal]) {
        for &signal in signals {
            self.seam.signalled();
            // An error means that there is nobody left to signal, or nobody we may signal: the ladder goes on.
            let _ = if self.group { kill_process_group(self.pid, signal) } else { self.send_to_leader(signal) };
        }
    }

    fn send_to_leader(&self, signal: Signal) -> Result<(), Errno> {
        #[cfg(target_os = "linux")]
        if let Some(pidfd) = &self.pidfd {
            return rustix::process::pidfd_send_signal(pidfd, signal);
        }
        rustix::process::kill_process(self.pid, signal)
    }

    /// The leader has exited: SIGTERM (and SIGCONT) to what is left of its group. Says whether nobody was (PRC-03).
    ///
    /// Does nothing before the exit, after the reap, and for a child without a group of its own; that counts as nobody.
    pub fn terminate_group(&self) -> bool {
        self.signal_survivors(&[Signal::TERM, Signal::CONT])
    }

    /// The same with SIGKILL.
    pub fn kill_group(&self) -> bool {
        self.signal_survivors(&[Signal::KILL])
    }

    fn signal_survivors(&self, signals: &[Signal]) -> bool {
        let mut state = self.state();
        let exited = self.look(&mut state).is_some();
        // The zombie leader keeps the group's id from being given away.
        if !self.group || !exited || matches!(*state, State::Reaped(_)) || group::is_empty(self.pid) {
            return true;
        }
        self.send(signals);
        false
    }

    /// Reaps the leader, and kills what is left of its group before that: afterwards nothing could. `None` if it has not exited yet; it
    /// does not wait.
    pub fn reap(&self) -> Option<ExitStatus> {
        let mut state = self.state();
        let status = self.look(&mut state)?;
        if let State::Held(child) = &mut *state {
            if self.group {
                self.send(&[Signal::KILL]);
            }
            // It has exited, so this returns at once; the status was read before.
            let _ = child.try_wait();
            self.seam.reaped();
            *state = State::Reaped(status);
        }
        Some(status)
    }
}

impl Drop for ChildTree {
    fn drop(&mut self) {
        self.kill();
        if self.reap().is_some() {
            return;
        }
        let state = std::mem::replace(&mut *self.state(), State::Reaped(ExitStatus::Unknown));
        reaper::hand_over(Self {
            pid: self.pid,
            group: self.group,
            pidfd: self.pidfd.take(),
            exit: std::mem::take(&mut self.exit),
            state: Mutex::new(state),
            seam: std::mem::take(&mut self.seam),
        });
    }
}

fn exit_status(status: &WaitIdStatus) -> ExitStatus {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ExitStatus::Code(code),
        (None, Some(signal)) => ExitStatus::Signal(signal),
        (None, None) => ExitStatus::Unknown,
    }
}

/// Records signals and reaps in their order, in the tests of this module only (PRC-04).
mod seam {
    #[cfg(test)]
    use std::sync::{Arc, Mutex};

    #[derive(Debug, Default)]
    pub(super) struct Seam {
        /// `true` is a reap.
        #[cfg(test)]
        pub(super) acts: Arc<Mutex<Vec<bool>>>,
    }

    impl Seam {
        #[cfg(not(test))]
        #[allow(clippy::unused_self, clippy::missing_const_for_fn)]
        pub(super) fn signalled(&self) {}
        #[cfg(not(test))]
        #[allow(clippy::unused_self, clippy::missing_const_for_fn)]
        pub(super) fn reaped(&self) {}

        #[cfg(test)]
        pub(super) fn signalled(&self) {
            self.acts.lock().expect("no test panics under it").push(false);
        }
        #[cfg(test)]
        pub(super) fn reaped(&self) {
            self.acts.lock().expect("no test panics under it").push(true);
        }
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
