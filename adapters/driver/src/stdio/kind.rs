//! Owns what kind of file a standard stream is, and the descriptor that suits it. `O_NONBLOCK` is never set on an inherited
//! description: others share it. It must not know runtimes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};

/// How the standard input is to be read.
///
/// ```
/// # use mcp_wire_driver::stdio::Input;
/// fn has_readiness(input: &Input) -> bool {
///     matches!(input, Input::Pipe(_) | Input::Socket(_))
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Input {
    /// A pipe, opened anew and non-blocking: read it on readiness.
    Pipe(OwnedFd),
    /// A socket: read it with `MSG_DONTWAIT` on readiness; its description stays blocking.
    Socket(OwnedFd),
    /// Anything else (a file, a terminal, the null device): read it with a thread.
    Blocking(OwnedFd),
}

/// How the standard output is to be written.
///
/// ```
/// # use mcp_wire_driver::stdio::Output;
/// fn has_readiness(output: &Output) -> bool {
///     matches!(output, Output::Pipe(_) | Output::Socket(_))
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Output {
    /// A pipe, opened anew and non-blocking: write it on readiness.
    Pipe(OwnedFd),
    /// A socket: write it with `MSG_DONTWAIT` on readiness.
    Socket(OwnedFd),
    /// Anything else: write it with a thread.
    Blocking(OwnedFd),
}

impl Input {
    /// Looks at a descriptor.
    ///
    /// # Errors
    /// The descriptor is closed, or none is left.
    pub fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let own = fd.try_clone_to_owned()?;
        Ok(match file_type(fd)? {
            FileType::Fifo => reopen(fd, OFlags::RDONLY).map_or(Self::Blocking(own), Self::Pipe),
            FileType::Socket => Self::Socket(own),
            _ => Self::Blocking(own),
        })
    }
}

impl Output {
    /// Looks at a descriptor.
    ///
    /// # Errors
    /// The descriptor is closed, or none is left.
    pub fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let own = fd.try_clone_to_owned()?;
        Ok(match file_type(fd)? {
            FileType::Fifo => reopen(fd, OFlags::WRONLY).map_or(Self::Blocking(own), Self::Pipe),
            FileType::Socket => Self::Socket(own),
            _ => Self::Blocking(own),
        })
    }
}

fn file_type(fd: BorrowedFd<'_>) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

/// A description of our own for the same pipe. Where that cannot be had (no `/proc`, another user's pipe), a thread reads or writes.
fn reopen(fd: BorrowedFd<'_>, direction: OFlags) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::open(path, direction | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()
}
