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

    /// Where the value stands; `None` if there is no such member.
    pub(crate) fn get(&self, member: Member) -> Option<Range<usize>> {
        if self.seen & member.bit() == 0 {
            return None;
        }
        self.values.get(member as usize).map(|(start, end)| *start..*end)
    }
}

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
    /// A number or word is cut off at the end of what was there: it is read anew only when there is an LF, or as much again.
    /// So a number of any length costs linear time for any chunk size.
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
            let found = line.get(self.sought..).and_then(|rest| memchr(b'\n', rest));
            if found.is_none() {
                self.sought = line.len();
                return Walk::More;
            }
        }
        if self.expect != Expect::LineEnd {
            if let Some(done) = self.tokens(line) {
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
        loop {
            let at = self.at;
            let Some(&byte) = line.get(at) else { return Some(Walk::More) };
            match self.expect {
                Expect::InName | Expect::InString => match string(line, at) {
                    Token::End(end) => {
                        self.at = end;
                        if self.expect == Expect::InName {
                            if self.depth == 1 {
                                self.name(line.get(self.token + 1..end - 1)?);
                            }
                            self.expect = Expect::Colon;
                        } else {
                            self.scalar(self.token, end);
                        }
                    }
                    Token::Open(resume) => {
                        self.at = resume;
                        return Some(Walk::More);
                    }
                    Token::Bad => return None,
                },
                _ if matches!(byte, b' ' | b'\t' | b'\r') => self.at += 1,
                Expect::Value | Expect::FirstItem => match byte {
                    b'"' => {
                        self.token = at;
                        self.at += 1;
                        self.expect = Expect::InString;
                    }
                    b'{' | b'[' => self.open(byte == b'{')?,
                    b']' if self.expect == Expect::FirstItem => self.close(false)?,
                    b'\n' if self.depth == 0 => return Some(Walk::Blank(at)),
                    _ => match scalar(line, at) {
                        Token::End(end) => {
                            self.at = end;
                            self.scalar(at, end);
                        }
                        Token::Open(_) => {
                            self.wake = line.len().saturating_add(line.len() - at);
                            self.sought = line.len();
                            return Some(Walk::More);
                        }
                        Token::Bad => return None,
                    },
                },
                Expect::Name | Expect::FirstName => match byte {
                    b'"' => {
                        self.token = at;
                        self.at += 1;
                        self.expect = Expect::InName;
                    }
                    b'}' if self.expect == Expect::FirstName => self.close(true)?,
                    _ => return None,
                },
                Expect::Colon => {
                    if byte != b':' {
                        return None;
                    }
                    self.at += 1;
                    self.expect = Expect::Value;
                }
                Expect::Next => match byte {
                    b',' => {
                        self.at += 1;
                        self.expect = if self.levels & 1 == 1 { Expect::Name } else { Expect::Value };
                    }
                    b'}' => self.close(true)?,
                    b']' => self.close(false)?,
                    _ => return None,
                },
                Expect::End => return (byte == b'\n').then_some(Walk::Whole(at)),
                Expect::LineEnd => return None,
            }
        }
    }

    /// A top-level name has been read.
    fn name(&mut self, name: &[u8]) {
        if !self.members.object {
            return;
        }
        self.member = Member::named(name).or_else(|| {
            let text = core::str::from_utf8(name).ok()?;
            Member::named(crate::json::unescape(text)?.as_bytes())
        });
        if let Some(member) = self.member {
            self.members.repeated |= self.members.seen & member.bit();
            self.members.seen |= member.bit();
        }
    }

    fn open(&mut self, object: bool) -> Option<()> {
        if self.depth == DEPTH_LIMIT {
            return None;
        }
        match self.depth {
            0 => self.members.object = object,
            1 => self.value_at = self.at,
            _ => {}
        }
        self.depth += 1;
        self.levels = (self.levels << 1) | u128::from(object);
        self.at += 1;
        self.expect = if object { Expect::FirstName } else { Expect::FirstItem };
        Some(())
    }

    fn close(&mut self, object: bool) -> Option<()> {
        if (self.levels & 1 == 1) != object {
            return None;
        }
        self.levels >>= 1;
        self.depth -= 1;
        self.at += 1;
        self.expect = Expect::Next;
        match self.depth {
            0 => self.expect = Expect::End,
            1 => self.value(self.value_at, self.at),
            _ => {}
        }
        Some(())
    }

    /// A value that is no array or object has been read.
    fn scalar(&mut self, start: usize, end: usize) {
        self.expect = Expect::Next;
        match self.depth {
            0 => self.expect = Expect::End,
            1 => self.value(start, end),
            _ => {}
        }
    }

    /// A value one level down has been read.
    fn value(&mut self, start: usize, end: usize) {
        if let Some(slot) = self.member.take().and_then(|member| self.members.values.get_mut(member as usize)) {
            *slot = (start, end);
        }
    }
}

/// Reads on in a string, from a place that is not inside an escape. A surrogate that stands alone passes: it is JSON, and
/// what it means is the business of whoever reads the value.
fn string(line: &[u8], mut at: usize) -> Token {
    loop {
        let Some(&byte) = line.get(at) else { return Token::Open(at) };
        match byte {
            b'"' => return Token::End(at + 1),
            b'\\' => match line.get(at + 1) {
                None => return Token::Open(at),
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') => {
                    let digits = line.get(at + 2..).unwrap_or_default();
                    let digits = digits.get(..4).unwrap_or(digits);
                    if !digits.iter().all(u8::is_ascii_hexdigit) {
                        return Token::Bad;
                    }
                    if digits.len() < 4 {
                        return Token::Open(at);
                    }
                    at += 6;
                }
                Some(_) => return Token::Bad,
            },
            0..=0x1f => return Token::Bad,
            _ => at += 1,
        }
    }
}

/// Reads a number, `true`, `false` or `null` that begins at `start`.
fn scalar(line: &[u8], start: usize) -> Token {
    let rest = line.get(start..).unwrap_or_default();
    let word: &[u8] = match rest.first() {
        Some(b't') => b"true",
        Some(b'f') => b"false",
        Some(b'n') => b"null",
        _ => return number(line, start),
    };
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
