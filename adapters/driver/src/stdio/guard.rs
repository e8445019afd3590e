//! Owns the claim on the process's standard streams: private descriptors for the wire, fd 1 to stderr, fd 0 to the null device, and the way
//! back (LOG-04). It must not know what is read or written.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};

use crate::server::ServeError;

/// Whether the standard streams are claimed in this process.
static CLAIMED: AtomicBool = AtomicBool::new(false);

/// The claim on the standard streams. Dropping it puts them back where they were.
///
/// ```no_run
/// let guard = mcp_wire_driver::stdio::claim(true)?;
/// println!("this goes to stderr, not between the frames");
/// # Ok::<(), mcp_wire_driver::server::ServeError>(())
/// ```
#[derive(Debug)]
pub struct StdioGuard {
    input: OwnedFd,
    output: OwnedFd,
    /// fds 0 and 1 were moved.
    moved: bool,
}

/// Claims the standard streams. With `guard`, fd 1 becomes a copy of stderr and fd 0 the null device until the claim is dropped, so that a
/// stray print or a child of a handler can tear no frame and eat no input; the private descriptors are close-on-exec.
///
/// # Errors
/// [`ServeError::StdioTaken`] while another claim lives; [`ServeError::Stdio`] if the descriptors cannot be made.
pub fn claim(guard: bool) -> Result<StdioGuard, ServeError> {
    if CLAIMED.swap(true, Ordering::AcqRel) {
        return Err(ServeError::StdioTaken);
    }
    let claimed = take(guard);
    if claimed.is_err() {
        CLAIMED.store(false, Ordering::Release);
    }
    claimed.map_err(ServeError::Stdio)
}

fn take(guard: bool) -> io::Result<StdioGuard> {
    // From 3 up: a host may have started us with a standard stream closed, and its number must not be taken by the copy.
    let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    if guard {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        // A host may have closed our stderr: then prints go nowhere.
        if rustix::stdio::dup2_stdout(rustix::stdio::stderr()).is_err() {
            rustix::stdio::dup2_stdout(&null)?;
        }
        if let Err(error) = rustix::stdio::dup2_stdin(&null) {
            rustix::stdio::dup2_stdout(&output)?;
            return Err(error.into());
        }
    }
    Ok(StdioGuard { input, output, moved: guard })
}

impl StdioGuard {
    /// The private descriptor of the real standard input.
    #[must_use]
    pub fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// The private descriptor of the real standard output.
    #[must_use]
    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }
}

impl Drop for StdioGuard {
    fn drop(&mut self) {
        if self.moved {
            // What std has buffered for stdout was printed while it was stderr, and belongs there.
            let _ = io::Write::flush(&mut io::stdout());
            // Nothing can be done about an error here; the numbers stay valid either way (case 218).
            let _ = rustix::stdio::dup2_stdin(&self.input);
            let _ = rustix::stdio::dup2_stdout(&self.output);
        }
        CLAIMED.store(false, Ordering::Release);
    }
}
