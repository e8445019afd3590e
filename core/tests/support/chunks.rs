//! The chunk helper: feeds bytes whole, byte by byte and at every single cut, and checks that it makes no difference (FRM-06).

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use mcp_wire::{Frame, Message, RecvBuffer};

/// The frames of `input`, in a word or two each.
pub fn frames(input: &[u8]) -> Vec<String> {
    frames_with_limit(input, 1 << 20)
}

/// The same with a line limit.
pub fn frames_with_limit(input: &[u8], limit: usize) -> Vec<String> {
    let expected = whole(input, limit);
    assert_eq!(feed(input.chunks(1), limit), expected, "byte by byte");
    for cut in 0..=input.len() {
        let (head, tail) = input.split_at(cut);
        assert_eq!(feed([head, tail].into_iter(), limit), expected, "cut at {cut}");
    }
    expected
}

/// The frames of `input` fed at once.
pub fn whole(input: &[u8], limit: usize) -> Vec<String> {
    feed(std::iter::once(input), limit)
}

/// The frames of the chunks, with the end of the input after them.
pub fn feed<'a>(chunks: impl Iterator<Item = &'a [u8]>, limit: usize) -> Vec<String> {
    let mut recv = RecvBuffer::new(limit);
    let mut all = Vec::new();
    for chunk in chunks {
        recv.extend(chunk);
        while let Some(frame) = recv.next_frame() {
            all.push(describe(frame));
        }
    }
    recv.close();
    while let Some(frame) = recv.next_frame() {
        all.push(describe(frame));
    }
    all
}

/// A frame in a word or two.
pub fn describe(frame: Frame<'_>) -> String {
    match frame.message() {
        Message::Request { id, method, .. } => format!("request {} {method}", id.token()),
        Message::Notification { method, .. } => format!("notification {method}"),
        Message::Response { id, .. } => format!("response {}", id.token()),
        Message::Error { id, error } => format!("error {} {}", id.map_or("none", |id| id.token()), error.code),
        Message::Unreadable(line) => {
            let id = line.id.map(|id| format!(" id {}", id.token())).unwrap_or_default();
            let code = line.code.map(|code| format!(" code {code}")).unwrap_or_default();
            format!("{}{id}{code}", line.reason.as_str())
        }
        other => format!("{other:?}"),
    }
}
