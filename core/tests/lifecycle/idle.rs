//! Lazy starts and idle stops.

use core::time::Duration;
use mcp_wire::lifecycle::{ExitStatus, Notice, Step};

use super::support::{at, exit_cleanly, fire, new, notices, steps, up};

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
