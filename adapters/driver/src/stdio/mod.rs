//! The standard streams of a server: the guard that keeps stray prints out of them, what kind each is, and threads for the kinds that
//! have no readiness. It must not know runtimes or frames.

#[cfg_attr(windows, path = "guard_windows.rs")]
mod guard;
#[cfg_attr(windows, path = "kind_windows.rs")]
mod kind;
mod pump;

pub use guard::{StdioGuard, claim};
pub use kind::{Input, Output};
pub use pump::{ReadPump, WritePump};
