//! Owns the account of what the core answers by itself, in either role: the budget that pauses reading (LIM-04). It must not know what the
//! answers say, nor who asked.

use alloc::collections::VecDeque;

use crate::send_buffer::{FrameNumber, Progress, SendBuffer};

/// The core's own answers that the writer has not accepted.
#[derive(Debug)]
pub(crate) struct Own {
    frames: VecDeque<(FrameNumber, usize)>,
    /// What the peer could read: queued, or complete and waiting for room.
    bytes: usize,
    /// What batches collect that wait for a handler. It cannot leave, however much the peer reads, so it pauses nothing.
    held: usize,
    limit: usize,
    paused: bool,
}

impl Own {
    pub(crate) fn new(limit: usize) -> Self {
        Self { frames: VecDeque::new(), bytes: 0, held: 0, limit, paused: false }
    }

    /// Counts an answer that has been queued.
    pub(crate) fn add(&mut self, frame: FrameNumber, size: usize) {
        self.bytes += size;
        self.paused |= self.bytes >= self.limit;
        self.queued(frame, size);
    }

    /// Counts an answer that a batch collects.
    pub(crate) fn hold(&mut self, size: usize) {
        self.held += size;
    }

    /// What a batch has collected may leave.
    pub(crate) fn complete(&mut self, size: usize) {
        self.held -= size;
        self.bytes += size;
        self.paused |= self.bytes >= self.limit;
    }

    /// What was complete is queued.
    pub(crate) fn queued(&mut self, frame: FrameNumber, size: usize) {
        self.frames.push_back((frame, size));
    }

    /// Whether batches hold so much that no further handler may keep one open.
    pub(crate) const fn is_crowded(&self) -> bool {
        self.held >= self.limit / 2
    }

    /// Gives back what the writer has accepted or what was withdrawn.
    pub(crate) fn settle(&mut self, out: &SendBuffer) {
        while let Some(&(frame, size)) = self.frames.front() {
            if out.progress(frame) != Progress::Accepted {
                break;
            }
            self.frames.pop_front();
            self.bytes -= size;
        }
        if self.bytes <= self.limit / 2 {
            self.paused = false;
        }
        if self.frames.is_empty() {
            // A flood leaves no memory behind.
            self.frames.shrink_to(64);
        }
    }

    /// Whether the budget is used up, and not half of it free again.
    pub(crate) const fn paused(&self) -> bool {
        self.paused
    }

    /// The stream is gone.
    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        (self.bytes, self.held) = (0, 0);
        self.paused = false;
    }
}
