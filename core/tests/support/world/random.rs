//! Owns the seeded numbers of the simulated world: one seed, one history. It must not know what they decide.

/// A small generator (splitmix64), behind decisions that are given, if there are any.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
    given: Vec<u8>,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed ^ 0x6d63_705f_7769_7265, given: Vec::new() }
    }

    /// The first numbers are made of these bytes, one for each, so that a fuzzer which changes a byte changes a decision.
    #[allow(dead_code, reason = "the fuzz targets use it")]
    pub(crate) fn given(bytes: &[u8]) -> Self {
        Self { given: bytes.iter().rev().copied().collect(), ..Self::new(0) }
    }

    pub(crate) fn next(&mut self) -> u64 {
        if let Some(byte) = self.given.pop() {
            return byte.into();
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not zero.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn size(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).expect("it is below a usize")
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.size(from.len())]
    }

    /// How much of a read or write of up to `most` bytes is done: one byte, a few, or all.
    pub(crate) fn short(&mut self, most: usize) -> usize {
        match self.below(4) {
            0 => most.min(1),
            1 => most.min(1 + self.size(16)),
            2 => 1 + self.size(most.max(1)),
            _ => most,
        }
        .min(most)
    }
}
