//! Owns the target for the life of a process: any calls in any order, and what must hold of the steps whatever they were.

use std::time::Duration;

use mcp_wire::Instant;
use mcp_wire::lifecycle::{Config, ExitStatus, Notice, Process, SpawnFailure, Step};

use crate::choices::Choices;

/// More firings of timers than any history of this length needs.
const FIRINGS: usize = 10_000;

struct Run {
    process: Process,
    now: Instant,
    /// A process may be there: its spawn was asked for, and neither failed nor was followed by a reap.
    there: bool,
    /// No signal may be sent any more: its reap was asked for.
    reaping: bool,
    stdin_closed: bool,
    closed: bool,
    spawns: u32,
}

/// The input is a configuration, then calls.
pub fn lifecycle(data: &[u8]) {
    let mut choices = Choices::new(data);
    let mut config = Config::default();
    config.grace = Duration::from_millis([0, 1, 2000][choices.below(3)]);
    config.terminate_step = choices.flip();
    config.end_group = choices.flip();
    config.restarts = [0, 1, 5][choices.below(3)];
    config.restart_delay = Duration::from_millis([0, 1, 500][choices.below(3)]);
    config.lazy = choices.flip();
    config.idle_stop = choices.flip().then(|| Duration::from_millis(5));
    let budget = config.restarts;
    let Ok(process) = Process::new(config) else { return };
    let mut run = Run {
        process,
        now: Instant::EPOCH,
        there: false,
        reaping: false,
        stdin_closed: false,
        closed: false,
        spawns: 0,
    };
    run.look();
    while !choices.is_over() {
        run.call(&mut choices);
        run.look();
    }
    run.end();
    assert!(run.closed && run.process.outcome().is_some_and(|outcome| outcome.restarts <= run.spawns));
    assert!(budget > 0 || run.process.outcome().is_some_and(|outcome| outcome.restarts == 0));
}

impl Run {
    fn call(&mut self, choices: &mut Choices<'_>) {
        let now = self.now;
        let process = &mut self.process;
        match choices.below(20) {
            0 => process.wake(now),
            1 | 2 => process.spawned(now),
            3 => {
                process.spawn_failed(SpawnFailure::NotFound, now);
                // It counts only as the answer to a spawn.
            }
            4 | 5 => process.established(now),
            6 => process.failed(now),
            7 => process.output_seen(now),
            8 | 9 => process.output_ended(now),
            10 => process.stderr_ended(now),
            11 => process.input_failed(now),
            12 => process.exited(ExitStatus::Code(i32::from(choices.flip())), now),
            13 => process.group_signalled(choices.flip(), now),
            14 => process.reaped(now),
            15 if choices.below(4) == 0 => process.close(now),
            16 if choices.below(8) == 0 => process.kill(now),
            17 => process.idle(now),
            18 => {
                process.busy();
                process.retry_now(now);
            }
            _ => {
                let time = Duration::from_millis([0, 1, 3, 700, 2500, 60_000][choices.below(6)]);
                self.now = now.checked_add(time).expect("a short history");
                process.handle_timeout(self.now);
            }
        }
    }

    /// Takes everything that is told, and looks at the order of it.
    fn look(&mut self) {
        while let Some(step) = self.process.poll_step() {
            assert!(!self.closed, "{step:?} after the end");
            match step {
                Step::Spawn => {
                    self.spawns += 1;
                    (self.there, self.reaping, self.stdin_closed) = (true, false, false);
                }
                Step::CloseStdin => {
                    assert!(!std::mem::replace(&mut self.stdin_closed, true), "stdin is closed once");
                }
                Step::Reap => {
                    assert!(!std::mem::replace(&mut self.reaping, true), "a process is reaped once");
                }
                Step::GiveUp => {}
                signal => {
                    assert!(self.spawns > 0, "{signal:?} before any spawn");
                    assert!(!self.reaping, "{signal:?} after the reap: the id may be another's (PRC-04)");
                }
            }
        }
        while let Some(notice) = self.process.poll_notice() {
            assert!(!self.closed, "{notice:?} after the end");
            if let Notice::Closed(outcome) = &notice {
                assert_eq!(self.process.outcome(), Some(outcome));
                self.closed = true;
            }
        }
        assert_eq!(self.closed, self.process.outcome().is_some(), "the outcome is told");
        if self.closed {
            assert_eq!(self.process.poll_timeout(), None, "nothing is due after the end");
        }
    }

    /// Closes, and answers as a system does: it must end soon, whatever was said before.
    fn end(&mut self) {
        self.process.close(self.now);
        for firing in 0.. {
            assert!(firing < FIRINGS, "it never ends: {:?}", self.process);
            while let Some(step) = self.process.poll_step() {
                match step {
                    Step::Spawn => self.process.spawned(self.now),
                    Step::TerminateGroup | Step::KillGroup => self.process.group_signalled(true, self.now),
                    Step::Reap => self.process.reaped(self.now),
                    _ => {}
                }
            }
            self.look();
            if self.closed {
                return;
            }
            match self.process.poll_timeout() {
                Some(due) => {
                    self.now = self.now.max(due);
                    self.process.handle_timeout(self.now);
                }
                // What is left is a life that waits for an answer which was never given.
                None => {
                    self.process.spawned(self.now);
                    self.process.exited(ExitStatus::Code(0), self.now);
                    self.process.group_signalled(true, self.now);
                    self.process.reaped(self.now);
                }
            }
        }
    }
}
