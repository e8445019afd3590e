//! Owns what a server connection tells its caller: `Event` about the frame at hand (borrowed), `Signal` about everything
//! else (owned). It must not know how either comes about.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::client::Dropped;
use crate::{Cause, Delivery, ErrorObject, Id, Json};

/// A request that the caller has been given. Slots are dense and reused; the ticket as a whole never names another request.
///
/// ```
/// # use mcp_wire::server::Ticket;
/// fn index(ticket: Ticket) -> usize {
///     ticket.slot()
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl Ticket {
    /// The dense number of the slot.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// A legacy session: what a legacy client opened with `initialize`, the proof that requests can be sent to it (RTE-02). There is no
/// way to one but [`Request::session`] and [`Event::Initialize`].
///
/// ```
/// # use mcp_wire::server::{Request, Session};
/// fn may_ask(request: &Request<'_>) -> Option<Session> {
///     request.session
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Session(pub(crate) u64);

/// A request of the server's to its legacy client, never reused.
///
/// ```
/// # use mcp_wire::server::{ClientRequest, Signal};
/// fn ended(signal: &Signal) -> Option<ClientRequest> {
///     match signal {
///         Signal::ClientRequestEnded { request, .. } => Some(*request),
///         _ => None,
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientRequest(pub(crate) u64);

/// Whether a request runs now.
///
/// ```
/// assert_ne!(mcp_wire::server::Admission::Run, mcp_wire::server::Admission::Wait);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admission {
    /// Start its handler.
    Run,
    /// Keep its payload until [`Signal::Start`] or [`Signal::Cancelled`].
    Wait,
}

/// A request that has passed all checks (META-07), borrowed.
///
/// ```
/// # use mcp_wire::server::Request;
/// fn describe(request: &Request<'_>) -> String {
///     format!("{} under {}", request.method, request.version)
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request<'b> {
    /// The id on the wire.
    pub id: Id<'b>,
    /// The method.
    pub method: Cow<'b, str>,
    /// The params, an object, unchanged, `_meta` included.
    pub params: Json<'b>,
    /// `protocolVersion` of its metadata, or the version of its legacy session.
    pub version: Cow<'b, str>,
    /// The legacy session it belongs to; `None` for a modern request.
    pub session: Option<Session>,
    /// `clientCapabilities` of its metadata: an object. A legacy client has told them once ([`Connection::client`](super::Connection::client)).
    pub client_capabilities: Option<Json<'b>>,
    /// `clientInfo` of its metadata. A legacy client has told it once.
    pub client_info: Option<Json<'b>>,
    /// The log level it asked for (LOG-01). A legacy client sets one for its session.
    pub log_level: Option<LogLevel>,
    /// Whether it gave a progress token (PRG-02).
    pub wants_progress: bool,
}

/// What one frame from the client means. Borrows from the receive buffer, not from the connection.
///
/// ```
/// # use mcp_wire::server::Event;
/// fn is_request(event: &Event<'_>) -> bool {
///     matches!(event, Event::Request { .. })
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'b> {
    /// A request for a handler.
    Request {
        /// Its ticket.
        ticket: Ticket,
        /// Whether it runs now.
        admission: Admission,
        /// The request.
        request: Request<'b>,
    },
    /// A client has opened a legacy session (LEG-03), in place of an earlier one if there was one. It is answered.
    Initialize {
        /// The session.
        session: Session,
        /// The version they agree on.
        version: &'static str,
    },
    /// A request to the client has its result; it has ended.
    ClientResult {
        /// Which request.
        request: ClientRequest,
        /// The result, unchanged.
        result: Json<'b>,
    },
    /// A request to the client has an error response; it has ended.
    ClientError {
        /// Which request.
        request: ClientRequest,
        /// The error, unchanged.
        error: ErrorObject<'b>,
    },
    /// Progress of a request to the client.
    ClientProgress {
        /// Which request.
        request: ClientRequest,
        /// The params, unchanged.
        params: Json<'b>,
    },
    /// A cancellation came (CAN-08); if it names a request that has not ended, [`Signal::Cancelled`] follows.
    Cancellation {
        /// The id it names, if it is one.
        id: Option<Id<'b>>,
        /// Its reason, cut at [`REASON_LIMIT`](crate::config::REASON_LIMIT).
        reason: Option<Cow<'b, str>>,
        /// Whether it ended something (a request, a listen, an answer of which nothing was written yet).
        applied: bool,
    },
    /// Another notification.
    Notification {
        /// The method.
        method: Cow<'b, str>,
        /// The params, unchanged.
        params: Option<Json<'b>>,
    },
    /// The core refused a request by itself, with this code.
    Refused {
        /// Its id.
        id: Id<'b>,
        /// The code of the answer.
        code: i64,
    },
    /// The frame was dropped; where a rule says so, it was answered.
    Dropped(Dropped<'b>),
    /// The core answered by itself, or the frame was its own business.
    Handled,
}

/// What happened besides the frame at hand.
///
/// ```
/// # use mcp_wire::server::Signal;
/// fn starts(signal: &Signal) -> bool {
///     matches!(signal, Signal::Start(_))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// A waiting request has its permit: start its handler.
    Start(Ticket),
    /// A request is cancelled. If it was waiting, forget its payload, the ticket is gone. If it runs, tell its handler at once
    /// (CAN-07); the ticket stays until the handler has returned.
    Cancelled {
        /// Which request.
        ticket: Ticket,
        /// Whether its handler was running.
        running: bool,
        /// The client's reason; `None` where it gave none, or the server is ending.
        reason: Option<String>,
    },
    /// There is room again after a `SendError::Full`: try the answers that are owed, oldest first.
    Writable,
    /// A handler's error had a code that the protocol forbids; it left as -32603 (MSG-11). Something to warn of.
    CodeReplaced {
        /// Which request; it has ended.
        ticket: Ticket,
        /// The code that the handler gave.
        code: i64,
    },
    /// A request to the client ended without an answer.
    ClientRequestEnded {
        /// Which request.
        request: ClientRequest,
        /// Why.
        cause: Cause,
        /// What is known of its delivery.
        delivery: Delivery,
    },
}

/// A change that listens may have asked for.
///
/// ```
/// use mcp_wire::server::Change;
/// assert_eq!(Change::ToolsList, Change::ToolsList);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<'a> {
    /// The tool list.
    ToolsList,
    /// The prompt list.
    PromptsList,
    /// The resource list.
    ResourcesList,
    /// A resource (SUB-03).
    Resource {
        /// The URI that was subscribed to.
        subscribed: &'a str,
        /// The URI that changed: the same, or a part of it.
        uri: &'a str,
    },
}

/// The level of a log message (LOG-02), least severe first.
///
/// ```
/// use mcp_wire::server::LogLevel;
/// assert!(LogLevel::parse("warning") > Some(LogLevel::Info));
/// assert_eq!(LogLevel::parse("loud"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LogLevel {
    /// `debug`
    Debug,
    /// `info`
    Info,
    /// `notice`
    Notice,
    /// `warning`
    Warning,
    /// `error`
    Error,
    /// `critical`
    Critical,
    /// `alert`
    Alert,
    /// `emergency`
    Emergency,
}

impl LogLevel {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    /// The level of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, n)| *n == name).map(|(level, _)| *level)
    }

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(level, _)| *level == self).map_or("", |(_, name)| name)
    }
}

/// How serving ended.
///
/// ```
/// assert_ne!(mcp_wire::server::Ended::EndOfInput, mcp_wire::server::Ended::PeerGone);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The input ended and everything owed was written.
    EndOfInput,
    /// The server stopped by itself and everything owed was written.
    Stopped,
    /// The output could not be written (SHD-07).
    PeerGone,
}
