//! Owns the borrowed view of a line that is an array of messages, as revision 2025-03-26 has them (LEG-09). It must not know whether such a
//! line is allowed; that is the facades' business.

use core::fmt;

use crate::config::BATCH_LIMIT;
use crate::json::Elements;
use crate::message::assemble;
use crate::scanner::Walker;
use crate::{Json, Message};

/// The messages of one line that is an array, in order. Made by [`Frame::batch`](crate::Frame::batch). An element that is no message comes as
/// [`Message::Unreadable`]. `Debug` shows no payload (SEC-03).
///
/// ```
/// use mcp_wire::{Message, RecvBuffer};
///
/// let mut recv = RecvBuffer::default();
/// recv.extend(b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},7]\n");
/// let frame = recv.next_frame().expect("a whole line is there");
/// let mut batch = frame.batch().expect("it is an array");
/// assert!(matches!(batch.next(), Some(Message::Request { .. })));
/// assert!(matches!(batch.next(), Some(Message::Unreadable(_))));
/// assert!(batch.next().is_none());
/// ```
#[derive(Clone)]
pub struct Batch<'b>(Elements<'b>);

impl<'b> Batch<'b> {
    /// The elements of a whole line, if it is an array with at least one and at most [`BATCH_LIMIT`] of them (LIM-03).
    pub(crate) fn new(line: Json<'b>) -> Option<Self> {
        let elements = line.elements();
        let count = elements.clone().take(BATCH_LIMIT + 1).count();
        (1..=BATCH_LIMIT).contains(&count).then_some(Self(elements))
    }
}

impl<'b> Iterator for Batch<'b> {
    type Item = Message<'b>;

    fn next(&mut self) -> Option<Message<'b>> {
        let element = self.0.next()?.get();
        let mut walker = Walker::new();
        // The line was walked over as a whole, so each element is one JSON value.
        walker.finish(element.as_bytes());
        Some(assemble(element, walker.members()))
    }
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("left", &self.0.clone().count()).finish()
    }
}
