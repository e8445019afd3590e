//! Owns the lines that are not simply text: with a byte that is no UTF-8 in them, cut off by the end of the input, or over the limit. It must
//! not know what is done with them.

use memchr::memchr;

use super::{Found, Mode, RecvBuffer, clear, cut_character, push};
use crate::scanner::End;

impl RecvBuffer {
    /// Takes the next line from `raw`, or the beginning of one: to `text` if it is UTF-8.
    pub(super) fn raw_line(&mut self) -> Option<Found> {
        let rest = self.raw.get(self.raw_at..).unwrap_or_default();
        let found = memchr(b'\n', rest);
        let piece = rest.get(..found.unwrap_or(rest.len())).unwrap_or_default();
        let mut taken = found.map_or(rest.len(), |end| end + 1);
        match self.mode {
            Mode::Discard => self.salvage.feed(piece),
            Mode::Damaged => self.damaged.extend_from_slice(piece),
            Mode::Text => {
                let cut = if found.is_none() { cut_character(piece) } else { 0 };
                let (whole, _) = piece.split_at(piece.len() - cut);
                if let Ok(text) = simdutf8::basic::from_utf8(whole) {
                    push(&mut self.text, text, self.limit);
                    if found.is_some() {
                        self.text.push('\n');
                    }
                    taken -= cut;
                } else {
                    let begun = self.text.as_bytes().get(self.start..).unwrap_or_default();
                    self.damaged.extend_from_slice(begun);
                    self.damaged.extend_from_slice(piece);
                    self.text.truncate(self.start);
                    self.mode = Mode::Damaged;
                }
            }
        }
        self.raw_at += taken;
        if found.is_none() || self.raw_at == self.raw.len() {
            // What is left now is the beginning of a character.
            self.raw.drain(..self.raw_at);
            self.raw_at = 0;
            if self.raw.is_empty() {
                clear(&mut self.raw);
            }
            self.suspect = false;
        }
        if self.mode == Mode::Damaged && self.damaged.len() > self.limit.saturating_add(1) {
            self.discard_damaged();
        }
        if found.is_none() || self.mode == Mode::Text {
            return None;
        }
        let mode = core::mem::replace(&mut self.mode, Mode::Text);
        self.suspect = self.raw_at < self.raw.len();
        if mode == Mode::Discard {
            return Some(Found::TooLong { cut_off: false });
        }
        let len = self.damaged.strip_suffix(b"\r").unwrap_or(&self.damaged).len();
        if len > self.limit {
            self.discard_damaged();
            self.mode = Mode::Text;
            return Some(Found::TooLong { cut_off: false });
        }
        self.damaged.truncate(len);
        Some(Found::NoText { cut_off: false })
    }

    pub(super) fn discard_damaged(&mut self) {
        self.salvage.feed(&self.damaged);
        clear(&mut self.damaged);
        self.mode = Mode::Discard;
    }

    /// What the end of the input leaves.
    pub(super) fn last_line(&mut self) -> Option<Found> {
        if self.mode == Mode::Text && !self.raw.is_empty() {
            // The beginning of a character.
            let begun = self.text.as_bytes().get(self.start..).unwrap_or_default();
            self.damaged.extend_from_slice(begun);
            self.text.truncate(self.start);
            self.mode = Mode::Damaged;
        }
        if self.mode == Mode::Damaged {
            self.damaged.append(&mut self.raw);
            if self.damaged.len() > self.limit {
                self.discard_damaged();
            }
        }
        match core::mem::replace(&mut self.mode, Mode::Text) {
            Mode::Discard => return Some(Found::TooLong { cut_off: true }),
            Mode::Damaged => return Some(Found::NoText { cut_off: true }),
            Mode::Text => {}
        }
        let range = self.start..self.text.len();
        let line = self.text.as_bytes().get(range.clone()).unwrap_or_default();
        if line.is_empty() {
            return None;
        }
        self.start = self.text.len();
        if line.len() > self.limit {
            self.salvage.feed(line);
            return Some(Found::TooLong { cut_off: true });
        }
        match self.walker.finish(line) {
            End::Blank => None,
            End::Whole => Some(Found::Whole(range)),
            End::Damaged => Some(Found::Truncated(range)),
        }
    }
}
