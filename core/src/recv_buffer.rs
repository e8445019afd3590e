//! Owns the input bytes and cuts them into frames: lines, the line limit, the salvage of an id from a line too long
//! to keep. It must not know what a message means to a connection.

mod frame;
mod raw;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::config::FULL_READ;
use crate::message::{assemble, damaged, too_long, truncated};
use crate::salvage::Salvage;
use crate::scanner::{Walk, Walker};
pub use frame::Frame;

/// Memory kept whatever was read before, in bytes.
const KEEP: usize = 256 << 10;
/// Size of the first read, in bytes. A connection that is idle most of the time needs no more.
const SMALL_READ: usize = 2 << 10;
/// Memory given back as soon as the line that needed it is consumed, in bytes; between the two it is kept for a while,
/// because a peer that sends one large line often sends more.
const GIVE_BACK: usize = 2 << 20;
/// How many frames that while is.
const QUIET_FRAMES: u32 = 64;

/// Input bytes on their way to becoming frames. The caller reads straight into it.
///
/// How reads are cut makes no difference (FRM-06); each byte is looked at once (FRM-07); a line over the limit
/// is discarded as it arrives (LIM-01), and the memory of a giant line is given back.
///
/// ```
/// use mcp_wire::RecvBuffer;
///
/// let mut recv = RecvBuffer::new(1 << 20);
/// let n = { let spare = recv.spare_mut(64); spare[..3].copy_from_slice(b"{}\n"); 3 };
/// recv.commit(n);
/// assert!(recv.next_frame().is_some());
/// assert!(recv.next_frame().is_none());
/// ```
pub struct RecvBuffer {
    limit: usize,
    /// Where reads go: larger after each read that has filled it.
    area: Vec<u8>,
    /// How large it is to be.
    read_size: usize,
    /// How much of it was lent by the last `spare_mut`.
    lent: usize,
    /// Input that is known to be UTF-8, from the beginning of the current line on: what `next_frame` has consumed goes first.
    text: String,
    /// Where the current line begins in it.
    start: usize,
    walker: Walker,
    /// Input behind `text`, not yet known to be UTF-8: at most three bytes of a character cut by a read, or everything
    /// since a byte that is wrong, which `next_frame` then takes line by line.
    raw: Vec<u8>,
    /// How much of it has been taken.
    raw_at: usize,
    /// Not only the beginning of a character waits in `raw`.
    suspect: bool,
    /// The current line, as long as it is not UTF-8.
    damaged: Vec<u8>,
    mode: Mode,
    salvage: Salvage,
    /// Nothing has been read since the stream began.
    at_start: bool,
    closed: bool,
    /// The walker, the salvage and `damaged` belong to a line that has been handed out.
    handed_out: bool,
    /// Frames since `text` was last large.
    quiet: u32,
}

/// Where the bytes of the current line go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Text,
    Damaged,
    /// Nowhere: the line is over the limit.
    Discard,
}

/// A line that has been found.
enum Found {
    /// In `text`, one JSON value.
    Whole(Range<usize>),
    /// In `text`, no JSON.
    Damaged(Range<usize>),
    /// In `text`, cut off by the end of the input.
    Truncated(Range<usize>),
    /// In `damaged`, no UTF-8.
    NoText { cut_off: bool },
    /// Gone, but for the salvage.
    TooLong { cut_off: bool },
}

/// The byte order mark.
const BOM: &str = "\u{feff}";

impl Default for RecvBuffer {
    /// With the default limit, [`LINE_LIMIT`](crate::config::LINE_LIMIT).
    fn default() -> Self {
        Self::new(crate::config::LINE_LIMIT)
    }
}

impl RecvBuffer {
    /// A buffer for lines of at most `line_limit` bytes before their line end.
    #[must_use]
    pub fn new(line_limit: usize) -> Self {
        Self {
            limit: line_limit,
            area: Vec::new(),
            read_size: SMALL_READ,
            lent: 0,
            text: String::new(),
            start: 0,
            walker: Walker::new(),
            raw: Vec::new(),
            raw_at: 0,
            suspect: false,
            damaged: Vec::new(),
            mode: Mode::Text,
            salvage: Salvage::new(),
            at_start: true,
            closed: false,
            handed_out: false,
            quiet: 0,
        }
    }

    /// Room for at least `min` bytes (at least one), to read into: 2 KiB at first, and up to [`FULL_READ`](crate::config::FULL_READ) where
    /// reads fill it. What is written there counts only after [`commit`](Self::commit), so a read that is dropped loses nothing.
    pub fn spare_mut(&mut self, min: usize) -> &mut [u8] {
        let len = min.max(self.read_size);
        if self.area.len() < len {
            self.area = alloc::vec![0; len];
        }
        self.lent = self.area.len();
        &mut self.area
    }

    /// The first `n` bytes of the last [`spare_mut`](Self::spare_mut) have been filled. More than there was room for counts as all of it.
    pub fn commit(&mut self, n: usize) {
        let lent = core::mem::take(&mut self.lent);
        let n = n.min(lent);
        if n == lent && n >= self.read_size {
            self.read_size = n.saturating_mul(4).min(FULL_READ);
        }
        let area = core::mem::take(&mut self.area);
        self.extend(area.get(..n).unwrap_or_default());
        self.area = area;
    }

    /// Appends a copy of `bytes`.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.closed || bytes.is_empty() {
            return;
        }
        self.compact();
        let mut bytes = bytes;
        if self.mode == Mode::Text && !self.suspect {
            bytes = self.finish_character(bytes);
            if self.raw.is_empty() {
                bytes = self.take_text(bytes);
            }
        }
        self.raw.extend_from_slice(bytes);
    }

    /// The input has ended: an unclosed last line becomes a frame (FRM-09). Bytes after this are ignored.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// A new life of the process: forgets all bytes, also half a line (RST-06), and is open again.
    pub fn reset(&mut self) {
        let mut area = core::mem::take(&mut self.area);
        area.truncate(FULL_READ);
        *self = Self { area, read_size: self.read_size, ..Self::new(self.limit) };
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.area.capacity() + self.text.capacity() + self.raw.capacity() + self.damaged.capacity()
    }

    /// The next frame, or `None` until more bytes are committed. Blank lines are skipped (FRM-05).
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        let found = self.next_line()?;
        let text = |range: Range<usize>| self.text.get(range).unwrap_or_default();
        let (bytes, message) = match found {
            Found::Whole(range) => (text(range.clone()).as_bytes(), assemble(text(range), self.walker.members())),
            Found::Damaged(range) => (text(range.clone()).as_bytes(), damaged(text(range).as_bytes())),
            Found::Truncated(range) => (text(range.clone()).as_bytes(), truncated(text(range).as_bytes())),
            Found::NoText { cut_off } => {
                let bytes = self.damaged.as_slice();
                (bytes, if cut_off { truncated(bytes) } else { damaged(bytes) })
            }
            Found::TooLong { cut_off } => {
                let cr = !cut_off && self.salvage.ends_in_cr();
                (&[][..], too_long(&self.salvage, self.salvage.len() - u64::from(cr)))
            }
        };
        Some(Frame { bytes, message })
    }

    /// Takes as much of `bytes` as is needed to complete the character that waits in `raw`, and returns the rest.
    fn finish_character<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        while !self.raw.is_empty() {
            let Some((&byte, rest)) = bytes.split_first() else { break };
            self.raw.push(byte);
            bytes = rest;
            match core::str::from_utf8(&self.raw) {
                Ok(character) => {
                    if !(core::mem::take(&mut self.at_start) && character == BOM) {
                        self.text.push_str(character);
                    }
                    self.raw.clear();
                }
                Err(error) if error.error_len().is_none() => {}
                Err(_) => {
                    self.suspect = true;
                    self.at_start = false;
                    break;
                }
            }
        }
        bytes
    }

    /// Moves what is UTF-8 to `text`, all of it or nothing, and returns the rest: the beginning of a character, or everything.
    fn take_text<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        if core::mem::take(&mut self.at_start) {
            match bytes.strip_prefix(BOM.as_bytes()) {
                Some(rest) => bytes = rest,
                None => self.at_start = BOM.as_bytes().starts_with(bytes),
            }
        }
        let (whole, rest) = bytes.split_at(bytes.len() - cut_character(bytes));
        // For few bytes the plain check is the faster one.
        let text =
            if whole.len() < 32 { core::str::from_utf8(whole).ok() } else { simdutf8::basic::from_utf8(whole).ok() };
        if let Some(text) = text {
            push(&mut self.text, text, self.limit);
            rest
        } else {
            self.suspect = true;
            bytes
        }
    }

    fn next_line(&mut self) -> Option<Found> {
        if core::mem::take(&mut self.handed_out) {
            self.begin_line();
        }
        let found = loop {
            if self.mode == Mode::Text {
                match self.text_line() {
                    Line::Found(found) => break Some(found),
                    Line::Blank => {
                        self.begin_line();
                        continue;
                    }
                    Line::More => {}
                }
            }
            if self.suspect || (self.mode != Mode::Text && self.raw_at < self.raw.len()) {
                match self.raw_line() {
                    Some(found) => break Some(found),
                    None => continue,
                }
            }
            break if self.closed { self.last_line() } else { None };
        };
        self.handed_out = found.is_some();
        if found.is_none() {
            self.compact();
        }
        found
    }

    /// Forgets what is known of the line before.
    fn begin_line(&mut self) {
        self.walker.reset();
        if self.salvage.len() > 0 {
            self.salvage = Salvage::new();
        }
        if !self.damaged.is_empty() {
            clear(&mut self.damaged);
        }
    }

    /// Goes on in `text`.
    fn text_line(&mut self) -> Line {
        let start = self.start;
        let line = self.text.as_bytes().get(start..).unwrap_or_default();
        let walk = self.walker.walk(line);
        let (Walk::Whole(end) | Walk::Blank(end) | Walk::Damaged(end)) = walk else {
            // One byte more than the limit may be the CR of the line end.
            if line.len() > self.limit.saturating_add(1) {
                self.salvage.feed(line);
                self.text.truncate(start);
                self.text.shrink_to(KEEP);
                self.mode = Mode::Discard;
            }
            return Line::More;
        };
        let line = line.get(..end).unwrap_or_default();
        let len = line.strip_suffix(b"\r").unwrap_or(line).len();
        self.start = start + end + 1;
        self.quiet = if len > KEEP { 0 } else { self.quiet.saturating_add(1) };
        if len > self.limit {
            self.salvage.feed(line);
            return Line::Found(Found::TooLong { cut_off: false });
        }
        let range = start..start + len;
        match walk {
            Walk::Blank(_) => Line::Blank,
            Walk::Damaged(_) => Line::Found(Found::Damaged(range)),
            _ => Line::Found(Found::Whole(range)),
        }
    }

    /// Forgets what has been consumed, without moving more than that, and gives memory back.
    fn compact(&mut self) {
        let live = self.text.len() - self.start;
        if self.start > 0 && live <= self.start {
            self.text.drain(..self.start);
            self.start = 0;
        }
        let room = self.text.capacity();
        if room > KEEP && live <= room / 4 && (room > GIVE_BACK || self.quiet > QUIET_FRAMES) {
            self.text.shrink_to(FULL_READ.max(self.text.len()));
        }
        if self.raw_at > self.raw.len() / 2 {
            self.raw.drain(..self.raw_at);
            self.raw_at = 0;
        }
    }
}

/// How far `text_line` has come.
enum Line {
    Found(Found),
    Blank,
    More,
}

/// Appends to a text that grows geometrically, but not beyond what a line within the limit and a read need.
fn push(text: &mut String, more: &str, limit: usize) {
    let need = text.len().saturating_add(more.len());
    if need > text.capacity() {
        let bound = limit.saturating_add(2 * FULL_READ);
        let room = text.capacity().saturating_mul(2).clamp((SMALL_READ / 2).min(bound), bound).max(need);
        text.reserve_exact(room - text.len());
    }
    text.push_str(more);
}

/// Empties it, and gives back what a large line needed.
fn clear(bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.shrink_to(KEEP);
}

/// How many bytes at the end are the beginning of a character, if what stands before them is UTF-8.
fn cut_character(bytes: &[u8]) -> usize {
    for (back, byte) in (1..=3).zip(bytes.iter().rev()) {
        let width = match byte {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        return if width > back { back } else { 0 };
    }
    0
}

impl fmt::Debug for RecvBuffer {
    /// Shows lengths only (SEC-03).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvBuffer")
            .field("limit", &self.limit)
            .field("buffered", &(self.text.len() - self.start + self.raw.len() - self.raw_at + self.damaged.len()))
            .field("mode", &self.mode)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}
