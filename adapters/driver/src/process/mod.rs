//! The process of a server and what grows out of it: the command, the spawn, signals, exit and reap, and its stderr.
//! It must not know runtimes, JSON, or when a step is due: the core's `lifecycle::Process` decides, this performs.

mod command;
mod error;
mod spawned;
mod stderr;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use command::{Environment, ServerCommand, Stderr};
pub use error::SpawnError;
pub use spawned::Spawned;
pub use stderr::{STDERR_LINE_LIMIT, STDERR_TAIL, StderrTail};
#[cfg(unix)]
pub use unix::{ChildTree, spawn};
#[cfg(windows)]
pub use windows::{ChildTree, ExitNotice, spawn};
