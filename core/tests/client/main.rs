//! The client's side of a connection, by what it writes and what it makes of what it reads.

mod cancelling;
mod deadlines;
mod legacy;
mod legacy_requests;
mod limits;
mod listens;
mod lives;
mod model;
mod probing;
mod progress;
mod requests;
mod support;
mod unreadable;
