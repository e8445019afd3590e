//! Owns a line that was cut out of the input, and what it is read as. It must not know the buffer.

use crate::batch::Batch;
use crate::{Json, Message, UnreadableReason};

/// One line, borrowed from the buffer: never from a connection, so the caller can answer while it holds the frame.
///
/// ```
/// use mcp_wire::RecvBuffer;
///
/// let mut recv = RecvBuffer::default();
/// recv.extend(b"hello\n");
/// let frame = recv.next_frame().expect("a whole line is there");
/// assert_eq!(frame.bytes(), b"hello");
/// ```
#[derive(Debug, Clone)]
pub struct Frame<'b> {
    pub(super) bytes: &'b [u8],
    pub(super) message: Message<'b>,
}

impl<'b> Frame<'b> {
    /// The line without its line end; empty for a line that was too long to keep.
    #[must_use]
    pub const fn bytes(&self) -> &'b [u8] {
        self.bytes
    }

    /// The message in it.
    #[must_use]
    pub fn message(self) -> Message<'b> {
        self.message
    }

    /// The messages in it, if it is an array of at least one and at most [`BATCH_LIMIT`](crate::config::BATCH_LIMIT) elements. Only revision 2025-03-26
    /// has such lines; everywhere else, and for any other array, [`message`](Self::message) is unreadable (LEG-09, LEG-10).
    #[must_use]
    pub fn batch(&self) -> Option<Batch<'b>> {
        let Message::Unreadable(line) = &self.message else { return None };
        if line.reason != UnreadableReason::InvalidMessage {
            return None;
        }
        let text = core::str::from_utf8(self.bytes).ok()?.trim_ascii();
        Batch::new(Json::trusted(text))
    }
}
