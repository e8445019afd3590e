//! Owns integers of any size as they stand on the wire: what is one, and the comparison by value, never through a float. It must not know
//! what they identify.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// A number as digits and a place: `0.d₁d₂… × 10^place`, without zeros at either end. Zero has no digits.
pub(super) struct Number<'b> {
    pub(super) negative: bool,
    /// The digits before and after the point; together they neither begin nor end with a zero.
    pub(super) digits: (&'b [u8], &'b [u8]),
    pub(super) place: Place,
}

/// A power of ten. An exponent may have a thousand digits, so a large one stays decimal.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Place {
    Small(i64),
    /// At least [`Place::LARGE`]: its number of digits, then the digits.
    Large(usize, Vec<u8>),
}

impl Place {
    const LARGE: i64 = 1_000_000_000_000_000_000;

    /// `exponent + shift`, for an exponent that is written with `digits`. Below `-LARGE` the smallest place stands for all:
    /// nothing there is an integer.
    fn new(negative: bool, digits: &[u8], shift: i64) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        let digits = digits.get(zeros..).unwrap_or_default();
        if digits.len() <= 18 {
            let value = digits.iter().fold(0_i64, |value, digit| value * 10 + i64::from(digit - b'0'));
            let value = if negative { -value } else { value };
            let sum = value + shift;
            if sum < Self::LARGE {
                return Self::Small(sum);
            }
        } else if negative {
            return Self::Small(-Self::LARGE);
        }
        // Decimal addition of a shift of a few thousand at most. The carry may run to the front.
        let mut sum: Vec<u8> = Vec::with_capacity(digits.len() + 1);
        let mut carry = shift;
        for digit in digits.iter().rev() {
            let total = i64::from(digit - b'0') + carry;
            sum.push(b'0' + u8::try_from(total.rem_euclid(10)).unwrap_or(0));
            carry = total.div_euclid(10);
        }
        while carry > 0 {
            sum.push(b'0' + u8::try_from(carry % 10).unwrap_or(0));
            carry /= 10;
        }
        while sum.last() == Some(&b'0') {
            sum.pop();
        }
        sum.reverse();
        if sum.len() <= 18 {
            return Self::Small(sum.iter().fold(0_i64, |value, digit| value * 10 + i64::from(digit - b'0')));
        }
        Self::Large(sum.len(), sum)
    }
}

impl<'b> Number<'b> {
    /// Reads a JSON number of at most [`NAME_LIMIT`] bytes; `None` for anything else.
    pub(super) fn parse(token: &'b [u8]) -> Option<Self> {
        let negative = token.first() == Some(&b'-');
        let rest = token.get(usize::from(negative)..)?;
        let (whole, rest) = split_digits(rest);
        if whole.is_empty() || (whole.len() > 1 && whole.first() == Some(&b'0')) {
            return None;
        }
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => {
                let (fraction, rest) = split_digits(rest);
                if fraction.is_empty() {
                    return None;
                }
                (fraction, rest)
            }
            _ => (&[][..], rest),
        };
        let (exponent_negative, exponent) = match rest {
            [] => (false, &b"0"[..]),
            [b'e' | b'E', b'-', exponent @ ..] => (true, exponent),
            [b'e' | b'E', b'+', exponent @ ..] | [b'e' | b'E', exponent @ ..] => (false, exponent),
            _ => return None,
        };
        if exponent.is_empty() || !exponent.iter().all(u8::is_ascii_digit) {
            return None;
        }
        Some(Self::new(negative, whole, fraction, (exponent_negative, exponent)))
    }

    fn new(negative: bool, mut whole: &'b [u8], mut fraction: &'b [u8], exponent: (bool, &[u8])) -> Self {
        let mut point = i64::try_from(whole.len()).unwrap_or(i64::MAX);
        while let Some(b'0') = whole.first() {
            whole = whole.get(1..).unwrap_or_default();
            point -= 1;
        }
        while let Some(b'0') = fraction.last() {
            fraction = fraction.get(..fraction.len() - 1).unwrap_or_default();
        }
        if whole.is_empty() {
            while let Some(b'0') = fraction.first() {
                fraction = fraction.get(1..).unwrap_or_default();
                point -= 1;
            }
        }
        if fraction.is_empty() {
            while let Some(b'0') = whole.last() {
                whole = whole.get(..whole.len() - 1).unwrap_or_default();
            }
        }
        if whole.is_empty() && fraction.is_empty() {
            return Self { negative: false, digits: (&[], &[]), place: Place::Small(0) };
        }
        Self { negative, digits: (whole, fraction), place: Place::new(exponent.0, exponent.1, point) }
    }

    fn len(&self) -> usize {
        self.digits.0.len() + self.digits.1.len()
    }

    pub(super) fn digits(&self) -> impl Iterator<Item = u8> + '_ {
        self.digits.0.iter().chain(self.digits.1).copied()
    }

    /// No digit stands behind the point.
    pub(super) fn is_integer(&self) -> bool {
        match self.place {
            Place::Small(place) => i64::try_from(self.len()).is_ok_and(|len| len <= place),
            Place::Large(..) => true,
        }
    }

    /// Sign and magnitude of an integer that fits.
    pub(super) fn value(&self) -> Option<(bool, u64)> {
        let Place::Small(place) = self.place else { return None };
        let zeros = usize::try_from(place).ok().filter(|place| *place <= 20)?.checked_sub(self.len())?;
        let value = self
            .digits()
            .chain(core::iter::repeat_n(b'0', zeros))
            .try_fold(0_u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?;
        Some((self.negative, value))
    }

    /// Zero is below everything in magnitude, whatever its place would be.
    fn magnitude(&self, other: &Self) -> Ordering {
        let zero = (self.len() > 0).cmp(&(other.len() > 0));
        zero.then_with(|| self.place.cmp(&other.place)).then_with(|| self.digits().cmp(other.digits()))
    }

    pub(super) fn order(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

fn split_digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.iter().take_while(|byte| byte.is_ascii_digit()).count())
}
