//! Owns the words between a driver's loop and its link: what is to be done, what was done. It must not know how.

use mcp_wire::Instant;

/// What the loop is to do to the ends it holds.
///
/// ```
/// # use mcp_wire_driver::client::Todo;
/// fn closes_something(todo: Todo) -> bool {
///     !matches!(todo, Todo::Spawn)
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Todo {
    /// Spawn the command; answer with `Link::spawned` or `Link::spawn_failed`.
    Spawn,
    /// Close the writing end, dropping what is not written.
    CloseInput,
    /// The process has exited: close all ends, then `Link::reap`.
    Reap,
    /// The process does not end though it was killed: close all ends.
    CloseAll,
}

/// What became of a write.
///
/// ```
/// let wrote = mcp_wire_driver::client::Wrote { accepted: 10, spent: None, failed: false };
/// ```
#[derive(Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "it is an argument that each loop fills in")]
pub struct Wrote {
    /// Bytes that the writer accepted.
    pub accepted: usize,
    /// The bytes of [`Turn::output`], once all are accepted or none will be.
    pub spent: Option<Vec<u8>>,
    /// The writer failed: it takes nothing more.
    pub failed: bool,
}

/// What the loop is to do next.
///
/// ```
/// # use mcp_wire_driver::client::Turn;
/// fn may_sleep(turn: &Turn) -> bool {
///     turn.todo.is_none() && turn.output.is_none() && !turn.over
/// }
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Turn {
    /// Something to do first; then take the next turn.
    pub todo: Option<Todo>,
    /// Bytes to write; report what becomes of them with the next turn.
    pub output: Option<Vec<u8>>,
    /// When to take a turn at the latest, in the driver's time.
    pub deadline: Option<Instant>,
    /// It is over: close all ends and stop.
    pub over: bool,
}

/// Whether the loop can take bytes to write, or holds some.
///
/// ```
/// use mcp_wire_driver::client::Output;
/// assert_ne!(Output::Wanted, Output::Held);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// The writer is idle.
    Wanted,
    /// There are bytes left of the last turn, and a write of them is tried next.
    Resuming,
    /// There are bytes left that the writer does not take now, or there is no writer.
    Held,
}
