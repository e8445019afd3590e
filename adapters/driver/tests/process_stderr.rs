//! Where a server's standard error goes, and what is kept of it.

#![cfg(target_os = "linux")]

mod support;

use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_driver::process::{STDERR_TAIL, Spawned, Stderr, StderrTail, spawn};
use support::{exit_of, misbehaving, read_to_end, readable_within, reported};

fn started(steps: &[&str], stderr: Stderr) -> Spawned {
    spawn(&misbehaving(steps).stderr(stderr)).expect("it can be spawned")
}

// LOG-05: inherited, dropped or piped
#[test]
fn stderr_goes_where_it_was_sent() {
    for (stderr, piped) in [(Stderr::Inherit, false), (Stderr::Null, false), (Stderr::Tee, true), (Stderr::Lines, true)]
    {
        let mut server = started(&["report"], stderr);
        assert_eq!(server.stderr.is_some(), piped, "{stderr:?}");
        let report = String::from_utf8(read_to_end(&mut server.stdout)).expect("the report is ASCII");
        let fd = reported(&report, "descriptor").into_iter().find(|fd| fd.starts_with("2 ")).expect("it has one");
        let ours = std::fs::read_link("/proc/self/fd/2").expect("we have one");
        match stderr {
            Stderr::Inherit => assert_eq!(fd.strip_prefix("2 "), ours.to_str()),
            Stderr::Null => assert_eq!(fd, "2 /dev/null"),
            _ => assert!(fd.starts_with("2 pipe:"), "{fd}"),
        }
    }
}

// LOG-05, case 117: what a server writes to stderr is no failure, bytes that are no UTF-8 do not end the reading
#[test]
fn words_on_stderr_are_no_failure() {
    let command = mcp_wire_driver::process::ServerCommand::new("sh");
    let command = command.args(["-c", r"printf 'info: caf\351\nnext\n' >&2"]).stderr(Stderr::Lines);
    let mut server = spawn(&command).expect("sh can be spawned");
    let (mut tail, mut lines) = (StderrTail::default(), Vec::new());
    tail.push(&read_to_end(server.stderr.as_mut().expect("it is piped")), |line| lines.push(line.to_owned()));
    assert_eq!(lines, ["info: caf\u{fffd}", "next"]);
    assert_eq!(exit_of(&server.child), ExitStatus::Code(0));
}

// LOG-05: the tail explains an early exit
#[test]
fn the_tail_explains_an_exit() {
    let mut server = started(&["flood:stderr:97500", "stderr:Cannot find module x", "exit:1"], Stderr::Tee);
    let mut tail = StderrTail::default();
    tail.push(&read_to_end(server.stderr.as_mut().expect("it is piped")), |_| {});
    assert_eq!(exit_of(&server.child), ExitStatus::Code(1));
    let text = tail.text();
    assert!(text.ends_with("\nCannot find module x") && text.len() <= STDERR_TAIL, "{text}");
}

// case 086: nobody reads the stderr pipe: the child that the tests of clients use blocks on it, and goes on as soon as it is read
#[test]
fn a_server_blocks_on_stderr_until_it_is_read() {
    let mut server = started(&["flood:stderr:1048580", "say:done"], Stderr::Lines);
    let (mut tail, mut bytes) = (StderrTail::default(), 0);
    let mut stderr = server.stderr.take().expect("it is piped");
    assert!(readable_within(&stderr, support::DEADLINE) && !readable_within(&server.stdout, std::time::Duration::ZERO));
    tail.push(&read_to_end(&mut stderr), |line| bytes += line.len() + 1);
    assert_eq!((bytes, read_to_end(&mut server.stdout)), (1_048_580, b"done\n".to_vec()));
}
