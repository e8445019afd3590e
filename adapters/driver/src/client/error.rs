//! Owns what a caller is told when something fails: a call, a start, a close. It must not know how it is found out.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use mcp_wire::client::{Hint, ListenEnd};
use mcp_wire::lifecycle::ExitStatus;
use mcp_wire::{Cause, ConfigError, ConnectionError, Delivery, JsonBuf, SendError};

use crate::process::SpawnError;

/// Bytes of a peer's message that an error shows.
const SHOWN: usize = 1 << 10;

/// Why a call has no result. `Display` says what to do; [`source`](Error::source) leads to the cause.
///
/// ```
/// use mcp_wire_driver::client::CallError;
///
/// fn may_be_repeated(error: &CallError) -> bool {
///     matches!(error, CallError::Failed { delivery: mcp_wire::Delivery::NotSent, .. })
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum CallError {
    /// The server answered with an error.
    Rpc {
        /// Its code.
        code: i64,
        /// Its message, unchanged.
        message: String,
        /// Its data, unchanged.
        data: Option<JsonBuf>,
    },
    /// The request ended without an answer.
    Failed {
        /// Why.
        cause: Cause,
        /// What is known of its delivery: with `NotSent` a repetition can do no harm.
        delivery: Delivery,
        /// What was seen meanwhile that may explain it.
        hint: Option<Hint>,
    },
    /// The server wants input first: ask again with the answers, as a new request. Carries the whole result.
    InputRequired(JsonBuf),
    /// The request was not taken; nothing was sent.
    Send(SendError),
    /// The server could not be started or never came up; nothing was sent.
    Start(StartError),
    /// A listen ended before it was acknowledged.
    ListenEnded(ListenEnd),
    /// The params have no JSON form; nothing was sent.
    Encode(serde_json::Error),
    /// The result is not of the expected type.
    Decode(serde_json::Error),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc { code, message, .. } => write!(f, "the server answered with error {code}: {}", Shown(message)),
            Self::Failed { cause, delivery, hint } => {
                f.write_str(match cause {
                    Cause::TimedOut if *delivery == Delivery::NotSent => {
                        "no answer in time: the request still waited to be sent"
                    }
                    Cause::TimedOut => "no answer in time; a longer timeout, or progress that restarts it, may help",
                    Cause::Cancelled => "the request was cancelled",
                    Cause::InvalidResponse { .. } => "the server's response is not one the protocol knows",
                    Cause::Closed => "the connection was closed before an answer came",
                    Cause::Overflow => "its notifications could not be handled, so the request was cancelled",
                    _ => cause.as_str(),
                })?;
                if let Cause::InvalidResponse { code, reason } = cause {
                    if let Some(reason) = reason {
                        write!(f, " ({})", reason.as_str())?;
                    }
                    if let Some(code) = code {
                        write!(f, " (error {code})")?;
                    }
                }
                f.write_str(match delivery {
                    Delivery::NotSent => "; nothing of it was sent, so it can be repeated",
                    Delivery::PartlySent => "; it was sent in part, so the server cannot have run it",
                    Delivery::Sent => "; it was sent, so the server may have run it",
                    Delivery::Started => "; the server had begun with it",
                    _ => "",
                })?;
                hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
            }
            Self::InputRequired(_) => f.write_str("the server wants input first; ask again with the answers"),
            Self::Send(error) => error.fmt(f),
            Self::Start(error) => error.fmt(f),
            Self::ListenEnded(how) => write!(f, "the listen ended before it was acknowledged ({})", how.as_str()),
            Self::Encode(error) => write!(f, "the params have no JSON form: {error}"),
            Self::Decode(error) => write!(f, "the result is not of the expected type: {error}"),
        }
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Rpc { .. } | Self::Failed { .. } | Self::InputRequired(_) | Self::ListenEnded(_) => None,
            Self::Send(error) => Some(error),
            Self::Start(error) => Some(error),
            Self::Encode(error) | Self::Decode(error) => Some(error),
        }
    }
}

impl From<SendError> for CallError {
    fn from(error: SendError) -> Self {
        Self::Send(error)
    }
}

/// What kind of failure a start had.
///
/// ```
/// assert_eq!(mcp_wire_driver::client::StartFailedKind::NotFound.as_str(), "not_found");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StartFailedKind {
    /// No such program.
    NotFound,
    /// The program may not be executed.
    Permission,
    /// The working directory does not exist or is none.
    Directory,
    /// Something else kept the process from being spawned.
    Spawn,
    /// It ended, or ended its output, before the connection was established.
    Exited,
    /// It did not answer in time.
    Timeout,
    /// It wants the handshake of an earlier protocol revision.
    LegacyServer,
    /// It speaks no protocol version that this client speaks.
    NoCommonVersion,
    /// It refused the handshake.
    Refused,
    /// It frames its messages as another protocol does.
    Framing,
    /// This side closed it before it was established.
    Closed,
    /// The configuration contradicts itself; nothing was started.
    Config,
}

impl StartFailedKind {
    /// The word the programs print.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Permission => "permission",
            Self::Directory => "directory",
            Self::Spawn => "spawn",
            Self::Exited => "exited",
            Self::Timeout => "timeout",
            Self::LegacyServer => "legacy_server",
            Self::NoCommonVersion => "no_common_version",
            Self::Refused => "refused",
            Self::Framing => "framing",
            Self::Closed => "closed",
            Self::Config => "config",
        }
    }
}

/// Why a server could not be started or never came up (RST-01). Cheap to clone: it ends every request that waited.
///
/// `Display` is for people and has several lines where the server's standard error or unreadable lines of its output explain the failure.
///
/// ```
/// use mcp_wire_driver::client::{StartError, StartFailedKind};
///
/// fn is_a_typo(error: &StartError) -> bool {
///     error.kind() == StartFailedKind::NotFound
/// }
/// ```
#[derive(Clone)]
pub struct StartError(Arc<StartFacts>);

/// What is known of a failed start.
pub(super) struct StartFacts {
    pub(super) kind: StartFailedKind,
    pub(super) exit: Option<ExitStatus>,
    pub(super) source: Option<StartSource>,
    pub(super) stderr: String,
    pub(super) unreadable: Vec<String>,
}

pub(super) enum StartSource {
    Spawn(Arc<SpawnError>),
    Connection(ConnectionError),
    Config(ConfigError),
}

impl StartError {
    pub(super) fn new(facts: StartFacts) -> Self {
        Self(Arc::new(facts))
    }

    /// This side closed the connection before it was established.
    pub(super) fn closed() -> Self {
        let (stderr, unreadable) = (String::new(), Vec::new());
        Self::new(StartFacts { kind: StartFailedKind::Closed, exit: None, source: None, stderr, unreadable })
    }

    /// What kind of failure it was.
    #[must_use]
    pub fn kind(&self) -> StartFailedKind {
        self.0.kind
    }

    /// How the process ended, if it ended by itself.
    #[must_use]
    pub fn exit(&self) -> Option<ExitStatus> {
        self.0.exit
    }

    /// The end of its standard error, where it is kept (`Tee`, `Lines`): at most 8 KiB, escaped.
    #[must_use]
    pub fn stderr(&self) -> &str {
        &self.0.stderr
    }

    /// Up to three lines of its output that are no messages, escaped, 200 bytes each: a banner, a stack trace.
    #[must_use]
    pub fn unreadable_lines(&self) -> &[String] {
        &self.0.unreadable
    }
}

impl From<ConfigError> for StartError {
    fn from(error: ConfigError) -> Self {
        Self::new(StartFacts {
            kind: StartFailedKind::Config,
            exit: None,
            source: Some(StartSource::Config(error)),
            stderr: String::new(),
            unreadable: Vec::new(),
        })
    }
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartError").field("kind", &self.0.kind).field("exit", &self.0.exit).finish_non_exhaustive()
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = &*self.0;
        match (&facts.source, facts.exit) {
            (Some(StartSource::Spawn(error)), _) => error.fmt(f)?,
            (Some(StartSource::Connection(error)), _) => error.fmt(f)?,
            (Some(StartSource::Config(error)), _) => error.fmt(f)?,
            (None, Some(exit)) => write!(f, "the server ended ({exit}) before it answered")?,
            (None, None) if facts.kind == StartFailedKind::Closed => {
                f.write_str("the connection was closed before the server answered")?;
            }
            (None, None) => f.write_str("the server closed its output before it answered")?,
        }
        if !facts.stderr.is_empty() {
            write!(f, "\nits standard error ended with:\n{}", facts.stderr)?;
        }
        if !facts.unreadable.is_empty() {
            f.write_str("\nits output had lines that are no messages:")?;
            for line in &facts.unreadable {
                write!(f, "\n{line}")?;
            }
        }
        Ok(())
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self.0.source.as_ref()? {
            StartSource::Spawn(error) => Some(&**error),
            StartSource::Connection(error) => Some(error),
            StartSource::Config(error) => Some(error),
        }
    }
}

/// Why nothing can be said of how it ended.
///
/// ```
/// assert!(mcp_wire_driver::client::CloseError::DriverStopped.to_string().contains("runtime"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseError {
    /// The driver was dropped before the end, with its runtime or by its owner. The process tree was killed.
    DriverStopped,
    /// The process did not end in its last grace though it was killed: it hangs in the system. It was given up; should it end after all, it is
    /// reaped (SHD-01).
    Unkillable {
        /// Its id.
        pid: u32,
    },
}

impl fmt::Display for CloseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DriverStopped => {
                f.write_str("the connection's driver was dropped, perhaps with its runtime; the server was killed")
            }
            Self::Unkillable { pid } => {
                write!(f, "process {pid} does not end though it was killed; nobody waits for it any more")
            }
        }
    }
}

impl Error for CloseError {}

/// Peer text, bounded and escaped (SEC-03).
pub(super) struct Shown<'a>(pub(super) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = 0;
        for c in self.0.chars() {
            shown += c.len_utf8();
            if shown > SHOWN {
                return f.write_str("...");
            }
            if c.is_control() {
                write!(f, "{}", c.escape_unicode())?;
            } else {
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SEC-03: a peer's text is bounded and escaped where an error shows it
    #[test]
    fn peer_text_is_bounded_and_escaped() {
        let message = format!("\u{1b}[31m{}", "x".repeat(5000));
        let shown = CallError::Rpc { code: 1, message, data: None }.to_string();
        assert!(shown.contains("\\u{1b}[31m") && shown.len() < 1200 && shown.ends_with("..."), "{shown}");
    }

    // case 085: the hint stands in the error of the call that waited
    #[test]
    fn a_hint_is_part_of_the_error() {
        let hint = Some(Hint::UnknownId { id: "9999".into() });
        let error = CallError::Failed { cause: Cause::TimedOut, delivery: Delivery::Sent, hint };
        assert!(error.to_string().contains("9999"), "{error}");
    }
}
