//! The server's side that a user holds: builder, calls, publisher, stop; and the engine that an adapter's loop drives.
//! It must not know runtimes or descriptors.

mod builder;
mod call;
mod engine;
mod error;
mod publisher;
mod shared;
mod task;

pub use builder::{Builder, Server};
pub use call::{Call, Cancelled};
pub use engine::{Engine, Turn};
pub use error::{RpcError, ServeError};
pub use publisher::{Publisher, StopHandle};
pub use task::Task;
