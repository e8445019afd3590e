//! Owns what a tape records: configuration, intentions, bytes both ways, process facts, each with its time (design of the
//! replay). It must not know the file format.

use std::fmt;

use mcp_wire::client::{Config, Handle, RequestOptions};
use mcp_wire::lifecycle::{self, ExitStatus, SpawnFailure};
use mcp_wire::{Filter, Json};

use crate::server::RpcError;

/// Where a tape's entries go. Runs while the connection is locked: it must not call the client, and should be quick.
pub(super) type TapeSink = Box<dyn FnMut(TapeEntry<'_>) + Send>;

/// One entry of a tape. Handed to the sink in the order in which the core saw it, so a replay through a fresh core gives the same events.
/// Holds content: it goes to the caller's sink and nowhere else (SEC-03).
///
/// ```
/// use mcp_wire_driver::client::{TapeEntry, TapeFact};
///
/// fn note(entry: &TapeEntry<'_>) {
///     if let TapeFact::In(bytes) = &entry.fact {
///         println!("{} us: {} bytes came in", entry.t_us, bytes.len());
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct TapeEntry<'a> {
    /// Microseconds since the connection's epoch.
    pub t_us: u64,
    /// What happened.
    pub fact: TapeFact<'a>,
}

impl<'a> TapeEntry<'a> {
    pub(super) const fn new(t_us: u64, fact: TapeFact<'a>) -> Self {
        Self { t_us, fact }
    }
}

/// What a tape records.
///
/// ```
/// # use mcp_wire_driver::client::TapeFact;
/// fn is_input(fact: &TapeFact<'_>) -> bool {
///     matches!(fact, TapeFact::In(_) | TapeFact::InCut { .. })
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum TapeFact<'a> {
    /// The configuration; the first entry.
    Config {
        /// Of the connection.
        connection: &'a Config,
        /// Of the process; `None` for a stream.
        process: Option<&'a lifecycle::Config>,
        /// Longest line accepted, in bytes.
        line_limit: usize,
    },
    /// What a caller asked for.
    Op(TapeOp<'a>),
    /// Lines that were read, with their line ends; only the last line before the end of output may lack it. Blank lines and what is cut are left out.
    In(&'a [u8]),
    /// A line that was too long to keep.
    InCut {
        /// Its length.
        bytes: u64,
        /// The token of the id that was found in it.
        id: Option<&'a str>,
    },
    /// Bytes lent to the writer. They count as accepted at once, unless `Accepted` entries follow before the next `Out`.
    Out(&'a [u8]),
    /// The writer took this many bytes of the last `Out`, later or not all at once.
    Accepted(usize),
    /// Deadlines that had passed were handled now; between two ticks none is.
    Tick,
    /// Bytes of standard error.
    Stderr(&'a [u8]),
    /// Something happened to the process or the stream.
    Process(ProcessFact),
}

/// What a caller asked for.
///
/// ```
/// assert!(matches!(mcp_wire_driver::client::TapeOp::Close, mcp_wire_driver::client::TapeOp::Close));
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum TapeOp<'a> {
    /// A request was taken.
    Request {
        /// Its handle.
        handle: Handle,
        /// Its method.
        method: &'a str,
        /// Its params.
        params: Option<Json<'a>>,
        /// Its options.
        options: &'a RequestOptions,
    },
    /// A listen was taken.
    Listen {
        /// Its handle.
        handle: Handle,
        /// What it asks for.
        filter: &'a Filter,
        /// Its options.
        options: &'a RequestOptions,
    },
    /// A notification was taken.
    Notify {
        /// Its method.
        method: &'a str,
        /// Its params.
        params: Option<Json<'a>>,
    },
    /// A request or listen was given up.
    Cancel {
        /// Which.
        handle: Handle,
        /// The reason, if one was given.
        reason: Option<&'a str>,
    },
    /// A request or listen was given up because its hook failed or its consumer did not keep up.
    Overflow {
        /// Which.
        handle: Handle,
    },
    /// The handler of a legacy server's requests has answered one, and its answer was queued (LEG-06).
    Answer {
        /// Which: the first request that came for a handler is 1.
        request: u64,
        /// Its method.
        method: &'a str,
        /// The answer as it was queued: -32603 takes the place of one that was no object, or too large.
        answer: Result<Json<'a>, &'a RpcError>,
    },
    /// `close`.
    Close,
    /// `kill`.
    Kill,
    /// `retry_now`.
    RetryNow,
}

impl fmt::Debug for TapeOp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request { .. } => "Request",
            Self::Listen { .. } => "Listen",
            Self::Notify { .. } => "Notify",
            Self::Cancel { .. } => "Cancel",
            Self::Overflow { .. } => "Overflow",
            Self::Answer { .. } => "Answer",
            Self::Close => "Close",
            Self::Kill => "Kill",
            Self::RetryNow => "RetryNow",
        })
    }
}

/// Something that happened to the process or the stream, as the core was told.
///
/// ```
/// assert_ne!(mcp_wire_driver::client::ProcessFact::Eof, mcp_wire_driver::client::ProcessFact::Reaped);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessFact {
    /// It was spawned.
    Started {
        /// Its id.
        pid: u32,
    },
    /// It could not be spawned.
    SpawnFailed(SpawnFailure),
    /// Its output has ended.
    Eof,
    /// Its standard error has ended or is not ours to read.
    StderrEof,
    /// A write to it failed.
    InputFailed,
    /// It has exited.
    Exited(ExitStatus),
    /// What is left of its group was signalled; whether nobody was.
    GroupSignalled {
        /// Whether nobody was left in it.
        empty: bool,
    },
    /// It was reaped.
    Reaped,
}
