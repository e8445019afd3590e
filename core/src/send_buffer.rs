//! Owns the output bytes: whole frames in order, what has been lent to a writer, what the writer has accepted,
//! and what can still be withdrawn. It must not know what a frame means.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use crate::{SendError, encode};

/// A segment takes no further frame once it has this many bytes: enough for a write to be worth its call, little enough
/// that a frame waits for few others once they are lent.
const SEGMENT: usize = 64 << 10;
/// A spent vector is kept for reuse up to this capacity; a giant frame's memory is given back.
const KEPT_CAPACITY: usize = 2 * SEGMENT;

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

/// Where a frame stands in its segment.
#[derive(Debug, Clone, Copy)]
struct Span {
    number: FrameNumber,
    start: usize,
    end: usize,
    withdrawn: bool,
}

/// Some whole frames in one vector. Frames come in while it is the last one and not lent; what is withdrawn leaves a hole
/// that is closed when the segment is lent, or when holes outweigh the rest. `Debug` shows no content (SEC-03).
#[derive(Default)]
struct Segment {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// Bytes of withdrawn frames that still stand in `bytes`.
    dead: usize,
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frames = self.spans.iter().filter(|span| !span.withdrawn).count();
        f.debug_struct("Segment").field("frames", &frames).field("bytes", &self.live()).finish_non_exhaustive()
    }
}

impl Segment {
    fn live(&self) -> usize {
        self.bytes.len().saturating_sub(self.dead)
    }

    fn find(&self, frame: FrameNumber) -> Option<usize> {
        self.spans.binary_search_by_key(&frame, |span| span.number).ok()
    }

    /// Closes the holes.
    fn compact(&mut self) {
        if self.dead == 0 {
            return;
        }
        let mut at = 0;
        let bytes = &mut self.bytes;
        self.spans.retain_mut(|span| {
            if span.withdrawn {
                return false;
            }
            let len = span.end - span.start;
            bytes.copy_within(span.start..span.end, at);
            (span.start, span.end) = (at, at + len);
            at += len;
            true
        });
        bytes.truncate(at);
        self.dead = 0;
    }

    fn withdraw(&mut self, at: usize) -> usize {
        let Some(span) = self.spans.get_mut(at) else { return 0 };
        if span.withdrawn {
            return 0;
        }
        span.withdrawn = true;
        let len = span.end - span.start;
        self.dead += len;
        if self.spans.len() == at + 1 {
            // The newest frame, as after "send, then drop at once": it goes without leaving a hole.
            self.spans.pop();
            self.dead -= len;
            self.bytes.truncate(self.bytes.len() - len);
        } else if self.dead > self.live() {
            // Costs less than the withdrawn frames that paid for it.
            self.compact();
        }
        len
    }
}

/// Output bytes in segments of whole frames. A segment is lent to the writer as one slice or one vector; frames in
/// segments that are not lent can be withdrawn in the time of one frame.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    /// Only the first can be lent; only the last takes frames, unless it is lent.
    segments: VecDeque<Segment>,
    /// The first segment is lent: it is frozen.
    lent: bool,
    /// The first segment's vector is with the writer.
    taken: bool,
    /// Bytes of the first segment that the writer has accepted.
    accepted: usize,
    /// Length of the first segment as it was lent.
    lent_len: usize,
    next: u64,
    lent_up_to: u64,
    len: usize,
    /// Bytes kept elsewhere that count against the limit.
    held: usize,
    limit: usize,
    /// Parts of a spent segment for the next one.
    spare_bytes: Vec<u8>,
    spare_spans: Vec<Span>,
}

impl SendBuffer {
    /// A buffer that holds at most `limit` bytes, but for what is pushed with `reserve`.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            segments: VecDeque::new(),
            lent: false,
            taken: false,
            accepted: 0,
            lent_len: 0,
            next: 0,
            lent_up_to: 0,
            len: 0,
            held: 0,
            limit,
            spare_bytes: Vec::new(),
            spare_spans: Vec::new(),
        }
    }

    /// Appends one frame that `encode` appends to the vector it gets (without LF, which is added; raw line breaks between tokens are
    /// taken out: FRM-02). `reserve` may use room above the limit (cancellations): the caller bounds how much.
    ///
    /// On an error nothing of the frame stays: `TooLarge` if it could never fit, `Full` if it does not fit now.
    pub(crate) fn push(&mut self, reserve: bool, encode: impl FnOnce(&mut Vec<u8>)) -> Result<FrameNumber, SendError> {
        let open = self.segments.len() > usize::from(self.lent)
            && self.segments.back().is_some_and(|last| last.bytes.len() < SEGMENT);
        if !open {
            self.segments.push_back(Segment {
                bytes: core::mem::take(&mut self.spare_bytes),
                spans: core::mem::take(&mut self.spare_spans),
                dead: 0,
            });
        }
        let (number, limit, room) = (FrameNumber(self.next), self.limit, self.room());
        let Some(last) = self.segments.back_mut() else { return Err(SendError::Full) };
        let start = last.bytes.len();
        encode(&mut last.bytes);
        encode::strip_line_breaks(&mut last.bytes, start);
        last.bytes.push(b'\n');
        let end = last.bytes.len();
        let size = end - start;
        if !reserve && size > room {
            last.bytes.truncate(start);
            if last.bytes.capacity() > KEPT_CAPACITY {
                last.bytes.shrink_to(SEGMENT);
            }
            if start == 0 {
                self.drop_last();
            }
            return Err(if size > limit { SendError::TooLarge { size, limit } } else { SendError::Full });
        }
        last.spans.push(Span { number, start, end, withdrawn: false });
        self.len += size;
        self.next += 1;
        Ok(number)
    }

    /// Takes a frame back of which no byte was lent. `false` if it is too late.
    pub(crate) fn withdraw(&mut self, frame: FrameNumber) -> bool {
        if frame.0 < self.lent_up_to {
            return false;
        }
        let Some((at, span)) = self.locate(frame) else { return false };
        let Some(segment) = self.segments.get_mut(at) else { return false };
        let len = segment.withdraw(span);
        self.len -= len;
        if segment.live() == 0 {
            // Not the first while that is lent: its frames are all below `lent_up_to`.
            if let Some(empty) = self.segments.remove(at) {
                self.keep(empty);
            }
        }
        len > 0
    }

    /// How far a frame has come.
    pub(crate) fn progress(&self, frame: FrameNumber) -> Progress {
        if frame.0 >= self.lent_up_to {
            return if self.locate(frame).is_some() { Progress::Queued } else { Progress::Accepted };
        }
        let Some(first) = self.segments.front().filter(|_| self.lent) else { return Progress::Accepted };
        match first.find(frame).and_then(|at| first.spans.get(at)) {
            None => Progress::Accepted,
            Some(span) if self.accepted >= span.end => Progress::Accepted,
            Some(span) if self.accepted > span.start => Progress::Partly,
            Some(_) => Progress::Lent,
        }
    }

    /// Bytes queued and not accepted yet.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that may still be pushed or held.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.len).saturating_sub(self.held)
    }

    /// Counts bytes that are kept elsewhere, to be pushed later or again, against the limit. Same errors as [`push`](Self::push).
    pub(crate) fn hold(&mut self, size: usize) -> Result<(), SendError> {
        if size > self.limit {
            return Err(SendError::TooLarge { size, limit: self.limit });
        }
        if size > self.room() {
            return Err(SendError::Full);
        }
        self.held += size;
        Ok(())
    }

    /// As [`hold`](Self::hold), for bytes that were let in already: may pass the limit.
    pub(crate) fn hold_anyway(&mut self, size: usize) {
        self.held = self.held.saturating_add(size);
    }

    /// Bytes that were held are kept no longer.
    pub(crate) fn unhold(&mut self, size: usize) {
        self.held = self.held.saturating_sub(size);
    }

    /// Takes all frames out of which no byte was lent, in order.
    pub(crate) fn drain_unlent(&mut self) -> Vec<(FrameNumber, Vec<u8>)> {
        let keep = usize::from(self.lent);
        let mut frames = Vec::new();
        for segment in self.segments.drain(keep..) {
            for span in segment.spans.iter().filter(|span| !span.withdrawn) {
                frames.push((span.number, segment.bytes.get(span.start..span.end).unwrap_or_default().to_vec()));
            }
        }
        self.len = self.lent_len - self.accepted;
        frames
    }

    /// Lends the first segment's unaccepted bytes. Level-triggered: the same slice until `accepted`. Empty while the segment is
    /// lent by [`take`](Self::take).
    pub(crate) fn output(&mut self) -> &[u8] {
        if self.taken {
            return &[];
        }
        self.lend();
        let first = self.segments.front().map(|first| first.bytes.as_slice());
        first.and_then(|bytes| bytes.get(self.accepted..)).unwrap_or_default()
    }

    /// Lends the first segment by ownership, for a writer that must not hold a lock while it writes. `None` while one is lent so
    /// and not accepted to its end.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        if self.taken {
            return None;
        }
        self.lend();
        let first = self.segments.front_mut()?;
        let mut bytes = core::mem::take(&mut first.bytes);
        bytes.drain(..self.accepted);
        self.taken = true;
        Some(bytes)
    }

    /// The writer has accepted `n` more bytes of what was lent. More than was lent counts as all of it.
    pub(crate) fn accepted(&mut self, n: usize) {
        if !self.lent {
            return;
        }
        let n = n.min(self.lent_len - self.accepted);
        self.accepted += n;
        self.len -= n;
        if self.accepted == self.lent_len {
            (self.lent, self.taken, self.accepted, self.lent_len) = (false, false, 0, 0);
            if let Some(spent) = self.segments.pop_front() {
                self.keep(spent);
            }
        }
    }

    /// A spent vector comes back for reuse (its capacity, if it is not too large).
    pub(crate) fn recycle(&mut self, mut segment: Vec<u8>) {
        if segment.capacity() <= KEPT_CAPACITY && segment.capacity() > self.spare_bytes.capacity() {
            segment.clear();
            self.spare_bytes = segment;
        }
    }

    /// Frames up to this number (exclusive) have had a byte lent.
    pub(crate) fn lent_up_to(&self) -> FrameNumber {
        FrameNumber(self.lent_up_to)
    }

    /// The stream is gone: everything queued is forgotten. Numbers go on, and what is held stays held.
    pub(crate) fn clear(&mut self) {
        self.segments.clear();
        (self.lent, self.taken, self.accepted, self.lent_len, self.len) = (false, false, 0, 0, 0);
        self.lent_up_to = self.next;
    }

    /// Freezes the first segment: from here on its frames count as lent.
    pub(crate) fn lend(&mut self) {
        if self.lent {
            return;
        }
        let Some(first) = self.segments.front_mut() else { return };
        first.compact();
        let Some(last) = first.spans.last() else { return };
        self.lent_up_to = last.number.0 + 1;
        self.lent_len = first.bytes.len();
        self.lent = true;
    }

    /// The segment and span of a frame that is not accepted.
    fn locate(&self, frame: FrameNumber) -> Option<(usize, usize)> {
        let after = self.segments.partition_point(|s| s.spans.first().is_some_and(|span| span.number <= frame));
        let at = after.checked_sub(1)?;
        let segment = self.segments.get(at)?;
        let span = segment.find(frame)?;
        segment.spans.get(span).filter(|span| !span.withdrawn)?;
        Some((at, span))
    }

    fn drop_last(&mut self) {
        if let Some(empty) = self.segments.pop_back() {
            self.keep(empty);
        }
    }

    fn keep(&mut self, mut spent: Segment) {
        self.recycle(spent.bytes);
        if spent.spans.capacity() > self.spare_spans.capacity() {
            spent.spans.clear();
            self.spare_spans = spent.spans;
        }
    }
}

#[cfg(test)]
mod tests;
