//! Owns the step from the bytes of a line to a [`Message`]: which top-level members there are and what they make.
//! It must not know how lines are cut from reads, nor what a message means to a connection.

use alloc::borrow::Cow;

use crate::config::{DEPTH_LIMIT, NAME_LIMIT};
use crate::salvage::Salvage;
use crate::walker::{Bits, Levels, Stop, Text, Walker};
use crate::{ErrorObject, Id, Json, Message, Shape, Unreadable, UnreadableReason};

/// Where a member's value stands.
type Span = (usize, usize);

/// The top-level members of a line that is one JSON object.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Members {
    version: bool,
    id: Option<Span>,
    method: Option<Span>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
    /// A member name that decides something stands twice (UNR-08).
    duplicate: bool,
    duplicate_id: bool,
}

/// The usual start of a message, compared at once.
const PREFIX: &[u8] = b"{\"jsonrpc\":\"2.0\",";

/// Walks over one line at the start of `bytes`, up to its LF or the end. Gives its members and its length without the LF,
/// white space at its end included.
pub(crate) fn walk(bytes: &[u8]) -> Result<(Members, usize), Stop> {
    let mut members = Members::default();
    let mut walker = Walker::<true> { bytes, at: 0 };
    let mut first = true;
    if bytes.starts_with(PREFIX) {
        members.version = true;
        walker.at = PREFIX.len();
        first = false;
    } else {
        walker.expect(b'{')?;
    }
    loop {
        if first {
            walker.white_space();
            if walker.peek()? == b'}' {
                walker.at += 1;
                break;
            }
            first = false;
        }
        let key = walker.key()?;
        walker.white_space();
        let start = walker.at;
        walker.value(&mut Bits::default())?;
        members.add(bytes, key, (start, walker.at));
        if walker.peek()? != b',' {
            walker.white_space();
        }
        match walker.peek()? {
            b',' => walker.at += 1,
            b'}' => {
                walker.at += 1;
                break;
            }
            _ => return Err(Stop::Bad),
        }
    }
    walker.white_space();
    match bytes.get(walker.at) {
        None | Some(b'\n') => Ok((members, walker.at)),
        Some(_) => Err(Stop::Bad),
    }
}

impl Members {
    #[inline]
    fn add(&mut self, bytes: &[u8], key: Text, value: Span) {
        let name = bytes.get(key.start + 1..key.end - 1).unwrap_or_default();
        if key.escaped {
            let token = bytes.get(key.start..key.end).unwrap_or_default();
            if let Ok(name) = serde_json::from_slice::<Cow<'_, str>>(token) {
                self.add_named(bytes, name.as_bytes(), value);
            }
        } else {
            self.add_named(bytes, name, value);
        }
    }

    #[inline]
    fn add_named(&mut self, bytes: &[u8], name: &[u8], value: Span) {
        let place = match name {
            b"id" => {
                self.duplicate_id |= self.id.is_some();
                &mut self.id
            }
            b"method" => &mut self.method,
            b"params" => &mut self.params,
            b"result" => &mut self.result,
            b"error" => &mut self.error,
            b"jsonrpc" => {
                self.duplicate |= self.version;
                self.version = bytes.get(value.0..value.1) == Some(b"\"2.0\"");
                return;
            }
            _ => return,
        };
        self.duplicate |= place.is_some();
        *place = Some(value);
    }
}

/// What a whole line says. `line` has no LF; `walked` is what [`walk`] said of it.
pub(crate) fn message<'b>(line: &'b [u8], walked: Result<Members, Stop>) -> Message<'b> {
    let Ok(members) = walked else { return Message::Unreadable(diagnose(line)) };
    let Ok(text) = simdutf8::basic::from_utf8(line) else { return Message::Unreadable(diagnose(line)) };
    match assemble(text, members) {
        Ok(message) => message,
        Err(reason) => Message::Unreadable(invalid_message(text, members, reason)),
    }
}

fn assemble(text: &str, members: Members) -> Result<Message<'_>, UnreadableReason> {
    const INVALID: UnreadableReason = UnreadableReason::InvalidMessage;
    if members.duplicate || !members.version {
        return Err(INVALID);
    }
    let at = |span: Span| text.get(span.0..span.1).unwrap_or_default();
    let id = match members.id {
        None => None,
        Some(span) => Some(known_id(at(span))?),
    };
    let params = members.params.map(|span| Json::trusted(at(span)));
    match (members.method, members.result, members.error) {
        (Some(method), None, None) => {
            let token = at(method);
            if !token.starts_with('"') {
                return Err(INVALID);
            }
            if token.len() - 2 > NAME_LIMIT {
                return Err(UnreadableReason::NameTooLong);
            }
            let method = string(token).ok_or(INVALID)?;
            match id {
                None => Ok(Message::Notification { method, params }),
                Some(Some(id)) => Ok(Message::Request { id, method, params }),
                Some(None) => Err(INVALID),
            }
        }
        (None, Some(result), None) => match id {
            Some(Some(id)) => Ok(Message::Response { id, result: Json::trusted(at(result)) }),
            _ => Err(INVALID),
        },
        (None, None, Some(error)) => {
            let error = error_object(Json::trusted(at(error))).ok_or(INVALID)?;
            Ok(Message::Error { id: id.flatten(), error })
        }
        _ => Err(INVALID),
    }
}

/// The id of a member: `Ok(None)` for null.
fn known_id(token: &str) -> Result<Option<Id<'_>>, UnreadableReason> {
    if token == "null" {
        return Ok(None);
    }
    match Id::parse(token) {
        Some(id) => Ok(Some(id)),
        None if token.len() > NAME_LIMIT => Err(UnreadableReason::IdTooLong),
        None => Err(UnreadableReason::InvalidMessage),
    }
}

/// The text of a string token. A lone surrogate has none.
fn string(token: &str) -> Option<Cow<'_, str>> {
    let inner = token.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str(token).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

fn error_object(raw: Json<'_>) -> Option<ErrorObject<'_>> {
    if !raw.is_object() {
        return None;
    }
    let (mut code, mut message, mut data) = (None, None, None);
    for (name, value) in raw.members() {
        match &*name {
            "code" => code = error_code(value.get()),
            "message" => message = string(value.get()),
            "data" => data = Some(value),
            _ => {}
        }
    }
    Some(ErrorObject { code: code?, message: message?, data, raw })
}

/// An integer by value that fits 64 bits.
fn error_code(token: &str) -> Option<i64> {
    token.parse().ok().or_else(|| {
        let (sign, digits) = token.strip_prefix('-').map_or((1_i128, token), |digits| (-1, digits));
        let value = Id::parse(digits).filter(|_| !digits.starts_with('"'))?.as_u64()?;
        i64::try_from(sign * i128::from(value)).ok()
    })
}

/// A line that is an object, but no message.
fn invalid_message(text: &str, members: Members, reason: UnreadableReason) -> Unreadable<'_> {
    let at = |span: Span| text.get(span.0..span.1).unwrap_or_default();
    let id = members.id.filter(|_| !members.duplicate_id).and_then(|span| Id::parse(at(span)));
    let response = members.result.is_some() || members.error.is_some();
    let shape = match (members.method.is_some(), response, members.id.is_some()) {
        (false, true, _) => Shape::Response,
        (true, false, true) => Shape::Request,
        (true, false, false) => Shape::Notification,
        _ => Shape::Unknown,
    };
    let code = members.error.and_then(|span| {
        let error = Json::trusted(at(span));
        let code = error.is_object().then(|| error.members().find(|(name, _)| name == "code")).flatten();
        code.and_then(|(_, value)| error_code(value.get()))
    });
    Unreadable { reason, id, shape, code, len: text.len() as u64 }
}

/// What is wrong with a line that the walk refused: the slow and careful look.
fn diagnose(line: &[u8]) -> Unreadable<'_> {
    let len = line.len() as u64;
    let unknown = |reason| Unreadable { reason, id: None, shape: Shape::Unknown, code: None, len };
    let prefix = b"Content-Length:";
    if line.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)) {
        return unknown(UnreadableReason::ContentLength);
    }
    let mut salvage = Salvage::new();
    salvage.feed(line);
    let utf8 = simdutf8::basic::from_utf8(line).is_ok();
    let mut walker = Walker::<true> { bytes: line, at: 0 };
    let valid = walker.value(&mut Levels::default()).is_ok() && {
        walker.white_space();
        walker.at == line.len()
    };
    let reason = match (utf8, valid) {
        (false, _) => UnreadableReason::InvalidUtf8,
        (true, false) => UnreadableReason::InvalidJson,
        // Valid, and no object that the walk would take: nested too deep, or a scalar or an array.
        (true, true) if deeper_than_limit(line) => UnreadableReason::TooDeep,
        (true, true) => return unknown(UnreadableReason::InvalidMessage),
    };
    Unreadable { reason, id: salvaged(line, &salvage), shape: salvage.shape(utf8 && valid), code: None, len }
}

fn deeper_than_limit(line: &[u8]) -> bool {
    let mut walker = Walker::<true> { bytes: line, at: 0 };
    let mut levels = Depth { inner: Levels::default(), deepest: 0 };
    walker.value(&mut levels).is_ok() && levels.deepest > DEPTH_LIMIT
}

/// Measures how deep a walk goes.
struct Depth {
    inner: Levels,
    deepest: usize,
}

impl crate::walker::Stack for Depth {
    fn push(&mut self, object: bool) -> bool {
        let pushed = self.inner.push(object);
        self.deepest = self.deepest.max(self.inner.depth());
        pushed
    }

    fn pop(&mut self) {
        self.inner.pop();
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }

    fn in_object(&self) -> bool {
        self.inner.in_object()
    }
}

/// The id that the salvage found, borrowed from the line.
fn salvaged<'b>(line: &'b [u8], salvage: &Salvage) -> Option<Id<'b>> {
    let token = salvage.id()?.token().as_bytes();
    let at = memchr::memmem::find(line, token)?;
    core::str::from_utf8(line.get(at..at + token.len())?).ok().and_then(Id::parse)
}
