//! Owns two ways to bound how often something happens: a `Window` that is exact over its length, and a `Bucket` that lets a
//! burst through and then a steady rate; and the bucket of error responses that name no id (UNR-03). It must not know what is written.

use core::time::Duration;

use crate::Instant;

/// At most so many within each window; a window begins with the first event after the last one ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Window {
    start: Option<Instant>,
    count: u32,
}

impl Window {
    /// Counts one event, if there is room for it now.
    pub(super) fn allow(&mut self, now: Instant, length: Duration, most: u32) -> bool {
        if self.end(length).is_none_or(|end| end <= now) {
            *self = Self { start: Some(now), count: 0 };
        }
        let allowed = self.count < most;
        self.count += u32::from(allowed);
        allowed
    }

    /// When the window that has begun ends; `None` if none has, or never.
    pub(super) fn end(&self, length: Duration) -> Option<Instant> {
        self.start.and_then(|start| start.checked_add(length))
    }
}

/// A burst, then one each interval. What was not used comes back at the same pace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    interval: Duration,
    /// How far ahead of the clock the bucket may be.
    slack: Duration,
    /// When the bucket is full again.
    full_at: Instant,
}

impl Bucket {
    pub(super) const fn new(burst: u32, interval: Duration) -> Self {
        Self { interval, slack: interval.saturating_mul(burst.saturating_sub(1)), full_at: Instant::EPOCH }
    }

    /// Takes one out, if there is one.
    pub(super) fn allow(&mut self, now: Instant) -> bool {
        if self.full_at.saturating_since(now) > self.slack {
            return false;
        }
        let Some(full_at) = self.full_at.max(now).checked_add(self.interval) else { return false };
        self.full_at = full_at;
        true
    }
}

/// Error responses without an id: a burst of so many, then one each interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct NullIds {
    bucket: Bucket,
    suppressed: u64,
}

impl NullIds {
    const BURST: u32 = 32;
    const INTERVAL: Duration = Duration::from_millis(100);

    pub(super) const fn new() -> Self {
        Self { bucket: Bucket::new(Self::BURST, Self::INTERVAL), suppressed: 0 }
    }

    /// Whether one more may go out now. One that may not is counted.
    pub(super) fn allow(&mut self, now: Instant) -> bool {
        let allowed = self.bucket.allow(now);
        self.suppressed = self.suppressed.saturating_add(u64::from(!allowed));
        allowed
    }

    /// How many were not sent.
    pub(super) const fn suppressed(&self) -> u64 {
        self.suppressed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_epoch(Duration::from_millis(ms))
    }

    #[test]
    fn a_window_lets_exactly_so_many_through_and_then_begins_anew() {
        const LENGTH: Duration = Duration::from_millis(100);
        let mut window = Window::default();
        let let_through = |window: &mut Window, now| (0..10).filter(|_| window.allow(now, LENGTH, 4)).count();
        assert_eq!(let_through(&mut window, at(1000)), 4);
        assert_eq!(let_through(&mut window, at(1099)), 0);
        assert_eq!(window.end(LENGTH), Some(at(1100)));
        assert_eq!(let_through(&mut window, at(1100)), 4);
        assert_eq!(let_through(&mut window, at(5000)), 4);
        assert_eq!(window.end(LENGTH), Some(at(5100)));
    }

    // UNR-03: a burst of 32, then ten a second.
    #[test]
    fn a_bucket_lets_a_burst_through_and_then_a_steady_rate() {
        let mut bucket = Bucket::new(32, Duration::from_millis(100));
        let let_through = |bucket: &mut Bucket, now| (0..100).filter(|_| bucket.allow(now)).count();
        assert_eq!(let_through(&mut bucket, at(0)), 32);
        assert_eq!(let_through(&mut bucket, at(99)), 0);
        assert_eq!(let_through(&mut bucket, at(100)), 1);
        assert_eq!(let_through(&mut bucket, at(1100)), 10);
        assert_eq!(let_through(&mut bucket, at(60_000)), 32);
        assert!(!Bucket::new(1, Duration::MAX).allow(at(1)));
    }
}
