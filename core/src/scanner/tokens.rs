//! Owns the readers of single tokens: strings, numbers and words, each from a given place on. They must not know where in a line they stand.

/// What a token reader found.
#[derive(Clone, Copy)]
pub(super) enum Token {
    /// The token ends before this offset.
    End(usize),
    /// It goes on behind what is there; reading can resume at this offset.
    Open(usize),
    Bad,
}

const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGH: u64 = u64::from_le_bytes([0x80; 8]);

/// Whether a quote, a backslash or a control character stands in eight bytes. The lowest bit set is the high bit of the
/// first of them; bits above it may be wrong.
const fn specials(bytes: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(bytes);
    // A quote is 0x22: with that bit turned over, it and the control characters are all that is below 0x21.
    let low = word ^ (ONES * 2);
    let backslash = word ^ (ONES * b'\\' as u64);
    ((low.wrapping_sub(ONES * 0x21) & !low) | (backslash.wrapping_sub(ONES) & !backslash)) & HIGH
}

/// The same for 64 bytes: a bit for each, the lowest for the first, none wrong. The compiler makes vector code of it, of the kind
/// that every target has.
#[inline(always)]
fn marks(block: &[u8; 64]) -> u64 {
    let mut flags = [0_u8; 64];
    for (flag, byte) in flags.iter_mut().zip(block) {
        *flag = u8::from(byte ^ 2 < 0x21) | u8::from(*byte == b'\\');
    }
    // Eight flags become eight bits in the highest byte of the product.
    flags.chunks_exact(8).rev().fold(0, |marks, flags| {
        let flags = u64::from_le_bytes(flags.try_into().unwrap_or_default());
        (marks << 8) | (flags.wrapping_mul(0x0102_0408_1020_4080) >> 56)
    })
}

/// Whether no quote, backslash or control character stands in 64 bytes.
#[inline(always)]
fn is_plain(block: &[u8]) -> bool {
    block.iter().fold(0, |any, byte| any | u8::from(byte ^ 2 < 0x21) | u8::from(*byte == b'\\')) == 0
}

/// Whether the 64 bytes in the middle hold nothing but text and the escapes of running text: no quote or control character
/// without a backslash before it, no backslash before anything but `n`, `t`, `r` or a quote. No branch depends on where
/// they stand: in text, that cannot be foreseen.
#[inline(always)]
fn is_text(window: &[u8; 66]) -> bool {
    let (before, at, after) = (window.iter(), window.iter().skip(1), window.iter().skip(2));
    let odd = before.zip(at).zip(after).fold(0, |odd, ((before, byte), after)| {
        let usual =
            u8::from(*after == b'n') | u8::from(*after == b't') | u8::from(*after == b'r') | u8::from(*after == b'"');
        let stops = u8::from(byte ^ 2 < 0x21) & u8::from(*before != b'\\');
        odd | stops | (u8::from(*byte == b'\\') & (usual ^ 1))
    });
    odd == 0
}

/// Blocks that are looked at for escapes after one that has some; else a cheaper look comes first.
const DENSE: u32 = 8;

/// Skips over text in blocks of 64 bytes, from a place that is not inside an escape to another such place.
#[inline(always)]
fn skip_text(line: &[u8], start: usize, dense: &mut u32) -> usize {
    let window = |at: usize| line.get(at.checked_sub(1)?..)?.first_chunk::<66>();
    // A backslash right before `start` is the end of an escape, and would be taken for the beginning of one.
    if line.get(start.wrapping_sub(1)) == Some(&b'\\') {
        return start;
    }
    let mut at = start;
    while let Some(window) = window(at) {
        if *dense == 0 && !is_plain(window.get(1..65).unwrap_or_default()) {
            *dense = DENSE;
        }
        if *dense > 0 {
            if !is_text(window) {
                break;
            }
            *dense -= 1;
        }
        at += 64;
    }
    // Its escape goes on at `at`.
    if at > start && line.get(at - 1) == Some(&b'\\') { at - 1 } else { at }
}

/// Where the string ends whose text begins at `start`, behind the quote; `None` if it does not end, or is none.
pub(crate) fn string_end(text: &[u8], start: usize) -> Option<usize> {
    if let Token::End(end) = string(text, start) { Some(end) } else { None }
}

/// Reads on in a string, from a place that is not inside an escape. The usual short string is read here.
#[inline(always)]
pub(super) fn string(line: &[u8], mut at: usize) -> Token {
    if let Some([a, b, c, d, e, f, g, h, rest @ ..]) = line.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        let mut found = specials([*a, *b, *c, *d, *e, *f, *g, *h]);
        let mut place = at;
        if found == 0 {
            found = specials(*rest);
            place += 8;
        }
        if found == 0 {
            at += 16;
        } else {
            at = place + (found.trailing_zeros() / 8) as usize;
            if line.get(at) == Some(&b'"') {
                return Token::End(at + 1);
            }
        }
    }
    string_far(line, at)
}

/// The same for longer strings and those with escapes. Not inlined: inlined everywhere it is slower and takes long to build. Built twice: the
/// vector code of the blocks is twice as wide where the processor has AVX2.
#[multiversion::multiversion(targets("x86_64+avx2+bmi1+lzcnt+popcnt"))]
#[inline(never)]
fn string_far(line: &[u8], mut at: usize) -> Token {
    /// From here on it pays to look for running text.
    const FAR: usize = 256;
    let (far, mut dense) = (at.saturating_add(FAR), 0);
    'blocks: while let Some(block) = line.get(at..).and_then(<[u8]>::first_chunk::<64>) {
        let mut marks = marks(block);
        while marks != 0 {
            let place = marks.trailing_zeros() as usize;
            let next = match block.get(place) {
                Some(b'"') => return Token::End(at + place + 1),
                Some(b'\\') => match escape(line, at + place) {
                    Token::End(end) => end - at,
                    other => return other,
                },
                _ => return Token::Bad,
            };
            dense = DENSE;
            if next >= 64 {
                at += next;
                continue 'blocks;
            }
            marks &= u64::MAX << next;
        }
        at += 64;
        if at >= far {
            at = skip_text(line, at, &mut dense);
        }
    }
    loop {
        let rest = line.get(at..).unwrap_or_default();
        if let Some(word) = rest.first_chunk::<8>() {
            let found = specials(*word);
            if found == 0 {
                at += 8;
                continue;
            }
            at += (found.trailing_zeros() / 8) as usize;
        } else {
            at += rest.iter().take_while(|byte| !matches!(byte, 0..=0x1f | b'"' | b'\\')).count();
        }
        match line.get(at) {
            None => return Token::Open(at),
            Some(b'"') => return Token::End(at + 1),
            Some(b'\\') => match escape(line, at) {
                Token::End(end) => at = end,
                other => return other,
            },
            Some(_) => return Token::Bad,
        }
    }
}

/// Reads the escape that begins at `at`. A surrogate that stands alone passes: it is JSON, and what it means is the business
/// of whoever reads the value.
#[inline(always)]
fn escape(line: &[u8], at: usize) -> Token {
    match line.get(at + 1) {
        None => Token::Open(at),
        Some(b'u') => {
            let digits = line.get(at + 2..).unwrap_or_default();
            let digits = digits.get(..4).unwrap_or(digits);
            if !digits.iter().all(u8::is_ascii_hexdigit) {
                return Token::Bad;
            }
            if digits.len() < 4 { Token::Open(at) } else { Token::End(at + 6) }
        }
        Some(letter) if ESCAPES.get(usize::from(*letter)) == Some(&true) => Token::End(at + 2),
        Some(_) => Token::Bad,
    }
}

/// The letters that may follow a backslash, but for `u`. A table: which it is cannot be foreseen.
const ESCAPES: [bool; 256] = {
    let mut table = [false; 256];
    let mut letters: &[u8] = b"\"\\/bfnrt";
    while let [letter, rest @ ..] = letters {
        table[*letter as usize] = true;
        letters = rest;
    }
    table
};

/// Reads a number, `true`, `false` or `null` that begins at `start`.
#[inline]
pub(super) fn scalar(line: &[u8], start: usize, first: u8) -> Token {
    let word: &[u8] = match first {
        b'0'..=b'9' | b'-' => return number(line, start),
        b't' => b"true",
        b'f' => b"false",
        b'n' => b"null",
        _ => return Token::Bad,
    };
    let rest = line.get(start..).unwrap_or_default();
    match rest.get(..word.len()) {
        Some(there) if there == word => Token::End(start + word.len()),
        None if word.starts_with(rest) => Token::Open(start),
        _ => Token::Bad,
    }
}

fn number(line: &[u8], start: usize) -> Token {
    let mut at = start + usize::from(line.get(start) == Some(&b'-'));
    let whole = at;
    at = digits(line, at);
    if at == whole || (at > whole + 1 && line.get(whole) == Some(&b'0')) {
        return if at == line.len() && at == whole { Token::Open(start) } else { Token::Bad };
    }
    if line.get(at) == Some(&b'.') {
        let fraction = at + 1;
        at = digits(line, fraction);
        if at == fraction {
            return if at == line.len() { Token::Open(start) } else { Token::Bad };
        }
    }
    if matches!(line.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(line.get(at), Some(b'+' | b'-')));
        let exponent = at;
        at = digits(line, exponent);
        if at == exponent {
            return if at == line.len() { Token::Open(start) } else { Token::Bad };
        }
    }
    if at == line.len() { Token::Open(start) } else { Token::End(at) }
}

fn digits(line: &[u8], mut at: usize) -> usize {
    while line.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}
