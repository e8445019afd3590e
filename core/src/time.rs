//! Owns the core's notion of time: a point in time as a duration since an epoch that the driver picks.
//! It must not know a clock; the driver reads one and hands the value in.

use core::time::Duration;

/// A point in time: the duration since an epoch that the driver picks once (its start, say).
///
/// The core has no clock (TMO-05). All arithmetic saturates or is checked, so that
/// `Duration::MAX` as a timeout means "never" and no platform can make it panic.
///
/// ```
/// use core::time::Duration;
/// use mcp_wire::Instant;
///
/// let start = Instant::from_epoch(Duration::from_secs(5));
/// assert_eq!(start.checked_add(Duration::from_secs(1)), Some(Instant::from_epoch(Duration::from_secs(6))));
/// assert_eq!(start.checked_add(Duration::MAX), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(Duration);

impl Instant {
    /// The epoch itself.
    pub const EPOCH: Self = Self(Duration::ZERO);

    /// The point in time `since_epoch` after the driver's epoch.
    #[must_use]
    pub const fn from_epoch(since_epoch: Duration) -> Self {
        Self(since_epoch)
    }

    /// How long after the driver's epoch this is.
    #[must_use]
    pub const fn since_epoch(self) -> Duration {
        self.0
    }

    /// This point plus `duration`, or `None` where that cannot be represented: "never".
    #[must_use]
    pub const fn checked_add(self, duration: Duration) -> Option<Self> {
        match self.0.checked_add(duration) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// The time from `earlier` to this point, zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
