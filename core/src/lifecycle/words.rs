//! Owns the words between the lifecycle machine and its caller: exit status, steps to perform, notices of what happened,
//! the outcome. It must not know how one follows from another.

use core::fmt;

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

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// What the driver is to do to the process. Each is given once and in order; perform it at once.
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
    /// The leader has exited and is not reaped yet: SIGTERM to what is left of its group; answer with `group_signalled`
    /// (PRC-03). The unreaped leader holds the group's id, so it names nobody else (PRC-04).
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
    /// It could not be spawned, or ended before the connection was ever established (RST-01). `Closed` follows.
    StartFailed(StartFailure),
    /// It had ended by itself, its delay is over and it is spawned again now.
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
    /// A stream without a process ended before the connection was established.
    StreamEnded,
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
