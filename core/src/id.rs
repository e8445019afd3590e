//! Owns JSON-RPC ids and progress tokens: the text on the wire and the comparison by value.
//! It must not know which ids are in flight.

use alloc::boxed::Box;

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
    /// Reads a JSON token as an id: a string or an integer of any size, at most [`NAME_LIMIT`](crate::config::NAME_LIMIT) bytes long.
    #[must_use]
    pub fn parse(token: &'b str) -> Option<Self> {
        let _ = token;
        todo!()
    }

    /// The text on the wire, quotes included.
    #[must_use]
    pub const fn token(self) -> &'b str {
        self.token
    }

    /// The value, if it is an integer that fits.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        todo!()
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
        todo!()
    }
}

impl From<Id<'_>> for IdBuf {
    fn from(id: Id<'_>) -> Self {
        Self { token: id.token.into() }
    }
}
