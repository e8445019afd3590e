//! Owns the borrowed view of one line: a JSON-RPC message, or what can be said of a line that is none.
//! It must not know connections, eras or direction; which message is allowed when is the facades' business.

use alloc::borrow::Cow;

use crate::{Id, Json, UnreadableReason};

/// One JSON-RPC message, borrowed from the receive buffer. `Debug` shows no payload (SEC-03).
///
/// ```
/// use mcp_wire::{Message, RecvBuffer};
///
/// let mut recv = RecvBuffer::default();
/// recv.extend(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n");
/// let frame = recv.next_frame().expect("a whole line is there");
/// let Message::Request { id, method, .. } = frame.message() else { panic!("a request") };
/// assert_eq!((id.token(), &*method), ("1", "tools/list"));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Message<'b> {
    /// Has `id` and `method`.
    Request {
        /// The id, its token as it stands on the wire.
        id: Id<'b>,
        /// The method, unescaped.
        method: Cow<'b, str>,
        /// `params` as they stand on the wire, of any JSON type (MSG-14 is the facade's to judge).
        params: Option<Json<'b>>,
    },
    /// Has `method` and no `id`.
    Notification {
        /// The method, unescaped.
        method: Cow<'b, str>,
        /// `params` as they stand on the wire, of any JSON type.
        params: Option<Json<'b>>,
    },
    /// Has `id` and `result`.
    Response {
        /// The id of the request it answers.
        id: Id<'b>,
        /// The result as it stands on the wire.
        result: Json<'b>,
    },
    /// Has `error`, and an `id` unless the peer could not read one.
    Error {
        /// The id of the request it answers; `None` where it is absent or null (MSG-10).
        id: Option<Id<'b>>,
        /// The error object.
        error: ErrorObject<'b>,
    },
    /// The line is no message.
    Unreadable(Unreadable<'b>),
}

/// The `error` member of an error response (MSG-09). `Debug` shows the code only.
///
/// ```
/// use mcp_wire::{Message, RecvBuffer};
///
/// let mut recv = RecvBuffer::default();
/// recv.extend(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#);
/// recv.extend(b"\n");
/// let frame = recv.next_frame().expect("a whole line is there");
/// let Message::Error { error, .. } = frame.message() else { panic!("an error") };
/// assert_eq!(error.code, -32601);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ErrorObject<'b> {
    /// The integer `code`.
    pub code: i64,
    /// The string `message`, unescaped.
    pub message: Cow<'b, str>,
    /// `data` as it stands on the wire.
    pub data: Option<Json<'b>>,
    /// The whole error object as it stands on the wire.
    pub raw: Json<'b>,
}

impl core::fmt::Debug for ErrorObject<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ErrorObject").field("code", &self.code).finish_non_exhaustive()
    }
}

/// A line that is no message: what is wrong, and the id that could be found in it (UNR-02).
///
/// ```
/// use mcp_wire::{Message, RecvBuffer, UnreadableReason};
///
/// let mut recv = RecvBuffer::default();
/// recv.extend(b"{\"id\":4,\"method\":\"x\"\n");
/// let frame = recv.next_frame().expect("a whole line is there");
/// let Message::Unreadable(line) = frame.message() else { panic!("the brace is missing") };
/// assert_eq!(line.reason, UnreadableReason::InvalidJson);
/// assert_eq!(line.id.expect("the id is whole").token(), "4");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unreadable<'b> {
    /// What is wrong with the line.
    pub reason: UnreadableReason,
    /// The top-level id, if the line is an object up to it and it is valid and unique (UNR-02).
    pub id: Option<Id<'b>>,
    /// What the line was meant to be, as far as its top-level members tell.
    pub shape: Shape,
    /// The `code` of its `error` member, where the line is an error response that is wrong otherwise.
    pub code: Option<i64>,
    /// The line's length in bytes without its line end, also of what was discarded.
    pub len: u64,
}

/// What an unreadable line was meant to be, by the top-level members that could be read.
///
/// ```
/// assert_ne!(mcp_wire::Shape::Unknown, mcp_wire::Shape::Response);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// Nothing can be said.
    Unknown,
    /// `method` and `id` members were seen, neither `result` nor `error`.
    Request,
    /// A `method` member and no `id` was seen, neither `result` nor `error`, in a line that is whole JSON.
    Notification,
    /// A `result` or `error` member was seen and no `method`.
    Response,
}
