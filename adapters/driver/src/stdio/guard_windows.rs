//! Owns the claim on the process's standard streams: private handles for the wire, the standard output to stderr, the standard input to the
//! null device, and the way back (LOG-04). It must not know what is read or written.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::server::ServeError;
use crate::windows::{Standard, set_inheritable, set_standard};

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
    input: OwnedHandle,
    output: OwnedHandle,
    moved: Option<Moved>,
}

/// The standard handles as they were, and what stands in for them.
#[derive(Debug)]
struct Moved {
    input: BorrowedHandle<'static>,
    output: BorrowedHandle<'static>,
    /// What a print is written to when there is no stderr, and what a read finds empty.
    _null: File,
}

/// Claims the standard streams. With `guard`, the standard output becomes stderr and the standard input the null device until the claim is
/// dropped, so that a stray print or a child of a handler can tear no frame and eat no input; a child gets no handle of the wire at all.
///
/// That holds for everything that asks the system for its standard handles when it uses them: Rust's std, and whatever is started with
/// inherited streams. A C runtime in the same process keeps the numbers 0 and 1 that it has opened at its start.
///
/// # Errors
/// [`ServeError::StdioTaken`] while another claim lives; [`ServeError::Stdio`] if the handles cannot be made.
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

/// A standard handle, which nobody closes: std does not, and a program that does has no standard stream any more.
fn for_ever(stream: &impl AsRawHandle) -> BorrowedHandle<'static> {
    // SAFETY: it is open as long as the process uses its standard streams; a use after that fails, as it would by its number.
    unsafe { BorrowedHandle::borrow_raw(stream.as_raw_handle()) }
}

fn take(guard: bool) -> io::Result<StdioGuard> {
    let (input, output) = (for_ever(&io::stdin()), for_ever(&io::stdout()));
    // Copies are not inherited.
    let mut claimed =
        StdioGuard { input: input.try_clone_to_owned()?, output: output.try_clone_to_owned()?, moved: None };
    if guard {
        let null = OpenOptions::new().read(true).write(true).open("NUL")?;
        let stderr = for_ever(&io::stderr());
        let prints = if stderr.as_raw_handle().is_null() { null.as_handle() } else { stderr };
        set_standard(Standard::Output, prints)?;
        let reads = set_standard(Standard::Input, null.as_handle());
        // From here on dropping the claim goes the way back.
        claimed.moved = Some(Moved { input, output, _null: null });
        reads?;
        // A handle that cannot be kept from children, a console's on old systems, is no pipe that they could hold open.
        let _ = set_inheritable(input, false);
        let _ = set_inheritable(output, false);
    }
    Ok(claimed)
}

impl StdioGuard {
    /// The private handle of the real standard input.
    #[must_use]
    pub fn input(&self) -> BorrowedHandle<'_> {
        self.input.as_handle()
    }

    /// The private handle of the real standard output.
    #[must_use]
    pub fn output(&self) -> BorrowedHandle<'_> {
        self.output.as_handle()
    }
}

impl Drop for StdioGuard {
    fn drop(&mut self) {
        if let Some(moved) = self.moved.take() {
            // What std has buffered for stdout was printed while it was stderr, and belongs there.
            let _ = io::Write::flush(&mut io::stdout());
            for (which, handle) in [(Standard::Input, moved.input), (Standard::Output, moved.output)] {
                // Nothing can be done about an error here.
                let _ = set_inheritable(handle, true);
                let _ = set_standard(which, handle);
            }
        }
        CLAIMED.store(false, Ordering::Release);
    }
}
