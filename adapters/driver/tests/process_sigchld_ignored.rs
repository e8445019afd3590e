//! A host that ignores SIGCHLD, as it may have inherited: the system reaps its children. In a file of its own, because it changes this process.

#![cfg(target_os = "linux")]

mod support;

use std::path::Path;

use mcp_wire::lifecycle::ExitStatus;
use nix::sys::signal::{SigHandler, Signal, signal};
use support::{TempDir, Watched, exit_of, start};

// PRC-04: the exit is seen, its status is unknown, and nothing is signalled after it, since the id may be anybody's
#[test]
fn an_exit_that_the_system_reaps_is_seen_with_unknown_status() {
    // SAFETY: no handler is installed.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) }.expect("it can be ignored");

    let server = start(&["exit:3"]);
    assert_eq!(exit_of(&server.child), ExitStatus::Unknown);
    assert!(server.child.terminate_group() && server.child.kill_group());
    assert_eq!(server.child.reap(), Some(ExitStatus::Unknown));

    // While it lives, it and its group can be ended as ever.
    let dir = TempDir::new();
    let file = dir.file("helper");
    let server = start(&[&format!("helper:{file}:d"), "sleep"]);
    let helper = Watched::helper(Path::new(&file));
    assert_eq!(server.child.try_exit(), None);
    server.child.kill();
    assert_eq!(exit_of(&server.child), ExitStatus::Unknown);
    helper.ends();

    // And dropped.
    let server = start(&["sleep"]);
    let watched = Watched::pid(server.child.pid() as i32);
    drop(server);
    watched.ends();
    support::wait_until("the reaper thread ends", || !support::threads().iter().any(|name| name == "mcp-wire-reaper"));
}
