//! Owns the account of what the core answers by itself: the budget that pauses reading (LIM-04), and the rate of error responses
//! that name no id (UNR-03). It must not know what the answers say.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::rate::Bucket;
use crate::Instant;
use crate::send_buffer::{FrameNumber, Progress, SendBuffer};

/// Error responses without an id: a burst of so many, then one each interval.
const NULL_ID_BURST: u32 = 32;
const NULL_ID_INTERVAL: Duration = Duration::from_millis(100);

/// The core's own answers that the writer has not accepted.
#[derive(Debug)]
pub(super) struct Own {
    frames: VecDeque<(FrameNumber, usize)>,
    bytes: usize,
    /// What of them is collected for batches, and not queued.
    held: usize,
    limit: usize,
    paused: bool,
    null_ids: Bucket,
    suppressed: u64,
}

impl Own {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            frames: VecDeque::new(),
            bytes: 0,
            held: 0,
            limit,
            paused: false,
            null_ids: Bucket::new(NULL_ID_BURST, NULL_ID_INTERVAL),
            suppressed: 0,
        }
    }

    /// Counts an answer that has been queued.
    pub(super) fn add(&mut self, frame: FrameNumber, size: usize) {
        self.frames.push_back((frame, size));
        self.bytes += size;
        self.paused |= self.bytes >= self.limit;
    }

    /// Counts an answer that a batch collects.
    pub(super) fn hold(&mut self, size: usize) {
        self.held += size;
        self.bytes += size;
        self.paused |= self.bytes >= self.limit;
    }

    /// What was collected is queued, or forgotten.
    pub(super) fn unhold(&mut self, size: usize) {
        self.held -= size;
        self.bytes -= size;
    }

    /// Whether batches hold so much that no further handler may keep one open: what pauses reading must leave by the client's reading alone.
    pub(super) const fn is_crowded(&self) -> bool {
        self.held >= self.limit / 2
    }

    /// Gives back what the writer has accepted or what was withdrawn.
    pub(super) fn settle(&mut self, out: &SendBuffer) {
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
    pub(super) const fn paused(&self) -> bool {
        self.paused
    }

    /// Whether one more answer without an id may go out now. One that may not is counted.
    pub(super) fn allow_null_id(&mut self, now: Instant) -> bool {
        let allowed = self.null_ids.allow(now);
        self.suppressed = self.suppressed.saturating_add(u64::from(!allowed));
        allowed
    }

    /// Answers without an id that were not sent.
    pub(super) const fn suppressed(&self) -> u64 {
        self.suppressed
    }

    /// The stream is gone.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        (self.bytes, self.held) = (0, 0);
        self.paused = false;
    }
}
