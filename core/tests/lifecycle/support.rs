//! What the tests of the lifecycle machine share: it brings a process up and down. It must not know what is tested.

use core::time::Duration;
use mcp_wire::Instant;
use mcp_wire::lifecycle::{Config, EndReason, ExitStatus, Notice, Process, Step};

pub(crate) const GRACE: u64 = 2_000;

pub(crate) fn at(ms: u64) -> Instant {
    Instant::from_epoch(Duration::from_millis(ms))
}

pub(crate) fn steps(process: &mut Process) -> Vec<Step> {
    core::iter::from_fn(|| process.poll_step()).collect()
}

pub(crate) fn notices(process: &mut Process) -> Vec<Notice> {
    core::iter::from_fn(|| process.poll_notice()).collect()
}

pub(crate) fn new(change: impl FnOnce(&mut Config)) -> Process {
    let mut config = Config::default();
    change(&mut config);
    Process::new(config).expect("a good configuration")
}

/// A process that runs and whose connection is established.
pub(crate) fn up(change: impl FnOnce(&mut Config)) -> Process {
    let mut process = new(change);
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.spawned(at(0));
    process.established(at(0));
    assert_eq!(notices(&mut process), [Notice::Started { restarts: 0 }]);
    process
}

/// It exits, everything of it ends, and it is reaped.
pub(crate) fn exit_cleanly(process: &mut Process, status: ExitStatus, ms: u64) {
    process.output_ended(at(ms));
    process.stderr_ended(at(ms));
    process.exited(status, at(ms));
    let mut given = steps(process);
    assert_eq!(given.pop(), Some(Step::TerminateGroup));
    process.group_signalled(true, at(ms));
    assert_eq!(steps(process), [Step::Reap]);
    process.reaped(at(ms));
}

/// Fires the timer that is due next and says when that was, in milliseconds, rounded up.
pub(crate) fn fire(process: &mut Process) -> u64 {
    let due = process.poll_timeout().expect("a timer");
    process.handle_timeout(due);
    u64::try_from(due.since_epoch().as_micros().div_ceil(1_000)).expect("a small time")
}

pub(crate) fn reason(process: &Process) -> EndReason {
    process.outcome().expect("it has ended").reason
}

pub(crate) fn exit_after_terminate(process: &mut Process, ms: u64) {
    assert_eq!(steps(process), [Step::Terminate]);
    process.exited(ExitStatus::Signal(15), at(ms));
    assert_eq!(steps(process), [Step::TerminateGroup]);
    process.group_signalled(true, at(ms));
    process.output_ended(at(ms));
    process.stderr_ended(at(ms));
    assert_eq!(steps(process), [Step::Reap]);
    process.reaped(at(ms));
}
