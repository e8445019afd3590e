//! Owns what is kept of a server's standard error: its tail in bytes, and the line at hand. It must not know where lines go.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Bytes of standard error that are kept to explain an exit.
pub const STDERR_TAIL: usize = 8 << 10;
/// A longer line is cut here; the rest goes on as the next line.
pub const STDERR_LINE_LIMIT: usize = 4 << 10;

/// The bounded tail of a server's standard error and a line splitter (LOG-05).
///
/// LF, CR and CR LF end a line, so that a progress bar is not one endless line; a line is cut at [`STDERR_LINE_LIMIT`] bytes. Bytes that are no
/// UTF-8 are replaced, control characters and marks that reorder text are escaped, for display only: nothing in the stream can end the reading
/// of it, and neither can a panic of the function that takes the lines.
///
/// ```
/// use mcp_wire_driver::process::StderrTail;
///
/// let mut tail = StderrTail::default();
/// let mut lines = Vec::new();
/// tail.push(b"one\ntw", |line| lines.push(line.to_owned()));
/// tail.push(b"o\r\n", |line| lines.push(line.to_owned()));
/// assert_eq!(lines, ["one", "two"]);
/// assert_eq!(tail.text(), "one\ntwo");
/// ```
#[derive(Debug, Default)]
pub struct StderrTail {
    tail: VecDeque<u8>,
    /// Bytes have left the tail: its first line may be the rest of one.
    cut: bool,
    line: Vec<u8>,
    /// The last byte was a CR: a LF right after it ends no further line.
    after_cr: bool,
}

impl StderrTail {
    /// Takes in bytes as they were read, and gives each line that they complete, ready to be shown, without its end. Empty lines are given too.
    ///
    /// A panic in `line` costs that line (case 113): it is contained here, after the panic hook of the program has told of it.
    pub fn push(&mut self, bytes: &[u8], mut line: impl FnMut(&str)) {
        let kept = bytes.get(bytes.len().saturating_sub(STDERR_TAIL)..).unwrap_or_default();
        let over = (self.tail.len() + kept.len()).saturating_sub(STDERR_TAIL);
        self.cut |= over > 0 || kept.len() < bytes.len();
        self.tail.drain(..over.min(self.tail.len()));
        self.tail.extend(kept);
        for &byte in bytes {
            match byte {
                b'\n' if self.after_cr => {}
                b'\n' | b'\r' => self.end_line(self.line.len(), &mut line),
                _ => {
                    self.line.push(byte);
                    if self.line.len() >= STDERR_LINE_LIMIT {
                        self.end_line(self.line.len() - unfinished(&self.line), &mut line);
                    }
                }
            }
            self.after_cr = byte == b'\r';
        }
    }

    /// The stream has ended: gives the unfinished line, if there is one.
    pub fn finish(&mut self, mut line: impl FnMut(&str)) {
        if !self.line.is_empty() {
            self.end_line(self.line.len(), &mut line);
        }
    }

    /// The first `length` bytes are a line.
    fn end_line(&mut self, length: usize, line: &mut impl FnMut(&str)) {
        let text = shown(self.line.get(..length).unwrap_or_default());
        self.line.drain(..length.min(self.line.len()));
        let _ = catch_unwind(AssertUnwindSafe(|| line(&text)));
    }

    /// The tail, ready to be shown, lines as [`push`](Self::push) gives them, without the white space at its end. A first line that was cut is
    /// left out, if there is another.
    #[must_use]
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.tail.iter().copied().collect();
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let from = if self.cut { bytes.iter().position(is_end).map_or(0, |at| at + 1) } else { 0 };
        let whole = bytes.get(from..).filter(|rest| !rest.iter().all(is_end)).unwrap_or(&bytes);
        let mut text = String::with_capacity(whole.len());
        let mut after_cr = false;
        for line in whole.split_inclusive(is_end) {
            let end = line.last().filter(|byte| is_end(byte)).copied();
            let skipped = after_cr && line == b"\n";
            if !skipped {
                text += &shown(line.strip_suffix(end.as_slice()).unwrap_or(line));
                text.extend(end.map(|_| '\n'));
            }
            after_cr = end == Some(b'\r');
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// How many bytes at the end are the beginning of a character that is not whole yet.
fn unfinished(bytes: &[u8]) -> usize {
    match bytes.utf8_chunks().last().map(|chunk| chunk.invalid()) {
        // Up to three bytes can be a beginning; what no byte could complete is cut where it is.
        Some(invalid) if matches!(std::str::from_utf8(invalid), Err(error) if error.error_len().is_none()) => {
            invalid.len()
        }
        _ => 0,
    }
}

/// Text for display: what is no UTF-8 replaced, control characters and marks that change the order of the text escaped.
fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for c in String::from_utf8_lossy(bytes).chars() {
        let reorders =
            matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if reorders || (c.is_control() && c != '\t') {
            text.extend(c.escape_default());
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let (mut tail, mut all) = (StderrTail::default(), Vec::new());
        for chunk in chunks {
            tail.push(chunk, |line| all.push(line.to_owned()));
        }
        tail.finish(|line| all.push(line.to_owned()));
        all
    }

    fn tail(bytes: &[u8]) -> StderrTail {
        let mut tail = StderrTail::default();
        tail.push(bytes, |_| {});
        tail
    }

    // LOG-05, case 115: stderr without newline grows the line buffer
    #[test]
    fn lines_are_cut_at_cr_lf_and_at_the_limit() {
        assert_eq!(lines(&[b"a\r\nb\rc\nd"]), ["a", "b", "c", "d"]);
        assert_eq!(lines(&[b"a\r", b"\nb\n"]), ["a", "b"]);
        assert_eq!(lines(&[b"a\n\nb\r\r"]), ["a", "", "b", ""]);
        let endless = vec![b'x'; 3 * STDERR_LINE_LIMIT + 1];
        let got = lines(&[&endless]);
        assert_eq!(
            got.iter().map(String::len).collect::<Vec<_>>(),
            [STDERR_LINE_LIMIT, STDERR_LINE_LIMIT, STDERR_LINE_LIMIT, 1]
        );
    }

    // LOG-05: how the reads were cut makes no difference
    #[test]
    fn the_lines_do_not_depend_on_the_cut_of_the_reads() {
        let text = "one\r\ntwo\rthr\u{e9}e\n\nfour".as_bytes();
        let whole = lines(&[text]);
        for at in 0..=text.len() {
            let (head, rest) = text.split_at(at);
            assert_eq!(lines(&[head, rest]), whole, "cut at {at}");
        }
        assert_eq!(lines(&text.chunks(1).collect::<Vec<_>>()), whole);
    }

    // case 115: a million updates of a progress bar stay within the bound
    #[test]
    fn a_progress_bar_is_many_short_lines_and_no_memory() {
        let mut bar = StderrTail::default();
        let mut count = 0_u32;
        for _ in 0..1_000_000 {
            bar.push(b"\r 10%", |line| {
                assert!(line.len() <= 4, "{line}");
                count += 1;
            });
        }
        assert_eq!(count, 1_000_000);
        assert!(bar.line.capacity() <= 2 * STDERR_LINE_LIMIT && bar.tail.len() <= STDERR_TAIL);
        let text = bar.text();
        assert!(text.len() <= STDERR_TAIL && text.lines().all(|line| line == " 10%"), "{text}");
    }

    // LOG-05: the tail is bounded, holds the newest bytes, and leaves out a first line that was cut
    #[test]
    fn the_tail_keeps_the_newest_bytes() {
        let mut tail = StderrTail::default();
        for n in 0..10_000 {
            tail.push(format!("line {n}\n").as_bytes(), |_| {});
        }
        let text = tail.text();
        assert!(text.len() <= STDERR_TAIL && text.ends_with("line 9999"), "{text}");
        assert!(text.lines().all(|line| line.starts_with("line ")), "{text}");
    }

    #[test]
    fn a_tail_that_is_just_full_is_shown_whole() {
        let mut exact = b"first\n".to_vec();
        exact.resize(STDERR_TAIL, b'x');
        assert!(tail(&exact).text().starts_with("first\n"));
        exact.push(b'x');
        assert!(tail(&exact).text().starts_with('x'), "the rest of a cut line is left out");
        let one_line = vec![b'y'; 2 * STDERR_TAIL];
        assert_eq!(tail(&one_line).text().len(), STDERR_TAIL, "unless there is nothing else");
        assert_eq!(tail(b"\n\n").text(), "");
        assert_eq!(tail(b"").text(), "");
    }

    // case 117: partial UTF-8 in stderr; SEC-03: control characters are escaped where they are shown
    #[test]
    fn bad_bytes_and_control_characters_are_made_showable() {
        assert_eq!(lines(&[b"caf\xe9 \x1b[31m\n"]), ["caf\u{fffd} \\u{1b}[31m"]);
        assert_eq!(lines(&["\u{202e}evil\u{2069}\0\n".as_bytes()]), ["\\u{202e}evil\\u{2069}\\u{0}"]);
        assert_eq!(tail(b"caf\xe9 \x1b[31m\n").text(), "caf\u{fffd} \\u{1b}[31m");
    }

    // case 117: a line that is cut at the limit is cut between characters, and bad bytes at the limit do not stick
    #[test]
    fn a_long_line_is_not_cut_within_a_character() {
        for lead in 0..4 {
            let text = format!("{}{}", "a".repeat(lead), "\u{1f600}".repeat(STDERR_LINE_LIMIT));
            assert_eq!(lines(&[text.as_bytes()]).concat(), text, "after {lead} bytes");
        }
        let bad = vec![0xff_u8; 2 * STDERR_LINE_LIMIT];
        assert_eq!(lines(&[&bad]).len(), 2);
    }

    // case 113: error thrown in the user's stderr callback kills the host
    #[test]
    fn a_panic_of_the_callback_costs_its_line_only() {
        let (mut tail, mut got) = (StderrTail::default(), Vec::new());
        tail.push(b"one\ntwo\nthree\nfo", |line| {
            assert_ne!(line, "two", "a bug in the callback");
            got.push(line.to_owned());
        });
        tail.push(b"ur\n", |line| got.push(line.to_owned()));
        assert_eq!(got, ["one", "three", "four"]);
        assert_eq!(tail.text(), "one\ntwo\nthree\nfour");
    }
}
