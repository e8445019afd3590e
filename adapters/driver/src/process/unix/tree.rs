//! Owns one child and its process group: its exit, the signals to it and its reap, which exclude each other. It must not know when a signal is due.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_wire::lifecycle::ExitStatus;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus};

use super::reaper;

/// A child, its group, and the right to signal and to reap them.
///
/// Signals and the reap exclude each other under one lock, and the group is signalled only while the leader's id is held by the leader, alive
/// or unreaped: no signal can reach an id that was given to somebody else (PRC-04). Dropping it kills the tree and hands the leader to the
/// reaper thread; that neither blocks nor needs a runtime (SHD-04).
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
    /// The child leads a group of its own; only then is a group signalled, and only that one.
    group: bool,
    pidfd: Option<OwnedFd>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// Alive, or exited and not reaped: the id is ours.
    Held(Child),
    Reaped(ExitStatus),
}

impl ChildTree {
    pub(super) fn new(child: Child, group: bool) -> Self {
        let pid = Pid::from_child(&child);
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok();
        Self { pid, group, pidfd, state: Mutex::new(State::Held(child)) }
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

    /// A descriptor that becomes readable once the leader has exited: a pidfd, or where there is none a pipe that a thread closes.
    ///
    /// # Errors
    /// The system has no descriptor or no thread left.
    pub fn exit_notice(&self) -> io::Result<OwnedFd> {
        if let Some(pidfd) = &self.pidfd {
            return pidfd.try_clone();
        }
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let pid = self.pid;
        std::thread::Builder::new().name("mcp-wire-exit".to_owned()).stack_size(64 << 10).spawn(move || {
            let _writer = writer;
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(rustix::process::waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
        })?;
        Ok(reader)
    }

    /// How the leader has exited, if it has. Does not reap.
    #[must_use]
    pub fn try_exit(&self) -> Option<ExitStatus> {
        Self::look(self.pid, &mut self.state())
    }

    fn look(pid: Pid, state: &mut State) -> Option<ExitStatus> {
        if let State::Reaped(status) = state {
            return Some(*status);
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        loop {
            match rustix::process::waitid(WaitId::Pid(pid), options) {
                Ok(status) => return status.map(|status| exit_status(&status)),
                Err(Errno::INTR) => {}
                Err(_) => {
                    // ECHILD: SIGCHLD is ignored or somebody else has waited. The id may be anybody's now: no signal after this.
                    *state = State::Reaped(ExitStatus::Unknown);
                    return Some(ExitStatus::Unknown);
                }
            }
        }
    }

    /// SIGTERM, and SIGCONT so that a stopped one can act on it. To the group if there is one.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// SIGKILL, to the group if there is one.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        let mut state = self.state();
        Self::look(self.pid, &mut state);
        if let State::Held(_) = *state {
            seam::signalled(self.pid);
            // An error means that there is nobody left to signal, or nobody we may signal: the ladder goes on.
            let _ = if self.group {
                rustix::process::kill_process_group(self.pid, signal)
            } else {
                rustix::process::kill_process(self.pid, signal)
            };
        }
    }

    /// The leader has exited: SIGTERM (and SIGCONT) to what is left of its group. Says whether nobody was (PRC-03).
    pub fn terminate_group(&self) -> bool {
        self.group_after_exit(&[Signal::TERM, Signal::CONT])
    }

    /// The same with SIGKILL.
    pub fn kill_group(&self) -> bool {
        self.group_after_exit(&[Signal::KILL])
    }

    fn group_after_exit(&self, signals: &[Signal]) -> bool {
        let mut state = self.state();
        // The zombie leader keeps the group's id from being given away.
        if !self.group || Self::look(self.pid, &mut state).is_none() || matches!(*state, State::Reaped(_)) {
            return true;
        }
        if group_is_empty(self.pid) {
            return true;
        }
        seam::signalled(self.pid);
        for signal in signals {
            let _ = rustix::process::kill_process_group(self.pid, *signal);
        }
        false
    }

    /// Reaps the leader. `None` if it has not exited yet; it does not wait.
    pub fn reap(&self) -> Option<ExitStatus> {
        let mut state = self.state();
        let status = Self::look(self.pid, &mut state)?;
        if let State::Held(child) = &mut *state {
            // It has exited, so this returns at once; the status was read before.
            let _ = child.try_wait();
            seam::reaped(self.pid);
            *state = State::Reaped(status);
        }
        Some(status)
    }
}

impl Drop for ChildTree {
    fn drop(&mut self) {
        if self.try_exit().is_some() {
            self.kill_group();
        } else {
            self.kill();
        }
        if self.reap().is_some() {
            return;
        }
        let placeholder = State::Reaped(ExitStatus::Unknown);
        let state = std::mem::replace(&mut *self.state(), placeholder);
        if matches!(state, State::Held(_)) {
            let tree = Self { pid: self.pid, group: self.group, pidfd: self.pidfd.take(), state: Mutex::new(state) };
            reaper::hand_over(tree);
        }
    }
}

impl ChildTree {
    /// For the reaper: the descriptor to wait on.
    pub(super) const fn pidfd(&self) -> Option<&OwnedFd> {
        self.pidfd.as_ref()
    }
}

fn exit_status(status: &WaitIdStatus) -> ExitStatus {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ExitStatus::Code(code),
        (None, Some(signal)) => ExitStatus::Signal(signal),
        (None, None) => ExitStatus::Unknown,
    }
}

/// Whether nobody but the exited leader is in the group. A signal cannot tell: the unreaped leader still receives it.
#[cfg(target_os = "linux")]
fn group_is_empty(leader: Pid) -> bool {
    let leader = leader.as_raw_nonzero().get();
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    let mut stat = Vec::with_capacity(512);
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        stat.clear();
        let Ok(mut file) = std::fs::File::open(entry.path().join("stat")) else { continue };
        if io::Read::read_to_end(&mut file, &mut stat).is_err() {
            continue;
        }
        // `pid (name) state ppid pgrp ...`; the name may hold anything, so count from its closing parenthesis.
        let text = String::from_utf8_lossy(&stat);
        let Some((_, rest)) = text.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        let (state, group) = (fields.next(), fields.nth(1).and_then(|group| group.parse::<i32>().ok()));
        if group == Some(leader) && pid != leader && state != Some("Z") {
            return false;
        }
    }
    true
}

/// There is no cheap look elsewhere: it counts as not empty.
#[cfg(not(target_os = "linux"))]
fn group_is_empty(_: Pid) -> bool {
    false
}

/// Records signals and reaps, in tests only (PRC-04).
mod seam {
    #[cfg(not(test))]
    use rustix::process::Pid;

    #[cfg(not(test))]
    pub(super) const fn signalled(_: Pid) {}
    #[cfg(not(test))]
    pub(super) const fn reaped(_: Pid) {}

    #[cfg(test)]
    pub(super) use recording::{reaped, signalled};

    #[cfg(test)]
    pub(super) mod recording {
        use std::sync::Mutex;

        use rustix::process::Pid;

        pub(crate) static RECORD: Mutex<Vec<(bool, Pid)>> = Mutex::new(Vec::new());

        pub(crate) fn signalled(pid: Pid) {
            RECORD.lock().expect("no test panics under it").push((false, pid));
        }

        pub(crate) fn reaped(pid: Pid) {
            RECORD.lock().expect("no test panics under it").push((true, pid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{ServerCommand, spawn};
    use super::seam::recording::RECORD;

    // PRC-04: signals and the reap exclude each other, however exit and close race
    #[test]
    fn no_signal_goes_to_an_id_after_its_reap() {
        for round in 0..400 {
            let server = spawn(&ServerCommand::new("true")).expect("true can be spawned");
            let child = &server.child;
            std::thread::scope(|scope| {
                scope.spawn(|| (0..20).for_each(|_| child.terminate()));
                scope.spawn(|| (0..20).for_each(|_| _ = child.kill_group()));
                scope.spawn(|| {
                    while child.reap().is_none() {
                        std::thread::yield_now();
                    }
                });
            });
            let pid = child.pid;
            let record = RECORD.lock().expect("no test panics under it");
            let of_this: Vec<bool> = record.iter().filter(|(_, p)| *p == pid).map(|(reaped, _)| *reaped).collect();
            let reaped_at = of_this.iter().position(|reaped| *reaped).expect("it was reaped");
            assert_eq!(reaped_at, of_this.len() - 1, "round {round}: nothing follows the reap");
        }
    }
}
