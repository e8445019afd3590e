//! Ends of real servers under a client on Windows, on tokio.

#![cfg(windows)]

#[path = "../../tests/windows_ends.rs"]
mod on_tokio;
#[path = "windows_runtime/mod.rs"]
mod runtime;
#[path = "../../driver/tests/windows_support/mod.rs"]
mod windows_support;
