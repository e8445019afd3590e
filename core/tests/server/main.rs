//! The server's side of a connection, rule by rule: lines in, lines out, compared byte by byte.

mod answers;
mod any_order;
mod any_order_legacy;
mod batches;
mod cancelling;
mod checks;
mod client_requests;
mod ending;
mod eras;
mod limits;
mod listens;
mod progress;
mod session;
mod support;
mod unreadable;
