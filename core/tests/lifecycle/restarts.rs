//! Restarts: the budget, the delay, and what is no crash.

use mcp_wire::lifecycle::{Config, EndReason, ExitStatus, Notice, SpawnFailure, StartFailure, Step};

use super::support::{GRACE, at, exit_after_terminate, exit_cleanly, fire, notices, reason, steps, up};

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
