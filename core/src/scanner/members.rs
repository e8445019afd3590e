//! Owns the top-level members of a line and where they stand. It must not know how they are found.

use core::ops::Range;

/// A top-level member that a message can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

/// How many [`Member`]s there are.
const MEMBERS: usize = 6;

impl Member {
    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// The member of that name, which is unescaped.
    #[inline]
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"jsonrpc" => Self::Jsonrpc,
            b"id" => Self::Id,
            b"method" => Self::Method,
            b"params" => Self::Params,
            b"result" => Self::Result,
            b"error" => Self::Error,
            _ => return None,
        })
    }
}

/// Where the known top-level members stand in the line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Members {
    /// The root is an object.
    pub(super) object: bool,
    pub(super) seen: u8,
    pub(super) repeated: u8,
    pub(super) values: [(usize, usize); MEMBERS],
}

impl Members {
    pub(crate) const fn is_object(&self) -> bool {
        self.object
    }

    /// A known member stands there twice (UNR-08).
    pub(crate) const fn any_repeated(&self) -> bool {
        self.repeated != 0
    }

    /// Where the value stands; `None` if there is no such member, or more than one.
    pub(crate) fn get_once(&self, member: Member) -> Option<Range<usize>> {
        if self.repeated & member.bit() != 0 {
            return None;
        }
        self.get(member)
    }

    /// Where the value stands; `None` if there is no such member.
    pub(crate) fn get(&self, member: Member) -> Option<Range<usize>> {
        if self.seen & member.bit() == 0 {
            return None;
        }
        self.values.get(member as usize).map(|(start, end)| *start..*end)
    }
}
