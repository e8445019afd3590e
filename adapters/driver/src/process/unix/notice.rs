//! Owns the descriptors that become readable when a child has exited. It must not know what an exit means, and never reaps.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions};

/// A pidfd, or `None` where the system has none.
///
/// # Errors
/// There is no descriptor or memory left.
#[cfg(target_os = "linux")]
pub(super) fn pidfd(pid: Pid) -> io::Result<Option<OwnedFd>> {
    match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => Err(errno.into()),
        // An old kernel (ENOSYS), a filter of system calls (EPERM), or a child that nobody has to wait for and that is gone (ESRCH).
        Err(_) => Ok(None),
    }
}

/// Only Linux has pidfds.
#[cfg(not(target_os = "linux"))]
pub(super) const fn pidfd(_: Pid) -> io::Result<Option<OwnedFd>> {
    Ok(None)
}

/// A descriptor that becomes readable once `pid` has exited, by a small thread that ends with it.
pub(super) fn by_thread(pid: Pid) -> io::Result<OwnedFd> {
    let (reader, mut writer) = UnixStream::pair()?;
    std::thread::Builder::new().name("mcp-wire-exit".to_owned()).stack_size(64 << 10).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        // Any other error, ECHILD above all, means that it is gone too.
        while matches!(rustix::process::waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
        // Nobody may be left to read it.
        let _ = writer.write_all(b"x");
    })?;
    above_standard(reader.into())
}

/// A descriptor above 2: on a lower one, left free by the host, it would be taken for a standard stream (case 125).
pub(super) fn above_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { fd.try_clone() }
}
