//! Owns what is kept of a server's standard error: its tail in bytes, and the line at hand. It must not know where lines go.

use std::collections::VecDeque;

/// Bytes of standard error that are kept to explain an exit.
pub const STDERR_TAIL: usize = 8 << 10;
/// A longer line is cut here; the rest goes on as the next line.
pub const STDERR_LINE_LIMIT: usize = 4 << 10;

/// The bounded tail of a server's standard error and a line splitter (LOG-05).
///
/// LF, CR and CR LF end a line, so that a progress bar is not one endless line; a line is cut at [`STDERR_LINE_LIMIT`] bytes. Bytes that are no
/// UTF-8 are replaced and control characters escaped, for display only: nothing in the stream can end the reading of it.
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
    line: Vec<u8>,
    /// The last byte was a CR: a LF right after it ends no further line.
    after_cr: bool,
}

impl StderrTail {
    /// Takes in bytes as they were read, and gives each line that they complete, ready to be shown.
    pub fn push(&mut self, bytes: &[u8], mut line: impl FnMut(&str)) {
        let kept = bytes.get(bytes.len().saturating_sub(STDERR_TAIL)..).unwrap_or_default();
        let over = (self.tail.len() + kept.len()).saturating_sub(STDERR_TAIL);
        self.tail.drain(..over.min(self.tail.len()));
        self.tail.extend(kept);
        for &byte in bytes {
            match byte {
                b'\n' if self.after_cr => {}
                b'\n' | b'\r' => self.end_line(&mut line),
                _ => {
                    self.line.push(byte);
                    if self.line.len() >= STDERR_LINE_LIMIT {
                        self.end_line(&mut line);
                    }
                }
            }
            self.after_cr = byte == b'\r';
        }
    }

    /// The stream has ended: gives the unfinished line, if there is one.
    pub fn finish(&mut self, mut line: impl FnMut(&str)) {
        if !self.line.is_empty() {
            self.end_line(&mut line);
        }
    }

    fn end_line(&mut self, line: &mut impl FnMut(&str)) {
        line(&shown(&self.line));
        self.line.clear();
    }

    /// The tail, ready to be shown, without the line end at its end. A first line that was cut is left out, if there is another.
    #[must_use]
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.tail.iter().copied().collect();
        let cut = bytes.len() == STDERR_TAIL;
        let from = if cut { bytes.iter().position(|b| *b == b'\n').map_or(0, |at| at + 1) } else { 0 };
        let whole = bytes.get(from..).filter(|rest| !rest.is_empty()).unwrap_or(&bytes);
        let lines: Vec<String> =
            whole.split(|b| *b == b'\n').map(|line| shown(line.strip_suffix(b"\r").unwrap_or(line))).collect();
        lines.join("\n").trim_end().to_owned()
    }
}

/// Text for display: what is no UTF-8 replaced, control characters escaped.
fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for c in String::from_utf8_lossy(bytes).chars() {
        if c.is_control() && c != '\t' {
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

    // LOG-05, case 115: stderr without newline grows the line buffer
    #[test]
    fn lines_are_cut_at_cr_lf_and_at_the_limit() {
        assert_eq!(lines(&[b"a\r\nb\rc\nd"]), ["a", "b", "c", "d"]);
        assert_eq!(lines(&[b"a\r", b"\nb\n"]), ["a", "b"]);
        let endless = vec![b'x'; 3 * STDERR_LINE_LIMIT + 1];
        let got = lines(&[&endless]);
        assert_eq!(
            got.iter().map(String::len).collect::<Vec<_>>(),
            [STDERR_LINE_LIMIT, STDERR_LINE_LIMIT, STDERR_LINE_LIMIT, 1]
        );
    }

    // LOG-05: the tail is bounded and holds the newest bytes
    #[test]
    fn the_tail_keeps_the_newest_bytes() {
        let mut tail = StderrTail::default();
        for n in 0..10_000 {
            tail.push(format!("line {n}\n").as_bytes(), |_| {});
        }
        let text = tail.text();
        assert!(text.len() <= STDERR_TAIL && text.ends_with("line 9999") && text.starts_with("line "), "{text}");
    }

    // case 117: partial UTF-8 in stderr; SEC-03: control characters are escaped where they are shown
    #[test]
    fn bad_bytes_and_control_characters_are_made_showable() {
        assert_eq!(lines(&[b"caf\xe9 \x1b[31m\n"]), ["caf\u{fffd} \\u{1b}[31m"]);
    }
}
