//! Owns what a client connection tells its caller: `Event` about the frame at hand (borrowed), `Signal` about
//! everything else (owned). It must not know how either comes about.

use alloc::borrow::Cow;
use alloc::string::String;

use super::ServerTicket;
use crate::{Cause, ConnectionError, Delivery, DropReason, Era, ErrorObject, Filter, Id, Json};

/// A request or listen of the caller's, stable over restarts while the id on the wire changes.
///
/// `slot` is a small dense number that is reused after the request has ended and its ending has been taken, so a
/// caller can keep its own state in a vector; the handle as a whole never names another request.
///
/// ```
/// use core::time::Duration;
/// use mcp_wire::client::{Config, Connection, RequestOptions};
/// use mcp_wire::Instant;
///
/// let mut client = Connection::new(Config::new("host", "1.0"))?;
/// let handle = client.request("tools/list", None, RequestOptions::default(), Instant::EPOCH)?;
/// assert_eq!(handle.slot(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl Handle {
    /// The dense number of the slot.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// What one frame from the server means. Borrows from the receive buffer, not from the connection.
///
/// ```
/// # use mcp_wire::client::Event;
/// fn is_answer(event: &Event<'_>) -> bool {
///     matches!(event, Event::Result { .. } | Event::Error { .. })
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'b> {
    /// A request has its result; it has ended. `input_required` results come here too, with that kind.
    Result {
        /// Which request.
        request: Handle,
        /// The result, unchanged.
        result: Json<'b>,
        /// Its `resultType` (MSG-13).
        kind: ResultKind,
    },
    /// A request (or a listen before its acknowledgment) has an error response; it has ended.
    Error {
        /// Which request.
        request: Handle,
        /// The error, unchanged.
        error: ErrorObject<'b>,
    },
    /// A notification of one request: progress by its token.
    RequestNotification {
        /// Which request.
        request: Handle,
        /// The method.
        method: Cow<'b, str>,
        /// The params, unchanged.
        params: Option<Json<'b>>,
    },
    /// A listen is acknowledged: it is open.
    Acknowledged {
        /// Which listen.
        listen: Handle,
        /// The granted filter as it stands on the wire.
        notifications: Json<'b>,
        /// What was asked for and not granted (SUB-11).
        missing: Filter,
    },
    /// A notification of a listen.
    ListenNotification {
        /// Which listen.
        listen: Handle,
        /// The method.
        method: Cow<'b, str>,
        /// The params, unchanged.
        params: Option<Json<'b>>,
    },
    /// The server has ended a listen: by its result or by a cancellation (SUB-08).
    ListenEnded {
        /// Which listen.
        listen: Handle,
        /// How.
        how: ListenEnd,
    },
    /// A request of a legacy server's (LEG-06): answer it with [`respond`](super::Connection::respond) and its siblings.
    ServerRequest {
        /// What to answer it by.
        ticket: ServerTicket,
        /// The method.
        method: Cow<'b, str>,
        /// The params, unchanged: an object, if there are any.
        params: Option<Json<'b>>,
    },
    /// A request of a legacy server's that the core has answered by itself.
    Answered {
        /// The method.
        method: Cow<'b, str>,
        /// The code of the error it got; `None`: it got a result.
        code: Option<i64>,
    },
    /// A notification that belongs to no request and no listen: for the connection-level sink (RTE-06).
    Notification {
        /// The method.
        method: Cow<'b, str>,
        /// The params, unchanged.
        params: Option<Json<'b>>,
    },
    /// The frame was dropped; a request that it ends follows as [`Signal::Ended`].
    Dropped(Dropped<'b>),
    /// The frame was the core's own business (the probe's answer, the second frame of a listen's end).
    Handled,
}

/// A frame that was dropped: why, and what can be said of it without its content (UNR-07).
///
/// ```
/// # use mcp_wire::client::Dropped;
/// fn log(dropped: &Dropped<'_>) -> String {
///     format!("dropped a frame of {} bytes: {}", dropped.len, dropped.reason.as_str())
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Dropped<'b> {
    /// Why.
    pub reason: DropReason,
    /// Its id, if one is known.
    pub id: Option<Id<'b>>,
    /// Its error code, if it has one.
    pub code: Option<i64>,
    /// Length of the line in bytes, 0 where only the message is at hand.
    pub len: u64,
}

/// The `resultType` of a result.
///
/// ```
/// assert_ne!(mcp_wire::client::ResultKind::Complete, mcp_wire::client::ResultKind::InputRequired);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultKind {
    /// `complete`, or absent (MSG-13).
    Complete,
    /// `input_required`: ask again with the answers, as a new request (MSG-15).
    InputRequired,
}

/// How a listen ended.
///
/// ```
/// assert_eq!(mcp_wire::client::ListenEnd::Graceful.as_str(), "graceful");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenEnd {
    /// The server sent the result.
    Graceful,
    /// The server cancelled it without a result, answered it with an error or something unreadable after its acknowledgment,
    /// or did not open it again after a restart.
    Server,
    /// Its consumer did not keep up (SUB-09).
    Lagged,
    /// The connection ended.
    Closed,
    /// The caller cancelled it.
    Cancelled,
}

impl ListenEnd {
    /// The word the programs print.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Graceful => "graceful",
            Self::Server => "server",
            Self::Lagged => "lagged",
            Self::Closed => "closed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What happened besides the frame at hand. Taken with `poll_signal` after each call that may cause one.
///
/// ```
/// # use mcp_wire::client::Signal;
/// fn is_over(signal: &Signal) -> bool {
///     matches!(signal, Signal::Ended { .. } | Signal::ListenEnded { .. })
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// The connection is established: the era and the version are known.
    Established {
        /// The era.
        era: Era,
        /// The negotiated protocol version.
        version: String,
    },
    /// The connection could not be established and never will be.
    Failed(ConnectionError),
    /// A request ended without an answer; or a listen that never was acknowledged, for the causes timeout and invalid response.
    Ended {
        /// Which request.
        request: Handle,
        /// Why.
        cause: Cause,
        /// What is known of its delivery.
        delivery: Delivery,
        /// What was seen meanwhile that may explain it.
        hint: Option<Hint>,
    },
    /// A listen ended without a frame of the server.
    ListenEnded {
        /// Which listen.
        listen: Handle,
        /// How.
        how: ListenEnd,
    },
    /// A request of a legacy server's is cancelled, or its session is over: it gets no answer.
    ServerRequestCancelled {
        /// Which request.
        ticket: ServerTicket,
        /// The reason that the server gives.
        reason: Option<String>,
    },
    /// A listen is open again after a restart; changes in between were missed (SUB-10). What was granted this time is told by
    /// [`granted`](super::Connection::granted).
    Resubscribed {
        /// Which listen.
        listen: Handle,
    },
    /// There is room again after a `SendError::Full`, or there will never be (the next try gets `SendError::Closed`).
    Writable,
}

/// What was seen while a request waited that may explain why no answer came.
///
/// ```
/// # use mcp_wire::client::Hint;
/// assert!(Hint::UnknownId { id: "9999".into() }.to_string().contains("9999"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// An answer with this id came, which names no request (bounded, escaped).
    UnknownId {
        /// The id.
        id: String,
    },
    /// A line that is no message came.
    Unreadable {
        /// Why it is none.
        reason: crate::UnreadableReason,
    },
    /// An error without an id came that could not be pinned on one request.
    UnattributedError {
        /// Its code.
        code: i64,
    },
    /// The server turned out to speak a revision that has no such request.
    NotInThisEra,
}

impl core::fmt::Display for Hint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::UnknownId { id } => write!(f, "meanwhile an answer with the unknown id {id} came"),
            Self::Unreadable { reason } => write!(f, "meanwhile a line that is no message came ({})", reason.as_str()),
            Self::NotInThisEra => f.write_str("the server speaks a protocol revision that has no such request"),
            Self::UnattributedError { code } => write!(f, "meanwhile an error {code} without an id came"),
        }
    }
}
