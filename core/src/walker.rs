//! Owns the JSON grammar: walks over one value, token by token, and is the sole authority on what is valid.
//! It must not know JSON-RPC; what a member means is the scanner's business.

/// Why a walk stopped short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The bytes end within the value.
    More,
    /// A byte that the grammar does not allow here.
    Bad,
    /// Deeper than the limit.
    Deep,
}

/// A string token: its content lies between the quotes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text {
    /// Where the opening quote stands.
    pub(crate) start: usize,
    /// One past the closing quote.
    pub(crate) end: usize,
    /// Whether it holds a backslash.
    pub(crate) escaped: bool,
}

/// Open containers of a walk, innermost last.
pub(crate) trait Stack {
    fn push(&mut self, object: bool) -> bool;
    fn pop(&mut self);
    fn depth(&self) -> usize;
    /// Whether the innermost is an object.
    fn in_object(&self) -> bool;
}

/// The stack of the usual case: one bit a level.
#[derive(Default)]
pub(crate) struct Bits {
    bits: u128,
    depth: usize,
}

/// Levels that [`Bits`] holds; the object around the value at hand is one more.
const BITS_LIMIT: usize = crate::config::DEPTH_LIMIT - 1;

impl Stack for Bits {
    #[inline]
    fn push(&mut self, object: bool) -> bool {
        if self.depth == BITS_LIMIT {
            return false;
        }
        self.bits = (self.bits << 1) | u128::from(object);
        self.depth += 1;
        true
    }

    #[inline]
    fn pop(&mut self) {
        self.bits >>= 1;
        self.depth = self.depth.saturating_sub(1);
    }

    #[inline]
    fn depth(&self) -> usize {
        self.depth
    }

    #[inline]
    fn in_object(&self) -> bool {
        self.bits & 1 == 1
    }
}

/// The stack for lines that are refused anyway: any depth, one byte a level, bounded by the line limit.
#[derive(Default)]
pub(crate) struct Levels(alloc::vec::Vec<bool>);

impl Stack for Levels {
    fn push(&mut self, object: bool) -> bool {
        self.0.push(object);
        true
    }

    fn pop(&mut self) {
        self.0.pop();
    }

    fn depth(&self) -> usize {
        self.0.len()
    }

    fn in_object(&self) -> bool {
        self.0.last() == Some(&true)
    }
}

/// A position in bytes that may go on behind the value. In a line (`LINE`) a LF is no white space but the end.
pub(crate) struct Walker<'a, const LINE: bool = true> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES << 7;

impl<const LINE: bool> Walker<'_, LINE> {
    #[inline]
    pub(crate) fn peek(&self) -> Result<u8, Stop> {
        self.bytes.get(self.at).copied().ok_or(Stop::More)
    }

    #[inline]
    fn is_space(byte: u8) -> bool {
        matches!(byte, b' ' | b'\t' | b'\r') || (!LINE && byte == b'\n')
    }

    #[inline]
    pub(crate) fn white_space(&mut self) {
        while self.bytes.get(self.at).is_some_and(|&byte| Self::is_space(byte)) {
            self.at += 1;
        }
    }

    /// Takes the byte that has to come after white space.
    #[inline]
    pub(crate) fn expect(&mut self, wanted: u8) -> Result<(), Stop> {
        if self.peek()? != wanted {
            self.white_space();
            if self.peek()? != wanted {
                return Err(Stop::Bad);
            }
        }
        self.at += 1;
        Ok(())
    }

    /// A string whose opening quote is the byte at hand.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Text, Stop> {
        let start = self.at;
        let mut escaped = false;
        self.at += 1;
        loop {
            self.plain_text();
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Ok(Text { start, end: self.at, escaped });
                }
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(Stop::Bad),
            }
        }
    }

    /// Goes to the next quote, backslash or control character.
    #[inline]
    fn plain_text(&mut self) {
        // Most keys and short texts end within the first eight bytes or two.
        while let Some(block) = self.bytes.get(self.at..self.at + 8) {
            let Ok(block) = <[u8; 8]>::try_from(block) else { break };
            let hits = special(u64::from_le_bytes(block));
            if hits != 0 {
                self.at += hits.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
            if self.bytes.len() - self.at >= 64 {
                self.long_text();
            }
        }
        while let Some(byte) = self.bytes.get(self.at) {
            if *byte < 0x20 || *byte == b'"' || *byte == b'\\' {
                return;
            }
            self.at += 1;
        }
    }

    /// Skips whole blocks of plain text: a loop that the compiler turns into vector instructions.
    #[inline]
    fn long_text(&mut self) {
        while let Some(block) = self.bytes.get(self.at..self.at + 32) {
            let plain = block.iter().fold(true, |plain, &b| plain & (b >= 0x20) & (b != b'"') & (b != b'\\'));
            if !plain {
                return;
            }
            self.at += 32;
        }
    }

    #[inline]
    fn escape(&mut self) -> Result<(), Stop> {
        match self.bytes.get(self.at + 1) {
            None => Err(Stop::More),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => {
                for offset in 2..6 {
                    match self.bytes.get(self.at + offset) {
                        None => return Err(Stop::More),
                        Some(digit) if digit.is_ascii_hexdigit() => {}
                        Some(_) => return Err(Stop::Bad),
                    }
                }
                self.at += 6;
                Ok(())
            }
            Some(_) => Err(Stop::Bad),
        }
    }

    fn digits(&mut self) -> Result<(), Stop> {
        if !self.peek()?.is_ascii_digit() {
            return Err(Stop::Bad);
        }
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        Ok(())
    }

    #[inline]
    fn number(&mut self) -> Result<(), Stop> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let b'+' | b'-' = self.peek()? {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn literal(&mut self, word: &'static [u8]) -> Result<(), Stop> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word) {
            self.at += word.len();
            Ok(())
        } else if word.starts_with(rest) {
            Err(Stop::More)
        } else {
            Err(Stop::Bad)
        }
    }

    /// A key and its colon; leaves the walker before the value.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<Text, Stop> {
        if self.peek()? != b'"' {
            self.white_space();
            if self.peek()? != b'"' {
                return Err(Stop::Bad);
            }
        }
        let key = self.string()?;
        self.expect(b':')?;
        Ok(key)
    }

    /// Walks over one value, with white space before it.
    pub(crate) fn value(&mut self, stack: &mut impl Stack) -> Result<(), Stop> {
        loop {
            self.white_space();
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                opening @ (b'{' | b'[') => {
                    let object = opening == b'{';
                    self.at += 1;
                    self.white_space();
                    if self.peek()? == if object { b'}' } else { b']' } {
                        // An empty container counts as a level too, though nothing is in it.
                        if !stack.push(object) {
                            return Err(Stop::Deep);
                        }
                        stack.pop();
                        self.at += 1;
                    } else {
                        if !stack.push(object) {
                            return Err(Stop::Deep);
                        }
                        if object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                _ => return Err(Stop::Bad),
            }
            // A value has ended: so may the containers around it.
            loop {
                if stack.depth() == 0 {
                    return Ok(());
                }
                let mut next = self.peek()?;
                if Self::is_space(next) {
                    self.white_space();
                    next = self.peek()?;
                }
                self.at += 1;
                match (next, stack.in_object()) {
                    (b',', true) => {
                        self.key()?;
                        break;
                    }
                    (b',', false) => break,
                    (b'}', true) | (b']', false) => stack.pop(),
                    _ => {
                        self.at -= 1;
                        return Err(Stop::Bad);
                    }
                }
            }
        }
    }
}

/// Sets the high bit of each byte that is a quote, a backslash or a control character. Bits above the lowest one set may be wrong:
/// a borrow runs upwards only.
#[inline]
fn special(word: u64) -> u64 {
    let zero = |x: u64| x.wrapping_sub(ONES) & !x;
    let quote = zero(word ^ (ONES * b'"' as u64));
    let backslash = zero(word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGHS
}
