//! Owns the input bytes and cuts them into frames: lines, the line limit, the salvage of an id from a line too long
//! to keep. It must not know what a message means to a connection.

use alloc::vec::Vec;

use crate::config::FIRST_READ;
use crate::salvage::Salvage;
use crate::scanner;
use crate::walker::Stop;
use crate::{Id, Message, Shape, Unreadable, UnreadableReason};

/// Capacity that is kept though nothing is buffered.
const KEPT: usize = 4 * FIRST_READ;
/// Capacity up to which a stream of large lines keeps what it needs; more is given back as soon as nothing is buffered.
const KEPT_FOR_LARGE: usize = 4 << 20;
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Input bytes on their way to becoming frames. The caller reads straight into it.
///
/// How reads are cut makes no difference (FRM-06); a line over the limit is discarded as it arrives (LIM-01), and the memory of a
/// giant line is given back.
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
#[derive(Debug)]
pub struct RecvBuffer {
    /// Bytes from `start` to `end` are input, those behind are spare.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// No LF stands between `start` and here.
    searched: usize,
    line_limit: usize,
    closed: bool,
    /// No byte of the stream has been taken yet: a byte order mark may stand here (FRM-08).
    at_stream_start: bool,
    /// A line over the limit is being discarded.
    discarding: Option<Discarding>,
    /// The id of the line discarded last, for the frame that tells of it.
    salvaged_id: Vec<u8>,
    /// Length of the last line: decides what capacity is worth keeping.
    last_line: usize,
}

#[derive(Debug)]
struct Discarding {
    salvage: Salvage,
    /// Bytes dropped.
    len: u64,
    /// The last byte dropped was a CR.
    cr: bool,
}

/// Where the next line is, found without borrowing it.
enum Found {
    /// Line from, to (CR and LF excluded), and where the next one starts.
    Line {
        from: usize,
        to: usize,
        next: usize,
        walked: Result<scanner::Members, Stop>,
        tail: bool,
    },
    TooLong {
        shape: Shape,
        len: u64,
    },
}

impl Default for RecvBuffer {
    /// With the default limit, [`LINE_LIMIT`](crate::config::LINE_LIMIT).
    fn default() -> Self {
        Self::new(crate::config::LINE_LIMIT)
    }
}

impl RecvBuffer {
    /// A buffer for lines of at most `line_limit` bytes before their line end. Holds no memory until the first read.
    #[must_use]
    pub fn new(line_limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            end: 0,
            searched: 0,
            line_limit,
            closed: false,
            at_stream_start: true,
            discarding: None,
            salvaged_id: Vec::new(),
            last_line: 0,
        }
    }

    /// Room for at least `min` bytes (at least one), to read into. What is written there counts only after [`commit`](Self::commit),
    /// so a read that is dropped loses nothing.
    pub fn spare_mut(&mut self, min: usize) -> &mut [u8] {
        let min = min.max(1);
        if self.bytes.len() - self.end < min {
            self.make_room(min);
        }
        self.bytes.get_mut(self.end..).unwrap_or_default()
    }

    fn make_room(&mut self, min: usize) {
        let input = self.start..self.end;
        let wanted = input.len().saturating_add(min);
        if self.bytes.len() >= wanted {
            self.bytes.copy_within(input, 0);
        } else {
            // Doubles, so that the cost stays linear; but not past what the longest line needs. A fresh vector of zeros costs
            // no memory until it is written to.
            let most = self.line_limit.saturating_add(2 + FIRST_READ);
            let doubled = (self.bytes.len() * 2).clamp(FIRST_READ, most.max(FIRST_READ));
            let mut bytes = alloc::vec![0; doubled.max(wanted)];
            if let (Some(to), Some(from)) = (bytes.get_mut(..input.len()), self.bytes.get(input)) {
                to.copy_from_slice(from);
            }
            self.bytes = bytes;
        }
        self.end -= self.start;
        self.searched -= self.start;
        self.start = 0;
    }

    /// The first `n` bytes of the last [`spare_mut`](Self::spare_mut) have been filled. More than there was room for counts as all of it.
    pub fn commit(&mut self, n: usize) {
        if !self.closed {
            self.end = self.end.saturating_add(n).min(self.bytes.len());
        }
    }

    /// Appends a copy of `bytes`.
    pub fn extend(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let spare = self.spare_mut(bytes.len());
        if let Some(room) = spare.get_mut(..bytes.len()) {
            room.copy_from_slice(bytes);
            self.commit(bytes.len());
        }
    }

    /// The input has ended: an unclosed last line becomes a frame (FRM-09). Bytes after this are ignored.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// A new life of the process: forgets all bytes, also half a line (RST-06), and is open again.
    pub fn reset(&mut self) {
        *self = Self::new(self.line_limit);
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// The next frame, or `None` until more bytes are committed. Blank lines are skipped (FRM-05).
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        let found = loop {
            if self.discarding.is_some() {
                break self.discard()?;
            }
            if self.at_stream_start && !self.skip_bom() {
                return None;
            }
            if self.start == self.end {
                self.shrink();
                return None;
            }
            if let Some(found) = self.find_line()? {
                break found;
            }
        };
        Some(match found {
            Found::Line { from, to, next, walked, tail } => {
                self.start = next;
                self.searched = next;
                self.last_line = to - from;
                let bytes = self.bytes.get(from..to).unwrap_or_default();
                let mut message = scanner::message(bytes, walked);
                if let (Message::Unreadable(line), true) = (&mut message, tail) {
                    // What is whole JSON was not cut, whatever else is wrong with it (FRM-09).
                    if let UnreadableReason::InvalidJson | UnreadableReason::InvalidUtf8 = line.reason {
                        line.reason = UnreadableReason::Truncated;
                    }
                }
                Frame { bytes, message }
            }
            Found::TooLong { shape, len } => {
                let id = core::str::from_utf8(&self.salvaged_id).ok().and_then(Id::parse);
                let reason = UnreadableReason::LineTooLong;
                Frame { bytes: &[], message: Message::Unreadable(Unreadable { reason, id, shape, code: None, len }) }
            }
        })
    }

    /// Looks for the line at `start`. `None`: more bytes are needed. `Some(None)`: look again, it was blank or is being discarded.
    fn find_line(&mut self) -> Option<Option<Found>> {
        let input = self.bytes.get(self.start..self.end).unwrap_or_default();
        let mut walked = None;
        if self.searched == self.start {
            // A line seen for the first time is mostly whole: the walk finds its end, with no search before it.
            match scanner::walk(input) {
                Ok((members, len)) if len < input.len() => walked = Some((Ok(members), len)),
                // It may go on, or be whole at the end of the input: see below.
                Ok(_) | Err(Stop::More) => self.searched = self.end,
                Err(stop) => walked = memchr::memchr(b'\n', input).map(|len| (Err(stop), len)),
            }
        } else {
            let unsearched = self.bytes.get(self.searched..self.end).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', unsearched) {
                let len = self.searched - self.start + at;
                walked = Some((scanner::walk(input).map(|(members, _)| members), len));
            }
        }
        let (result, len, tail) = match walked {
            Some((result, len)) => (result, len, false),
            None => {
                self.searched = self.end;
                if self.closed {
                    (scanner::walk(input).map(|(members, _)| members), input.len(), true)
                } else {
                    let cr = usize::from(input.last() == Some(&b'\r'));
                    if input.len() - cr > self.line_limit {
                        self.start_discarding();
                        return Some(None);
                    }
                    return None;
                }
            }
        };
        let from = self.start;
        let next = (from + len + 1).min(self.end);
        let cr = input.get(..len).is_some_and(|line| line.last() == Some(&b'\r')) && !tail;
        let to = from + len - usize::from(cr);
        let blank = |line: &[u8]| line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        if result.is_err() && input.get(..len).is_some_and(blank) {
            self.start = next;
            self.searched = next;
            return Some(None);
        }
        if to - from > self.line_limit {
            self.start_discarding();
            return Some(None);
        }
        Some(Some(Found::Line { from, to, next, walked: result, tail }))
    }

    /// The line at `start` is over the limit: its bytes are dropped from here on.
    fn start_discarding(&mut self) {
        self.discarding = Some(Discarding { salvage: Salvage::new(), len: 0, cr: false });
    }

    /// Drops bytes up to the next LF. `None`: it has not come yet.
    fn discard(&mut self) -> Option<Found> {
        let input = self.bytes.get(self.start..self.end).unwrap_or_default();
        let end_of_line = memchr::memchr(b'\n', input);
        let dropped = input.get(..end_of_line.unwrap_or(input.len())).unwrap_or_default();
        let discarding = self.discarding.as_mut()?;
        discarding.salvage.feed(dropped);
        discarding.len += dropped.len() as u64;
        if let Some(last) = dropped.last() {
            discarding.cr = *last == b'\r';
        }
        self.start += dropped.len() + usize::from(end_of_line.is_some());
        self.searched = self.start;
        if end_of_line.is_none() && !self.closed {
            self.shrink();
            return None;
        }
        let Discarding { salvage, len, cr } = self.discarding.take()?;
        let shape = salvage.shape(false);
        self.salvaged_id = salvage.into_id_token();
        Some(Found::TooLong { shape, len: len - u64::from(cr) })
    }

    /// Whether the start of the stream is settled.
    fn skip_bom(&mut self) -> bool {
        let input = self.bytes.get(self.start..self.end).unwrap_or_default();
        if input.len() < BOM.len() && BOM.starts_with(input) && !self.closed {
            return false;
        }
        if input.starts_with(BOM) {
            self.start += BOM.len();
            self.searched = self.start;
        }
        self.at_stream_start = false;
        true
    }

    /// Gives memory back that a giant line needed.
    fn shrink(&mut self) {
        if self.start != self.end {
            return;
        }
        (self.start, self.end, self.searched) = (0, 0, 0);
        let capacity = self.bytes.len();
        if capacity > KEPT_FOR_LARGE || (capacity > KEPT && self.last_line < capacity / 8) {
            self.bytes = Vec::new();
        }
    }
}

/// One line, borrowed from the buffer: never from a connection, so the caller can answer while it holds the frame.
///
/// ```
/// use mcp_wire::RecvBuffer;
///
/// let mut recv = RecvBuffer::default();
/// recv.extend(b"hello\n");
/// let frame = recv.next_frame().expect("a whole line is there");
/// assert_eq!(frame.bytes(), b"hello");
/// ```
#[derive(Debug, Clone)]
pub struct Frame<'b> {
    bytes: &'b [u8],
    message: Message<'b>,
}

impl<'b> Frame<'b> {
    /// The line without its line end; empty for a line that was too long to keep.
    #[must_use]
    pub const fn bytes(&self) -> &'b [u8] {
        self.bytes
    }

    /// The message in it.
    #[must_use]
    pub fn message(self) -> Message<'b> {
        self.message
    }
}
