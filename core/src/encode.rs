//! Owns the writing of JSON text that the core makes itself: strings, integers, and the guarantee that a frame holds no raw
//! line break. It must not know JSON-RPC: which members stand in which order is the facades' business.

use alloc::vec::Vec;

use memchr::memchr2;

use crate::SendError;
use crate::config::NAME_LIMIT;
use crate::json::Entry;

/// Appends text that is JSON already.
pub(crate) fn raw(out: &mut Vec<u8>, json: &str) {
    out.extend_from_slice(json.as_bytes());
}

/// Whether a peer reads a method of this length: what counts is the string on the wire, its quotes and escapes (LIM-03).
pub(crate) fn check_method(method: &str) -> Result<(), SendError> {
    // No byte takes more than six.
    if method.len() <= (NAME_LIMIT - 2) / 6 {
        return Ok(());
    }
    let mut text = Vec::new();
    if method.len() <= NAME_LIMIT {
        string(&mut text, method);
    }
    if (1..=NAME_LIMIT).contains(&text.len()) { Ok(()) } else { Err(SendError::MethodTooLong) }
}

/// Appends `text` as a JSON string. Besides what JSON wants escaped, U+2028 and U+2029 leave as `\u2028` and `\u2029`:
/// peers that read lines as text split there (case 003).
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.reserve(text.len().saturating_add(2));
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut clean = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (short, width) = match byte {
            b'"' | b'\\' => (Some(byte), 1),
            b'\n' => (Some(b'n'), 1),
            b'\r' => (Some(b'r'), 1),
            b'\t' => (Some(b't'), 1),
            0x08 => (Some(b'b'), 1),
            0x0c => (Some(b'f'), 1),
            0x00..=0x1f => (None, 1),
            0xe2 if matches!(bytes.get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9])) => (None, 3),
            _ => {
                at += 1;
                continue;
            }
        };
        out.extend_from_slice(bytes.get(clean..at).unwrap_or_default());
        match short {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None if width == 1 => {
                let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
            None => {
                let last = if bytes.get(at + 2) == Some(&0xa8) { b'8' } else { b'9' };
                out.extend_from_slice(&[b'\\', b'u', b'2', b'0', b'2', last]);
            }
        }
        at += width;
        clean = at;
    }
    out.extend_from_slice(bytes.get(clean..).unwrap_or_default());
    out.push(b'"');
}

/// The longest decimal form of a `u64`.
const DIGITS: usize = 20;

/// Appends an unsigned integer.
pub(crate) fn uint(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0_u8; DIGITS];
    let mut at = DIGITS;
    loop {
        at -= 1;
        // The remainder is below ten, and twenty digits hold every u64.
        digits[at] = b'0' + u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends an integer.
pub(crate) fn int(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    uint(out, value.unsigned_abs());
}

/// An object that is being written.
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    pub(crate) fn open(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Begins a member: its value is to be appended.
    pub(crate) fn member(&mut self, name: &str) -> &mut Vec<u8> {
        if !core::mem::replace(&mut self.empty, false) {
            self.out.push(b',');
        }
        string(self.out, name);
        self.out.push(b':');
        self.out
    }

    /// Writes a member of another object, its name and value as they stand there.
    pub(crate) fn copy(&mut self, entry: &Entry<'_>) {
        if !core::mem::replace(&mut self.empty, false) {
            self.out.push(b',');
        }
        raw(self.out, entry.token);
        self.out.push(b':');
        raw(self.out, entry.value.get());
    }

    pub(crate) fn close(self) {
        self.out.push(b'}');
    }
}

/// Takes the white space between tokens out of `out[start..]`, if there is a raw line break among it (FRM-02, case 019).
///
/// What stands there is valid JSON, so a raw CR or LF can only stand between tokens, where it means nothing. The usual frame has
/// none and costs one search. A line break inside a string, which only invalid text has, is dropped: the frame comes first.
pub(crate) fn strip_line_breaks(out: &mut Vec<u8>, start: usize) {
    let Some(frame) = out.get(start..) else { return };
    if memchr2(b'\n', b'\r', frame).is_none() {
        return;
    }
    let mut write = start;
    let mut in_string = false;
    let mut escaped = false;
    for read in start..out.len() {
        let byte = out[read];
        let keep = match byte {
            b'\n' | b'\r' => false,
            b' ' | b'\t' => in_string,
            _ => true,
        };
        if in_string {
            if escaped {
                escaped = false;
            } else if byte == b'\\' {
                escaped = true;
            } else if byte == b'"' {
                in_string = false;
            }
        } else if byte == b'"' {
            in_string = true;
        }
        if keep {
            out[write] = byte;
            write += 1;
        }
    }
    out.truncate(write);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec;

    fn quoted(text: &str) -> String {
        let mut out = Vec::new();
        string(&mut out, text);
        String::from_utf8(out).expect("UTF-8")
    }

    // FRM-02, FRM-03: a line break in a string leaves escaped, and the text reads back as it was.
    #[test]
    fn strings_leave_escaped_and_read_back() {
        assert_eq!(quoted("a\nb"), r#""a\nb""#);
        assert_eq!(quoted("\r\t\u{8}\u{c}\"\\"), r#""\r\t\b\f\"\\""#);
        assert_eq!(quoted("\u{1}\u{1f}\u{7f}"), "\"\\u0001\\u001f\u{7f}\"");
        let all: String = (0..0x3000).filter_map(char::from_u32).chain(['\u{10ffff}', '😀']).collect();
        let text = quoted(&all);
        assert!(!text.bytes().any(|b| b < 0x20));
        assert_eq!(serde_json::from_str::<String>(&text).expect("JSON"), all);
    }

    // case 003: text-oriented readers split at U+2028 and U+2029, so they never leave raw; their neighbours do.
    #[test]
    fn unicode_line_separators_leave_escaped() {
        assert_eq!(quoted("a\u{2028}b\u{2029}"), r#""a\u2028b\u2029""#);
        assert_eq!(quoted("\u{2027}\u{202a}\u{e2}"), "\"\u{2027}\u{202a}\u{e2}\"");
    }

    #[test]
    fn integers_are_plain_decimals() {
        for value in [0, 1, 9, 10, 99, 1_000_000, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            uint(&mut out, value);
            assert_eq!(out, alloc::format!("{value}").into_bytes());
        }
        for value in [0, -1, -32700, i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            int(&mut out, value);
            assert_eq!(out, alloc::format!("{value}").into_bytes());
        }
    }

    // FRM-02, case 019: breaks between tokens go, white space inside strings stays, earlier frames are left alone.
    #[test]
    fn line_breaks_between_tokens_are_taken_out() {
        let mut out = b"{ \"before\" : 1 }\n".to_vec();
        let start = out.len();
        raw(&mut out, "{\r\n  \"a\\\" b\": [1,\n\t2],\n \"c\": \"\\\\\" , \"d\": \" x\\ny \"}");
        strip_line_breaks(&mut out, start);
        let text = String::from_utf8(out).expect("UTF-8");
        assert_eq!(&text[start..], r#"{"a\" b":[1,2],"c":"\\","d":" x\ny "}"#);
        assert!(text.starts_with("{ \"before\" : 1 }\n"));
    }

    #[test]
    fn a_frame_without_breaks_is_not_touched() {
        let mut out = vec![];
        raw(&mut out, "{ \"a\" : 1 }");
        strip_line_breaks(&mut out, 0);
        assert_eq!(out, b"{ \"a\" : 1 }");
    }
}
