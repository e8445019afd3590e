//! Owns the output bytes: whole frames in order, what has been lent to a writer, what the writer has accepted,
//! and what can still be withdrawn. It must not know what a frame means.

use alloc::vec::Vec;

/// The number of a frame in a [`SendBuffer`]; grows by one with each frame and is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FrameNumber(pub(crate) u64);

/// How far a frame has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// No byte was lent; it can be withdrawn.
    Queued,
    /// At least one byte was lent to the writer, of which none of this frame is known to be accepted.
    Lent,
    /// The writer has accepted some bytes of it.
    Partly,
    /// The writer has accepted all of it (or it has been withdrawn and forgotten).
    Accepted,
}

/// Output bytes in segments of whole frames. A segment is lent to the writer as one slice or one vector; frames in
/// segments that are not lent can be withdrawn in the time of one frame.
#[derive(Debug)]
pub(crate) struct SendBuffer {}

impl SendBuffer {
    pub(crate) fn new(limit: usize) -> Self {
        let _ = limit;
        todo!()
    }

    /// Appends one frame that `encode` writes (without LF, which is added; raw line breaks between tokens are
    /// taken out: FRM-02). `reserve` may use room above the limit (cancellations).
    pub(crate) fn push(
        &mut self,
        reserve: bool,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<FrameNumber, crate::SendError> {
        let _ = (reserve, encode);
        todo!()
    }

    /// Takes a frame back of which no byte was lent. `false` if it is too late.
    pub(crate) fn withdraw(&mut self, frame: FrameNumber) -> bool {
        let _ = frame;
        todo!()
    }

    pub(crate) fn progress(&self, frame: FrameNumber) -> Progress {
        let _ = frame;
        todo!()
    }

    /// Bytes queued and not accepted yet.
    pub(crate) fn len(&self) -> usize {
        todo!()
    }

    /// Lends the first segment's unaccepted bytes. Level-triggered: the same slice until `accepted`.
    pub(crate) fn output(&mut self) -> &[u8] {
        todo!()
    }

    /// Lends the first segment by ownership, for a writer that must not hold a lock while it writes. `None` while one is lent so.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        todo!()
    }

    /// The writer has accepted `n` more bytes of what was lent.
    pub(crate) fn accepted(&mut self, n: usize) {
        let _ = n;
        todo!()
    }

    /// A spent vector comes back for reuse (its capacity, if it is not too large).
    pub(crate) fn recycle(&mut self, segment: Vec<u8>) {
        let _ = segment;
        todo!()
    }

    /// Frames up to this number (exclusive) have had a byte lent.
    pub(crate) fn lent_up_to(&self) -> FrameNumber {
        todo!()
    }

    /// The stream is gone: everything queued is forgotten. Numbers go on.
    pub(crate) fn clear(&mut self) {
        todo!()
    }
}
