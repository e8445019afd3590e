//! Owns the words for what goes wrong: reasons for a dropped frame, causes and delivery of a failed request,
//! mistakes of the caller, wrong configurations. It must not know who raises them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Why a line is no message.
///
/// ```
/// assert_eq!(mcp_wire::UnreadableReason::TooDeep.as_str(), "too_deep");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnreadableReason {
    /// Longer than the line limit (LIM-01).
    LineTooLong,
    /// Not UTF-8.
    InvalidUtf8,
    /// Not one JSON value.
    InvalidJson,
    /// JSON, but no JSON-RPC message.
    InvalidMessage,
    /// JSON, but nested deeper than the limit (LIM-03).
    TooDeep,
    /// An id longer than the limit (LIM-03).
    IdTooLong,
    /// A method or progress token longer than the limit (LIM-03).
    NameTooLong,
    /// The last line, without its LF, that is no whole message (FRM-09).
    Truncated,
    /// `Content-Length:` at the start of a line: the peer frames as the language server protocol does.
    ContentLength,
}

impl UnreadableReason {
    /// The reason as `snake_case`, as the programs print it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LineTooLong => "line_too_long",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::InvalidJson | Self::ContentLength => "invalid_json",
            Self::InvalidMessage | Self::IdTooLong | Self::NameTooLong => "invalid_message",
            Self::TooDeep => "too_deep",
            Self::Truncated => "truncated",
        }
    }
}

/// Why a frame was dropped or only reported (UNR-07). Its words are those of the programs' `dropped` event.
///
/// ```
/// use mcp_wire::{DropReason, UnreadableReason};
///
/// assert_eq!(DropReason::UnknownId.as_str(), "unknown_id");
/// assert_eq!(DropReason::Unreadable(UnreadableReason::InvalidUtf8).as_str(), "invalid_utf8");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The line is no message.
    Unreadable(UnreadableReason),
    /// A response to an id that was never in flight, or so long ago that nothing is known of it (RTE-03).
    UnknownId,
    /// A second response to a request that already had one.
    DuplicateResponse,
    /// A response to a request that was cancelled or timed out (CAN-05).
    LateResponse,
    /// Progress whose token names nothing in flight (RTE-05).
    UnknownProgressToken,
    /// A notification whose subscription id names no listen (RTE-05).
    UnknownSubscription,
    /// A notification of a subscription that came before its acknowledgment.
    NotAcknowledged,
    /// A notification of a kind outside the acknowledged filter (SUB-11).
    OutsideFilter,
    /// A request from a modern server (RTE-01).
    UnexpectedRequest,
    /// A cancellation from a server that names no active listen (CAN-10).
    UnexpectedCancellation,
    /// A response to a server that sent no request (RTE-01).
    UnexpectedResponse,
    /// No room to keep it.
    QueueFull,
    /// An error without an id. If exactly one request can be meant, its end follows; else this is all (UNR-06).
    UnattributedError,
}

impl DropReason {
    /// The reason as `snake_case`, as the programs print it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable(reason) => reason.as_str(),
            Self::UnknownId => "unknown_id",
            Self::DuplicateResponse => "duplicate_response",
            Self::LateResponse => "late_response",
            Self::UnknownProgressToken => "unknown_progress_token",
            Self::UnknownSubscription => "unknown_subscription",
            Self::NotAcknowledged => "not_acknowledged",
            Self::OutsideFilter => "outside_filter",
            Self::UnexpectedRequest => "unexpected_request",
            Self::UnexpectedCancellation => "unexpected_cancellation",
            Self::UnexpectedResponse => "unexpected_response",
            Self::QueueFull => "queue_full",
            Self::UnattributedError => "unattributed_error",
        }
    }
}

/// What is known of the delivery of a request that ended without an answer: whether a retry can do harm.
///
/// It is told as of the ending. A frame that was begun is always finished while the stream lasts, so after a cancellation or a timeout the
/// rest of a [`PartlySent`](Self::PartlySent) one may still arrive, followed by its cancellation; once the connection has ended, nothing more does.
///
/// ```
/// assert_eq!(mcp_wire::Delivery::PartlySent.as_str(), "partly_sent");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Delivery {
    /// The writer accepted no byte of it: the server has not seen it.
    NotSent,
    /// The writer holds or has accepted some bytes of it, not its line end: the server cannot have run it yet.
    PartlySent,
    /// The writer accepted all of it, and no frame came back for it.
    Sent,
    /// The server had sent something for it (progress, an acknowledgment).
    Started,
}

impl Delivery {
    /// The delivery as `snake_case`, as the programs print it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::PartlySent => "partly_sent",
            Self::Sent => "sent",
            Self::Started => "started",
        }
    }
}

/// Why a request ended without an answer.
///
/// ```
/// assert_eq!(mcp_wire::Cause::TimedOut.as_str(), "timeout");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Its deadline, its total maximum or its queue timeout passed (TMO-01, TMO-03, CAN-03).
    TimedOut,
    /// The caller cancelled it (CAN-01).
    Cancelled,
    /// Its response could not be read or is none the protocol knows (UNR-04, UNR-06, MSG-13).
    InvalidResponse {
        /// The code of an error without an id that was pinned on it (UNR-06).
        code: Option<i64>,
        /// Why the frame could not be read, where it was unreadable.
        reason: Option<UnreadableReason>,
    },
    /// The connection ended (RST-02, SHD-03).
    Closed,
    /// Something kept for it overflowed, or its inline hook failed (RTE-12).
    Overflow,
}

impl Cause {
    /// The cause as `snake_case`, as the programs print it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::TimedOut => "timeout",
            Self::Cancelled => "cancelled",
            Self::InvalidResponse { .. } => "invalid_response",
            Self::Closed => "closed",
            Self::Overflow => "overflow",
        }
    }
}

/// A mistake of the caller, or a call that cannot be served now. It changed nothing.
///
/// ```
/// assert!(mcp_wire::SendError::Closed.to_string().contains("closed"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The connection is closed or closing (SHD-03).
    Closed,
    /// The outgoing queue has no room, or as many requests as allowed are in flight. `Writable` tells when to try again.
    Full,
    /// One message is larger than the whole outgoing queue.
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// `params` is no object (MSG-14).
    ParamsNotAnObject,
    /// The text given as JSON is no JSON.
    NotJson,
    /// The progress token is in use by another request in flight (PRG-01).
    TokenInUse,
    /// The progress token in the caller's `_meta` is neither a string nor an integer, or longer than
    /// [`NAME_LIMIT`](crate::config::NAME_LIMIT) bytes (PRG-01, LIM-03).
    InvalidToken,
    /// The method is the core's own and cannot be sent by hand (`notifications/cancelled`, `subscriptions/listen` and the like).
    ReservedMethod,
    /// The method is longer than a peer reads: its JSON string has more than [`NAME_LIMIT`](crate::config::NAME_LIMIT) bytes (LIM-03).
    MethodTooLong,
    /// The era of this connection has no such message (RTE-02).
    NotInThisEra,
    /// The legacy client has not said that it is initialized (LEG-08).
    NotInitialized,
    /// The handle or ticket names nothing: its request has ended (RTE-09).
    Ended,
    /// A handler's result is no object, or has no `resultType` where the configuration wants one (MSG-12).
    InvalidResult,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the connection is closed"),
            Self::Full => f.write_str("the outgoing queue is full; try again when it is writable"),
            Self::TooLarge { size, limit } => {
                write!(
                    f,
                    "a message of {size} bytes does not fit the outgoing queue of {limit} bytes; raise the limit or send less"
                )
            }
            Self::ParamsNotAnObject => f.write_str("params must be a JSON object"),
            Self::NotJson => f.write_str("the payload is not valid JSON"),
            Self::TokenInUse => {
                f.write_str("the progress token is in use by another request; choose another or let the core mint one")
            }
            Self::InvalidToken => {
                f.write_str("a progress token must be a string or an integer; give another, or let the core mint one")
            }
            Self::ReservedMethod => {
                f.write_str("this method is sent by the core itself; use the operation that stands for it")
            }
            Self::MethodTooLong => f.write_str("the method is longer than a peer reads"),
            Self::NotInThisEra => f.write_str("the negotiated protocol revision has no such message"),
            Self::NotInitialized => {
                f.write_str("the client has not said that it is initialized; only ping may be sent")
            }
            Self::Ended => f.write_str("the request has already ended"),
            Self::InvalidResult => {
                f.write_str("a result must be a JSON object, with a resultType where that is required")
            }
        }
    }
}

impl core::error::Error for SendError {}

/// Why a connection can never be used (again). Sticky: every later call gets the same.
///
/// ```
/// let error = mcp_wire::ConnectionError::LegacyServer { code: Some(-32601) };
/// assert!(error.to_string().contains("initialize"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The server does not know `server/discover`: it wants the `initialize` handshake (VER-09).
    LegacyServer {
        /// The code of its answer to the probe; `None` if it was silent for the probe timeout.
        code: Option<i64>,
    },
    /// The server speaks no protocol version that this client speaks (VER-03).
    NoCommonVersion {
        /// What this client speaks.
        client: Vec<String>,
        /// What the server says it speaks; empty if it could not be read.
        server: Vec<String>,
    },
    /// The server refused `initialize`, or what it answered is no answer to it.
    InitializeRefused {
        /// The code of its error.
        code: Option<i64>,
        /// Its message (bounded, escaped where it is shown), or what is wrong with its result.
        message: String,
    },
    /// The server frames its messages with `Content-Length` headers; MCP over stdio is one message a line.
    ContentLengthFraming,
    /// The start-up limit passed before the server answered.
    StartTimeout {
        /// Whether the server had written anything at all.
        output_seen: bool,
    },
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LegacyServer { code: Some(code) } => write!(
                f,
                "the server answered server/discover with error {code}: it wants the initialize handshake of an earlier protocol revision; allow the legacy era or update the server"
            ),
            Self::LegacyServer { code: None } => f.write_str(
                "the server did not answer server/discover: it may want the initialize handshake of an earlier protocol revision, or needs a longer probe timeout",
            ),
            Self::NoCommonVersion { client, server } => {
                write!(f, "no common protocol version: this client speaks {}, the server ", List(client))?;
                if server.is_empty() {
                    f.write_str("names none that could be read")
                } else {
                    write!(f, "speaks {}", List(server))
                }
            }
            Self::InitializeRefused { code, message } => {
                f.write_str("the server did not take initialize")?;
                if let Some(code) = code {
                    write!(f, " (error {code})")?;
                }
                write!(f, ": {}; check that the command speaks MCP over stdio", Escaped(message))
            }
            Self::ContentLengthFraming => f.write_str(
                "the server frames its messages with Content-Length headers; MCP over stdio is one JSON message a line",
            ),
            Self::StartTimeout { output_seen: true } => {
                f.write_str("the server wrote something but did not answer within the start-up limit; raise the limit or look at its output")
            }
            Self::StartTimeout { output_seen: false } => f.write_str(
                "the server wrote nothing within the start-up limit; raise the limit or check that the command speaks MCP over stdio",
            ),
        }
    }
}

impl core::error::Error for ConnectionError {}

/// Shows peer text escaped (SEC-03).
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().take(200).try_for_each(|c| write!(f, "{}", c.escape_debug()))
    }
}

/// Shows peer text bounded and escaped (SEC-03).
struct List<'a>(&'a [String]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        for (i, item) in self.0.iter().take(SHOWN).enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            for c in item.chars().take(64) {
                write!(f, "{}", c.escape_debug())?;
            }
        }
        if self.0.len() > SHOWN {
            write!(f, " and {} more", self.0.len() - SHOWN)?;
        }
        Ok(())
    }
}

/// A configuration that contradicts itself.
///
/// ```
/// assert!(!mcp_wire::ConfigError::ZeroLimit { field: "line_limit" }.to_string().is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A limit that makes the connection useless at zero.
    ZeroLimit {
        /// The name of the field.
        field: &'static str,
    },
    /// Two fields exclude each other.
    Conflict {
        /// Which, and why, in one sentence.
        what: &'static str,
    },
    /// A field whose JSON is not what the schema wants there.
    BadJson {
        /// The name of the field.
        field: &'static str,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroLimit { field } => write!(f, "{field} must not be zero"),
            Self::Conflict { what } => f.write_str(what),
            Self::BadJson { field } => write!(f, "{field} must be a JSON object"),
        }
    }
}

impl core::error::Error for ConfigError {}
