//! Owns what a driver tells of the process: output, exit, the steps that were performed. It must not know how they are found out.

use super::Supervisor;
use crate::Instant;
use crate::lifecycle::{ExitStatus, SpawnFailure};

impl Supervisor {
    /// Bytes of output or stderr of the current life were read, whatever they are (PRC-03's silence).
    pub fn output_seen(&mut self, now: Instant) {
        self.process.output_seen(now);
    }

    /// The process's output has ended (and its frames have been handed in).
    pub fn output_ended(&mut self, now: Instant) {
        self.output_ended = true;
        self.look_for_second_start();
        self.process.output_ended(now);
        self.settle(now);
    }

    /// Its stderr has ended, or is not ours to read. Counts for PRC-03's "both pipes".
    pub fn stderr_ended(&mut self, now: Instant) {
        self.process.stderr_ended(now);
        self.settle(now);
    }

    /// A write to its input failed: no more bytes can be delivered to this life.
    pub fn input_failed(&mut self, now: Instant) {
        self.input_closed = true;
        self.process.input_failed(now);
        self.settle(now);
    }

    /// [`Step::Spawn`](crate::lifecycle::Step::Spawn) succeeded: a new life. The caller starts with an empty receive buffer.
    pub fn spawned(&mut self, now: Instant) {
        self.process.spawned(now);
        self.settle(now);
    }

    /// [`Step::Spawn`](crate::lifecycle::Step::Spawn) failed.
    pub fn spawn_failed(&mut self, failure: SpawnFailure, now: Instant) {
        self.process.spawn_failed(failure, now);
        self.settle(now);
    }

    /// The process has exited and is not reaped yet. Its output is still read to the end.
    pub fn exited(&mut self, status: ExitStatus, now: Instant) {
        self.look_for_second_start();
        self.process.exited(status, now);
        self.settle(now);
    }

    /// [`Step::TerminateGroup`](crate::lifecycle::Step::TerminateGroup) or [`Step::KillGroup`](crate::lifecycle::Step::KillGroup) was performed; `empty`: nobody but the leader was in the group.
    pub fn group_signalled(&mut self, empty: bool, now: Instant) {
        self.process.group_signalled(empty, now);
        self.settle(now);
    }

    /// [`Step::Reap`](crate::lifecycle::Step::Reap) was performed.
    pub fn reaped(&mut self, now: Instant) {
        self.process.reaped(now);
        self.settle(now);
    }
}
