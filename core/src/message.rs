//! Owns the borrowed view of one line: a JSON-RPC message, or what can be said of a line that is none.
//! It must not know connections, eras or direction; which message is allowed when is the facades' business.

use alloc::borrow::Cow;

use serde::de::IgnoredAny;

use crate::config::NAME_LIMIT;
use crate::json::unescape;
use crate::salvage::Salvage;
use crate::scanner::{Member, Members};
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
    /// A `method` member and no `id` was seen, neither `result` nor `error`, in an object that is closed: no id can follow.
    Notification,
    /// A `result` or `error` member was seen and no `method`.
    Response,
}

/// The message of a line that is one JSON value, whose members stand at `members`.
pub(crate) fn assemble<'b>(line: &'b str, members: &Members) -> Message<'b> {
    match message(line, members) {
        Ok(message) => message,
        Err(reason) => {
            let code = members.get_once(Member::Error).and_then(|range| line.get(range)).and_then(code);
            unreadable(reason, line.as_bytes(), code)
        }
    }
}

fn message<'b>(line: &'b str, members: &Members) -> Result<Message<'b>, UnreadableReason> {
    const INVALID: UnreadableReason = UnreadableReason::InvalidMessage;
    if !members.is_object() || members.any_repeated() {
        return Err(INVALID);
    }
    let get = |member| members.get(member).and_then(|range| line.get(range));
    let id = match get(Member::Id) {
        None | Some("null") => None,
        Some(token) => match Id::parse(token) {
            Some(id) => Some(id),
            None if token.len() > NAME_LIMIT && !token.starts_with(['{', '[']) => {
                return Err(UnreadableReason::IdTooLong);
            }
            None => return Err(INVALID),
        },
    };
    let version = get(Member::Jsonrpc);
    if version != Some(r#""2.0""#) && version.and_then(text).as_deref() != Some("2.0") {
        return Err(INVALID);
    }
    match (get(Member::Method), get(Member::Result), get(Member::Error)) {
        (Some(method), None, None) => {
            if method.len() > NAME_LIMIT && method.starts_with('"') {
                return Err(UnreadableReason::NameTooLong);
            }
            let method = text(method).ok_or(INVALID)?;
            let params = get(Member::Params).map(Json::trusted);
            match (id, get(Member::Id)) {
                (Some(id), _) => Ok(Message::Request { id, method, params }),
                (None, None) => Ok(Message::Notification { method, params }),
                (None, Some(_)) => Err(INVALID), // MSG-03: null is no id of a request
            }
        }
        (None, Some(result), None) => Ok(Message::Response { id: id.ok_or(INVALID)?, result: Json::trusted(result) }),
        (None, None, Some(error)) => {
            Ok(Message::Error { id, error: error_object(Json::trusted(error)).ok_or(INVALID)? })
        }
        _ => Err(INVALID),
    }
}

/// The value of a string token.
fn text(token: &str) -> Option<Cow<'_, str>> {
    let inner = token.strip_prefix('"')?.strip_suffix('"')?;
    if inner.len() < 64 && !inner.bytes().any(|byte| byte == b'\\') {
        return Some(Cow::Borrowed(inner));
    }
    unescape(inner)
}

fn error_object(raw: Json<'_>) -> Option<ErrorObject<'_>> {
    let (mut code, mut message, mut data) = (None, None, None);
    for (name, value) in raw.members() {
        match &*name {
            "code" => code = Some(Id::parse(value.get())?.as_i64()?),
            // A surrogate that stands alone in it does no harm: it is text for people.
            "message" => message = Some(value.as_str()?),
            "data" => data = Some(value),
            _ => {}
        }
    }
    Some(ErrorObject { code: code?, message: message?, data, raw })
}

/// The code of an error object that may be wrong otherwise.
fn code(error: &str) -> Option<i64> {
    let (_, value) = Json::trusted(error).members().find(|(name, _)| name == "code")?;
    Id::parse(value.get())?.as_i64()
}

/// What can be said of a line that the walk has refused.
pub(crate) fn damaged(line: &[u8]) -> Message<'_> {
    const HEADER: &[u8] = b"content-length:";
    let reason = match simdutf8::basic::from_utf8(line) {
        Err(_) => UnreadableReason::InvalidUtf8,
        Ok(_) if line.get(..HEADER.len()).is_some_and(|start| start.eq_ignore_ascii_case(HEADER)) => {
            UnreadableReason::ContentLength
        }
        // The walk refuses whole JSON for one reason only. Nothing here recurses, so no depth is too much for this look.
        Ok(text) if serde_json::from_str::<IgnoredAny>(text).is_ok() => UnreadableReason::TooDeep,
        Ok(_) => UnreadableReason::InvalidJson,
    };
    unreadable(reason, line, None)
}

/// What can be said of a line that the walk has refused, or that ends too early for it, at the end of the input. What is
/// whole JSON was not cut off, whatever else is wrong with it.
pub(crate) fn truncated(line: &[u8]) -> Message<'_> {
    let mut message = damaged(line);
    if let Message::Unreadable(Unreadable { reason, .. }) = &mut message {
        if matches!(reason, UnreadableReason::InvalidJson | UnreadableReason::InvalidUtf8) {
            *reason = UnreadableReason::Truncated;
        }
    }
    message
}

fn unreadable(reason: UnreadableReason, line: &[u8], code: Option<i64>) -> Message<'_> {
    let salvage = Salvage::of(line);
    let token = salvage.id_range().and_then(|range| core::str::from_utf8(line.get(range)?).ok());
    let shape = salvage.shape();
    Message::Unreadable(Unreadable { reason, id: token.and_then(Id::parse), shape, code, len: line.len() as u64 })
}

/// A line over the limit, of which only the salvage is left.
pub(crate) fn too_long(salvage: &Salvage, len: u64) -> Message<'_> {
    let (id, shape) = (salvage.id(), salvage.shape());
    Message::Unreadable(Unreadable { reason: UnreadableReason::LineTooLong, id, shape, code: None, len })
}
