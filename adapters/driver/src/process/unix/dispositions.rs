//! Owns that a server starts with an empty signal mask and default dispositions, whatever its host blocks or ignores (case 152).
//! It must not know anything else about the spawn.
//!
//! std resets SIGPIPE only; a blocked or ignored SIGTERM would be inherited and make every close run into SIGKILL. A `pre_exec` costs std's
//! fast path (0.1 ms becomes 35 ms in a host of 256 MiB), so it looks first, and leaves the fast path only when something is dirty.

use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};

/// Makes the child of `command` start clean.
pub(super) fn clean(command: &mut Command) {
    if !is_dirty() {
        return;
    }
    // SAFETY: the closure runs in the child between fork and exec and calls only sigaction and sigprocmask, which are async-signal-safe; it
    // allocates nothing and touches no lock. It installs no handler.
    unsafe {
        command.pre_exec(|| {
            // Dispositions first: a signal that is pending when the mask opens must not find a handler of the host.
            for each in Signal::iterator() {
                if each != Signal::SIGKILL && each != Signal::SIGSTOP {
                    // A signal that cannot be reset stays as it is; the ladder goes on without it.
                    let _ = signal(each, SigHandler::SigDfl);
                }
            }
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(std::io::Error::from)
        });
    }
}

/// Whether this thread blocks or this process ignores a signal that a child would inherit so. One small read.
#[cfg(target_os = "linux")]
fn is_dirty() -> bool {
    match std::fs::read_to_string("/proc/thread-self/status") {
        Ok(status) => status_is_dirty(&status),
        Err(_) => blocks_signals(),
    }
}

/// There is no cheap look at dispositions elsewhere: the mask alone decides.
#[cfg(not(target_os = "linux"))]
fn is_dirty() -> bool {
    blocks_signals()
}

fn blocks_signals() -> bool {
    SigSet::thread_get_mask().is_ok_and(|mask| mask.iter().next().is_some())
}

#[cfg(target_os = "linux")]
fn status_is_dirty(status: &str) -> bool {
    let mask = |name| {
        let digits = status.lines().find_map(|line| line.strip_prefix(name));
        digits.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
    };
    let bit = |signal: i32| 1_u64 << (signal - 1);
    // 32 and 33 belong to the C library, which takes care of them.
    let blocked = mask("SigBlk:") & !(bit(32) | bit(33));
    // SIGPIPE is reset by std. Real-time signals cannot be reset here, and nobody ends a process by one.
    let ignored = mask("SigIgn:") & 0x7fff_ffff & !bit(Signal::SIGPIPE as i32);
    blocked != 0 || ignored != 0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::status_is_dirty;

    // case 152: SIGTERM has no effect since the blocked mask was inherited
    #[test]
    fn only_what_a_child_would_inherit_is_dirty() {
        let status = |blocked: u64, ignored: u64| {
            format!("Name:\tSigBlk:\nSigPnd:\t{0:016x}\nSigBlk:\t{blocked:016x}\nSigIgn:\t{ignored:016x}\n", u64::MAX)
        };
        assert!(!status_is_dirty(&status(0, 0)));
        assert!(!status_is_dirty(&status(0, 1 << 12)), "std resets SIGPIPE");
        assert!(status_is_dirty(&status(1 << 12, 0)), "a blocked SIGPIPE stays blocked");
        assert!(status_is_dirty(&status(1 << 14, 0)) && status_is_dirty(&status(0, 1 << 14)), "SIGTERM");
        assert!(status_is_dirty(&status(0, 1 << 16)), "SIGCHLD: the server could not wait for its own children");
        assert!(status_is_dirty(&status(1 << 34, 0)), "a blocked real-time signal");
        assert!(!status_is_dirty(&status(3 << 31, 3 << 31)), "the C library's own");
    }
}
