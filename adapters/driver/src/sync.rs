//! Owns the choice of the locks and flags through which handles, handlers and driver meet: those of std, or in the build of `.ci/model` those of a
//! checker that tries every order. It must not know what they guard.
//!
//! Reference counts and wakers are std's in both: a checked thread is never stopped inside them, and each drop or wake lies between two locks, where
//! it is.

#[cfg(not(all(test, mcp_wire_model)))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic::AtomicBool};

#[cfg(all(test, mcp_wire_model))]
pub(crate) use loom::sync::{Mutex, MutexGuard, atomic::AtomicBool};
