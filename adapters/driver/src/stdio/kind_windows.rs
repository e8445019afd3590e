//! Owns what kind of file a standard stream is, and the handle that suits it: on Windows each is read and written by a thread. It must not
//! know runtimes.

use std::io;
use std::os::windows::io::{BorrowedHandle, OwnedHandle};

/// How the standard input is to be read.
///
/// ```
/// # use mcp_wire_driver::stdio::Input;
/// fn has_readiness(input: &Input) -> bool {
///     !matches!(input, Input::Blocking(_))
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Input {
    /// Read it with a thread.
    Blocking(OwnedHandle),
}

/// How the standard output is to be written.
///
/// ```
/// # use mcp_wire_driver::stdio::Output;
/// fn has_readiness(output: &Output) -> bool {
///     !matches!(output, Output::Blocking(_))
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Output {
    /// Write it with a thread.
    Blocking(OwnedHandle),
}

impl Input {
    /// Looks at a handle.
    ///
    /// # Errors
    /// The handle is closed, or none is left.
    pub fn of(handle: BorrowedHandle<'_>) -> io::Result<Self> {
        Ok(Self::Blocking(handle.try_clone_to_owned()?))
    }
}

impl Output {
    /// Looks at a handle.
    ///
    /// # Errors
    /// The handle is closed, or none is left.
    pub fn of(handle: BorrowedHandle<'_>) -> io::Result<Self> {
        Ok(Self::Blocking(handle.try_clone_to_owned()?))
    }
}
