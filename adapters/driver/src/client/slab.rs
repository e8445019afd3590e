//! Owns a vector with holes that are filled again: small dense keys. It must not know what it keeps.

/// Values by a small dense key, which is reused after the value is gone.
#[derive(Debug)]
pub(super) struct Slab<T> {
    items: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, value: T) -> usize {
        if let Some(key) = self.free.pop() {
            if let Some(place) = self.items.get_mut(key) {
                *place = Some(value);
                return key;
            }
        }
        self.items.push(Some(value));
        self.items.len() - 1
    }

    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut T> {
        self.items.get_mut(key)?.as_mut()
    }

    pub(super) fn get(&self, key: usize) -> Option<&T> {
        self.items.get(key)?.as_ref()
    }

    pub(super) fn remove(&mut self, key: usize) -> Option<T> {
        let value = self.items.get_mut(key)?.take()?;
        self.free.push(key);
        Some(value)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.items.iter_mut().enumerate().filter_map(|(key, item)| Some((key, item.as_mut()?)))
    }

    /// Values kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // LIM-05: finished entries leave nothing behind
    #[test]
    fn keys_are_reused() {
        let mut slab = Slab::new();
        for round in 0..1000 {
            let (a, b) = (slab.insert(round), slab.insert(round + 1));
            assert_eq!((a.max(b), slab.len()), (1, 2));
            assert_eq!(slab.remove(a), Some(round));
            assert_eq!((slab.remove(a), slab.get(a)), (None, None));
            assert_eq!(slab.remove(b), Some(round + 1));
        }
        assert_eq!(slab.len(), 0);
    }
}
