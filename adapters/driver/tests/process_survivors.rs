//! What a leader leaves behind in its group when it exits by itself.

#![cfg(target_os = "linux")]

mod support;

use std::path::Path;

use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_driver::process::{ChildTree, Spawned};
use support::{TempDir, Watched, exit_of, start};

/// A server that exits with 0 and leaves a helper.
fn leaver(how: &str) -> (ChildTree, Watched, TempDir) {
    let dir = TempDir::new();
    let file = dir.file("helper");
    let Spawned { child, .. } = start(&[&format!("helper:{file}:{how}"), "exit:0"]);
    let helper = Watched::helper(Path::new(&file));
    assert_eq!(exit_of(&child), ExitStatus::Code(0));
    (child, helper, dir)
}

// PRC-03: SIGTERM to the group ends a survivor that heeds it, and after that the group is empty
#[test]
fn a_survivor_is_terminated() {
    let (child, helper, _dir) = leaver("ioe");
    assert!(helper.lives());
    assert!(!child.terminate_group(), "somebody is there");
    helper.ends();
    assert!(child.kill_group(), "nobody is left; the unreaped leader does not count");
    assert_eq!(child.reap(), Some(ExitStatus::Code(0)));
}

// PRC-03: SIGKILL to the group ends one that does not
#[test]
fn a_deaf_survivor_is_killed() {
    let (child, helper, _dir) = leaver("d");
    assert!(!child.terminate_group());
    assert!(helper.lives() && !child.kill_group());
    helper.ends();
    assert_eq!(child.reap(), Some(ExitStatus::Code(0)));
}

// PRC-03: the reap alone leaves no survivor either, because after it nobody could end one
#[test]
fn the_reap_leaves_no_survivor() {
    let (child, helper, _dir) = leaver("d");
    assert_eq!(child.reap(), Some(ExitStatus::Code(0)));
    helper.ends();
}

// PRC-03, SHD-04: nor does a drop after the exit
#[test]
fn the_drop_leaves_no_survivor() {
    let (child, helper, _dir) = leaver("d");
    drop(child);
    helper.ends();
}

// PRC-03: a stopped survivor is ended too
#[test]
fn a_stopped_survivor_is_terminated() {
    let (child, helper, dir) = leaver("-");
    let pid: i32 = std::fs::read_to_string(dir.file("helper")).expect("its pid").parse().expect("a number");
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).expect("not 0"), rustix::process::Signal::STOP)
        .expect("it lives");
    assert!(!child.terminate_group());
    helper.ends();
}

// PRC-03: an empty group costs no wait: it is said to be empty at once
#[test]
fn an_empty_group_is_known_to_be_empty() {
    let Spawned { child, .. } = start(&["exit:3"]);
    assert_eq!(exit_of(&child), ExitStatus::Code(3));
    assert!(child.terminate_group());
    assert_eq!(child.reap(), Some(ExitStatus::Code(3)));
}
