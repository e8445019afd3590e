//! Owns the search for the id of a line that cannot be read: damaged, cut off, or too long to keep (UNR-02). It reads the
//! line once, piece by piece, in constant memory. It must not decide what is wrong with the line.

use alloc::vec::Vec;
use core::ops::Range;

use memchr::memchr2;

use crate::config::NAME_LIMIT;
use crate::{Id, Shape};

/// Longest known name, in bytes; a longer one is no name of interest.
const NAME: usize = 6;
/// Levels of which is known whether they are objects or arrays; deeper ones are only counted.
const KNOWN_LEVELS: u32 = 128;

/// Where in the line the search stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the opening brace.
    Start,
    /// A name or, if the object is still empty, its end may follow.
    FirstName,
    /// A name must follow.
    Name,
    /// Inside a name.
    InName,
    /// After a backslash inside a name; the number of hexadecimal digits still to come.
    Escape(u8),
    /// A colon must follow.
    Colon,
    /// A value must follow.
    Value,
    /// Inside a string that is a top-level value; `true` after a backslash.
    InString(bool),
    /// Inside a number or a word that is a top-level value.
    InScalar,
    /// Inside an array or an object that is a top-level value.
    Nested,
    /// Inside a string inside that; `true` after a backslash.
    NestedString(bool),
    /// A comma or the end must follow.
    Next,
    /// The object is closed.
    Closed,
    /// The line is no object from here on: what was found before stands, what follows is not looked at.
    Lost,
}

/// What has been found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    No,
    /// The name was seen; the value is being read.
    Begun,
    Valid,
    /// It is not valid, or not unique.
    Bad,
}

/// The search in one line.
#[derive(Debug)]
pub(crate) struct Salvage {
    place: Place,
    /// Bytes read so far.
    len: u64,
    /// The last of them is a CR.
    cr: bool,
    /// The name being read, unescaped, as far as it fits.
    name: [u8; NAME],
    /// Its length; beyond [`NAME`] it is no known name.
    name_len: usize,
    /// The `\u` escape being read.
    unit: u32,
    depth: u64,
    /// One bit a level, 1 for an object.
    levels: u128,
    id: Found,
    /// The id's token, or as much of it as is read.
    token: Vec<u8>,
    /// Where the token begins in the line.
    token_at: u64,
    method: bool,
    answer: bool,
}

impl Salvage {
    pub(crate) const fn new() -> Self {
        Self {
            place: Place::Start,
            len: 0,
            cr: false,
            name: [0; NAME],
            name_len: 0,
            unit: 0,
            depth: 0,
            levels: 0,
            id: Found::No,
            token: Vec::new(),
            token_at: 0,
            method: false,
            answer: false,
        }
    }

    /// Reads a whole line.
    pub(crate) fn of(line: &[u8]) -> Self {
        let mut salvage = Self::new();
        salvage.feed(line);
        salvage
    }

    /// Bytes read so far.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// The last byte read is a CR.
    pub(crate) const fn ends_in_cr(&self) -> bool {
        self.cr
    }

    /// The id, if it is valid and unique.
    pub(crate) fn id(&self) -> Option<Id<'_>> {
        if self.id != Found::Valid {
            return None;
        }
        Id::parse(core::str::from_utf8(&self.token).ok()?)
    }

    /// Where in the line that id stands.
    pub(crate) fn id_range(&self) -> Option<Range<usize>> {
        self.id()?;
        let start = usize::try_from(self.token_at).ok()?;
        Some(start..start.checked_add(self.token.len())?)
    }

    /// What the line was meant to be.
    pub(crate) fn shape(&self) -> Shape {
        match (self.method, self.answer, self.id) {
            (false, true, _) => Shape::Response,
            (true, false, Found::No) if self.place == Place::Closed => Shape::Notification,
            (true, false, Found::Begun | Found::Valid | Found::Bad) => Shape::Request,
            _ => Shape::Unknown,
        }
    }

    /// Reads the next piece of the line.
    pub(crate) fn feed(&mut self, piece: &[u8]) {
        self.cr = piece.last().map_or(self.cr, |last| *last == b'\r');
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            // Nothing but a quote or a backslash matters inside the strings of values.
            let skipped = match self.place {
                Place::NestedString(false) => till_special(piece, at),
                Place::InString(false) if self.id != Found::Begun => till_special(piece, at),
                Place::Lost => piece.len() - at,
                _ => 0,
            };
            if skipped > 0 {
                at += skipped;
                self.len += skipped as u64;
                continue;
            }
            self.step(byte);
            at += 1;
            self.len += 1;
        }
    }

    fn step(&mut self, byte: u8) {
        let space = matches!(byte, b' ' | b'\t' | b'\r');
        self.place = match (self.place, byte) {
            (Place::Start, b'{') => Place::FirstName,
            (Place::FirstName | Place::Name, b'"') => {
                self.name_len = 0;
                Place::InName
            }
            (Place::FirstName, b'}') => Place::Closed,
            (Place::InName, b'"') => Place::Colon,
            (Place::InName, b'\\') => Place::Escape(0),
            (Place::InName, 0..=0x1f) => Place::Lost,
            (Place::InName, _) => {
                self.push_name(byte);
                Place::InName
            }
            (Place::Escape(left), _) => self.escape(left, byte),
            (Place::Colon, b':') => {
                self.named();
                Place::Value
            }
            (Place::Next, b',') => Place::Name,
            (Place::Next, b'}') => Place::Closed,
            (
                Place::Start
                | Place::FirstName
                | Place::Name
                | Place::Colon
                | Place::Value
                | Place::Next
                | Place::Closed,
                _,
            ) if space => self.place,
            (Place::Value, _) => self.value(byte),
            (Place::InString(escaped), _) => {
                self.push_token(byte);
                match byte {
                    b'"' if !escaped => self.valued(),
                    _ => Place::InString(!escaped && byte == b'\\'),
                }
            }
            (Place::InScalar, b',' | b'}') => {
                self.valued();
                if byte == b',' { Place::Name } else { Place::Closed }
            }
            (Place::InScalar, _) if space => self.valued(),
            (Place::InScalar, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.') => {
                self.push_token(byte);
                Place::InScalar
            }
            (Place::Nested, _) => self.nested(byte),
            (Place::NestedString(escaped), b'"') if !escaped => Place::Nested,
            (Place::NestedString(escaped), _) => Place::NestedString(!escaped && byte == b'\\'),
            _ => Place::Lost,
        };
    }

    fn push_name(&mut self, byte: u8) {
        if let Some(slot) = self.name.get_mut(self.name_len) {
            *slot = byte;
        }
        self.name_len = self.name_len.saturating_add(1);
    }

    /// One byte of an escape in a name: `left` is 0 for the letter, else the hexadecimal digits still to come.
    fn escape(&mut self, left: u8, byte: u8) -> Place {
        match (left, byte) {
            (0, b'u') => {
                self.unit = 0;
                Place::Escape(4)
            }
            (0, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                // None of these stands in a known name.
                self.name_len = NAME + 1;
                Place::InName
            }
            (1..=4, _) => {
                let Some(digit) = char::from(byte).to_digit(16) else { return Place::Lost };
                self.unit = (self.unit << 4) | digit;
                if left > 1 {
                    return Place::Escape(left - 1);
                }
                match u8::try_from(self.unit) {
                    Ok(letter) if letter.is_ascii() => self.push_name(letter),
                    _ => self.name_len = NAME + 1,
                }
                Place::InName
            }
            _ => Place::Lost,
        }
    }

    /// A name and its colon have been read.
    fn named(&mut self) {
        match self.name.get(..self.name_len) {
            Some(b"id") => self.id = if self.id == Found::No { Found::Begun } else { Found::Bad },
            Some(b"method") => self.method = true,
            Some(b"result" | b"error") => self.answer = true,
            _ => {}
        }
    }

    /// The first byte of a top-level value.
    fn value(&mut self, byte: u8) -> Place {
        if self.id == Found::Begun {
            self.token_at = self.len;
        }
        match byte {
            b'"' => {
                self.push_token(byte);
                Place::InString(false)
            }
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' => {
                self.push_token(byte);
                Place::InScalar
            }
            b'{' | b'[' => {
                if self.id == Found::Begun {
                    self.id = Found::Bad;
                }
                (self.depth, self.levels) = (0, 0);
                self.nested(byte)
            }
            _ => Place::Lost,
        }
    }

    /// A byte inside a top-level array or object, outside strings: only brackets and quotes matter.
    fn nested(&mut self, byte: u8) -> Place {
        let object = u128::from(byte == b'{' || byte == b'}');
        match byte {
            b'"' => return Place::NestedString(false),
            b'{' | b'[' => {
                if self.depth < u64::from(KNOWN_LEVELS) {
                    self.levels = (self.levels << 1) | object;
                }
                self.depth += 1;
            }
            b'}' | b']' => {
                self.depth -= 1;
                if self.depth < u64::from(KNOWN_LEVELS) {
                    if self.levels & 1 != object {
                        return Place::Lost;
                    }
                    self.levels >>= 1;
                }
                if self.depth == 0 {
                    return Place::Next;
                }
            }
            _ => {}
        }
        Place::Nested
    }

    /// Collects the token of an id.
    fn push_token(&mut self, byte: u8) {
        if self.id == Found::Begun {
            if self.token.len() < NAME_LIMIT {
                self.token.push(byte);
            } else {
                self.id = Found::Bad;
            }
        }
    }

    /// A top-level string, number or word is complete.
    fn valued(&mut self) -> Place {
        if self.id == Found::Begun {
            let valid = core::str::from_utf8(&self.token).ok().and_then(Id::parse).is_some();
            self.id = if valid { Found::Valid } else { Found::Bad };
        }
        Place::Next
    }
}

/// How many bytes from `at` on are neither a quote nor a backslash.
fn till_special(piece: &[u8], at: usize) -> usize {
    let rest = piece.get(at..).unwrap_or_default();
    memchr2(b'"', b'\\', rest).unwrap_or(rest.len())
}
