//! What is left of a group when its leader has exited, and the drain of its output.

use mcp_wire::lifecycle::{ExitStatus, Step};

use super::support::{GRACE, at, fire, steps, up};

#[test]
fn an_empty_group_costs_no_wait() {
    // PRC-03
    let mut process = up(|_| {});
    process.close(at(0));
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    process.exited(ExitStatus::Code(0), at(3));
    assert_eq!(steps(&mut process), [Step::TerminateGroup]);
    process.group_signalled(true, at(3));
    assert_eq!(steps(&mut process), []); // what it wrote last is still in the pipe
    process.output_ended(at(3));
    process.stderr_ended(at(3));
    assert_eq!(steps(&mut process), [Step::Reap]); // and no SIGKILL to nobody
}

#[test]
fn the_rest_of_a_group_is_killed_after_silence_and_before_the_leader_is_reaped() {
    // PRC-03, case 150: a grandchild holds the output open
    let mut process = up(|_| {});
    process.exited(ExitStatus::Code(0), at(100));
    assert_eq!(steps(&mut process), [Step::TerminateGroup]);
    process.group_signalled(false, at(100));
    process.output_seen(at(200)); // it has something to say: the silence starts anew
    process.handle_timeout(at(350));
    assert_eq!(steps(&mut process), []);
    assert_eq!(fire(&mut process), 450);
    assert_eq!(steps(&mut process), [Step::KillGroup, Step::Reap]);
}

#[test]
fn draining_lasts_one_grace_at_most() {
    // PRC-03, case 162: each chunk pushes the deadline on, up to a total
    let mut process = up(|_| {});
    process.exited(ExitStatus::Code(0), at(0));
    assert_eq!(steps(&mut process), [Step::TerminateGroup]);
    process.group_signalled(false, at(0));
    for ms in (60..=GRACE - 40).step_by(60) {
        process.output_seen(at(ms));
        process.handle_timeout(at(ms));
        assert_eq!(steps(&mut process), []);
    }
    assert_eq!(fire(&mut process), GRACE);
    assert_eq!(steps(&mut process), [Step::KillGroup, Step::Reap]);
}

#[test]
fn a_group_whose_pipes_have_ended_is_killed_without_a_wait() {
    // PRC-03
    let mut process = up(|_| {});
    process.output_ended(at(0));
    process.stderr_ended(at(0));
    process.exited(ExitStatus::Code(0), at(1));
    assert_eq!(steps(&mut process), [Step::TerminateGroup]); // the CloseStdin that nobody took is pointless now
    process.group_signalled(false, at(1));
    assert_eq!(steps(&mut process), [Step::KillGroup, Step::Reap]);
}

#[test]
fn without_the_group_option_the_leader_alone_counts() {
    // PRC-03, case 137: only the direct child is stopped
    let mut process = up(|config| config.end_group = false);
    process.exited(ExitStatus::Code(0), at(0));
    assert_eq!(steps(&mut process), []);
    assert_eq!(fire(&mut process), 250); // a grandchild holds the pipe and is silent
    assert_eq!(steps(&mut process), [Step::Reap]);
}
