//! Real servers under a client on Windows, on tokio.

#![cfg(windows)]

#[path = "../../tests/windows_calls.rs"]
mod on_tokio;
#[path = "windows_runtime/mod.rs"]
mod runtime;
#[path = "../../driver/tests/windows_support/mod.rs"]
mod windows_support;
