//! Owns the walk over a line: it checks the JSON, finds the line's end itself and notes where the top-level members stand,
//! all in one pass that can pause at any byte. It must not know what the members mean; it is the sole judge of what is JSON.

use core::ops::Range;

use memchr::memchr;

use crate::config::DEPTH_LIMIT;

/// A top-level member that a message can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

/// How many [`Member`]s there are.
const MEMBERS: usize = 6;

impl Member {
    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// The member of that name, which is unescaped.
    fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"jsonrpc" => Self::Jsonrpc,
            b"id" => Self::Id,
            b"method" => Self::Method,
            b"params" => Self::Params,
            b"result" => Self::Result,
            b"error" => Self::Error,
            _ => return None,
        })
    }
}

/// Where the known top-level members stand in the line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Members {
    /// The root is an object.
    object: bool,
    seen: u8,
    repeated: u8,
    values: [(usize, usize); MEMBERS],
}

impl Members {
    pub(crate) const fn is_object(&self) -> bool {
        self.object
    }

    /// A known member stands there twice (UNR-08).
    pub(crate) const fn any_repeated(&self) -> bool {
        self.repeated != 0
    }

    /// Where the value stands; `None` if there is no such member, or more than one.
    pub(crate) fn get_once(&self, member: Member) -> Option<Range<usize>> {
        if self.repeated & member.bit() != 0 {
            return None;
        }
        self.get(member)
    }

    /// Where the value stands; `None` if there is no such member.
    pub(crate) fn get(&self, member: Member) -> Option<Range<usize>> {
        if self.seen & member.bit() == 0 {
            return None;
        }
        self.values.get(member as usize).map(|(start, end)| *start..*end)
    }
}

/// So many bytes must have come before the walk goes on, unless a LF is among them.
const FEW: usize = 64;

/// How nearly every message begins, compared at once.
const PREFIX: &[u8] = br#"{"jsonrpc":"2.0","#;

/// How far a walk has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// To the end of what is there, and all of it may be the beginning of JSON.
    More,
    /// To the LF at this offset, over one JSON value.
    Whole(usize),
    /// To the LF at this offset, over white space only.
    Blank(usize),
    /// To the LF at this offset, over something that is no JSON, or nested too deeply.
    Damaged(usize),
}

/// What a line is that the end of the input closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    Blank,
    Damaged,
}

/// What may stand next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    /// A value or `]`.
    FirstItem,
    Name,
    /// A name or `}`.
    FirstName,
    Colon,
    /// A comma, or the end of the array or object.
    Next,
    /// The end of the line.
    End,
    /// The rest of the string that begins at `token`: a name or a value.
    InName,
    InString,
    /// The LF of a line that is damaged.
    LineEnd,
}

/// What a token reader found.
#[derive(Clone, Copy)]
enum Token {
    /// The token ends before this offset.
    End(usize),
    /// It goes on behind what is there; reading can resume at this offset.
    Open(usize),
    Bad,
}

/// The walk over one line.
#[derive(Debug)]
pub(crate) struct Walker {
    at: usize,
    expect: Expect,
    /// One bit a level, 1 for an object; the innermost is the lowest.
    levels: u128,
    depth: usize,
    /// Where the string begins that is being read, or the top-level value.
    token: usize,
    member: Option<Member>,
    value_at: usize,
    members: Members,
    /// The walk goes on when the line is so long, or has its LF. A number or word that is cut off is read anew, so then as
    /// much again must have come: a number of any length costs linear time for any size of reads.
    wake: usize,
    /// How far the LF has been looked for meanwhile.
    sought: usize,
}

impl Walker {
    pub(crate) fn new() -> Self {
        Self {
            at: 0,
            expect: Expect::Value,
            levels: 0,
            depth: 0,
            token: 0,
            member: None,
            value_at: 0,
            members: Members::default(),
            wake: 0,
            sought: 0,
        }
    }

    /// Begins a new line. Only what a new line reads before it is written is set anew: this is done for every line.
    pub(crate) fn reset(&mut self) {
        (self.at, self.expect, self.levels, self.depth, self.wake) = (0, Expect::Value, 0, 0, 0);
        self.member = None;
        (self.members.object, self.members.seen, self.members.repeated) = (false, 0, 0);
    }

    /// The members found so far: all, once the walk has come to [`Walk::Whole`].
    pub(crate) const fn members(&self) -> &Members {
        &self.members
    }

    /// The input ends with `line`.
    pub(crate) fn finish(&mut self, line: &[u8]) -> End {
        self.wake = 0;
        match self.walk(line) {
            Walk::More if self.expect == Expect::End => End::Whole,
            Walk::More if self.expect == Expect::Value && self.depth == 0 && self.at == line.len() => End::Blank,
            _ => End::Damaged,
        }
    }

    /// Goes on over `line`: the line from its beginning to the end of what is there, the bytes seen before unchanged.
    pub(crate) fn walk(&mut self, line: &[u8]) -> Walk {
        if line.len() < self.wake {
            let fresh = line.get(self.sought..).unwrap_or_default();
            let found = if fresh.len() < 16 { fresh.contains(&b'\n') } else { memchr(b'\n', fresh).is_some() };
            if !found {
                self.sought = line.len();
                return Walk::More;
            }
        }
        if self.expect != Expect::LineEnd {
            if let Some(done) = self.tokens(line) {
                // A peer that writes single bytes does not get a walk for each.
                self.wake = self.wake.max(line.len().saturating_add(FEW));
                self.sought = line.len();
                return done;
            }
            // Damaged at `at`, which is not behind the line's end.
            self.expect = Expect::LineEnd;
        }
        match line.get(self.at..).and_then(|rest| memchr(b'\n', rest)) {
            Some(found) => Walk::Damaged(self.at + found),
            None => {
                self.at = line.len();
                Walk::More
            }
        }
    }

    /// `None` when something stands at `at` that must not.
    fn tokens(&mut self, line: &[u8]) -> Option<Walk> {
        // What changes with every token lives in registers, and goes back when the walk pauses.
        let (mut at, mut expect, mut depth) = (self.at, self.expect, self.depth);
        let mut object = self.levels & 1 == 1;
        if at == 0 && line.starts_with(PREFIX) {
            self.members.object = true;
            self.members.seen = Member::Jsonrpc.bit();
            self.members.values[Member::Jsonrpc as usize] = (PREFIX.len() - 6, PREFIX.len() - 1);
            (at, expect, depth, object) = (PREFIX.len(), Expect::Name, 1, true);
            self.levels = 1;
        }
        // A round reads a name, its value and what follows. It is entered in the middle where the walk paused there, or where
        // something less usual, white space above all, stood between two tokens.
        let walk = 'walk: loop {
            let Some(&byte) = line.get(at) else { break Some(Walk::More) };
            let space = matches!(byte, b' ' | b'\t' | b'\r');
            'after: {
                'value: {
                    match expect {
                        Expect::Name | Expect::FirstName | Expect::InName => {}
                        Expect::Value | Expect::FirstItem | Expect::InString => break 'value,
                        Expect::Next | Expect::Colon | Expect::End if space => {
                            at += 1;
                            continue 'walk;
                        }
                        Expect::Next => break 'after,
                        Expect::Colon if byte == b':' => {
                            at += 1;
                            expect = Expect::Value;
                            continue 'walk;
                        }
                        Expect::End if byte == b'\n' => break 'walk Some(Walk::Whole(at)),
                        Expect::Colon | Expect::End | Expect::LineEnd => break 'walk None,
                    }
                    if expect != Expect::InName {
                        if byte != b'"' {
                            if byte == b'}' && expect == Expect::FirstName {
                                break 'after;
                            }
                            if !space {
                                break 'walk None;
                            }
                            at += 1;
                            continue 'walk;
                        }
                        if depth == 1 {
                            let known = self.known_name(line.get(at..).unwrap_or_default());
                            if known > 0 {
                                at += known;
                                expect = Expect::Value;
                                continue 'walk;
                            }
                        }
                        self.token = at;
                        at += 1;
                    }
                    match string(line, at) {
                        Token::End(end) => at = end,
                        Token::Open(resume) => {
                            (at, expect) = (resume, Expect::InName);
                            break 'walk Some(Walk::More);
                        }
                        Token::Bad => break 'walk None,
                    }
                    if depth == 1 {
                        self.name(line.get(self.token + 1..at - 1).unwrap_or_default());
                    }
                    expect = Expect::Colon;
                    if line.get(at) != Some(&b':') {
                        continue 'walk;
                    }
                    at += 1;
                    expect = Expect::Value;
                }
                let Some(&byte) = line.get(at) else { break 'walk Some(Walk::More) };
                let mut start = at;
                if byte == b'"' || expect == Expect::InString {
                    let within = expect == Expect::InString;
                    match string(line, if within { at } else { at + 1 }) {
                        Token::End(end) => at = end,
                        Token::Open(resume) => {
                            if !within {
                                self.token = start;
                            }
                            (at, expect) = (resume, Expect::InString);
                            break 'walk Some(Walk::More);
                        }
                        Token::Bad => break 'walk None,
                    }
                    if within {
                        start = self.token;
                    }
                } else if byte == b'{' || byte == b'[' {
                    if depth <= 1 {
                        if depth == 0 {
                            self.members.object = byte == b'{';
                        }
                        self.value_at = at;
                    } else if depth == DEPTH_LIMIT {
                        break 'walk None;
                    }
                    depth += 1;
                    object = byte == b'{';
                    self.levels = (self.levels << 1) | u128::from(object);
                    at += 1;
                    expect = if object { Expect::FirstName } else { Expect::FirstItem };
                    continue 'walk;
                } else if byte == b']' && expect == Expect::FirstItem {
                    break 'after;
                } else if matches!(byte, b' ' | b'\t' | b'\r') {
                    at += 1;
                    continue 'walk;
                } else {
                    match scalar(line, at, byte) {
                        Token::End(end) => at = end,
                        Token::Open(_) => {
                            self.wake = line.len().saturating_add(line.len() - at);
                            break 'walk Some(Walk::More);
                        }
                        Token::Bad if byte == b'\n' && depth == 0 => break 'walk Some(Walk::Blank(at)),
                        Token::Bad => break 'walk None,
                    }
                }
                if depth <= 1 {
                    if depth == 0 {
                        expect = Expect::End;
                        continue 'walk;
                    }
                    self.value(start, at);
                }
            }
            loop {
                match line.get(at) {
                    Some(b',') => {
                        at += 1;
                        if object {
                            expect = Expect::Name;
                            continue 'walk;
                        }
                        expect = Expect::Value;
                        continue 'walk;
                    }
                    Some(end @ (b'}' | b']')) => {
                        if object != (*end == b'}') {
                            break 'walk None;
                        }
                        at += 1;
                        depth -= 1;
                        self.levels >>= 1;
                        object = self.levels & 1 == 1;
                        if depth <= 1 {
                            if depth == 0 {
                                expect = Expect::End;
                                continue 'walk;
                            }
                            self.value(self.value_at, at);
                        }
                    }
                    None | Some(b' ' | b'\t' | b'\r') => {
                        expect = Expect::Next;
                        continue 'walk;
                    }
                    Some(_) => break 'walk None,
                }
            }
        };
        (self.at, self.expect, self.depth) = (at, expect, depth);
        walk
    }

    /// Compares with the usual members, quotes and colon included, before any look at single bytes. Gives the length of the
    /// one that `rest` begins with, or 0.
    #[inline(always)]
    fn known_name(&mut self, rest: &[u8]) -> usize {
        let (member, text): (_, &[u8]) = match rest.get(1) {
            Some(b'i') => (Member::Id, b"\"id\":"),
            Some(b'r') => (Member::Result, b"\"result\":"),
            Some(b'm') => (Member::Method, b"\"method\":"),
            Some(b'p') => (Member::Params, b"\"params\":"),
            _ => return 0,
        };
        if !self.members.object || !rest.starts_with(text) {
            return 0;
        }
        self.begin(member);
        text.len()
    }

    fn begin(&mut self, member: Member) {
        self.member = Some(member);
        self.members.repeated |= self.members.seen & member.bit();
        self.members.seen |= member.bit();
    }

    /// A top-level name has been read.
    #[inline(never)]
    fn name(&mut self, name: &[u8]) {
        if !self.members.object {
            return;
        }
        self.member = Member::named(name).or_else(|| {
            memchr(b'\\', name)?;
            let text = core::str::from_utf8(name).ok()?;
            Member::named(crate::json::unescape(text)?.as_bytes())
        });
        if let Some(member) = self.member {
            self.begin(member);
        }
    }

    /// A value one level down has been read.
    fn value(&mut self, start: usize, end: usize) {
        if let Some(slot) = self.member.take().and_then(|member| self.members.values.get_mut(member as usize)) {
            *slot = (start, end);
        }
    }
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
fn string(line: &[u8], mut at: usize) -> Token {
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
fn scalar(line: &[u8], start: usize, first: u8) -> Token {
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
