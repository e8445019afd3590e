//! Owns JSON-RPC ids and progress tokens: the text on the wire and the comparison by value.
//! It must not know which ids are in flight.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};

use crate::config::NAME_LIMIT;

/// A request id, progress token or subscription id as it stands on the wire (MSG-03), borrowed.
///
/// Equality and order are by type and value (MSG-05): `1`, `1.0` and `1e0` are one id, `"1"` is another, and
/// `"a"` equals `"\u0061"`. Values are compared as sign, digits and exponent, never through a float.
///
/// ```
/// use mcp_wire::Id;
///
/// let id = Id::parse("1.50e1").expect("an integer");
/// assert_eq!(id, Id::parse("15").expect("an integer"));
/// assert_eq!(id.token(), "1.50e1");
/// assert!(Id::parse("1.5").is_none());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Id<'b> {
    token: &'b str,
}

impl<'b> Id<'b> {
    /// Reads a JSON token as an id: a string or an integer of any size, at most [`NAME_LIMIT`] bytes long. An exponent that does
    /// not fit 64 bits counts as too long.
    #[must_use]
    pub fn parse(token: &'b str) -> Option<Self> {
        if token.len() > NAME_LIMIT {
            return None;
        }
        let valid = if token.starts_with('"') {
            serde_json::from_str::<Cow<'_, str>>(token).is_ok()
        } else {
            Integer::parse(token).is_some()
        };
        valid.then_some(Self { token })
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
        if bytes.len() < 20 && bytes.iter().all(u8::is_ascii_digit) {
            return Some(bytes.iter().fold(0, |n, b| n * 10 + u64::from(b - b'0')));
        }
        match self.value() {
            Value::Integer(integer) => integer.as_u64(),
            Value::String(_) => None,
        }
    }

    fn value(self) -> Value<'b> {
        if let Some(inner) = self.token.strip_prefix('"') {
            let plain = inner.strip_suffix('"').unwrap_or(inner);
            if !plain.contains('\\') {
                return Value::String(Cow::Borrowed(plain));
            }
            // A token that was accepted always reads; the raw text stands in where that were not so.
            return Value::String(serde_json::from_str(self.token).unwrap_or(Cow::Borrowed(self.token)));
        }
        Value::Integer(Integer::parse(self.token).unwrap_or(Integer {
            negative: false,
            digits: Cow::Borrowed(""),
            exponent: 0,
        }))
    }
}

impl PartialEq for Id<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token || self.value() == other.value()
    }
}

impl Eq for Id<'_> {}

impl PartialOrd for Id<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Id<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.token == other.token {
            return Ordering::Equal;
        }
        self.value().cmp(&other.value())
    }
}

impl Hash for Id<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value().hash(state);
    }
}

/// An id, owned: for tables. Compares as [`Id`] does; keeps the token for the echo (MSG-04).
///
/// ```
/// use mcp_wire::{Id, IdBuf};
///
/// let kept = IdBuf::from(Id::parse("\"L1\"").expect("a string"));
/// assert_eq!(kept.as_id().token(), "\"L1\"");
/// ```
#[derive(Debug, Clone)]
pub struct IdBuf {
    token: Box<str>,
}

impl IdBuf {
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
    fn from(id: u64) -> Self {
        Self { token: alloc::format!("{id}").into() }
    }
}

impl PartialEq for IdBuf {
    fn eq(&self, other: &Self) -> bool {
        self.as_id() == other.as_id()
    }
}

impl Eq for IdBuf {}

impl PartialOrd for IdBuf {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for IdBuf {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_id().cmp(&other.as_id())
    }
}

impl Hash for IdBuf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_id().hash(state);
    }
}

/// Integers come before strings.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Value<'b> {
    Integer(Integer<'b>),
    String(Cow<'b, str>),
}

/// `digits` times ten to the `exponent`; `digits` have no zero at either end, so that equal values are equal field by field.
/// Zero is no digits, exponent 0, not negative. The order is total, and that of the numbers only where that is cheap.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Integer<'b> {
    negative: bool,
    exponent: i64,
    digits: Cow<'b, str>,
}

impl<'b> Integer<'b> {
    /// Reads a JSON number that is an integer by value.
    fn parse(token: &'b str) -> Option<Self> {
        let (negative, rest) = match token.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, token),
        };
        let (mantissa, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (rest.get(..at)?, Some(rest.get(at + 1..)?)),
            None => (rest, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole) || (whole.len() > 1 && whole.starts_with('0')) || !fraction.is_none_or(all_digits) {
            return None;
        }
        let fraction = fraction.unwrap_or("");
        let zero = whole.bytes().chain(fraction.bytes()).all(|b| b == b'0');
        let mut power: i64 = match exponent {
            None => 0,
            Some(text) => {
                let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
                if !all_digits(digits) {
                    return None;
                }
                match (zero, text.parse()) {
                    (true, _) => 0,
                    (false, Ok(power)) => power,
                    (false, Err(_)) => return None,
                }
            }
        };
        if zero {
            return Some(Self { negative: false, digits: Cow::Borrowed(""), exponent: 0 });
        }
        power = power.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        let mut digits = if fraction.is_empty() {
            Cow::Borrowed(whole.trim_start_matches('0'))
        } else {
            Cow::Owned(alloc::format!("{whole}{fraction}").trim_start_matches('0').into())
        };
        let trailing = digits.len() - digits.trim_end_matches('0').len();
        let kept = digits.len() - trailing;
        match &mut digits {
            Cow::Borrowed(text) => *text = text.get(..kept)?,
            Cow::Owned(text) => text.truncate(kept),
        }
        power = power.checked_add(i64::try_from(trailing).ok()?)?;
        (power >= 0).then_some(Self { negative, digits, exponent: power })
    }

    fn as_u64(&self) -> Option<u64> {
        if self.negative {
            return None;
        }
        let digits: u64 = if self.digits.is_empty() { 0 } else { self.digits.parse().ok()? };
        digits.checked_mul(10_u64.checked_pow(u32::try_from(self.exponent).ok()?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(token: &str) -> Id<'_> {
        Id::parse(token).unwrap_or_else(|| panic!("{token} is an id"))
    }

    // MSG-03: a string or an integer by value, of any size; nothing else.
    #[test]
    fn strings_and_integers_are_ids_and_nothing_else() {
        for token in ["0", "-1", "1.0", "1e2", "1.50e1", "12300e-2", "\"\"", "\"a\\u0062\"", "18446744073709551616"] {
            assert!(Id::parse(token).is_some(), "{token}");
        }
        for token in
            ["1.5", "1e-1", "null", "true", "[]", "{}", "01", "1.", ".5", "1e", "--1", "+1", "", "\"", "\"\\ud800\""]
        {
            assert!(Id::parse(token).is_none(), "{token}");
        }
    }

    // MSG-05, case 039: ids compare by type and value, never through a float.
    #[test]
    fn ids_compare_by_type_and_exact_value() {
        assert_eq!(id("1"), id("1.0"));
        assert_eq!(id("1"), id("10e-1"));
        assert_eq!(id("-0"), id("0"));
        assert_eq!(id("0e99999999999999999999"), id("0"));
        assert_eq!(id("1.5e1"), id("15"));
        assert_eq!(id("\"a\""), id("\"\\u0061\""));
        assert_ne!(id("1"), id("\"1\""));
        assert_ne!(id("9007199254740992"), id("9007199254740993"));
        assert_ne!(id("1e300"), id("1e301"));
        assert_ne!(id("1"), id("-1"));
    }

    // LIM-03: an id is at most 1 KiB of text.
    #[test]
    fn ids_are_bounded_in_length() {
        assert!(Id::parse(&"9".repeat(NAME_LIMIT)).is_some());
        assert!(Id::parse(&"9".repeat(NAME_LIMIT + 1)).is_none());
    }

    // MSG-05: what is equal sorts as equal, so that tables find it.
    #[test]
    fn order_agrees_with_equality() {
        let tokens = ["0", "1", "1.0", "15", "1.5e1", "\"1\"", "\"a\"", "\"\\u0061\"", "-1", "1e300"];
        for a in tokens {
            for b in tokens {
                assert_eq!(id(a).cmp(&id(b)) == Ordering::Equal, id(a) == id(b), "{a} {b}");
                assert_eq!(id(a).cmp(&id(b)), id(b).cmp(&id(a)).reverse(), "{a} {b}");
            }
        }
    }

    #[test]
    fn integers_are_read_exactly() {
        assert_eq!(id("42").as_u64(), Some(42));
        assert_eq!(id("4.2e1").as_u64(), Some(42));
        assert_eq!(id("18446744073709551615").as_u64(), Some(u64::MAX));
        assert_eq!(id("18446744073709551616").as_u64(), None);
        assert_eq!(id("-1").as_u64(), None);
        assert_eq!(id("\"1\"").as_u64(), None);
        assert_eq!(id("0").as_u64(), Some(0));
    }
}
