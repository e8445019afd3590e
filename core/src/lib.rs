//! The stdio transport of the Model Context Protocol (revision 2026-07-28, and on a server the handshake-based revisions before it) as a pure
//! state machine.
//!
//! It consumes bytes, time and intentions, and says what to write, what happened, what to do to the process, and when to wake
//! it. It does no I/O, reads no clock, starts no thread and logs nothing: whoever embeds it moves the bytes. Adapters that do
//! are `mcp-wire-tokio` and its siblings.
//!
//! # The driving loop
//!
//! A client and a server, driven against each other in memory. Over a real stream the two `copy` lines become a write and a read.
//!
//! ```
//! use core::time::Duration;
//! use mcp_wire::{Instant, Json, RecvBuffer, client, server};
//!
//! let mut client = client::Connection::new(client::Config::new("my-host", "1.0"))?;
//! let mut server = server::Connection::new(server::Config::new("my-server", "1.0"))?;
//! let (mut to_client, mut to_server) = (RecvBuffer::default(), RecvBuffer::default());
//! let clock = std::time::Instant::now(); // the driver picks the epoch; the core has no clock
//! let now = || Instant::from_epoch(clock.elapsed());
//!
//! client.opened(now()); // the byte stream can be used: the probe is queued
//! let sum = client.request("tools/call", Some(Json::parse(r#"{"name":"add"}"#)?), Default::default(), now())?;
//! let mut answer = None;
//!
//! while answer.is_none() {
//!     // 1. Write what the client has, as much as the stream takes. `accepted` says how much that was.
//!     let n = { let bytes = client.output(now()); to_server.extend(bytes); bytes.len() };
//!     client.accepted(n, now());
//!
//!     // 2. Hand the server its frames, one by one. The event borrows from the buffer, so the server can answer while it is held.
//!     while let Some(frame) = to_server.next_frame() {
//!         match server.handle(frame.message(), now()) {
//!             server::Event::Request { ticket, .. } => server.respond(ticket, Json::parse(r#"{"sum":42}"#)?, now())?,
//!             _ => {} // reports; `poll_signal` gives the rest (a cancellation, a waiting request that may start)
//!         }
//!         while let Some(_signal) = server.poll_signal() {}
//!     }
//!
//!     // 3. The same the other way.
//!     let n = { let bytes = server.output(now()); to_client.extend(bytes); bytes.len() };
//!     server.accepted(n, now());
//!     while let Some(frame) = to_client.next_frame() {
//!         match client.handle(frame.message(), now()) {
//!             client::Event::Result { request, result, .. } if request == sum => answer = Some(result.get().to_owned()),
//!             _ => {}
//!         }
//!         // What ended without a frame: timed out, cancelled, closed. Taken after each frame, wire order is kept.
//!         while let Some(_signal) = client.poll_signal() {}
//!     }
//!
//!     // 4. Time. Sleep until the earliest of these or until the stream is ready, whichever comes first.
//!     let _wake = [client.poll_timeout(), server.poll_timeout()].into_iter().flatten().min();
//!     client.handle_timeout(now());
//!     server.handle_timeout(now());
//! }
//! assert!(answer.unwrap().contains(r#""sum":42"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Over a real stream, read straight into [`RecvBuffer::spare_mut`] and [`commit`](RecvBuffer::commit) what came, call
//! [`close`](RecvBuffer::close) at the end of input and hand the last frames in, then tell the connection
//! ([`client::Connection::lost`], [`server::Connection::end_of_input`]).
//!
//! # Promises
//!
//! - Any call may follow any other; a call that makes no sense changes nothing.
//! - Every output is level-triggered: asking twice is harmless, not asking loses nothing.
//! - How the input was cut into reads makes no difference.
//! - An early or double `handle_timeout` does nothing; time that goes backwards is clamped. Input handed in before `handle_timeout` wins over a
//!   deadline of the same moment.
//! - The same calls give the same outputs, always.
//! - Nothing that a peer sends can make it panic, and memory is bounded by the configuration whatever the peer does.
//! - **Every request ends exactly once**, on both sides and on every path, and an ending without an answer says what is known of its
//!   [`Delivery`].
//!
//! # A process behind the client
//!
//! [`lifecycle::Process`] is the life of a server's process as a machine of its own: the shutdown ladder, restarts, lazy start and idle stop.
//! [`Supervisor`] joins it with a [`client::Connection`] over all its lives, and gives one ordered sequence of signals. Embed the
//! supervisor where you spawn servers, the bare connection over sockets and pipes that are simply there.
//!
//! # Features
//!
//! `std` (default) turns on the run-time detection of SIMD in the dependencies. Without it the crate needs `alloc` only.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod batch;
pub mod client;
pub mod config;
mod encode;
mod eras;
mod error;
mod filter;
mod id;
mod json;
pub mod lifecycle;
mod message;
mod own;
mod recv_buffer;
mod rising;
mod salvage;
mod scanner;
mod send_buffer;
pub mod server;
mod supervisor;
mod time;
mod unread;

pub use batch::Batch;
pub use eras::{Era, Eras};
pub use error::{Cause, ConfigError, ConnectionError, Delivery, DropReason, SendError, UnreadableReason};
pub use filter::Filter;
pub use id::{Id, IdBuf};
pub use json::{Json, JsonBuf, Members};
pub use message::{ErrorObject, Message, Shape, Unreadable};
pub use recv_buffer::{Frame, RecvBuffer};
pub use supervisor::{Supervisor, SupervisorSignal};
pub use time::Instant;
pub use unread::Unread;
