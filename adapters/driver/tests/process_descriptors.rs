//! Which descriptors a server gets, and which are left after it. Alone in its file, because it counts them.

#![cfg(target_os = "linux")]

mod support;

use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_driver::process::{ServerCommand, Spawned, Stderr, spawn};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::misbehave::descriptors;
use support::{exit_of, misbehaving, read_to_end, reported, start};

// One test, so that nobody else's descriptors are counted.
#[test]
fn descriptors_of_servers() {
    closing_one_server_is_seen_by_it_alone();
    a_server_gets_no_descriptor_of_its_siblings();
    two_thousand_servers_fit_into_few_descriptors();
    without_descriptors_a_spawn_fails_and_leaves_nothing();
}

// PRC-06: two children, the input of one is closed: that one sees its end, and the other does not
fn closing_one_server_is_seen_by_it_alone() {
    let mut servers: Vec<Spawned> = (0..4).map(|_| start(&["drain", "exit:5"])).collect();
    let Spawned { child, stdin, .. } = servers.remove(1);
    drop(stdin);
    assert_eq!(exit_of(&child), ExitStatus::Code(5));
    for server in &servers {
        assert_eq!(server.child.try_exit(), None);
    }
}

/// The descriptors above 2 that a server started now has.
fn inherited() -> Vec<String> {
    let mut server = spawn(&misbehaving(&["report"]).stderr(Stderr::Tee)).expect("it can be spawned");
    let report = String::from_utf8(read_to_end(&mut server.stdout)).expect("the report is ASCII");
    let all = reported(&report, "descriptor").into_iter().map(str::to_owned);
    let standard = |fd: &String| ["0 ", "1 ", "2 "].iter().any(|number| fd.starts_with(number));
    all.filter(|fd| !standard(fd)).collect()
}

// PRC-06, case 129: server inherits unrelated descriptors of the host: none of ours, whatever the state of its siblings
fn a_server_gets_no_descriptor_of_its_siblings() {
    let before = inherited();
    let running: Vec<Spawned> = (0..3).map(|_| start(&["sleep"])).collect();
    let notices: Vec<_> = running.iter().map(|server| server.child.exit_notice()).collect();
    // One that is being reaped by the thread, which has descriptors of its own.
    drop(start(&["sleep"]));
    assert_eq!(inherited(), before);
    drop((running, notices));
}

// case 157: descriptors leak with each reconnect: 2,000 servers closed, killed and dropped within 64 descriptors
fn two_thousand_servers_fit_into_few_descriptors() {
    support::nothing_is_left();
    let before = descriptors();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).expect("it can be lowered");
    for round in 0..2000 {
        let command = ServerCommand::new("cat").stderr(if round % 2 == 0 { Stderr::Tee } else { Stderr::Null });
        let Spawned { child, stdin, stdout, stderr, .. } = spawn(&command).expect("there are descriptors left");
        match round % 4 {
            0 => {
                drop(stdin);
                assert_eq!(exit_of(&child), ExitStatus::Code(0));
                child.reap();
            }
            1 => {
                child.kill();
                assert_eq!(exit_of(&child), ExitStatus::Signal(9));
            }
            2 => {
                let notice = child.exit_notice().expect("there are descriptors left");
                child.terminate();
                assert!(support::readable_within(&notice, support::DEADLINE));
            }
            _ => {
                // The reaper holds its descriptor until its exit; so that they do not pile up, wait for that.
                let watched = support::Watched::pid(child.pid() as i32);
                drop(child);
                watched.ends();
            }
        }
        drop((stdout, stderr));
    }
    setrlimit(Resource::Nofile, limit).expect("it can be set back");
    support::nothing_is_left();
    assert_eq!(descriptors(), before);
}

// PRC-05: no descriptor left for the pipes or the notice of the exit: an error, no process, no descriptor
fn without_descriptors_a_spawn_fails_and_leaves_nothing() {
    let before = descriptors();
    let limit = getrlimit(Resource::Nofile);
    let command = misbehaving(&["sleep"]).stderr(Stderr::Tee);
    let (mut failed, mut spawned) = (0, 0);
    // The limit is on the numbers: whatever this process has inherited up there does not count.
    for highest in 3..20 {
        setrlimit(Resource::Nofile, Rlimit { current: Some(highest), ..limit }).expect("it can be lowered");
        match spawn(&command) {
            Ok(_) => spawned += 1,
            Err(_) => failed += 1,
        }
        setrlimit(Resource::Nofile, limit).expect("it can be set back");
        support::nothing_is_left();
        assert_eq!(descriptors(), before, "with {highest} descriptors");
    }
    assert!(failed >= 6 && spawned > 0, "{failed} failed, {spawned} were spawned");
}
