//! The lifecycle machine from outside: start, ladder, group, restarts, idle stop. It knows no connection.

use core::time::Duration;

use mcp_wire::lifecycle::{
    Config, EndReason, Escalation, ExitStatus, Notice, Process, SpawnFailure, StartFailure, Step,
};
use mcp_wire::{ConfigError, Instant};

const GRACE: u64 = 2_000;

fn at(ms: u64) -> Instant {
    Instant::from_epoch(Duration::from_millis(ms))
}

fn steps(process: &mut Process) -> Vec<Step> {
    core::iter::from_fn(|| process.poll_step()).collect()
}

fn notices(process: &mut Process) -> Vec<Notice> {
    core::iter::from_fn(|| process.poll_notice()).collect()
}

fn new(change: impl FnOnce(&mut Config)) -> Process {
    let mut config = Config::default();
    change(&mut config);
    Process::new(config).expect("a good configuration")
}

/// A process that runs and whose connection is established.
fn up(change: impl FnOnce(&mut Config)) -> Process {
    let mut process = new(change);
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.spawned(at(0));
    process.established(at(0));
    assert_eq!(notices(&mut process), [Notice::Started { restarts: 0 }]);
    process
}

/// It exits, everything of it ends, and it is reaped.
fn exit_cleanly(process: &mut Process, status: ExitStatus, ms: u64) {
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
fn fire(process: &mut Process) -> u64 {
    let due = process.poll_timeout().expect("a timer");
    process.handle_timeout(due);
    u64::try_from(due.since_epoch().as_micros().div_ceil(1_000)).expect("a small time")
}

fn reason(process: &Process) -> EndReason {
    process.outcome().expect("it has ended").reason
}

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
    // SHD-01
    let mut process = up(|config| config.terminate_step = false);
    process.close(at(0));
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    fire(&mut process);
    assert_eq!(steps(&mut process), [Step::Kill]);
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

fn exit_after_terminate(process: &mut Process, ms: u64) {
    assert_eq!(steps(process), [Step::Terminate]);
    process.exited(ExitStatus::Signal(15), at(ms));
    assert_eq!(steps(process), [Step::TerminateGroup]);
    process.group_signalled(true, at(ms));
    process.output_ended(at(ms));
    process.stderr_ended(at(ms));
    assert_eq!(steps(process), [Step::Reap]);
    process.reaped(at(ms));
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

#[test]
fn a_crashed_process_is_started_again_and_the_last_crash_closes() {
    // RST-01: four crashes with a limit of three. case 175: the outcome keeps the last exit.
    let mut process = up(|config| config.restarts = 3);
    let mut ms = 10;
    for life in 1..=3 {
        exit_cleanly(&mut process, ExitStatus::Code(life), ms);
        assert_eq!(notices(&mut process), []); // not before the delay is over
        assert_eq!(steps(&mut process), []);
        ms = fire(&mut process);
        assert_eq!(steps(&mut process), [Step::Spawn]);
        process.spawned(at(ms));
        process.established(at(ms));
        let restarts = u32::try_from(life).expect("a small number");
        assert_eq!(
            notices(&mut process),
            [Notice::Restarting { restarts, exit: ExitStatus::Code(life) }, Notice::Started { restarts }]
        );
    }
    exit_cleanly(&mut process, ExitStatus::Code(4), ms + 1);
    let outcome = process.outcome().expect("it has ended");
    assert_eq!((outcome.exit, outcome.restarts), (Some(ExitStatus::Code(4)), 3));
    assert_eq!(outcome.reason, EndReason::Crashed);
}

/// The delays of `n` restarts after crashes that follow each other at once.
fn delays(n: u32, change: impl FnOnce(&mut Config)) -> Vec<u64> {
    let mut process = up(|config| {
        config.restarts = n;
        change(config);
    });
    let mut ms = 0;
    (0..n)
        .map(|_| {
            exit_cleanly(&mut process, ExitStatus::Code(1), ms);
            let due = fire(&mut process);
            let delay = due - ms;
            ms = due;
            assert_eq!(steps(&mut process), [Step::Spawn]);
            process.spawned(at(ms));
            process.established(at(ms));
            delay
        })
        .collect()
}

#[test]
fn delays_double_up_to_the_cap_with_jitter_from_the_seed() {
    // RST-01, case 166: growing delay; case 168: with a cap
    let all = delays(12, |config| config.seed = 7);
    for (n, delay) in all.iter().enumerate() {
        let whole = (500_u64 << n).min(30_000);
        assert!(*delay <= whole && *delay >= whole - whole / 4, "{n}: {delay} of {whole}");
    }
    assert!(all[..6].windows(2).all(|two| two[0] < two[1]), "{all:?}");
    assert_eq!(all, delays(12, |config| config.seed = 7));
    assert_ne!(all, delays(12, |config| config.seed = 8));
}

#[test]
fn a_stable_life_refills_the_budget_and_resets_the_delay() {
    // RST-01: the limit recovers after a stable time
    let mut process = up(|config| config.restarts = 1);
    exit_cleanly(&mut process, ExitStatus::Code(1), 10);
    let ms = fire(&mut process);
    steps(&mut process);
    process.spawned(at(ms));
    process.established(at(ms));
    exit_cleanly(&mut process, ExitStatus::Code(1), ms + 60_000);
    let delay = fire(&mut process) - (ms + 60_000);
    assert!((375..=500).contains(&delay), "{delay}");
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.spawned(at(ms + 61_000));
    process.established(at(ms + 61_000));
    exit_cleanly(&mut process, ExitStatus::Code(1), ms + 61_000 + 59_999);
    assert_eq!(reason(&process), EndReason::Crashed);
    assert_eq!(process.outcome().map(|outcome| outcome.restarts), Some(2));
}

#[test]
fn retry_now_skips_the_delay() {
    // case 168
    let mut process = up(|_| {});
    exit_cleanly(&mut process, ExitStatus::Code(1), 10);
    assert!(process.restarts_at().is_some());
    process.retry_now(at(11));
    assert_eq!(steps(&mut process), [Step::Spawn]);
    assert_eq!(process.restarts_at(), None);
    process.retry_now(at(12)); // idempotent
    assert_eq!(steps(&mut process), []);
}

#[test]
fn retry_now_while_the_old_process_ends_waits_for_that_only() {
    // case 168; RST-04, case 176: the old one is entirely gone first
    let mut process = up(|_| {});
    process.output_ended(at(0));
    process.stderr_ended(at(0));
    process.retry_now(at(1));
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    process.exited(ExitStatus::Code(1), at(5));
    process.group_signalled(true, at(5)); // an answer to nothing
    assert_eq!(steps(&mut process), [Step::TerminateGroup]);
    process.group_signalled(true, at(5));
    assert_eq!(steps(&mut process), [Step::Reap]);
    process.reaped(at(6));
    assert_eq!(steps(&mut process), [Step::Spawn]);
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
fn a_spawn_failure_of_a_restart_uses_up_the_budget() {
    // case 174: one bad start is not the end of a server that was up
    let mut process = up(|config| config.restarts = 2);
    exit_cleanly(&mut process, ExitStatus::Code(1), 10);
    for last in [false, true] {
        let ms = fire(&mut process);
        assert_eq!(steps(&mut process), [Step::Spawn]);
        process.spawn_failed(SpawnFailure::NotFound, at(ms));
        assert_eq!(process.outcome().is_some(), last);
    }
    let told = notices(&mut process);
    assert_eq!(told.len(), 4); // two restarts, the failed start, closed
    assert_eq!(told[2], Notice::StartFailed(StartFailure::Spawn(SpawnFailure::NotFound)));
    assert_eq!(reason(&process), EndReason::StartFailed);
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

#[test]
fn a_child_that_closes_its_output_and_lives_is_ended_before_the_next_starts() {
    // RST-04, RST-05
    let mut process = up(|_| {});
    process.output_ended(at(0));
    process.stderr_ended(at(0));
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    fire(&mut process);
    exit_after_terminate(&mut process, GRACE + 1);
    fire(&mut process);
    assert_eq!(steps(&mut process), [Step::Spawn]);
    let told = notices(&mut process);
    assert_eq!(told, [Notice::Restarting { restarts: 1, exit: ExitStatus::Signal(15) }]);
}

#[test]
fn a_child_that_closes_its_input_is_ended_but_may_finish_writing() {
    // case 122: a write error ends the life, not what it still says
    let mut process = up(|_| {});
    process.input_failed(at(0));
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    assert_eq!(process.poll_timeout(), Some(at(GRACE)));
    exit_cleanly(&mut process, ExitStatus::Code(0), 40);
    assert!(process.restarts_at().is_some());
}

#[test]
fn an_exit_while_closing_is_no_crash() {
    // RST-01
    let mut process = up(|_| {});
    process.close(at(0));
    exit_cleanly(&mut process, ExitStatus::Code(1), 1);
    assert_eq!(reason(&process), EndReason::Asked);
}

#[test]
fn close_during_the_delay_of_a_restart_ends_at_once() {
    let mut process = up(|_| {});
    exit_cleanly(&mut process, ExitStatus::Signal(11), 1);
    process.close(at(2));
    let outcome = process.outcome().expect("it has ended");
    assert_eq!((outcome.exit, outcome.restarts), (Some(ExitStatus::Signal(11)), 0));
}

#[test]
fn a_lazy_process_starts_with_the_first_work_and_once() {
    // RST-08
    let mut process = new(|config| config.lazy = true);
    assert_eq!(steps(&mut process), []);
    assert_eq!(process.poll_timeout(), None);
    for _ in 0..10 {
        process.wake(at(5));
    }
    assert_eq!(steps(&mut process), [Step::Spawn]);

    let mut unused = new(|config| config.lazy = true);
    unused.close(at(9));
    assert_eq!(steps(&mut unused), []);
    assert_eq!(unused.outcome().and_then(|outcome| outcome.exit), None);
}

#[test]
fn an_idle_process_is_stopped_and_started_again_by_work() {
    // RST-09
    let mut process = up(|config| {
        config.idle_stop = Some(Duration::from_secs(1));
        config.restarts = 0; // it is no crash: the budget has nothing to do with it
    });
    process.idle(at(100));
    process.idle(at(900)); // the first counts
    assert_eq!(process.poll_timeout(), Some(at(1_100)));
    process.busy();
    assert_eq!(process.poll_timeout(), None);
    process.idle(at(2_000));
    assert_eq!(fire(&mut process), 3_000);
    assert_eq!(steps(&mut process), [Step::CloseStdin]);
    exit_cleanly(&mut process, ExitStatus::Code(0), 3_010);
    assert_eq!(notices(&mut process), [Notice::IdleStopped { exit: ExitStatus::Code(0) }]);
    assert_eq!(process.poll_timeout(), None);
    process.wake(at(9_000));
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.spawned(at(9_001));
    assert_eq!(notices(&mut process), [Notice::Started { restarts: 0 }]);
}

#[test]
fn work_during_an_idle_stop_waits_for_the_new_process() {
    // RST-09: one process at a time
    for given_up in [false, true] {
        let mut process = up(|config| config.idle_stop = Some(Duration::from_secs(1)));
        process.idle(at(0));
        fire(&mut process);
        assert_eq!(steps(&mut process), [Step::CloseStdin]);
        process.wake(at(1_001));
        process.busy();
        assert_eq!(steps(&mut process), []);
        if given_up {
            process.idle(at(1_002)); // it was cancelled before the process was gone
        }
        exit_cleanly(&mut process, ExitStatus::Code(0), 1_010);
        assert_eq!(steps(&mut process), if given_up { vec![] } else { vec![Step::Spawn] });
    }
}

#[test]
fn a_process_that_is_not_up_yet_is_not_idle() {
    // RST-09, case 080: a slow start is not stopped
    let mut process = new(|config| config.idle_stop = Some(Duration::from_secs(1)));
    process.idle(at(0));
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.spawned(at(0));
    process.handle_timeout(at(50_000));
    assert_eq!(steps(&mut process), []);
    process.established(at(60_000));
    assert_eq!(process.poll_timeout(), Some(at(61_000)));
}

#[test]
fn a_configuration_that_contradicts_itself_is_refused() {
    let mut config = Config::default();
    config.idle_stop = Some(Duration::ZERO);
    assert_eq!(Process::new(config).err(), Some(ConfigError::ZeroLimit { field: "idle_stop" }));
    let mut config = Config::default();
    config.restart_delay = config.restart_delay_max + Duration::from_nanos(1);
    assert!(matches!(Process::new(config), Err(ConfigError::Conflict { .. })));
}

#[test]
fn endless_waits_and_backward_clocks_do_not_panic() {
    let mut process = up(|config| {
        config.grace = Duration::MAX;
        config.restart_delay = Duration::MAX;
        config.restart_delay_max = Duration::MAX;
    });
    process.output_ended(at(5_000));
    assert_eq!(process.poll_timeout(), None);
    process.exited(ExitStatus::Code(0), at(10)); // earlier than before: clamped
    assert_eq!(process.poll_timeout(), Some(at(5_250)));
    process.handle_timeout(Instant::from_epoch(Duration::MAX));
    process.reaped(Instant::from_epoch(Duration::MAX));
    steps(&mut process);
    process.reaped(Instant::from_epoch(Duration::MAX));
    assert_eq!(process.restarts_at(), None); // never
    process.retry_now(at(0));
    assert_eq!(steps(&mut process), [Step::Spawn]);
}

/// Any call may follow any other: random inputs against what must hold whatever they are.
#[test]
fn any_call_may_follow_any_other() {
    for seed in 0..20_000_u64 {
        let mut random = seed;
        let mut next = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % n
        };
        let mut process = new(|config| {
            config.lazy = seed % 2 == 0;
            config.idle_stop = (seed % 3 == 0).then_some(Duration::from_secs(1));
            config.end_group = seed % 5 != 0;
            config.terminate_step = seed % 7 != 0;
            config.restarts = u32::try_from(seed % 3).expect("small");
            config.seed = seed;
        });
        let (mut ms, mut living, mut closed) = (0, false, false);
        for _ in 0..60 {
            ms += next(1_500);
            let now = at(ms);
            match next(19) {
                0 => process.wake(now),
                1 | 2 => process.spawned(now),
                3 => process.spawn_failed(SpawnFailure::Other, now),
                4 => process.established(now),
                5 => process.output_ended(now),
                6 => process.stderr_ended(now),
                7 => process.output_seen(now),
                8 => process.exited(ExitStatus::Code(0), now),
                9 => process.group_signalled(next(2) == 0, now),
                10 => process.reaped(now),
                11 if next(8) == 0 => process.close(now),
                12 if next(8) == 0 => process.kill(now),
                13 => process.idle(now),
                14 => process.busy(),
                15 => process.retry_now(now),
                16 if next(6) == 0 => process.failed(now),
                17 => process.input_failed(now),
                _ => process.handle_timeout(now),
            }
            while let Some(step) = process.poll_step() {
                match step {
                    // RST-04: one process at a time, none after the end
                    Step::Spawn => {
                        assert!(!living && !closed, "seed {seed}: a second process, or one after the end");
                        living = true;
                    }
                    Step::Reap | Step::GiveUp => {
                        assert!(living, "seed {seed}: {step:?} of nothing");
                        living = false;
                    }
                    // PRC-04: no signal after the reap
                    _ => assert!(living, "seed {seed}: {step:?} of nothing"),
                }
            }
            while let Some(notice) = process.poll_notice() {
                assert!(!closed, "seed {seed}: {notice:?} after the last notice");
                if let Notice::Closed(outcome) = notice {
                    closed = true;
                    assert_eq!(process.outcome(), Some(&outcome), "seed {seed}");
                }
            }
            // A spawn that failed is no life; the delay of the next has begun.
            living &= process.restarts_at().is_none();
        }
    }
}

#[test]
fn facts_of_no_life_count_for_nothing() {
    // RST-06: a late report of an old life must not be one of the next
    let mut process = new(|_| {});
    process.established(at(0));
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.established(at(0));
    process.spawn_failed(SpawnFailure::Other, at(1));
    assert_eq!(reason(&process), EndReason::StartFailed);

    let mut process = new(|_| {});
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.output_ended(at(0));
    process.stderr_ended(at(0));
    process.exited(ExitStatus::Code(9), at(0));
    process.spawned(at(1));
    process.established(at(1));
    assert_eq!(steps(&mut process), []);
    exit_cleanly(&mut process, ExitStatus::Code(1), 2);
    assert!(process.restarts_at().is_some());
}

#[test]
fn the_stable_time_counts_from_the_first_established() {
    // RST-01
    let mut process = up(|config| config.restarts = 1);
    exit_cleanly(&mut process, ExitStatus::Code(1), 10);
    process.retry_now(at(10));
    assert_eq!(steps(&mut process), [Step::Spawn]);
    process.spawned(at(10));
    process.established(at(10));
    process.established(at(50_000));
    exit_cleanly(&mut process, ExitStatus::Code(1), 60_010);
    assert!(process.restarts_at().is_some(), "the budget is full again");
}
