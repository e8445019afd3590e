//! Owns the deadlines of requests, earliest first. Most are set in the order in which they come due, and those cost next to nothing.
//! It must not know what a deadline is for.

use alloc::collections::BTreeSet;

use crate::Instant;
use crate::rising::Rising;

/// Orders that are kept apart: the deadlines in the queue and those of requests that were sent have one each, if all have the same times.
const LANES: usize = 2;

/// A deadline that was set. It is taken back once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alarm {
    pub(super) at: Instant,
    place: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    InOrder { lane: usize, key: u64 },
    Unordered,
}

/// Deadlines that were set in their order. They are numbered without gaps.
#[derive(Debug, Default)]
struct Lane {
    alarms: Rising<(Instant, u32)>,
    next_key: u64,
}

/// Deadlines, each with the slot that it belongs to.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    lanes: [Lane; LANES],
    /// Those that come due before one that was set earlier in every lane.
    unordered: BTreeSet<(Instant, u32)>,
}

impl Alarms {
    /// Sets a deadline for a slot that has none.
    pub(super) fn set(&mut self, at: Instant, slot: u32) -> Alarm {
        for (lane, Lane { alarms, next_key }) in self.lanes.iter_mut().enumerate() {
            if alarms.last().is_none_or(|(_, &(last, _))| last <= at) {
                let key = *next_key;
                *next_key += 1;
                alarms.push(key, (at, slot));
                return Alarm { at, place: Place::InOrder { lane, key } };
            }
        }
        self.unordered.insert((at, slot));
        Alarm { at, place: Place::Unordered }
    }

    /// Takes the deadline of a slot back.
    pub(super) fn unset(&mut self, alarm: Alarm, slot: u32) {
        match alarm.place {
            Place::InOrder { lane, key } => {
                if let Some(lane) = self.lanes.get_mut(lane) {
                    lane.alarms.remove(key);
                }
            }
            Place::Unordered => {
                self.unordered.remove(&(alarm.at, slot));
            }
        }
    }

    /// The earliest deadline and its slot.
    pub(super) fn first(&self) -> Option<(Instant, u32)> {
        let lanes = self.lanes.iter().filter_map(|lane| lane.alarms.first().map(|(_, &alarm)| alarm));
        lanes.chain(self.unordered.first().copied()).min()
    }
}
