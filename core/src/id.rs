//! Owns JSON-RPC ids and progress tokens: the text on the wire and the comparison by value.
//! It must not know which ids are in flight.

mod number;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};

use crate::Json;
use crate::config::NAME_LIMIT;
use crate::json::{string_len, unescape};
use number::Number;

/// A request id, progress token or subscription id as it stands on the wire (MSG-03), borrowed.
///
/// Equality and order are by type and value (MSG-05): `1`, `1.0` and `1e0` are one id, `"1"` is another, and
/// `"a"` equals `"\u0061"`. Values are compared as sign, digits and exponent, never through a float. Integers come
/// before strings.
///
/// ```
/// use mcp_wire::Id;
///
/// let id = Id::parse("1.50e1").expect("an integer");
/// assert_eq!(id, Id::parse("15").expect("an integer"));
/// assert_eq!(id.token(), "1.50e1");
/// assert!(Id::parse("1.5").is_none());
/// ```
#[derive(Clone, Copy)]
pub struct Id<'b> {
    token: &'b str,
}

impl<'b> Id<'b> {
    /// Reads a JSON token as an id: a string or an integer of any size, at most [`NAME_LIMIT`] bytes long.
    #[must_use]
    pub fn parse(token: &'b str) -> Option<Self> {
        if token.len() > NAME_LIMIT {
            return None;
        }
        let bytes = token.as_bytes();
        let good = if bytes.first() == Some(&b'"') {
            string_len(bytes) == Some(bytes.len()) && text(token).is_some()
        } else {
            plain(bytes).is_some() || Number::parse(bytes).is_some_and(|number| number.is_integer())
        };
        good.then_some(Self { token })
    }

    /// The text on the wire, quotes included.
    #[must_use]
    pub const fn token(self) -> &'b str {
        self.token
    }

    /// The value, if it is an integer that fits.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        let bytes = self.token.as_bytes();
        plain(bytes).or_else(|| {
            let (negative, value) = Number::parse(bytes)?.value()?;
            (!negative).then_some(value)
        })
    }

    /// The value, if it is an integer that fits.
    pub(crate) fn as_i64(self) -> Option<i64> {
        let bytes = self.token.as_bytes();
        let (negative, value) = match plain(bytes) {
            Some(value) => (false, value),
            None => Number::parse(bytes)?.value()?,
        };
        if negative { 0_i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
    }

    fn is_string(self) -> bool {
        self.token.starts_with('"')
    }
}

/// An unsigned integer of at most 19 digits without exponent or fraction: what nearly every id is.
fn plain(token: &[u8]) -> Option<u64> {
    match token {
        [b'0'] => Some(0),
        [b'1'..=b'9', rest @ ..] if rest.len() < 19 => {
            // Nineteen digits fit a u64 whatever they are.
            token.iter().try_fold(0_u64, |value, digit| {
                digit.is_ascii_digit().then(|| value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
            })
        }
        _ => None,
    }
}

/// The text of a string token without its quotes, unescaped; `None` where a surrogate stands alone.
fn text(token: &str) -> Option<alloc::borrow::Cow<'_, str>> {
    unescape(token.get(1..token.len().checked_sub(1)?)?)
}

impl Ord for Id<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let (ours, theirs) = (self.token, other.token);
        match (self.is_string(), other.is_string()) {
            (false, true) => Ordering::Less,
            (true, false) => Ordering::Greater,
            // Both sides of a token that was checked: the fallbacks cannot be reached.
            (true, true) => text(ours).unwrap_or_default().cmp(&text(theirs).unwrap_or_default()),
            (false, false) => {
                if let (Some(a), Some(b)) = (plain(ours.as_bytes()), plain(theirs.as_bytes())) {
                    return a.cmp(&b);
                }
                match (Number::parse(ours.as_bytes()), Number::parse(theirs.as_bytes())) {
                    (Some(a), Some(b)) => a.order(&b),
                    _ => ours.cmp(theirs),
                }
            }
        }
    }
}

impl PartialOrd for Id<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Id<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token || self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Id<'_> {}

impl Hash for Id<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.is_string() {
            text(self.token).unwrap_or_default().hash(state);
        } else if let Some(number) = Number::parse(self.token.as_bytes()) {
            number.negative.hash(state);
            number.place.hash(state);
            for digit in number.digits() {
                state.write_u8(digit);
            }
        }
    }
}

/// The token, byte for byte (MSG-04).
impl Serialize for Id<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Json::trusted(self.token).serialize(serializer)
    }
}

impl fmt::Debug for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.token.escape_debug())
    }
}

/// An id, owned: for tables. Compares as [`Id`] does; keeps the token for the echo (MSG-04).
///
/// ```
/// use mcp_wire::{Id, IdBuf};
///
/// let kept = IdBuf::from(Id::parse("\"L1\"").expect("a string"));
/// assert_eq!(kept.as_id().token(), "\"L1\"");
/// assert_eq!(IdBuf::from(7), IdBuf::parse("7.0").expect("an integer"));
/// ```
#[derive(Clone)]
pub struct IdBuf {
    token: Box<str>,
}

impl IdBuf {
    /// Reads a JSON token as [`Id::parse`] does.
    #[must_use]
    pub fn parse(token: &str) -> Option<Self> {
        Id::parse(token).map(Self::from)
    }

    /// The id whose value is the string `text`; `None` if its token is longer than [`NAME_LIMIT`].
    #[must_use]
    pub fn text(text: &str) -> Option<Self> {
        let mut token = Vec::new();
        crate::encode::string(&mut token, text);
        Self::parse(core::str::from_utf8(&token).ok()?)
    }

    /// Borrows the id.
    #[must_use]
    pub fn as_id(&self) -> Id<'_> {
        Id { token: &self.token }
    }
}

impl From<Id<'_>> for IdBuf {
    fn from(id: Id<'_>) -> Self {
        Self { token: id.token.into() }
    }
}

impl From<u64> for IdBuf {
    fn from(value: u64) -> Self {
        let mut token = Vec::new();
        crate::encode::uint(&mut token, value);
        Self { token: String::from_utf8(token).unwrap_or_default().into() }
    }
}

impl PartialEq for IdBuf {
    fn eq(&self, other: &Self) -> bool {
        self.as_id() == other.as_id()
    }
}

impl Eq for IdBuf {}

impl Ord for IdBuf {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_id().cmp(&other.as_id())
    }
}

impl PartialOrd for IdBuf {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for IdBuf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_id().hash(state);
    }
}

impl Serialize for IdBuf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_id().serialize(serializer)
    }
}

impl fmt::Debug for IdBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_id().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    fn id(token: &str) -> Id<'_> {
        Id::parse(token).unwrap_or_else(|| panic!("{token} is an id"))
    }

    fn hash(id: Id<'_>) -> u64 {
        struct Fnv(u64);
        impl Hasher for Fnv {
            fn finish(&self) -> u64 {
                self.0
            }
            fn write(&mut self, bytes: &[u8]) {
                for byte in bytes {
                    self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
                }
            }
        }
        let mut state = Fnv(0xcbf2_9ce4_8422_2325);
        id.hash(&mut state);
        state.finish()
    }

    #[test]
    fn ids_are_strings_and_integers_of_any_size() {
        // MSG-03
        let long = "9".repeat(1024);
        for token in
            ["0", "-0", "1", "1.0", "1e2", "1.50e1", "0.0", "\"\"", "\"a\"", "18446744073709551616", "10e-1", &long]
        {
            assert!(Id::parse(token).is_some(), "{token}");
        }
        let bad = [
            "", "1.5", "1e-1", "15e-1", "01", "+1", "1.", ".5", "1e", "1e+", "-", "null", "true", "{}", "[]", "\"",
            "\"a", "a",
        ];
        for token in bad.into_iter().chain([
            " 1",
            "1 ",
            "\"\\ud800\"",
            "\"\\x\"",
            "\"a\"b\"",
            "\"\n\"",
            "1e-99999999999999999999",
        ]) {
            assert!(Id::parse(token).is_none(), "{token}");
        }
        // LIM-03: one byte more is too long.
        assert!(Id::parse(&"9".repeat(1025)).is_none());
    }

    #[test]
    fn ids_compare_by_type_and_value() {
        // MSG-05
        let huge = "9".repeat(30);
        let below = format!("1e{huge}");
        let above = format!("1e1{}", "0".repeat(30));
        let classes = [
            vec!["-1e1", "-10", "-10.0"],
            vec!["0", "-0", "0.0", "0e99", "-0.0e-5"],
            vec!["1", "1.0", "1e0", "10e-1", "0.1e1", "1000e-3"],
            vec!["15", "1.5e1", "1.50e1", "150e-1"],
            vec!["100", "1e2", "1E+2", "0.01e4"],
            vec!["9007199254740992", "9007199254740992.0"],
            vec!["9007199254740993"],
            vec!["18446744073709551615"],
            vec!["18446744073709551616"],
            vec![&huge],
            // An exponent of thirty digits is compared exactly.
            vec![
                "1e999999999999999999999999999999",
                "10e999999999999999999999999999998",
                &below,
                "0.1e1000000000000000000000000000000",
            ],
            vec![&above],
            vec!["\"\""],
            vec!["\"1\"", "\"\\u0031\""],
            vec!["\"a\"", "\"\\u0061\""],
            vec!["\"\\ud83d\\ude00\"", "\"😀\""],
        ];
        for (i, class) in classes.iter().enumerate() {
            for (j, other) in classes.iter().enumerate() {
                for a in class {
                    for b in other {
                        let (a, b) = (id(a), id(b));
                        let got = a.cmp(&b);
                        assert_eq!(got, i.cmp(&j), "{a:?} {b:?}");
                        assert_eq!(a == b, got == Ordering::Equal);
                        if a == b {
                            assert_eq!(hash(a), hash(b), "{a:?} {b:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn values_that_fit_are_told() {
        // MSG-05
        for (token, value) in [("0", 0), ("-0", 0), ("1e3", 1000), ("1.50e1", 15), ("18446744073709551615", u64::MAX)] {
            assert_eq!(id(token).as_u64(), Some(value), "{token}");
        }
        for token in ["-1", "18446744073709551616", "1e20", "1e999999999999999999999", "\"1\""] {
            assert_eq!(id(token).as_u64(), None, "{token}");
        }
        assert_eq!(id("-9223372036854775808").as_i64(), Some(i64::MIN));
        assert_eq!(id("9223372036854775808").as_i64(), None);
    }

    #[test]
    fn the_token_is_echoed_byte_for_byte() {
        // MSG-04
        for token in ["1.0", "1E+2", "\"\\u0061\"", "-0"] {
            assert_eq!(serde_json::to_string(&id(token)).expect("an id is JSON"), token);
            assert_eq!(IdBuf::from(id(token)).as_id().token(), token);
        }
        assert_eq!(IdBuf::from(u64::MAX).as_id().token(), u64::MAX.to_string());
        assert_eq!(IdBuf::text("a\"b").expect("short").as_id().token(), "\"a\\\"b\"");
    }
}
