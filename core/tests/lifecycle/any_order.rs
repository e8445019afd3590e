//! Promises for all calls in any order: no panic, no lost end, no bad configuration.

use core::time::Duration;
use mcp_wire::lifecycle::{Config, EndReason, ExitStatus, Notice, Process, SpawnFailure, Step};
use mcp_wire::{ConfigError, Instant};

use super::support::{at, exit_cleanly, new, reason, steps, up};

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
