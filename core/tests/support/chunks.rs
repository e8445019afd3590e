//! Feeds the same bytes to a receive buffer in every cut and holds that the frames are the same (FRM-06).
//! It must not know what is in them.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use mcp_wire::{Frame, Id, Json, Message, RecvBuffer};

/// A frame, owned, in words that can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// The line.
    pub bytes: Vec<u8>,
    /// What `say` says of its message.
    pub message: String,
}

/// All there is to know of a message, as text.
pub fn say(message: &Message<'_>) -> String {
    match message {
        Message::Request { id, method, params } => {
            format!("request {} {method} {}", id.token(), params.map_or("-", Json::get))
        }
        Message::Notification { method, params } => {
            format!("notification {method} {}", params.map_or("-", Json::get))
        }
        Message::Response { id, result } => format!("response {} {}", id.token(), result.get()),
        Message::Error { id, error } => {
            let (id, data) = (id.map_or("-", Id::token), error.data.map_or("-", Json::get));
            format!("error {id} {} {} {data} {}", error.code, error.message, error.raw.get())
        }
        Message::Unreadable(line) => {
            let (id, code) =
                (line.id.map_or("-", Id::token), line.code.map_or_else(|| "-".into(), |code| code.to_string()));
            format!("unreadable {} {id} {:?} {code} {}", line.reason.as_str(), line.shape, line.len)
        }
        _ => unreachable!("a new kind of message"),
    }
}

fn owned(frame: Frame<'_>) -> Owned {
    Owned { bytes: frame.bytes().to_vec(), message: say(&frame.message()) }
}

/// Takes all frames that are there.
pub fn drain(recv: &mut RecvBuffer, into: &mut Vec<Owned>) {
    while let Some(frame) = recv.next_frame() {
        into.push(owned(frame));
    }
}

/// The frames of `pieces`, taken after each of them; `close` says whether the input ends after the last.
pub fn feed<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>, close: bool) -> Vec<Owned> {
    let mut recv = RecvBuffer::new(limit);
    let mut frames = Vec::new();
    for piece in pieces {
        // Both ways in must do the same.
        if piece.len() % 2 == 0 {
            recv.extend(piece);
        } else {
            recv.spare_mut(piece.len())[..piece.len()].copy_from_slice(piece);
            recv.commit(piece.len());
        }
        drain(&mut recv, &mut frames);
    }
    if close {
        recv.close();
        drain(&mut recv, &mut frames);
    }
    frames
}

/// The frames of `bytes` and the end of input, the same whether fed whole, byte by byte, or in two pieces cut anywhere.
#[track_caller]
pub fn lines(limit: usize, bytes: &[u8]) -> Vec<Owned> {
    let whole = feed(limit, [bytes], true);
    assert_eq!(feed(limit, bytes.chunks(1), true), whole, "byte by byte");
    for cut in 1..bytes.len() {
        let (before, after) = bytes.split_at(cut);
        assert_eq!(feed(limit, [before, after], true), whole, "cut at {cut}");
    }
    // Everything committed before the first frame is taken.
    let mut recv = RecvBuffer::new(limit);
    bytes.chunks(1).for_each(|byte| recv.extend(byte));
    recv.close();
    let mut late = Vec::new();
    drain(&mut recv, &mut late);
    assert_eq!(late, whole, "taken late");
    whole
}

/// What `lines` says of the messages.
#[track_caller]
pub fn messages(bytes: &[u8]) -> Vec<String> {
    lines(1 << 20, bytes).into_iter().map(|frame| frame.message).collect()
}

/// The frames of `input`, in a word or two each.
#[track_caller]
pub fn frames(input: &[u8]) -> Vec<String> {
    frames_with_limit(input, 1 << 20)
}

/// The same with a line limit.
#[track_caller]
pub fn frames_with_limit(input: &[u8], limit: usize) -> Vec<String> {
    lines(limit, input);
    whole(input, limit)
}

/// The frames of `input` fed at once, in a word or two each.
pub fn whole(input: &[u8], limit: usize) -> Vec<String> {
    let mut recv = RecvBuffer::new(limit);
    recv.extend(input);
    recv.close();
    let mut words = Vec::new();
    while let Some(frame) = recv.next_frame() {
        words.push(describe(frame));
    }
    words
}

/// A frame in a word or two.
pub fn describe(frame: Frame<'_>) -> String {
    match frame.message() {
        Message::Request { id, method, .. } => format!("request {} {method}", id.token()),
        Message::Notification { method, .. } => format!("notification {method}"),
        Message::Response { id, .. } => format!("response {}", id.token()),
        Message::Error { id, error } => format!("error {} {}", id.map_or("none", Id::token), error.code),
        Message::Unreadable(line) => {
            let id = line.id.map(|id| format!(" id {}", id.token())).unwrap_or_default();
            let code = line.code.map(|code| format!(" code {code}")).unwrap_or_default();
            format!("{}{id}{code}", line.reason.as_str())
        }
        other => format!("{other:?}"),
    }
}
