//! Drives one client connection over the pipes of a process: what there is to wait for, and one turn after each wait. It must not know
//! what bytes mean or decide anything: the link says what to do.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::task::{Context, Waker};
use std::time::Duration;

use mcp_wire::Instant;
use mcp_wire_driver::client::{Link, Output, Todo, Wrote};
use mcp_wire_driver::process::{self, ServerCommand, SpawnError};
use rustix::event::PollFlags;
use rustix::io::ioctl_fionbio;

use super::poll_set::{Place, PollSet, Ready};

/// Longest wait for our standard error to take the last of the server's.
const FLUSH: Duration = Duration::from_millis(250);

/// A connection's ends, and what is on its way through them.
#[derive(Debug)]
pub(crate) struct Connection {
    link: Link,
    command: ServerCommand,
    /// Wakes the loop: a request was made, the copy of standard error is through.
    waker: Waker,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// Readable once the process has exited.
    exit: Option<OwnedFd>,
    /// Bytes of which the pipe has taken the first so many.
    held: Option<(Vec<u8>, usize)>,
    wrote: Wrote,
    /// The process is to be reaped, at the latest then.
    reap_at: Option<Instant>,
    /// When the link wants its next turn.
    deadline: Option<Instant>,
    /// There is more to do before the next wait.
    busy: bool,
    over: bool,
}

/// Where the ends stand in the set of one wait.
#[derive(Debug)]
pub(crate) struct Places {
    input: Place,
    output: Place,
    stderr: Place,
    exit: Place,
}

impl Connection {
    pub(crate) fn new(link: Link, command: ServerCommand, waker: Waker) -> Self {
        Self {
            link,
            command,
            waker,
            input: None,
            output: None,
            stderr: None,
            exit: None,
            held: None,
            wrote: Wrote::default(),
            reap_at: None,
            deadline: None,
            busy: true,
            over: false,
        }
    }

    /// Names what to wait for. Room in the pipe is of interest only while there are bytes for it, or each wait would end at once.
    pub(crate) fn watch<'a>(&'a self, set: &mut PollSet<'a>) -> Places {
        let input = self.input.as_ref().filter(|_| self.held.is_some());
        let output = self.output.as_ref().filter(|_| self.link.wants_read());
        Places {
            input: set.add(input.map(AsFd::as_fd), PollFlags::OUT),
            output: set.add(output.map(AsFd::as_fd), PollFlags::IN),
            stderr: set.add(self.stderr.as_ref().map(AsFd::as_fd), PollFlags::IN),
            exit: set.add(self.exit.as_ref().map(AsFd::as_fd), PollFlags::IN),
        }
    }

    /// How long to wait at most. `None`: for as long as it takes.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        if self.busy {
            return Some(Duration::ZERO);
        }
        let until = [self.deadline, self.reap_at].into_iter().flatten().min()?;
        Some(until.saturating_since(self.link.now()))
    }

    /// One turn: takes in what is ready, asks the link what to do, does it.
    pub(crate) fn turn(&mut self, ready: &Ready, places: &Places) {
        if self.over {
            return;
        }
        // Input first: what was answered in time must not be timed out (case 083).
        if ready.is(places.output) {
            self.read();
        }
        if ready.is(places.stderr) {
            self.read_stderr();
        }
        if ready.is(places.exit) {
            // The notice stays ready; it has said all it can.
            self.exit = None;
            self.link.look_for_exit();
        }
        self.reap_when_flushed();
        if ready.is(places.input) {
            self.write();
        }
        loop {
            let output = match (&self.input, &self.held) {
                (Some(_), None) => Output::Wanted,
                _ => Output::Held,
            };
            let turn = self.link.turn(&self.waker, output, std::mem::take(&mut self.wrote));
            self.deadline = turn.deadline;
            self.busy = turn.todo.is_some();
            if turn.over {
                self.close_all();
                self.over = true;
            } else if let Some(todo) = turn.todo {
                self.perform(todo);
            } else if let Some(bytes) = turn.output {
                self.held = Some((bytes, 0));
                self.write();
                // What was written is told at once: the answer to it, or the end of the process, must not be told before.
                continue;
            }
            return;
        }
    }

    /// Reads once; while more is there, the next wait ends at once. The bytes go straight into the link.
    fn read(&mut self) {
        let Some(output) = &mut self.output else { return };
        match output.read(self.link.spare_mut()) {
            Ok(n @ 1..) => self.link.read(n),
            Err(error) if is_later(&error) => {}
            // The end, or an error: nothing more comes either way.
            _ => {
                self.output = None;
                self.link.read_ended();
            }
        }
    }

    /// Standard error is drained from the first moment to the last, before the handshake too (case 086).
    fn read_stderr(&mut self) {
        let Some(stderr) = &mut self.stderr else { return };
        let mut bytes = [0; 8 << 10];
        match stderr.read(&mut bytes) {
            Ok(n @ 1..) => self.link.stderr(bytes.get(..n).unwrap_or_default()),
            Err(error) if is_later(&error) => {}
            _ => {
                self.stderr = None;
                self.link.stderr_ended();
            }
        }
    }

    /// Writes what is held, as far as the pipe takes it. A frame is never given up in the middle (FRM-10).
    fn write(&mut self) {
        let (Some(input), Some((bytes, at))) = (&mut self.input, &mut self.held) else { return };
        while let Some(rest) = bytes.get(*at..).filter(|rest| !rest.is_empty()) {
            match input.write(rest) {
                Ok(n @ 1..) => {
                    *at += n;
                    self.wrote.accepted += n;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                _ => {
                    self.wrote.failed = true;
                    self.input = None;
                    break;
                }
            }
        }
        self.wrote.spent = self.held.take().map(|(bytes, _)| bytes);
    }

    fn perform(&mut self, todo: Todo) {
        match todo {
            Todo::Spawn => self.spawn(),
            Todo::CloseInput => self.close_input(),
            Todo::Reap => {
                self.close_all();
                self.reap_at = Some(self.link.now().checked_add(FLUSH).unwrap_or(Instant::EPOCH));
            }
            // What else may come has to do with ends only.
            _ => self.close_all(),
        }
    }

    /// Blocks for the time of a spawn, 0.1 ms mostly. A loop that cannot spare that spawns on a thread which wakes it.
    fn spawn(&mut self) {
        let spawned = process::spawn(&self.command).and_then(|spawned| {
            // Each end has a description of its own, so nobody else sees that it does not block. An error drops the child, which ends it.
            let prepare = || {
                ioctl_fionbio(&spawned.stdin, true)?;
                ioctl_fionbio(&spawned.stdout, true)?;
                spawned.stderr.as_ref().map_or(Ok(()), |stderr| ioctl_fionbio(stderr, true))?;
                spawned.child.exit_notice()
            };
            let exit =
                prepare().map_err(|source| SpawnError::Other { program: self.command.program().to_owned(), source })?;
            Ok((spawned, exit))
        });
        match spawned {
            Err(error) => self.link.spawn_failed(error),
            Ok((spawned, exit)) => {
                if self.link.spawned(spawned.child, spawned.stderr.is_some()) {
                    (self.input, self.output) = (Some(spawned.stdin), Some(spawned.stdout));
                    (self.stderr, self.exit) = (spawned.stderr, Some(exit));
                }
            }
        }
    }

    fn close_input(&mut self) {
        self.wrote.spent = self.held.take().map(|(bytes, _)| bytes);
        // Only the drop closes a pipe (case 133).
        self.input = None;
    }

    fn close_all(&mut self) {
        self.close_input();
        self.output = None;
        self.stderr = None;
        self.exit = None;
    }

    /// The process is reaped once our standard error has the last of its own.
    fn reap_when_flushed(&mut self) {
        let Some(at) = self.reap_at else { return };
        let mut cx = Context::from_waker(&self.waker);
        if self.link.poll_stderr_flushed(&mut cx).is_ready() || at <= self.link.now() {
            self.reap_at = None;
            self.link.reap();
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
