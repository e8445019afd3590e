//! Owns the machine's states and what each input does in each of them. It must not know what a process is on any
//! system, nor what is said over its pipes.

mod ending;
mod facts;

use alloc::collections::VecDeque;

use super::{Config, EndReason, Escalation, ExitStatus, Notice, Outcome, Step};
use crate::{ConfigError, Instant};

/// A process over all its lives: told what happened, it says what to do.
///
/// Any call may follow any other; time going backwards is clamped; an early or double
/// [`handle_timeout`](Self::handle_timeout) does nothing. The state table is in the [module's documentation](super).
///
/// ```
/// use core::time::Duration;
/// use mcp_wire::Instant;
/// use mcp_wire::lifecycle::{Config, Process, Step};
///
/// let at = |ms| Instant::from_epoch(Duration::from_millis(ms));
/// let mut process = Process::new(Config::default())?;
/// assert_eq!(process.poll_step(), Some(Step::Spawn));
/// process.spawned(at(0));
/// process.close(at(10));
/// assert_eq!(process.poll_step(), Some(Step::CloseStdin));
/// process.handle_timeout(at(2010)); // it is deaf
/// assert_eq!(process.poll_step(), Some(Step::Terminate));
/// # Ok::<(), mcp_wire::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Process {
    config: Config,
    /// No process, only a byte stream: the ladder is `CloseStdin` alone, and there is nothing to drain or reap.
    stream: bool,
    state: State,
    now: Instant,
    /// Given and not taken. Those that a later input makes pointless are withdrawn.
    steps: VecDeque<Step>,
    notices: VecDeque<Notice>,
    life: Life,
    /// `close` or `kill` was called.
    asked: bool,
    /// `kill` was called.
    killed: bool,
    /// The connection has failed, or a failed start was told: there will be no further life.
    failed: bool,
    /// The connection was established in some life.
    was_up: bool,
    /// A start that fails is followed by one more, once (VER-05).
    second_start: SecondStart,
    /// Work came while an idle stop was under way.
    wanted: bool,
    /// The next restart has no delay.
    skip_delay: bool,
    idle_since: Option<Instant>,
    /// Unasked ends since the budget was last full.
    failures: u32,
    restarts: u32,
    /// State of the generator of the jitter.
    jitter: u64,
    exit: Option<ExitStatus>,
    escalation: Escalation,
    outcome: Option<Outcome>,
}

/// A deadline of `None` never comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Stopped,
    Spawning,
    Running,
    Closing { rung: Rung, until: Option<Instant> },
    Draining { silence: Option<Instant>, until: Option<Instant> },
    Reaping,
    Waiting { until: Option<Instant> },
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rung {
    Stdin,
    Terminate,
    Kill,
}

/// The facts of one life.
#[derive(Debug, Default)]
struct Life {
    established_at: Option<Instant>,
    output_ended: bool,
    stderr_ended: bool,
    group: Group,
    /// What follows, once that is decided. `close` and `failed` overrule it.
    fate: Option<Fate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Group {
    /// It has not been looked at, or the answer to `TerminateGroup` is outstanding.
    #[default]
    Unknown,
    /// Somebody besides the leader is in it.
    Inhabited,
    /// Nobody is left in it, or it is not ours to end.
    Empty,
}

/// The one start more that a server gets which ends on what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SecondStart {
    #[default]
    NotGranted,
    Granted,
    Used,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Asked,
    /// It is started once more, at once.
    SecondStart,
    StartFailed,
    Idle,
    Restart,
    Crashed,
}

impl Process {
    /// A process whose first [`Step`] is `Spawn`, at once or, if lazy, with the first [`wake`](Self::wake) (RST-08).
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let lazy = config.lazy;
        let mut process = Self::stopped(config, false);
        if !lazy {
            process.spawn();
        }
        Ok(process)
    }

    /// The life of a byte stream that is open and belongs to no process. Its only step is `CloseStdin`.
    pub(crate) fn stream(now: Instant) -> Self {
        let config = Config { restarts: 0, ..Config::default() };
        let mut process = Self::stopped(config, true);
        process.now = now;
        process.state = State::Running;
        process
    }

    fn stopped(config: Config, stream: bool) -> Self {
        Self {
            jitter: config.seed,
            config,
            stream,
            state: State::Stopped,
            now: Instant::EPOCH,
            steps: VecDeque::new(),
            notices: VecDeque::new(),
            life: Life::default(),
            asked: false,
            killed: false,
            failed: false,
            was_up: false,
            second_start: SecondStart::default(),
            wanted: false,
            skip_delay: false,
            idle_since: None,
            failures: 0,
            restarts: 0,
            exit: None,
            escalation: Escalation::None,
            outcome: None,
        }
    }

    /// There is work: starts it if it is lazy or was stopped because idle; during an idle stop it is started again
    /// after that. Idempotent (RST-08, RST-09).
    pub fn wake(&mut self, now: Instant) {
        self.tick(now);
        if self.state == State::Stopped {
            self.spawn();
        } else if self.life.fate == Some(Fate::Idle) {
            self.wanted = true;
        }
    }

    /// Closes by the ladder (SHD-01); legal in each state. Idempotent.
    pub fn close(&mut self, now: Instant) {
        self.tick(now);
        if self.asked || self.state == State::Closed {
            return;
        }
        self.asked = true;
        self.begin_end(EndReason::Asked);
    }

    /// Ends it now (SHD-04), also one that is just being spawned, as soon as it is. Idempotent; shortens a running close.
    pub fn kill(&mut self, now: Instant) {
        self.close(now);
        if self.killed {
            return;
        }
        self.killed = true;
        match self.state {
            State::Running | State::Closing { rung: Rung::Stdin | Rung::Terminate, .. } if self.stream => {
                self.end_life();
            }
            State::Running | State::Closing { rung: Rung::Stdin | Rung::Terminate, .. } => self.climb(Rung::Kill),
            State::Draining { .. } => {
                self.steps.clear();
                self.reap(self.config.end_group && self.life.group != Group::Empty);
            }
            State::Closing { rung: Rung::Kill, .. }
            | State::Stopped
            | State::Spawning
            | State::Reaping
            | State::Waiting { .. }
            | State::Closed => {}
        }
    }

    /// Nothing is in flight, queued or listened for. Idempotent: the first call counts (RST-09).
    pub fn idle(&mut self, now: Instant) {
        self.tick(now);
        self.wanted = false;
        if self.idle_since.is_none() {
            self.idle_since = Some(self.now);
        }
    }

    /// The contrary of [`idle`](Self::idle).
    pub fn busy(&mut self) {
        self.idle_since = None;
    }

    /// Skips the delay of a restart: the one that runs, or the one that will follow the end under way.
    pub fn retry_now(&mut self, now: Instant) {
        self.tick(now);
        match self.state {
            State::Waiting { .. } => self.restart(),
            State::Closing { .. } | State::Draining { .. } | State::Reaping => self.skip_delay = true,
            State::Stopped | State::Spawning | State::Running | State::Closed => {}
        }
    }

    /// The next step to perform. Each is given once.
    pub fn poll_step(&mut self) -> Option<Step> {
        let step = self.steps.pop_front()?;
        match step {
            Step::Terminate => self.escalation = self.escalation.max(Escalation::Terminate),
            Step::Kill => self.escalation = Escalation::Kill,
            _ => {}
        }
        Some(step)
    }

    /// The next notice.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Running => self.idle_until(),
            State::Closing { until, .. } | State::Waiting { until } => until,
            State::Draining { silence, until } => silence.into_iter().chain(until).min(),
            State::Stopped | State::Spawning | State::Reaping | State::Closed => None,
        }
    }

    /// Time has passed. Early or twice does no harm: each rung of the ladder has its whole grace, counted from its step.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tick(now);
        if self.poll_timeout().is_none_or(|due| due > self.now) {
            return;
        }
        match self.state {
            State::Running => {
                self.life.fate = Some(Fate::Idle);
                self.climb(Rung::Stdin);
            }
            State::Closing { .. } if self.stream => self.end_life(),
            State::Closing { rung: Rung::Stdin, .. } if self.config.terminate_step => self.climb(Rung::Terminate),
            State::Closing { rung: Rung::Stdin | Rung::Terminate, .. } => self.climb(Rung::Kill),
            State::Closing { rung: Rung::Kill, .. } => self.give_up(),
            State::Draining { .. } => self.reap(self.life.group != Group::Empty),
            State::Waiting { .. } => self.restart(),
            State::Stopped | State::Spawning | State::Reaping | State::Closed => {}
        }
    }

    /// How it all ended, once it has.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// When it is spawned again, while it waits for that (case 168: a host can show it and offer [`retry_now`](Self::retry_now)).
    #[must_use]
    pub fn restarts_at(&self) -> Option<Instant> {
        match self.state {
            State::Waiting { until } => until,
            _ => None,
        }
    }

    /// Whether the byte stream of the current life counts no more, and then whether another life will follow. `None` for
    /// a failed start: its notice says so, and comes before the requests that it ends.
    pub(crate) fn stream_over(&self) -> Option<bool> {
        let fate = self.fate();
        let over = match self.state {
            State::Spawning => return None,
            State::Running | State::Closing { .. } | State::Draining { .. } => {
                self.life.output_ended || fate == Some(Fate::Idle)
            }
            State::Stopped | State::Reaping | State::Waiting { .. } | State::Closed => true,
        };
        match fate {
            Some(Fate::StartFailed) => None,
            fate => over.then_some(matches!(fate, Some(Fate::Restart | Fate::Idle | Fate::SecondStart))),
        }
    }

    /// It may have ended on what it was asked: if it never comes up in this life, it is started once more, at once. That is no restart and
    /// is granted once (VER-05).
    pub(crate) fn grant_second_start(&mut self) {
        if self.second_start == SecondStart::NotGranted && !self.stream {
            self.second_start = SecondStart::Granted;
        }
    }

    /// Whether the next life is the one more start that was granted.
    pub(crate) fn is_second_start(&self) -> bool {
        self.fate() == Some(Fate::SecondStart)
    }

    /// Whether this life has exited, whatever is left of it.
    pub(crate) const fn has_exited(&self) -> bool {
        matches!(self.state, State::Draining { .. } | State::Reaping)
    }

    /// Whether it is to end, and not only this life.
    pub(crate) const fn is_ending(&self) -> bool {
        self.asked || self.failed
    }

    /// Whether bytes may still be written to its input, as far as the process is concerned: what is left when it is
    /// about to be closed, nothing once the next rung is reached.
    pub(crate) const fn takes_input(&self) -> bool {
        !self.killed && matches!(self.state, State::Running | State::Closing { rung: Rung::Stdin, .. })
    }

    /// Whether the next step is `CloseStdin`, on the first rung.
    pub(crate) fn is_about_to_close_stdin(&self) -> bool {
        self.takes_input() && self.steps.front() == Some(&Step::CloseStdin)
    }
}
