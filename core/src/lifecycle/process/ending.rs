//! Owns how a life ends and what follows: the ladder's rungs, draining, the budget of restarts and their delays.
//! It must not know which input led to it.

use core::time::Duration;

use super::{Fate, Group, Life, Process, Rung, SecondStart, State};
use crate::Instant;
use crate::lifecycle::{EndReason, ExitStatus, Notice, Outcome, StartFailure, Step};

impl Process {
    pub(super) fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    pub(super) const fn has_life(&self) -> bool {
        matches!(self.state, State::Running | State::Closing { .. } | State::Draining { .. })
    }

    pub(super) fn is_being_spawned(&self) -> bool {
        self.state == State::Spawning && !self.steps.contains(&Step::Spawn)
    }

    pub(super) fn idle_until(&self) -> Option<Instant> {
        let since = self.idle_since?.max(self.life.established_at?);
        since.checked_add(self.config.idle_stop?)
    }

    pub(super) fn fate(&self) -> Option<Fate> {
        if self.failed {
            Some(Fate::StartFailed)
        } else if self.asked {
            Some(Fate::Asked)
        } else {
            self.life.fate
        }
    }

    /// What follows this life. Decided once, for the budget must not pay twice.
    pub(super) fn decide(&mut self) -> Fate {
        if let Some(fate) = self.fate() {
            return fate;
        }
        let stable = (self.life.established_at)
            .is_some_and(|since| self.now.saturating_since(since) >= self.config.restart_stable);
        if stable {
            self.failures = 0;
        }
        let fate = if !self.was_up && self.second_start == SecondStart::Granted {
            self.second_start = SecondStart::Used;
            Fate::SecondStart
        } else if !self.was_up {
            Fate::StartFailed
        } else if self.failures < self.config.restarts {
            self.failures += 1;
            Fate::Restart
        } else {
            Fate::Crashed
        };
        self.life.fate = Some(fate);
        fate
    }

    pub(super) fn spawn(&mut self) {
        self.life = Life::default();
        self.wanted = false;
        self.skip_delay = false;
        self.steps.push_back(Step::Spawn);
        self.state = State::Spawning;
    }

    pub(super) fn restart(&mut self) {
        self.restarts = self.restarts.saturating_add(1);
        let exit = self.exit.unwrap_or(ExitStatus::Unknown);
        self.notices.push_back(Notice::Restarting { restarts: self.restarts, exit });
        self.spawn();
    }

    pub(super) fn wait(&mut self) {
        if self.skip_delay {
            self.restart();
        } else {
            let delay = self.delay();
            self.state = State::Waiting { until: self.now.checked_add(delay) };
        }
    }

    pub(super) fn delay(&mut self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(31);
        let whole = self.config.restart_delay.saturating_mul(1 << doublings).min(self.config.restart_delay_max);
        let part = u32::try_from(next_random(&mut self.jitter) >> 54).unwrap_or(0);
        whole.saturating_sub((whole / 4096).saturating_mul(part))
    }

    /// No life shall follow: ends this one, or all if there is none.
    pub(super) fn begin_end(&mut self, reason: EndReason) {
        match self.state {
            State::Stopped | State::Waiting { .. } => self.end(reason),
            State::Spawning if !self.is_being_spawned() => self.end(reason),
            State::Running => self.climb(Rung::Stdin),
            State::Spawning | State::Closing { .. } | State::Draining { .. } | State::Reaping | State::Closed => {}
        }
    }

    pub(super) fn climb(&mut self, rung: Rung) {
        let step = match rung {
            Rung::Stdin => Step::CloseStdin,
            Rung::Terminate => Step::Terminate,
            Rung::Kill => {
                // What is milder than that and not begun would only delay it.
                self.steps.clear();
                Step::Kill
            }
        };
        self.steps.push_back(step);
        self.state = State::Closing { rung, until: self.now.checked_add(self.config.grace) };
    }

    pub(super) fn check_drained(&mut self) {
        if matches!(self.state, State::Draining { .. })
            && self.life.output_ended
            && self.life.stderr_ended
            && self.life.group != Group::Unknown
        {
            self.reap(self.life.group == Group::Inhabited);
        }
    }

    pub(super) fn reap(&mut self, kill_group: bool) {
        if kill_group {
            self.steps.push_back(Step::KillGroup);
        }
        self.steps.push_back(Step::Reap);
        self.decide();
        self.state = State::Reaping;
    }

    pub(super) fn give_up(&mut self) {
        self.steps.push_back(Step::GiveUp);
        self.exit = None;
        if matches!(self.decide(), Fate::StartFailed | Fate::SecondStart) {
            self.fail(StartFailure::Exited(ExitStatus::Unknown));
        }
        self.end(EndReason::Unkillable);
    }

    pub(super) fn end_life(&mut self) {
        match self.decide() {
            Fate::Asked => self.end(EndReason::Asked),
            Fate::StartFailed => {
                self.fail(if self.stream {
                    StartFailure::StreamEnded
                } else {
                    StartFailure::Exited(self.exit.unwrap_or(ExitStatus::Unknown))
                });
                self.end(EndReason::StartFailed);
            }
            Fate::Idle => {
                self.notices.push_back(Notice::IdleStopped { exit: self.exit.unwrap_or(ExitStatus::Unknown) });
                if self.wanted {
                    self.spawn();
                } else {
                    self.state = State::Stopped;
                }
            }
            Fate::Restart => self.wait(),
            Fate::SecondStart => self.spawn(),
            Fate::Crashed => self.end(EndReason::Crashed),
        }
    }

    /// Tells why there was no start, once.
    pub(super) fn fail(&mut self, failure: StartFailure) {
        if !self.failed {
            self.failed = true;
            self.notices.push_back(Notice::StartFailed(failure));
        }
    }

    pub(super) fn end(&mut self, reason: EndReason) {
        self.steps.retain(|step| *step != Step::Spawn);
        self.state = State::Closed;
        let outcome = Outcome { exit: self.exit, escalation: self.escalation, restarts: self.restarts, reason };
        self.outcome = Some(outcome.clone());
        self.notices.push_back(Notice::Closed(outcome));
    }
}

/// One step of `splitmix64`: small, seeded, and good enough to spread delays.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
