//! Ends of real servers under a client on Windows, on smol.

#![cfg(windows)]

#[path = "../../tests/windows_ends.rs"]
mod on_smol;
#[path = "windows_runtime/mod.rs"]
mod runtime;
#[path = "../../driver/tests/windows_support/mod.rs"]
mod windows_support;
