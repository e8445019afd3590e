//! Owns the input bytes and cuts them into frames: lines, the line limit, the salvage of an id from a line too long
//! to keep. It must not know what a message means to a connection.

use crate::Message;

/// Input bytes on their way to becoming frames. The caller reads straight into it.
///
/// How reads are cut makes no difference (FRM-06); each byte is looked at once (FRM-07); a line over the limit
/// is discarded as it arrives (LIM-01), and the memory of a giant line is given back.
///
/// ```
/// use mcp_wire::RecvBuffer;
///
/// let mut recv = RecvBuffer::new(1 << 20);
/// let n = { let spare = recv.spare_mut(64); spare[..3].copy_from_slice(b"{}\n"); 3 };
/// recv.commit(n);
/// assert!(recv.next_frame().is_some());
/// assert!(recv.next_frame().is_none());
/// ```
#[derive(Debug)]
pub struct RecvBuffer {}

impl Default for RecvBuffer {
    /// With the default limit, [`LINE_LIMIT`](crate::config::LINE_LIMIT).
    fn default() -> Self {
        Self::new(crate::config::LINE_LIMIT)
    }
}

impl RecvBuffer {
    /// A buffer for lines of at most `line_limit` bytes before their line end.
    #[must_use]
    pub fn new(line_limit: usize) -> Self {
        let _ = line_limit;
        todo!()
    }

    /// Room for at least `min` bytes (at least one), to read into. What is written there counts only after [`commit`](Self::commit),
    /// so a read that is dropped loses nothing.
    pub fn spare_mut(&mut self, min: usize) -> &mut [u8] {
        let _ = min;
        todo!()
    }

    /// The first `n` bytes of the last [`spare_mut`](Self::spare_mut) have been filled. More than there was room for counts as all of it.
    pub fn commit(&mut self, n: usize) {
        let _ = n;
        todo!()
    }

    /// Appends a copy of `bytes`.
    pub fn extend(&mut self, bytes: &[u8]) {
        let _ = bytes;
        todo!()
    }

    /// The input has ended: an unclosed last line becomes a frame (FRM-09). Bytes after this are ignored.
    pub fn close(&mut self) {
        todo!()
    }

    /// A new life of the process: forgets all bytes, also half a line (RST-06), and is open again.
    pub fn reset(&mut self) {
        todo!()
    }

    /// The next frame, or `None` until more bytes are committed. Blank lines are skipped (FRM-05).
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        todo!()
    }
}

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
    bytes: &'b [u8],
    message: Message<'b>,
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
}
