//! Owns every call of the Windows system that std has no safe form of: jobs, the start of a suspended process, standard handles. It must not
//! know what a server is.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{HANDLE, HANDLE_FLAG_INHERIT, INVALID_HANDLE_VALUE, SetHandleInformation};
use windows_sys::Win32::System::Console::{STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectBasicAccountingInformation,
    JobObjectExtendedLimitInformation, QueryInformationJobObject, SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::Pipes::PeekNamedPipe;
use windows_sys::Win32::System::Threading::{
    INFINITE, OpenThread, ResumeThread, THREAD_SUSPEND_RESUME, WaitForSingleObject,
};

/// The error of the last call, unless its result says that there was none.
fn check(succeeded: bool) -> io::Result<()> {
    if succeeded { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes over what a call has made.
fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    check(!handle.is_null() && handle != INVALID_HANDLE_VALUE)?;
    // SAFETY: the call has just made it, for nobody else.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

fn size_of<T>() -> u32 {
    u32::try_from(std::mem::size_of::<T>()).unwrap_or(u32::MAX)
}

/// A job: a set of processes that end together. What a member starts becomes a member. Dropping it ends them all.
#[derive(Debug)]
pub(crate) struct Job(OwnedHandle);

impl Job {
    /// An empty one, without a name that somebody else could open.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: both pointers may be null: default security (not inheritable), and no name.
        let job = Self(owned(unsafe { CreateJobObjectW(null(), null()) })?);
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        let size = size_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>();
        // SAFETY: the job is open; the pointer is to a value of the type and the size that belong to this class of information.
        let set = unsafe {
            SetInformationJobObject(
                job.0.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast::<c_void>(),
                size,
            )
        };
        check(set != 0)?;
        Ok(job)
    }

    /// Makes a process a member. There is no way back.
    pub(crate) fn assign(&self, process: BorrowedHandle<'_>) -> io::Result<()> {
        // SAFETY: both handles are open.
        check(unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process.as_raw_handle()) } != 0)
    }

    /// Ends all members at once, with this exit code.
    pub(crate) fn terminate(&self, code: u32) {
        // An error means that there is nobody left to end.
        // SAFETY: the handle is open.
        let _ = unsafe { TerminateJobObject(self.0.as_raw_handle(), code) };
    }

    /// Whether no member lives. Unknown counts as inhabited.
    pub(crate) fn is_empty(&self) -> bool {
        let mut counts = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        let size = size_of::<JOBOBJECT_BASIC_ACCOUNTING_INFORMATION>();
        // SAFETY: the job is open; the pointer is to a value of the type and the size that belong to this class of information; the length is not asked
        // for.
        let told = unsafe {
            QueryInformationJobObject(
                self.0.as_raw_handle(),
                JobObjectBasicAccountingInformation,
                (&raw mut counts).cast::<c_void>(),
                size,
                null_mut(),
            )
        };
        told != 0 && counts.ActiveProcesses == 0
    }
}

/// Lets a process run that was created suspended. The caller holds its handle, so the id is its own.
pub(crate) fn resume(pid: u32) -> io::Result<()> {
    // std keeps the handle of the first thread to itself, so it is looked up among all threads of the machine.
    // SAFETY: no pointer is passed.
    let snapshot = owned(unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) })?;
    let mut entry = THREADENTRY32 { dwSize: size_of::<THREADENTRY32>(), ..Default::default() };
    // SAFETY: the snapshot is open, and the entry says its size.
    let mut more = unsafe { Thread32First(snapshot.as_raw_handle(), &raw mut entry) } != 0;
    let mut resumed = false;
    while more {
        if entry.th32OwnerProcessID == pid {
            // SAFETY: no pointer is passed. A thread of a suspended process cannot have ended, so the id is its own.
            let thread = owned(unsafe { OpenThread(THREAD_SUSPEND_RESUME, 0, entry.th32ThreadID) })?;
            // SAFETY: the handle is open, with the right to do this.
            check(unsafe { ResumeThread(thread.as_raw_handle()) } != u32::MAX)?;
            resumed = true;
        }
        entry.dwSize = size_of::<THREADENTRY32>();
        // SAFETY: as above.
        more = unsafe { Thread32Next(snapshot.as_raw_handle(), &raw mut entry) } != 0;
    }
    if resumed { Ok(()) } else { Err(io::Error::other("the first thread of the new process is missing")) }
}

/// Blocks until a process has ended.
pub(crate) fn wait(process: BorrowedHandle<'_>) {
    // It can only fail for a handle that cannot be waited for, which the handle of a process is not.
    // SAFETY: the handle is open.
    let _ = unsafe { WaitForSingleObject(process.as_raw_handle(), INFINITE) };
}

/// Whether this is a pipe that somebody still holds the other end of. A read of nothing is not its end then (case 190): somebody has written
/// nothing.
pub(crate) fn is_open_pipe(stream: BorrowedHandle<'_>) -> bool {
    // SAFETY: the handle is open; with no room for bytes and no place for the counts, nothing is written anywhere.
    unsafe { PeekNamedPipe(stream.as_raw_handle(), null_mut(), 0, null_mut(), null_mut(), null_mut()) != 0 }
}

/// Which standard stream.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Standard {
    Input,
    Output,
}

/// What this process, and whatever asks the system for a standard stream, gets from now on.
pub(crate) fn set_standard(which: Standard, handle: BorrowedHandle<'_>) -> io::Result<()> {
    let id = match which {
        Standard::Input => STD_INPUT_HANDLE,
        Standard::Output => STD_OUTPUT_HANDLE,
    };
    // SAFETY: the handle is open. That it stays so as long as it is a standard handle is for the caller to see to; a use after that would fail, as
    // a use of any closed standard stream does.
    check(unsafe { SetStdHandle(id, handle.as_raw_handle()) } != 0)
}

/// Whether what this process starts gets a copy of the handle.
pub(crate) fn set_inheritable(handle: BorrowedHandle<'_>, inheritable: bool) -> io::Result<()> {
    let flags = if inheritable { HANDLE_FLAG_INHERIT } else { 0 };
    // SAFETY: the handle is open.
    check(unsafe { SetHandleInformation(handle.as_raw_handle(), HANDLE_FLAG_INHERIT, flags) } != 0)
}
