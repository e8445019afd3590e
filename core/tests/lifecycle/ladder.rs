//! The ladder: close, kill, give up.

use mcp_wire::lifecycle::{EndReason, Escalation, ExitStatus, Notice, Step};

use super::support::{GRACE, at, exit_after_terminate, exit_cleanly, fire, notices, reason, steps, up};

#[test]
fn a_cooperative_child_gets_no_signal() {
    // SHD-01
    let mut process = up(|_| {});
    process.close(at(10));
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    exit_cleanly(&mut process, ExitStatus::Code(0), 15);
    let outcome = process.outcome().expect("it has ended").clone();
    assert_eq!((outcome.exit, outcome.escalation), (Some(ExitStatus::Code(0)), Escalation::None));
    assert_eq!((outcome.restarts, outcome.reason), (0, EndReason::Asked));
    assert_eq!(notices(&mut process), [Notice::Closed(outcome)]);
    assert_eq!(process.poll_timeout(), None);
}

#[test]
fn a_deaf_child_is_terminated_after_a_grace_and_killed_after_two() {
    // SHD-01
    let mut process = up(|_| {});
    process.close(at(0));
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    process.handle_timeout(at(GRACE - 1)); // early: nothing
    assert_eq!(steps(&mut process), []);
    assert_eq!(fire(&mut process), GRACE);
    assert_eq!(steps(&mut process), [Step::Terminate]);
    process.handle_timeout(at(GRACE)); // twice: nothing
    assert_eq!(steps(&mut process), []);
    assert_eq!(fire(&mut process), 2 * GRACE);
    assert_eq!(steps(&mut process), [Step::Kill]);
    process.exited(ExitStatus::Signal(9), at(2 * GRACE + 1));
    process.output_ended(at(2 * GRACE + 1));
    process.stderr_ended(at(2 * GRACE + 1));
    // The group had its SIGKILL: nobody is asked to terminate now.
    assert_eq!(steps(&mut process), [Step::KillGroup, Step::Reap]);
    process.reaped(at(2 * GRACE + 2));
    let outcome = process.outcome().expect("it has ended");
    assert_eq!((outcome.exit, outcome.escalation), (Some(ExitStatus::Signal(9)), Escalation::Kill));
}

#[test]
fn each_rung_has_its_whole_grace_also_when_the_driver_slept() {
    // SHD-01: a host that was suspended must not jump from the closed stdin to the kill.
    let mut process = up(|_| {});
    process.close(at(0));
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    process.handle_timeout(at(1_000_000));
    assert_eq!(steps(&mut process), [Step::Terminate]);
    assert_eq!(process.poll_timeout(), Some(at(1_000_000 + GRACE)));
}

#[test]
fn a_platform_without_sigterm_goes_from_closed_stdin_to_the_kill() {
    // SHD-01, case 189: no SIGTERM on Windows: no step is waited for that cannot be done
    let mut process = up(|config| config.terminate_step = false);
    process.close(at(0));
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    assert_eq!(fire(&mut process), GRACE);
    assert_eq!(steps(&mut process), [Step::Kill]);
    process.exited(ExitStatus::Code(1), at(GRACE + 1));
    process.output_ended(at(GRACE + 1));
    process.stderr_ended(at(GRACE + 1));
    assert_eq!(steps(&mut process), [Step::KillGroup, Step::Reap]);
    process.reaped(at(GRACE + 2));
    let outcome = process.outcome().expect("it has ended");
    assert_eq!((outcome.exit, outcome.escalation), (Some(ExitStatus::Code(1)), Escalation::Kill));
}

#[test]
fn the_wait_ends_with_the_exit_and_not_with_the_end_of_output() {
    // SHD-02
    let mut process = up(|_| {});
    process.close(at(0));
    process.output_ended(at(1));
    process.stderr_ended(at(1));
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    assert_eq!(fire(&mut process), GRACE); // it closed its output and lives
    assert_eq!(steps(&mut process), [Step::Terminate]);
}

#[test]
fn close_is_idempotent_and_does_not_restart_the_ladder() {
    // SHD-03, case 155: later closes join the running one.
    let mut process = up(|_| {});
    process.close(at(0));
    process.close(at(1_500));
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    assert_eq!(fire(&mut process), GRACE);
    exit_after_terminate(&mut process, GRACE + 5);
    let outcome = process.outcome().cloned();
    process.close(at(9_000));
    process.kill(at(9_000));
    assert_eq!(process.outcome().cloned(), outcome);
    assert_eq!(steps(&mut process), []);
    assert_eq!(notices(&mut process).len(), 1);
}

#[test]
fn kill_shortens_a_running_close() {
    // SHD-04
    let mut process = up(|_| {});
    process.close(at(0));
    process.kill(at(100));
    assert_eq!(steps(&mut process), [Step::Kill]); // the untaken CloseStdin would only delay it
    process.exited(ExitStatus::Signal(9), at(101));
    // Nobody waits for output now, whoever holds the pipes.
    assert_eq!(steps(&mut process), [Step::KillGroup, Step::Reap]);
    process.reaped(at(102));
    assert_eq!(reason(&process), EndReason::Asked);
}

#[test]
fn a_child_that_survives_its_kill_is_given_up_loudly() {
    // case 132: every wait has a deadline, and the last state says so
    let mut process = up(|_| {});
    process.kill(at(0));
    assert_eq!(steps(&mut process), [Step::Kill]);
    assert_eq!(fire(&mut process), GRACE);
    assert_eq!(steps(&mut process), [Step::GiveUp]);
    let outcome = process.outcome().expect("it has ended");
    assert_eq!((outcome.exit, outcome.escalation), (None, Escalation::Kill));
    assert_eq!(outcome.reason, EndReason::Unkillable);
}

#[test]
fn an_unkillable_child_gets_no_successor() {
    // RST-04: the old process must be gone first, and this one is not.
    let mut process = up(|_| {});
    process.output_ended(at(0));
    for _ in 0..3 {
        fire(&mut process);
    }
    assert_eq!(steps(&mut process), [Step::Kill, Step::GiveUp]);
    assert_eq!(reason(&process), EndReason::Unkillable);
    assert_eq!(process.poll_timeout(), None);
}
