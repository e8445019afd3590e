//! Signals reach the whole group, and nothing but it.

#![cfg(target_os = "linux")]

mod support;

use std::path::Path;

use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_driver::process::{Spawned, spawn};
use support::{TempDir, Watched, exit_of, misbehaving, start};

/// A child that has started a helper, and the helper.
fn with_helper(how: &str, own_group: bool) -> (Spawned, Watched, TempDir) {
    let dir = TempDir::new();
    let file = dir.file("helper");
    let command = misbehaving(&[&format!("helper:{file}:{how}"), "sleep"]).process_group(own_group);
    let server = spawn(&command).expect("it can be spawned");
    let helper = Watched::helper(Path::new(&file));
    (server, helper, dir)
}

// PRC-02, case 137: only the direct child is stopped; the real server is a grandchild
#[test]
fn a_grandchild_is_gone_after_a_kill() {
    let (server, helper, _dir) = with_helper("ioed", true);
    server.child.kill();
    assert_eq!(exit_of(&server.child), ExitStatus::Signal(9));
    helper.ends();
}

// PRC-02, case 137: a wrapper that dies of SIGTERM takes the program it wraps with it
#[test]
fn a_grandchild_is_terminated_with_its_parent() {
    let (server, helper, _dir) = with_helper("ioe", true);
    server.child.terminate();
    assert_eq!(exit_of(&server.child), ExitStatus::Signal(15));
    helper.ends();
}

// PRC-02, case 137: a shell that runs the server as its child
#[test]
fn a_shell_around_the_server_does_not_shield_it() {
    let command = mcp_wire_driver::process::ServerCommand::new("sh").args(["-c", "sleep 1000 & echo $!; wait"]);
    let mut server = spawn(&command).expect("sh can be spawned");
    let inner = Watched::pid(support::read_line(&mut server.stdout).parse().expect("a pid"));
    server.child.kill();
    assert_eq!(exit_of(&server.child), ExitStatus::Signal(9));
    inner.ends();
}

// PRC-02, case 142: signal to the group kills the host itself: with the option off only the direct child is signalled, by both signals;
// case 163: what the spawn did decides what is signalled, so there is no group to miss and nothing to fall back to
#[test]
fn without_a_group_only_the_child_is_signalled() {
    for kill in [false, true] {
        let (server, helper, _dir) = with_helper("-", false);
        if kill {
            server.child.kill();
        } else {
            server.child.terminate();
        }
        // That this test goes on says that its own group, the child's too, got no signal.
        assert_eq!(exit_of(&server.child), ExitStatus::Signal(if kill { 9 } else { 15 }));
        assert!(server.child.terminate_group() && server.child.kill_group(), "there is no group to end");
        assert!(server.child.reap().is_some());
        drop(server);
        assert!(helper.lives(), "what it left behind stays");
    }
}

// PRC-02: who leaves the group is out of reach; that is a documented limit, and no wait comes of it
#[test]
fn a_helper_that_left_the_group_is_out_of_reach() {
    let (server, helper, _dir) = with_helper("x", true);
    server.child.kill();
    assert_eq!(exit_of(&server.child), ExitStatus::Signal(9));
    assert!(server.child.terminate_group(), "the group is empty");
    assert!(server.child.reap().is_some() && helper.lives());
}

// A stopped child ignores SIGTERM until SIGCONT: terminate sends both
#[test]
fn a_stopped_child_can_be_terminated() {
    let dir = TempDir::new();
    let file = dir.file("noted");
    let mut server = start(&[&format!("on-term:{file}"), "say:ready", "stop", "sleep"]);
    assert_eq!(support::read_line(&mut server.stdout), "ready");
    support::wait_until("it stops", || support::children().contains(&(server.child.pid() as i32, 'T')));
    server.child.terminate();
    assert_eq!(exit_of(&server.child), ExitStatus::Code(0), "its own handler ended it");
    assert_eq!(std::fs::read_to_string(file).expect("it noted that"), "term\n");
}

// Calls of any kind may follow any other: nothing but the first takes effect
#[test]
fn signals_and_reaps_can_be_repeated() {
    let server = start(&["sleep"]);
    let child = &server.child;
    assert_eq!((child.try_exit(), child.reap()), (None, None));
    assert!(child.terminate_group() && child.kill_group(), "before its exit that is nobody's turn");
    assert_eq!(child.try_exit(), None, "so it lives");
    for _ in 0..3 {
        child.kill();
    }
    assert_eq!(exit_of(child), ExitStatus::Signal(9));
    for _ in 0..3 {
        assert_eq!(child.reap(), Some(ExitStatus::Signal(9)));
        child.kill();
        child.terminate();
        assert!(child.terminate_group() && child.kill_group());
        assert_eq!(child.try_exit(), Some(ExitStatus::Signal(9)));
    }
}
