//! Owns the default limits and grace periods that both roles share, each with the reason for its value.
//! It must not know what is done when a limit is passed.

use core::time::Duration;

/// Longest line accepted, in bytes before its CR LF; a line of exactly this length is accepted. Larger than any
/// tool result seen in the field, small enough that one server cannot exhaust a host.
pub const LINE_LIMIT: usize = 16 << 20;
/// Largest read that is asked for where reads fill what is there, in bytes: the capacity of a pipe on Linux.
pub const FULL_READ: usize = 64 << 10;
/// Deepest nesting of arrays and objects (LIM-03).
pub const DEPTH_LIMIT: usize = 128;
/// Longest id, progress token and method, in bytes of their text on the wire (LIM-03).
pub const NAME_LIMIT: usize = 1 << 10;
/// Messages in one line of revision 2025-03-26 (LIM-03); a line with more is no message.
pub const BATCH_LIMIT: usize = 100;
/// Outgoing queue, in bytes (LIM-04): one line of the largest size.
pub const QUEUE_LIMIT: usize = 16 << 20;
/// Answers that the core makes itself, in bytes, before reading pauses (LIM-04).
pub const OWN_ANSWERS_LIMIT: usize = 1 << 20;
/// Requests in flight on a client; one more gets `SendError::Full`.
pub const IN_FLIGHT_LIMIT: usize = 1024;
/// Listens open on a side.
pub const LISTEN_LIMIT: usize = 64;
/// URIs that all open listens of a server together name, in bytes, with what keeping each costs.
pub const LISTEN_BYTES_LIMIT: usize = 4 << 20;
/// Handlers running on a server (LIM-02).
pub const RUNNING_LIMIT: usize = 256;
/// Requests waiting for a permit on a server (LIM-02).
pub const WAITING_LIMIT: usize = 256;
/// Payload of the requests that wait for a permit, in bytes together.
pub const WAITING_BYTES_LIMIT: usize = 32 << 20;
/// Cancellation reasons are cut at this many bytes.
pub const REASON_LIMIT: usize = 1 << 10;
/// Time for each request (TMO-01): the default of the official SDKs.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Time from the start of a process to its first answer: `npx` and `uvx` download a package first.
pub const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Time for the answer to the probe, from its first byte (VER-04): longer than any server takes that is up, short enough to wait for one that
/// will never answer.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Wait after each step of the shutdown ladder (SHD-01).
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// Time that handlers get after the end of input (SHD-05).
pub const DRAIN: Duration = Duration::from_secs(10);
/// First delay of a restart; it doubles up to [`RESTART_DELAY_MAX`].
pub const RESTART_DELAY: Duration = Duration::from_millis(500);
/// Longest delay of a restart.
pub const RESTART_DELAY_MAX: Duration = Duration::from_secs(30);
/// Restarts before giving up (RST-01).
pub const RESTART_BUDGET: u32 = 5;
/// Stable time after which the restart budget is full again.
pub const RESTART_STABLE: Duration = Duration::from_secs(60);
/// Silence after the exit of the leader that ends the draining of its output (PRC-03).
pub const DRAIN_SILENCE: Duration = Duration::from_millis(250);
/// Notifications of one request that wait unread (PRG-07).
pub const UNREAD_LIMIT: usize = 64;
/// The protocol revision that this crate speaks: no handshake, metadata in each request.
pub const PROTOCOL_VERSION: &str = "2026-07-28";
/// The revisions of the legacy era, which begin with a handshake, newest first.
pub const LEGACY_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// What a legacy client may tell of itself with `initialize`, in bytes: each of its calls may keep it.
pub const CLIENT_FACTS_LIMIT: usize = 64 << 10;
/// Requests of a server that its legacy client has not answered.
pub const CLIENT_REQUEST_LIMIT: usize = 64;
/// Requests of a legacy server that its client has not answered.
pub const SERVER_REQUEST_LIMIT: usize = 64;
/// Tasks of a server that still report progress after their request was answered (LEG-11).
pub const TASK_LIMIT: usize = 64;
