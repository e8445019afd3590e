//! Owns the target for the id of a line that cannot be read: against a reference that has the whole line at hand and reads it by
//! recursion, not byte by byte.

use mcp_wire::Id;

use crate::chunks::feed;

/// Longest token of an id (LIM-03).
const TOKEN: usize = 1024;
/// Levels of a value in which brackets must match; deeper ones are counted only.
const LEVELS: usize = 128;

/// The id of a line too long to keep, in whatever pieces it comes. The input is a cut (two bytes), then the line.
pub fn salvage(data: &[u8]) {
    let Some((cut, line)) = data.split_first_chunk::<2>() else { return };
    // Longer than the limit of one byte, whatever its line end; and nothing that hides the first byte.
    if line.len() < 4 || line.contains(&b'\n') || line.starts_with(b"\xef\xbb\xbf") {
        return;
    }
    let closed = [line, b"\n"].concat();
    let cut = usize::from(u16::from_le_bytes(*cut)) % closed.len();
    let want = reference(line).unwrap_or("-").to_owned();
    for pieces in [vec![&closed[..]], vec![&closed[..cut], &closed[cut..]], closed.chunks(1).collect()] {
        let frames = feed(1, pieces, true);
        let [frame] = &frames[..] else { panic!("one line gave {frames:?}") };
        let said = frame.message.strip_prefix("unreadable line_too_long ").expect("it is too long");
        let told = said.rsplitn(4, ' ').nth(3).expect("id, shape, code and length");
        assert_eq!(told, want, "{:?}", String::from_utf8_lossy(line));
    }
    // Cut off by the end of the input, it tells no other id than one that is there.
    for frame in feed(1, [line], true) {
        let said = frame.message.strip_prefix("unreadable line_too_long ").expect("it is too long");
        let told = said.rsplitn(4, ' ').nth(3).expect("id, shape, code and length");
        assert_eq!(told, want, "{:?} without a line end", String::from_utf8_lossy(line));
    }
}

/// The token of the only id at the top level of what is an object as far as it goes.
fn reference(line: &[u8]) -> Option<&str> {
    let mut reader = Reader { line, at: 0 };
    let (mut found, mut ids) = (None, 0);
    reader.space();
    reader.byte(b'{')?;
    // A `None` is where the object ends, the line ends, or it is an object no more.
    let mut first = true;
    let mut members = || -> Option<()> {
        loop {
            reader.space();
            if first && reader.byte(b'}').is_some() {
                return None;
            }
            first = false;
            let name = reader.name()?;
            reader.space();
            reader.byte(b':')?;
            let is_id = name == "id";
            if is_id {
                ids += 1;
                found = None;
            }
            reader.space();
            let start = reader.at;
            let scalar = reader.value()?;
            let token = line.get(start..reader.at)?;
            if is_id && scalar && token.len() <= TOKEN {
                found = std::str::from_utf8(token).ok().filter(|token| Id::parse(token).is_some());
            }
            reader.space();
            reader.byte(b',')?;
        }
    };
    members();
    found.filter(|_| ids == 1)
}

struct Reader<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn byte(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// The text between two quotes, escapes and all.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.byte(b'"')?;
        let start = self.at;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return self.line.get(start..self.at - 1);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    /// A name, unescaped: a strict one, so that it cannot be taken for another. One that is not ASCII is not of interest.
    fn name(&mut self) -> Option<String> {
        let text = self.string()?;
        let (mut name, mut rest) = (String::new(), text);
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            if byte < 0x20 {
                return None;
            }
            if byte != b'\\' {
                name.push(if byte.is_ascii() { char::from(byte) } else { '?' });
                continue;
            }
            let (&letter, after) = rest.split_first()?;
            rest = after;
            match letter {
                b'u' => {
                    let (digits, after) = rest.split_at_checked(4)?;
                    rest = after;
                    let digits = std::str::from_utf8(digits).ok()?;
                    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                        return None;
                    }
                    let unit = u32::from_str_radix(digits, 16).ok()?;
                    name.push(char::from_u32(unit).filter(char::is_ascii).unwrap_or('?'));
                }
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => name.push('?'),
                _ => return None,
            }
        }
        Some(name)
    }

    /// Reads over a value; whether it can be an id. What a number or a word is, and what stands in a string, is not looked at.
    fn value(&mut self) -> Option<bool> {
        match self.peek()? {
            b'"' => self.string().map(|_| true),
            b'{' | b'[' => {
                let mut open = Vec::new();
                loop {
                    match self.peek()? {
                        b'"' => {
                            self.string()?;
                            continue;
                        }
                        bracket @ (b'{' | b'[') => open.push(bracket),
                        bracket @ (b'}' | b']') => {
                            let known = open.len() <= LEVELS;
                            // Its code is two or one above that of its partner.
                            if known && !matches!((open.last()?, bracket), (b'{', b'}') | (b'[', b']')) {
                                return None;
                            }
                            open.pop();
                        }
                        _ => {}
                    }
                    self.at += 1;
                    if open.is_empty() {
                        return Some(false);
                    }
                }
            }
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' => {
                while self.peek()?.is_ascii_alphanumeric() || matches!(self.peek()?, b'+' | b'-' | b'.') {
                    self.at += 1;
                }
                // Whatever else stands there makes it no value.
                matches!(self.peek()?, b',' | b'}' | b' ' | b'\t' | b'\r').then_some(true)
            }
            _ => None,
        }
    }
}
