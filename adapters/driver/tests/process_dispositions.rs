//! A host that blocks or ignores signals: its server starts clean. In a file of its own, because it changes this process.

#![cfg(target_os = "linux")]

mod support;

use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_driver::process::spawn;
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use support::{exit_of, misbehaving, read_to_end, reported};

/// Blocked and ignored signals of a child spawned by this thread.
fn masks() -> (u64, u64) {
    let mut server = spawn(&misbehaving(&["report"])).expect("it can be spawned");
    let report = String::from_utf8(read_to_end(&mut server.stdout)).expect("the report is ASCII");
    let mask = |name| match reported(&report, name)[..] {
        [mask] => u64::from_str_radix(mask, 16).expect("a mask"),
        _ => panic!("{report}"),
    };
    // Above 31 are real-time signals, two of them the C library's own, which some hosts ignore and nobody ends a server by.
    (mask("SigBlk"), mask("SigIgn") & 0x7fff_ffff)
}

/// SIGTERM ends a child spawned by this thread.
fn a_child_heeds_sigterm() {
    let server = spawn(&misbehaving(&["sleep"])).expect("it can be spawned");
    server.child.terminate();
    assert_eq!(exit_of(&server.child), ExitStatus::Signal(15));
}

// case 152: SIGTERM has no effect since the blocked mask was inherited; and the same by dispositions; SIGPIPE too, which Rust ignores
#[test]
fn a_server_starts_with_nothing_blocked_and_nothing_ignored() {
    assert_eq!(masks(), (0, 0), "from a clean host");

    SigSet::all().thread_block().expect("signals can be blocked");
    assert_eq!(masks(), (0, 0), "from a thread that blocks all");
    a_child_heeds_sigterm();
    SigSet::all().thread_unblock().expect("signals can be unblocked");

    let set = |signals: &[Signal], handler| {
        for each in signals {
            // SAFETY: no handler is installed.
            unsafe { signal(*each, handler) }.expect("it can be set");
        }
    };
    set(&[Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGCHLD], SigHandler::SigIgn);
    assert_eq!(masks(), (0, 0), "from a process that ignores some");
    // With SIGCHLD ignored nobody could say how a child ended.
    set(&[Signal::SIGCHLD], SigHandler::SigDfl);
    a_child_heeds_sigterm();
    set(&[Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP], SigHandler::SigDfl);
}
