//! The stdio transport of the Model Context Protocol as a pure state machine.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod client;
pub mod config;
mod encode;
mod error;
mod filter;
mod id;
mod json;
pub mod lifecycle;
mod message;
mod recv_buffer;
mod send_buffer;
pub mod server;
mod supervisor;
mod time;

pub use error::{Cause, ConfigError, ConnectionError, Delivery, DropReason, SendError, UnreadableReason};
pub use filter::Filter;
pub use id::{Id, IdBuf};
pub use json::{Json, JsonBuf};
pub use message::{ErrorObject, Message, Shape, Unreadable};
pub use recv_buffer::{Frame, RecvBuffer};
pub use supervisor::{Supervisor, SupervisorSignal};
pub use time::Instant;
