//! Owns the bare loop: the waits, the ends of a client and of a server, and what they need in place of a runtime. It must not know the
//! programs that run on it.
//!
#![doc = include_str!("../../EMBEDDING.md")]

mod client;
mod poll_set;
mod server;
mod signals;
mod streams;
mod tasks;

pub(crate) use client::Connection;
pub(crate) use poll_set::{PollSet, SelfPipe};
pub(crate) use server::serve;
pub(crate) use signals::{Signal, Signals};
pub(crate) use tasks::Timers;
