//! The life of a server's process as a machine of its own: start, shutdown ladder, restarts with delay and budget, idle stop.
//! It must not know JSON, connections, process ids or clocks.

use core::time::Duration;

use crate::config as defaults;
use crate::{ConfigError, Instant};

/// How the process is started, ended and started again.
///
/// ```
/// use mcp_wire::lifecycle::Config;
///
/// let mut config = Config::default();
/// config.restarts = 0; // a process that ends stays ended
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Wait after each step of the ladder (SHD-01).
    pub grace: Duration,
    /// The ladder has a terminate step between closing stdin and killing (not on Windows).
    pub terminate_step: bool,
    /// What is left of the group is ended when the leader has exited by itself (PRC-03).
    pub end_group: bool,
    /// Silence that ends the draining of the output after the exit (PRC-03).
    pub drain_silence: Duration,
    /// Restarts before giving up; 0: never (RST-01).
    pub restarts: u32,
    /// First delay of a restart; it doubles.
    pub restart_delay: Duration,
    /// Longest delay of a restart.
    pub restart_delay_max: Duration,
    /// Stable time after which the budget is full again.
    pub restart_stable: Duration,
    /// Seed of the jitter.
    pub seed: u64,
    /// Start with the first request, not before (RST-08).
    pub lazy: bool,
    /// Stop after that long without work (RST-09).
    pub idle_stop: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            grace: defaults::SHUTDOWN_GRACE,
            terminate_step: true,
            end_group: true,
            drain_silence: defaults::DRAIN_SILENCE,
            restarts: defaults::RESTART_BUDGET,
            restart_delay: defaults::RESTART_DELAY,
            restart_delay_max: defaults::RESTART_DELAY_MAX,
            restart_stable: defaults::RESTART_STABLE,
            seed: 0,
            lazy: false,
            idle_stop: None,
        }
    }
}

/// How a process ended, as the driver reports it.
///
/// ```
/// use mcp_wire::lifecycle::ExitStatus;
/// assert_eq!(ExitStatus::Code(3).to_string(), "exit code 3");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExitStatus {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It has exited; somebody else has taken the status.
    Unknown,
}

impl core::fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("an unknown exit status"),
        }
    }
}

/// Why a process could not be spawned.
///
/// ```
/// assert_eq!(mcp_wire::lifecycle::SpawnFailure::NotFound.as_str(), "not_found");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpawnFailure {
    /// No such program.
    NotFound,
    /// The program may not be executed.
    Permission,
    /// The working directory does not exist or is none.
    Directory,
    /// Something else; the driver's error tells.
    Other,
}

impl SpawnFailure {
    /// The word the programs print.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Permission => "permission",
            Self::Directory => "directory",
            Self::Other => "other",
        }
    }
}

/// How far the ladder had to go with the server itself.
///
/// ```
/// assert!(mcp_wire::lifecycle::Escalation::Kill > mcp_wire::lifecycle::Escalation::None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Escalation {
    /// It ended by itself, or when its input was closed.
    None,
    /// It was asked to terminate.
    Terminate,
    /// It was killed.
    Kill,
}

impl Escalation {
    /// The word the programs print.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Terminate => "terminate",
            Self::Kill => "kill",
        }
    }
}

/// What the driver is to do to the process. Each is given once and in order.
///
/// ```
/// # use mcp_wire::lifecycle::Step;
/// fn is_signal(step: Step) -> bool {
///     matches!(step, Step::Terminate | Step::Kill | Step::TerminateGroup | Step::KillGroup)
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Spawn it; answer with `spawned` or `spawn_failed`.
    Spawn,
    /// Write what is queued, then close its stdin; closing may not wait for more than this life.
    CloseStdin,
    /// SIGTERM to it (and its group where it has one), continued if it is stopped.
    Terminate,
    /// SIGKILL to it (and its group); `TerminateProcess` or the job on Windows.
    Kill,
    /// The leader has exited and is not reaped yet: SIGTERM to what is left of its group; answer with `group_signalled`.
    TerminateGroup,
    /// The same with SIGKILL.
    KillGroup,
    /// Reap the leader, close all its pipes; the life is over. Answer with `reaped`.
    Reap,
    /// It does not end though it was killed: hand it to the reaper, close all its pipes; the life is over. No answer.
    GiveUp,
}

/// What happened to the process, for the caller. Taken with `poll_notice`.
///
/// ```
/// # use mcp_wire::lifecycle::Notice;
/// fn is_last(notice: &Notice) -> bool {
///     matches!(notice, Notice::Closed(_))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// It is spawned.
    Started {
        /// Restarts before this start.
        restarts: u32,
    },
    /// It could not be spawned, or ended before the connection was established (RST-01). `Closed` follows.
    StartFailed(StartFailure),
    /// It had ended by itself and is about to be spawned again.
    Restarting {
        /// Restarts, this one included.
        restarts: u32,
        /// How the last life ended.
        exit: ExitStatus,
    },
    /// It was stopped because nobody used it (RST-09).
    IdleStopped {
        /// How it ended.
        exit: ExitStatus,
    },
    /// It has ended for good. The last notice.
    Closed(Outcome),
}

/// Why a start failed.
///
/// ```
/// # use mcp_wire::lifecycle::{ExitStatus, StartFailure};
/// let failure = StartFailure::Exited(ExitStatus::Code(127));
/// assert_ne!(failure, StartFailure::Connection);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StartFailure {
    /// It could not be spawned.
    Spawn(SpawnFailure),
    /// It ended before the connection was established.
    Exited(ExitStatus),
    /// The connection gave up; its `ConnectionError` says why.
    Connection,
}

/// How it all ended (RST-05).
///
/// ```
/// # use mcp_wire::lifecycle::Outcome;
/// fn was_clean(outcome: &Outcome) -> bool {
///     outcome.exit == Some(mcp_wire::lifecycle::ExitStatus::Code(0))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// How the last life ended; `None` if there was none, or it could not be killed.
    pub exit: Option<ExitStatus>,
    /// How far the ladder went with the server itself in the last life.
    pub escalation: Escalation,
    /// Restarts in all.
    pub restarts: u32,
    /// Why it ended.
    pub reason: EndReason,
}

/// Why it ended.
///
/// ```
/// assert_ne!(mcp_wire::lifecycle::EndReason::Asked, mcp_wire::lifecycle::EndReason::Crashed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// `close` or `kill` was called.
    Asked,
    /// It ended by itself with no restart left.
    Crashed,
    /// It never came up.
    StartFailed,
    /// It did not end though it was killed.
    Unkillable,
}

/// The machine.
#[derive(Debug)]
pub struct Process {}

impl Process {
    /// A process that has not been started.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let _ = config;
        todo!()
    }

    /// There is work: starts it if it is lazy or idle-stopped. Idempotent.
    pub fn wake(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// The next step to perform.
    pub fn poll_step(&mut self) -> Option<Step> {
        todo!()
    }

    /// The next notice.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        todo!()
    }
}
