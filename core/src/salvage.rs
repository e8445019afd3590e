//! Owns the search for the id in a line that is damaged or too long to keep (UNR-02): a lexer that takes bytes as they
//! come, in constant memory. It must not know why the line is unreadable.

use alloc::vec::Vec;

use crate::config::NAME_LIMIT;
use crate::{Id, Shape};

/// Reads the top level of a line byte by byte and keeps the token of its `id`.
///
/// The id counts only if the line is an object up to it, it is a valid id, and no second one was seen. Only the first object of a
/// line is looked at.
#[derive(Debug, Clone)]
pub(crate) struct Salvage {
    state: State,
    /// Open containers inside the member at hand.
    depth: u64,
    /// The key or id at hand, as far as it can still matter.
    token: Vec<u8>,
    /// The id found.
    id: Vec<u8>,
    ids: u8,
    member: Member,
    method: bool,
    response: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    KeyOrEnd,
    Key {
        escape: bool,
    },
    Colon,
    Value,
    /// Inside a string that is (part of) a value.
    Text {
        escape: bool,
    },
    /// Inside a number or a literal at top level, or between the tokens of a container.
    Inside,
    AfterValue,
    /// The object is whole.
    Whole,
    /// No object, or broken at top level: nothing more can be learnt.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Id,
    Other,
}

/// Longest raw key that can still be one of ours: six bytes a character when all are escaped.
const KEY_LIMIT: usize = 6 * "jsonrpc".len() + 2;

impl Salvage {
    pub(crate) const fn new() -> Self {
        Self {
            state: State::Start,
            depth: 0,
            token: Vec::new(),
            id: Vec::new(),
            ids: 0,
            member: Member::Other,
            method: false,
            response: false,
        }
    }

    /// Takes in the next bytes of the line.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((&byte, tail)) = rest.split_first() {
            match self.state {
                State::Whole | State::Lost => return,
                // The bulk of a long line lies in its strings: go to the next byte that matters.
                State::Text { escape: false } if self.member == Member::Other => {
                    match memchr::memchr2(b'"', b'\\', rest) {
                        None => return,
                        Some(at) => {
                            self.step(rest.get(at).copied().unwrap_or_default());
                            rest = rest.get(at + 1..).unwrap_or_default();
                            continue;
                        }
                    }
                }
                _ => self.step(byte),
            }
            rest = tail;
        }
    }

    fn step(&mut self, byte: u8) {
        let space = matches!(byte, b' ' | b'\t' | b'\r');
        self.state = match self.state {
            State::Start if space => State::Start,
            State::Start if byte == b'{' => State::KeyOrEnd,
            State::KeyOrEnd | State::Colon | State::Value | State::AfterValue if space => self.state,
            State::KeyOrEnd if byte == b'"' => {
                self.token.clear();
                self.keep(byte, KEY_LIMIT);
                State::Key { escape: false }
            }
            State::KeyOrEnd if byte == b'}' => State::Whole,
            State::Key { escape } => {
                self.keep(byte, KEY_LIMIT);
                match byte {
                    b'"' if !escape => {
                        self.know_key();
                        State::Colon
                    }
                    _ => State::Key { escape: byte == b'\\' && !escape },
                }
            }
            State::Colon if byte == b':' => {
                self.token.clear();
                State::Value
            }
            State::Value => {
                self.keep(byte, NAME_LIMIT);
                match byte {
                    b'"' => State::Text { escape: false },
                    b'{' | b'[' => {
                        self.depth = 1;
                        State::Inside
                    }
                    b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => State::Inside,
                    _ => State::Lost,
                }
            }
            State::Text { escape } => {
                self.keep(byte, NAME_LIMIT);
                match byte {
                    b'"' if !escape && self.depth == 0 => {
                        self.end_value();
                        State::AfterValue
                    }
                    b'"' if !escape => State::Inside,
                    _ => State::Text { escape: byte == b'\\' && !escape },
                }
            }
            State::Inside if self.depth == 0 => match byte {
                b',' => {
                    self.end_value();
                    State::KeyOrEnd
                }
                b'}' => {
                    self.end_value();
                    State::Whole
                }
                _ if space => {
                    self.end_value();
                    State::AfterValue
                }
                b'"' | b'{' | b'[' | b']' | b':' => State::Lost,
                _ => {
                    self.keep(byte, NAME_LIMIT);
                    State::Inside
                }
            },
            State::Inside => match byte {
                b'"' => State::Text { escape: false },
                b'{' | b'[' => {
                    self.depth = self.depth.saturating_add(1);
                    State::Inside
                }
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.end_value();
                        State::AfterValue
                    } else {
                        State::Inside
                    }
                }
                _ => State::Inside,
            },
            State::AfterValue if byte == b',' => State::KeyOrEnd,
            State::AfterValue if byte == b'}' => State::Whole,
            State::Whole => State::Whole,
            _ => State::Lost,
        };
    }

    /// Keeps a byte of the token at hand; one byte over the limit marks it as too long. Values of other members are not kept.
    fn keep(&mut self, byte: u8, limit: usize) {
        let wanted = self.member == Member::Id || matches!(self.state, State::KeyOrEnd | State::Key { .. });
        if wanted && self.token.len() <= limit {
            self.token.push(byte);
        }
    }

    fn know_key(&mut self) {
        let key = serde_json::from_slice::<alloc::borrow::Cow<'_, str>>(&self.token).unwrap_or_default();
        self.member = Member::Other;
        match &*key {
            "id" => {
                self.member = Member::Id;
                self.ids = self.ids.saturating_add(1);
            }
            "method" => self.method = true,
            "result" | "error" => self.response = true,
            _ => {}
        }
    }

    fn end_value(&mut self) {
        if self.member == Member::Id {
            self.id.clear();
            self.id.append(&mut self.token);
        }
        self.member = Member::Other;
    }

    /// The id, if it counts.
    pub(crate) fn id(&self) -> Option<Id<'_>> {
        if self.ids != 1 {
            return None;
        }
        core::str::from_utf8(&self.id).ok().and_then(Id::parse)
    }

    /// The token of [`id`](Self::id), to be kept elsewhere.
    pub(crate) fn into_id_token(self) -> Vec<u8> {
        if self.id().is_some() { self.id } else { Vec::new() }
    }

    /// What the line was meant to be. `whole`: it is JSON, so what was not seen is not there.
    pub(crate) fn shape(&self, whole: bool) -> Shape {
        match (self.method, self.response, self.ids > 0) {
            (false, true, _) => Shape::Response,
            (true, false, true) => Shape::Request,
            (true, false, false) if whole => Shape::Notification,
            _ => Shape::Unknown,
        }
    }
}
