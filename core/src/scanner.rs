//! Owns the walk over a line: it checks the JSON, finds the line's end itself and notes where the top-level members stand,
//! all in one pass that can pause at any byte. It must not know what the members mean; it is the sole judge of what is JSON.

mod members;
mod tokens;

use memchr::memchr;

use crate::config::DEPTH_LIMIT;
pub(crate) use members::{Member, Members};
pub(crate) use tokens::string_end;
use tokens::{Token, scalar, string};

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
