//! The client's side of the adapters: the handles a user holds, the state they share with the driver, and the driver's end of
//! it. It must not know runtimes: whoever drives it moves the bytes and waits.

mod builder;
mod call;
mod ending;
mod engine;
mod error;
mod events;
mod facts;
mod handle;
mod link;
mod listen;
mod notes;
mod options;
mod requests;
mod routing;
mod server_requests;
mod shared;
mod slab;
mod stderr;
mod tape;
mod tee;
mod turn;

pub use call::{Call, RequestBuilder};
pub use engine::Engine;
pub use error::{CallError, CloseError, StartError, StartFailedKind};
pub use events::{ClientEvent, Events};
pub use facts::ServerFacts;
pub use handle::{Client, Closing, Established};
pub use link::Link;
pub use listen::{Listen, ListenEvent, ListenRequest, Opening};
pub use notes::{HookError, Notification, Notifications};
pub use options::Options;
pub use server_requests::ServerRequest;
pub use tape::{ProcessFact, TapeEntry, TapeFact, TapeOp};
pub use tee::Tee;
pub use turn::{Output, Todo, Turn, Wrote};

#[doc(hidden)]
pub mod __private {
    pub use mcp_wire::Eras;
    pub use serde::Serialize;
}
