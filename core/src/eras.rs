//! Owns the words for the two eras of the protocol. It must not know what either side does in them.

use crate::config::LEGACY_VERSIONS;

/// An era of the protocol.
///
/// ```
/// use mcp_wire::Era;
///
/// assert_eq!(Era::of("2026-07-28").as_str(), "modern");
/// assert_eq!(Era::of("2025-11-25"), Era::Legacy);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Era {
    /// No handshake, metadata in each request.
    Modern,
    /// The revisions that begin with `initialize`.
    Legacy,
}

impl Era {
    /// The era of a protocol version: legacy are [`LEGACY_VERSIONS`](crate::config::LEGACY_VERSIONS).
    #[must_use]
    pub fn of(version: &str) -> Self {
        if LEGACY_VERSIONS.contains(&version) { Self::Legacy } else { Self::Modern }
    }

    /// The word the programs print.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        }
    }
}

/// Which eras a client or server speaks.
///
/// ```
/// use mcp_wire::{Eras, client, server};
///
/// let mut config = server::Config::new("demo", "1.0");
/// assert!(!config.versions.is_empty() && !config.legacy_versions.is_empty());
/// config.serve(Eras::Modern);
/// assert!(config.legacy_versions.is_empty());
///
/// let mut config = client::Config::new("host", "1.0");
/// config.speak(Eras::Legacy);
/// assert!(config.versions.is_empty());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Eras {
    /// The modern era only. A server refuses `initialize` with the versions it serves (VER-13); to a client, a legacy server is an error
    /// (VER-09).
    Modern,
    /// Both. A server serves both on one connection and judges each request by itself (VER-10); a client probes, and falls back to `initialize`
    /// (VER-04).
    Dual,
    /// The legacy era only.
    Legacy,
}
