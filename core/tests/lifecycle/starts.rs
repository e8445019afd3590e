//! Starts: those that fail, and those that somebody ends.

use mcp_wire::lifecycle::{EndReason, Escalation, ExitStatus, Notice, SpawnFailure, StartFailure, Step};

use super::support::{GRACE, at, exit_after_terminate, exit_cleanly, fire, new, notices, reason, steps, up};

#[test]
fn kill_ends_a_child_that_a_restart_is_just_spawning() {
    // SHD-04
    let mut process = up(|_| {});
    exit_cleanly(&mut process, ExitStatus::Code(1), 10);
    fire(&mut process);
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.kill(at(5_000));
    assert_eq!(process.outcome(), None); // the driver is inside the spawn: its child must not be forgotten
    process.spawned(at(5_001));
    assert_eq!(steps(&mut process), [Step::Kill]);
    process.exited(ExitStatus::Signal(9), at(5_002));
    assert_eq!(steps(&mut process), [Step::KillGroup, Step::Reap]);
    process.reaped(at(5_003));
    assert_eq!(reason(&process), EndReason::Asked);
}

#[test]
fn a_spawn_that_nobody_has_begun_is_taken_back() {
    // SHD-04, case 154: close before the start
    for kill in [false, true] {
        let mut process = new(|_| {});
        if kill {
            process.kill(at(0));
        } else {
            process.close(at(0));
        }
        assert_eq!(steps(&mut process), []);
        let outcome = process.outcome().expect("it has ended");
        assert_eq!((outcome.exit, outcome.reason), (None, EndReason::Asked));
    }
}

#[test]
fn close_during_the_spawn_ends_the_child_by_the_ladder() {
    // case 154: close during the start leaks no process
    let mut process = new(|_| {});
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.close(at(0));
    process.spawned(at(50));
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    assert_eq!(process.poll_timeout(), Some(at(50 + GRACE)));
}

#[test]
fn close_during_a_spawn_that_fails_is_no_failed_start() {
    let mut process = new(|_| {});
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.close(at(0));
    process.spawn_failed(SpawnFailure::NotFound, at(1));
    assert!(matches!(notices(&mut process)[..], [Notice::Closed(ref outcome)] if outcome.reason == EndReason::Asked));
}

#[test]
fn a_process_that_never_came_up_is_not_started_again() {
    // RST-01
    let mut process = new(|_| {});
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.spawned(at(0));
    exit_cleanly(&mut process, ExitStatus::Code(127), 5);
    let told = notices(&mut process);
    assert_eq!(told[1], Notice::StartFailed(StartFailure::Exited(ExitStatus::Code(127))));
    assert!(matches!(&told[2], Notice::Closed(outcome) if outcome.reason == EndReason::StartFailed));
    assert_eq!(process.poll_timeout(), None);
}

#[test]
fn an_answer_that_is_read_after_the_exit_still_makes_it_a_life() {
    // RST-01, RST-02: exit and the last output come in any order
    let mut process = new(|_| {});
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.spawned(at(0));
    process.exited(ExitStatus::Code(3), at(5));
    process.established(at(6)); // its answer was in the pipe
    process.output_ended(at(7));
    process.stderr_ended(at(7));
    assert_eq!(steps(&mut process), [Step::TerminateGroup]);
    process.group_signalled(true, at(7));
    process.reaped(at(7)); // an answer to nothing
    assert_eq!(steps(&mut process), [Step::Reap]);
    process.reaped(at(8));
    assert!(process.restarts_at().is_some());
}

#[test]
fn a_spawn_failure_ends_the_first_start_at_once() {
    // RST-01, PRC-05
    let mut process = new(|_| {});
    process.spawn_failed(SpawnFailure::Other, at(0)); // nobody has begun it
    assert_eq!(process.outcome(), None);
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.spawn_failed(SpawnFailure::Permission, at(0));
    let told = notices(&mut process);
    assert_eq!(told[0], Notice::StartFailed(StartFailure::Spawn(SpawnFailure::Permission)));
    assert!(matches!(&told[1], Notice::Closed(outcome) if outcome.exit.is_none()));
}

#[test]
fn a_failed_connection_closes_the_process_by_the_ladder() {
    // VER-09: one clear error, and nothing of the process is left
    let mut process = new(|_| {});
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.spawned(at(0));
    process.failed(at(5));
    assert_eq!(notices(&mut process)[1], Notice::StartFailed(StartFailure::Connection));
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    fire(&mut process);
    exit_after_terminate(&mut process, GRACE + 10);
    let outcome = process.outcome().expect("it has ended");
    assert_eq!((outcome.exit, outcome.escalation), (Some(ExitStatus::Signal(15)), Escalation::Terminate));
    assert_eq!(outcome.reason, EndReason::StartFailed);
}
