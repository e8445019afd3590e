//! Owns what the driver tells of a process: spawned, established, ended, exited, reaped, and what each means in each state. It must not know
//! who wants the process to end, nor what follows its end.

use super::{Fate, Group, Process, Rung, State};
use crate::Instant;
use crate::lifecycle::{EndReason, Escalation, ExitStatus, Notice, SpawnFailure, StartFailure, Step};

impl Process {
    /// [`Step::Spawn`] succeeded: a new life.
    pub fn spawned(&mut self, now: Instant) {
        self.tick(now);
        if !self.is_being_spawned() {
            return;
        }
        self.escalation = Escalation::None;
        self.notices.push_back(Notice::Started { restarts: self.restarts });
        self.state = State::Running;
        if self.killed {
            self.climb(Rung::Kill);
        } else if self.is_ending() {
            self.climb(Rung::Stdin);
        }
    }

    /// [`Step::Spawn`] failed. A process that never was up is not tried again; one that was may be in the middle of
    /// an update, so it is, within the budget of restarts.
    pub fn spawn_failed(&mut self, failure: SpawnFailure, now: Instant) {
        self.tick(now);
        if !self.is_being_spawned() {
            return;
        }
        match self.decide() {
            Fate::Asked => self.end(EndReason::Asked),
            Fate::Restart => self.wait(),
            Fate::StartFailed | Fate::SecondStart | Fate::Idle | Fate::Crashed => {
                self.fail(StartFailure::Spawn(failure));
                self.end(EndReason::StartFailed);
            }
        }
    }

    /// The connection of this life is established: the process is up. Its stable time begins.
    pub fn established(&mut self, now: Instant) {
        self.tick(now);
        if self.has_life() && self.life.established_at.is_none() {
            self.life.established_at = Some(self.now);
            self.was_up = true;
        }
    }

    /// The connection can never be used (a `ConnectionError`): the process is closed by the ladder and not started again.
    pub fn failed(&mut self, now: Instant) {
        self.tick(now);
        if self.is_ending() || self.state == State::Closed {
            return;
        }
        self.fail(StartFailure::Connection);
        self.begin_end(EndReason::StartFailed);
    }

    /// Bytes of its output or stderr were read: not silent yet (PRC-03).
    pub fn output_seen(&mut self, now: Instant) {
        self.tick(now);
        if let State::Draining { until, .. } = self.state {
            let silence = self.now.checked_add(self.config.drain_silence);
            self.state = State::Draining { silence, until };
        }
    }

    /// Its output has ended and everything in it has been looked at. A life without output is over: it is ended by the
    /// ladder if it goes on (SHD-02, RST-05).
    pub fn output_ended(&mut self, now: Instant) {
        self.tick(now);
        if !self.has_life() || self.life.output_ended {
            return;
        }
        self.life.output_ended = true;
        self.decide();
        if self.state == State::Running {
            self.climb(Rung::Stdin);
        }
        if self.stream {
            self.end_life();
        } else {
            self.check_drained();
        }
    }

    /// Its stderr has ended, or is not ours to read.
    pub fn stderr_ended(&mut self, now: Instant) {
        self.tick(now);
        if self.has_life() {
            self.life.stderr_ended = true;
            self.check_drained();
        }
    }

    /// Nothing more can be written to its input: this life takes no further request, so it is ended by the ladder.
    /// What it still writes counts.
    pub fn input_failed(&mut self, now: Instant) {
        self.tick(now);
        if self.state == State::Running {
            self.climb(Rung::Stdin);
        }
    }

    /// It has exited and is not reaped. What is left of its group is ended and its output drained before it is (PRC-03).
    pub fn exited(&mut self, status: ExitStatus, now: Instant) {
        self.tick(now);
        let rung = match self.state {
            State::Running => None,
            State::Closing { rung, .. } => Some(rung),
            _ => return,
        };
        if self.stream {
            return;
        }
        self.exit = Some(status);
        self.steps.clear();
        if self.killed {
            self.reap(self.config.end_group);
            return;
        }
        if !self.config.end_group {
            self.life.group = Group::Empty;
        } else if rung == Some(Rung::Kill) {
            // SIGKILL went to the group already: there is nobody left to ask.
            self.life.group = Group::Inhabited;
        } else {
            self.steps.push_back(Step::TerminateGroup);
        }
        let silence = self.now.checked_add(self.config.drain_silence);
        self.state = State::Draining { silence, until: self.now.checked_add(self.config.grace) };
        self.check_drained();
    }

    /// [`Step::TerminateGroup`] or [`Step::KillGroup`] was performed; `empty`: nobody but the leader was in the group.
    pub fn group_signalled(&mut self, empty: bool, now: Instant) {
        self.tick(now);
        let given = !self.steps.contains(&Step::TerminateGroup);
        if matches!(self.state, State::Draining { .. }) && self.life.group == Group::Unknown && given {
            self.life.group = if empty { Group::Empty } else { Group::Inhabited };
            self.check_drained();
        }
    }

    /// [`Step::Reap`] was performed.
    pub fn reaped(&mut self, now: Instant) {
        self.tick(now);
        if self.state == State::Reaping && !self.steps.contains(&Step::Reap) {
            self.end_life();
        }
    }
}
