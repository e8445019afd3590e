//! Owns the reading of an input as a sequence of choices, so that a fuzzer that changes bytes changes decisions. It must not know what is
//! decided.

/// What is left of an input.
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    /// There is nothing left to decide by.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    /// A number below `n`: of one byte, or two where one is not enough. Always 0 at the end of the input.
    pub fn below(&mut self, n: usize) -> usize {
        let high = if n > 256 { usize::from(self.byte()) << 8 } else { 0 };
        (high | usize::from(self.byte())) % n
    }

    pub fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    /// The next bytes, as many as the byte before them says; fewer at the end.
    pub fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes
    }

    /// All that is left.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}
