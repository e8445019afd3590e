//! The server's side that a user holds: builder, calls, publisher, stop; and the engine that an adapter's loop drives.
//! It must not know runtimes or descriptors.

mod asked;
mod builder;
mod call;
mod engine;
mod error;
mod legacy_client;
mod publisher;
mod shared;
mod task;
mod task_progress;
mod task_set;

pub use builder::{Builder, Server};
pub use call::{Call, Cancelled};
pub use engine::{Engine, Turn};
pub use error::{RpcError, ServeError};
pub use legacy_client::{LegacyClient, LegacyRequest, LegacyRequestError};
pub use publisher::{Publisher, StopHandle};
pub use task::Task;
pub use task_progress::TaskProgress;
pub use task_set::TaskSet;
