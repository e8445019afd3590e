//! Owns the way between the system's time and the core's: the epoch, and one timer that is moved only when it has to be.
//! It must not know what is due.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcp_wire::Instant;

/// Reads the clock as the core sees it. Usable from any thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    epoch: std::time::Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { epoch: std::time::Instant::now() }
    }

    pub(crate) fn now(self) -> Instant {
        Instant::from_epoch(self.epoch.elapsed())
    }

    /// `None`: later than the platform can say, so never.
    fn at(self, instant: Instant) -> Option<std::time::Instant> {
        self.epoch.checked_add(instant.since_epoch())
    }
}

/// One timer. A deadline that moves away leaves it as it is: it fires early once, and an early turn does no harm. So the deadlines of
/// requests that are answered in time cost nothing.
#[derive(Debug)]
pub(crate) struct Timer {
    clock: Clock,
    sleep: smol::Timer,
    /// What it is set to, unless it has fired.
    set_to: Option<Instant>,
}

impl Timer {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, sleep: smol::Timer::never(), set_to: None }
    }

    /// Ready when it has fired, `deadline` being what is wanted now.
    pub(crate) fn poll(&mut self, deadline: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(deadline) = deadline {
            if self.set_to.is_none_or(|set_to| deadline < set_to) {
                let Some(at) = self.clock.at(deadline) else { return Poll::Pending };
                self.sleep.set_at(at);
                self.set_to = Some(deadline);
            }
        }
        if self.set_to.is_none() {
            return Poll::Pending;
        }
        Pin::new(&mut self.sleep).poll(cx).map(|_| self.set_to = None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smol::future::{or, poll_fn};
    use std::time::Duration;

    // TMO-05, case 077: a deadline beyond what the platform can say never comes, and does not panic
    #[test]
    fn the_farthest_deadline_never_comes() {
        let clock = Clock::new();
        let mut timer = Timer::new(clock);
        let never = Instant::from_epoch(Duration::MAX);
        let far = Instant::from_epoch(Duration::from_secs(u64::from(u32::MAX)));
        smol::block_on(poll_fn(|cx| {
            assert!(timer.poll(Some(never), cx).is_pending());
            assert!(timer.poll(Some(far), cx).is_pending());
            Poll::Ready(())
        }));
    }

    #[test]
    fn a_nearer_deadline_moves_the_timer_and_a_farther_one_does_not() {
        let clock = Clock::new();
        let mut timer = Timer::new(clock);
        let in_ms = |ms| Instant::from_epoch(clock.now().since_epoch() + Duration::from_millis(ms));
        let (near, far) = (in_ms(20), in_ms(60_000));
        smol::block_on(poll_fn(|cx| {
            assert!(timer.poll(Some(far), cx).is_pending());
            assert!(timer.poll(Some(near), cx).is_pending());
            assert!(timer.poll(Some(far), cx).is_pending());
            Poll::Ready(())
        }));
        // The hard deadline of the test itself.
        let hung = async {
            smol::Timer::after(Duration::from_secs(10)).await;
            panic!("it never fired");
        };
        smol::block_on(or(poll_fn(|cx| timer.poll(Some(far), cx)), hung));
        assert!(clock.now() >= near);
    }
}
