//! The server's side of a connection, rule by rule: lines in, lines out, compared byte by byte.

mod answers;
mod any_order;
mod cancelling;
mod checks;
mod ending;
mod limits;
mod listens;
mod progress;
mod support;
mod unreadable;
