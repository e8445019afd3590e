//! Owns the policy for what a consumer has not read yet: how much may wait, and what makes room for the newest.
//! It must not know notifications, requests or who reads.

use alloc::collections::VecDeque;

/// A bounded queue whose producer never waits: what does not fit makes room by dropping something older, counted (PRG-07).
///
/// When full, the newest progress takes the place of the oldest progress, anything else that of the oldest of the rest: a flood of one kind costs that
/// kind, and the last progress is always there.
///
/// ```
/// use mcp_wire::Unread;
///
/// let mut unread = Unread::new(2, 1 << 20);
/// unread.push("log", false, 3);
/// unread.push("10 %", true, 4);
/// unread.push("20 %", true, 4); // takes the place of 10 %
/// assert_eq!((unread.pop(), unread.pop(), unread.pop()), (Some("log"), Some("20 %"), None));
/// assert_eq!(unread.missed(), 1);
/// ```
#[derive(Debug)]
pub struct Unread<T> {
    items: VecDeque<Item<T>>,
    limit: usize,
    byte_limit: usize,
    bytes: usize,
    missed: u64,
}

#[derive(Debug)]
struct Item<T> {
    value: T,
    progress: bool,
    bytes: usize,
}

impl<T> Unread<T> {
    /// Room for `limit` items of together `byte_limit` bytes; one item is kept whatever its size.
    #[must_use]
    pub const fn new(limit: usize, byte_limit: usize) -> Self {
        Self { items: VecDeque::new(), limit, byte_limit, bytes: 0, missed: 0 }
    }

    /// Appends an item of that many bytes. Says how many were dropped for it.
    pub fn push(&mut self, value: T, progress: bool, bytes: usize) -> u64 {
        let mut dropped = 0;
        while !self.items.is_empty()
            && (self.items.len() >= self.limit || self.bytes.saturating_add(bytes) > self.byte_limit)
        {
            self.make_room(progress);
            dropped += 1;
        }
        self.missed = self.missed.saturating_add(dropped);
        self.bytes = self.bytes.saturating_add(bytes);
        self.items.push_back(Item { value, progress, bytes });
        dropped
    }

    /// Drops the oldest item of the kind that is to make room, or the oldest of all where there is none of it.
    fn make_room(&mut self, progress: bool) {
        let at = self.items.iter().position(|item| item.progress == progress).unwrap_or(0);
        if let Some(item) = self.items.remove(at) {
            self.bytes = self.bytes.saturating_sub(item.bytes);
        }
    }

    /// Takes the oldest item.
    pub fn pop(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        self.bytes = self.bytes.saturating_sub(item.bytes);
        Some(item.value)
    }

    /// What waits, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|item| &item.value)
    }

    /// How many items wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes of what waits.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many items were dropped in all.
    #[must_use]
    pub const fn missed(&self) -> u64 {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn drain<T>(unread: &mut Unread<T>) -> Vec<T> {
        core::iter::from_fn(|| unread.pop()).collect()
    }

    // PRG-07: 1000 progress frames unread: the newest 64 are there, the last among them, the rest is counted
    #[test]
    fn the_newest_progress_takes_the_place_of_the_oldest() {
        let mut unread = Unread::new(64, usize::MAX);
        for n in 0..1000 {
            unread.push(n, true, 10);
        }
        assert_eq!((unread.len(), unread.bytes(), unread.missed()), (64, 640, 936));
        assert_eq!(drain(&mut unread), (936..1000).collect::<Vec<_>>());
        assert_eq!(unread.bytes(), 0);
    }

    // PRG-07: others make room among themselves, so a flood of logs does not cost the last progress, nor the reverse
    #[test]
    fn a_flood_of_one_kind_costs_that_kind() {
        let mut unread = Unread::new(3, usize::MAX);
        unread.push(("progress", 1), true, 1);
        for n in 0..100 {
            unread.push(("log", n), false, 1);
        }
        assert_eq!(drain(&mut unread), [("progress", 1), ("log", 98), ("log", 99)]);
        unread.push(("log", 1), false, 1);
        for n in 0..100 {
            unread.push(("progress", n), true, 1);
        }
        assert_eq!(drain(&mut unread), [("log", 1), ("progress", 98), ("progress", 99)]);
    }

    // LIM-04: bounded in bytes too; one item is always kept
    #[test]
    fn large_items_make_room_by_bytes() {
        let mut unread = Unread::new(64, 100);
        assert_eq!(unread.push("a", false, 60), 0);
        assert_eq!(unread.push("b", false, 40), 0);
        assert_eq!(unread.push("c", false, 41), 1);
        assert_eq!(unread.push("giant", false, 1000), 2);
        assert_eq!(drain(&mut unread), vec!["giant"]);
    }

    #[test]
    fn a_limit_of_zero_still_keeps_the_newest() {
        let mut unread = Unread::new(0, 0);
        unread.push(1, false, 9);
        unread.push(2, true, 9);
        assert_eq!(drain(&mut unread), [2]);
    }
}
