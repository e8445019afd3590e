//! Owns a map whose keys only ever rise, such as minted ids and frame numbers: constant time for each use, whatever the order in which
//! entries go. It must not know what the keys name.

use alloc::collections::VecDeque;

/// Below so many places, holes are left alone.
const FEW: usize = 32;

/// A map with keys that are inserted in rising order. What is removed in the middle leaves a hole; holes at both ends go at once, and the
/// rest when they are the most, so the places are at most twice the entries and a few.
#[derive(Debug)]
pub(crate) struct Rising<V> {
    /// Never a hole at either end.
    places: VecDeque<(u64, Option<V>)>,
    live: usize,
}

impl<V> Default for Rising<V> {
    fn default() -> Self {
        Self { places: VecDeque::new(), live: 0 }
    }
}

impl<V> Rising<V> {
    /// Adds an entry. Its key is above all that are in the map.
    pub(crate) fn push(&mut self, key: u64, value: V) {
        debug_assert!(self.places.back().is_none_or(|&(last, _)| last < key), "keys rise");
        self.places.push_back((key, Some(value)));
        self.live += 1;
    }

    pub(crate) fn get(&self, key: u64) -> Option<&V> {
        self.places.get(self.place(key)?)?.1.as_ref()
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<V> {
        let place = self.place(key)?;
        let value = self.places.get_mut(place)?.1.take()?;
        self.live -= 1;
        while self.places.front().is_some_and(|(_, value)| value.is_none()) {
            self.places.pop_front();
        }
        while self.places.back().is_some_and(|(_, value)| value.is_none()) {
            self.places.pop_back();
        }
        if self.places.len() > 2 * self.live + FEW {
            self.places.retain(|(_, value)| value.is_some());
        }
        Some(value)
    }

    /// The entry with the lowest key.
    pub(crate) fn first(&self) -> Option<(u64, &V)> {
        self.places.front().and_then(|(key, value)| Some((*key, value.as_ref()?)))
    }

    /// The entry with the highest key.
    pub(crate) fn last(&self) -> Option<(u64, &V)> {
        self.places.back().and_then(|(key, value)| Some((*key, value.as_ref()?)))
    }

    /// All entries, in the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        self.places.iter().filter_map(|(key, value)| Some((*key, value.as_ref()?)))
    }

    /// Where a key stands. Keys are whole numbers that rise, so none stands further back than it is above the first; without gaps it stands just there.
    fn place(&self, key: u64) -> Option<usize> {
        let above = key.checked_sub(self.places.front()?.0)?;
        let end = usize::try_from(above).unwrap_or(usize::MAX).min(self.places.len() - 1);
        if self.places.get(end)?.0 == key {
            return Some(end);
        }
        self.places.binary_search_by_key(&key, |&(key, _)| key).ok()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use super::*;

    // LIM-05: it answers as an ordered map does, and holds no more than twice what is in it and a few.
    #[test]
    fn it_agrees_with_an_ordered_map() {
        for seed in 1..=50_u64 {
            let mut random = seed;
            let mut below = |n: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % n
            };
            let (mut rising, mut plain, mut key) = (Rising::default(), BTreeMap::new(), below(3));
            for _ in 0..2000 {
                if below(2) == 0 {
                    key += 1 + below(2) * below(4);
                    rising.push(key, key * 10);
                    plain.insert(key, key * 10);
                } else {
                    // Often the oldest, often the newest, else any; some that are not there.
                    let victim = match below(4) {
                        0 => plain.keys().next().copied().unwrap_or(0),
                        1 => plain.keys().next_back().copied().unwrap_or(7),
                        _ => below(key + 3),
                    };
                    assert_eq!(rising.remove(victim), plain.remove(&victim), "seed {seed}");
                }
                let probe = below(key + 3);
                assert_eq!(rising.get(probe), plain.get(&probe), "seed {seed}");
                assert_eq!(rising.first(), plain.first_key_value().map(|(&k, v)| (k, v)), "seed {seed}");
                assert_eq!(rising.last(), plain.last_key_value().map(|(&k, v)| (k, v)), "seed {seed}");
                assert_eq!(rising.live, plain.len(), "seed {seed}");
                assert!(rising.places.len() <= 2 * plain.len() + FEW, "seed {seed}");
            }
            assert!(rising.iter().eq(plain.iter().map(|(&k, v)| (k, v))), "seed {seed}");
        }
    }

    // LIM-05: one entry that stays does not keep the places of those that came after it.
    #[test]
    fn an_old_entry_keeps_nothing_of_the_newer_ones() {
        let mut rising = Rising::default();
        rising.push(0, ());
        for key in 1..100_000 {
            rising.push(key, ());
            assert_eq!(rising.remove(key), Some(()));
        }
        assert_eq!(rising.iter().map(|(key, ())| key).collect::<Vec<_>>(), [0]);
        assert_eq!(rising.places.len(), 1);
    }
}
