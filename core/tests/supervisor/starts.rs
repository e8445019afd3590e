//! Starts: what waits for one, and what a failed one ends.

use core::time::Duration;
use mcp_wire::client::Signal;
use mcp_wire::lifecycle::{EndReason, ExitStatus, Notice, SpawnFailure, StartFailure, Step};
use mcp_wire::{Cause, Delivery, Eras, SupervisorSignal};

use super::support::{DISCOVERED, at, closed, crash, ended, feed, new, request, signals, start, steps, written};

#[test]
fn requests_wait_for_the_start_and_the_probe_comes_first() {
    // VER-02, CAN-03
    let mut supervisor = new(|_, _| {});
    request(&mut supervisor, false, 0);
    assert!(supervisor.output(at(0)).is_empty());
    start(&mut supervisor, 5_000);
    let text = written(&mut supervisor, 5_000);
    assert!(text.contains("server/discover") && !text.contains("tools/list"));
    feed(&mut supervisor, DISCOVERED, 5_001);
    assert!(written(&mut supervisor, 5_001).contains("tools/list"));
}

#[test]
fn a_failed_spawn_is_told_before_the_requests_that_it_ends_and_closed_last() {
    // RST-01, RST-08
    let mut supervisor = new(|_, _| {});
    let handle = request(&mut supervisor, true, 0);
    assert_eq!(steps(&mut supervisor), [Step::Spawn]);
    supervisor.spawn_failed(SpawnFailure::NotFound, at(1));
    let told = signals(&mut supervisor);
    let failure = StartFailure::Spawn(SpawnFailure::NotFound);
    assert_eq!(told[0], SupervisorSignal::Process(Notice::StartFailed(failure)));
    assert_eq!(ended(&told[1]), Some((handle, Cause::Closed, Delivery::NotSent)));
    assert_eq!(closed(&told[2]), Some(EndReason::StartFailed));
    assert_eq!(told.len(), 3);
}

#[test]
fn an_exit_before_the_first_answer_is_a_failed_start_with_its_status() {
    // RST-01, case 123: a child that exits at once
    let mut supervisor = new(|_, _| {});
    let handle = request(&mut supervisor, true, 0);
    start(&mut supervisor, 0);
    signals(&mut supervisor);
    supervisor.output_ended(at(5));
    assert_eq!(signals(&mut supervisor), []); // the status is not known yet
    supervisor.exited(ExitStatus::Code(127), at(6));
    assert_eq!(steps(&mut supervisor), [Step::TerminateGroup]);
    supervisor.group_signalled(true, at(6));
    assert_eq!(steps(&mut supervisor), [Step::Reap]);
    supervisor.reaped(at(6));
    let told = signals(&mut supervisor);
    let failure = StartFailure::Exited(ExitStatus::Code(127));
    assert_eq!(told[0], SupervisorSignal::Process(Notice::StartFailed(failure)));
    assert_eq!(ended(&told[1]), Some((handle, Cause::Closed, Delivery::NotSent)));
    assert_eq!(closed(&told[2]), Some(EndReason::StartFailed));
}

#[test]
fn a_start_that_fails_by_an_exit_is_not_explained_by_the_silence_that_follows() {
    // RST-01, case 111: the exit status says why, and the probe's timeout would hide it
    for exits_first in [false, true] {
        let mut supervisor = new(|connection, _| {
            connection.speak(Eras::Modern);
            connection.probe_timeout = Duration::from_millis(10);
        });
        start(&mut supervisor, 0);
        written(&mut supervisor, 0);
        feed(&mut supervisor, "Listening on stdio", 1); // it lives: the probe's clock runs
        if exits_first {
            supervisor.exited(ExitStatus::Code(1), at(5));
        } else {
            supervisor.output_ended(at(5));
        }
        supervisor.handle_timeout(at(200));
        assert!(supervisor.connection().error().is_none());
        supervisor.exited(ExitStatus::Code(1), at(201));
        steps(&mut supervisor);
        supervisor.group_signalled(true, at(201));
        supervisor.output_ended(at(201));
        assert_eq!(steps(&mut supervisor), [Step::Reap]);
        supervisor.reaped(at(201));
        let failure = StartFailure::Exited(ExitStatus::Code(1));
        assert!(signals(&mut supervisor).contains(&SupervisorSignal::Process(Notice::StartFailed(failure))));
    }
}

#[test]
fn a_legacy_server_fails_the_start_and_is_closed_by_the_ladder() {
    // VER-09
    let mut supervisor = new(|connection, _| connection.speak(Eras::Modern));
    let handle = request(&mut supervisor, false, 0);
    start(&mut supervisor, 0);
    written(&mut supervisor, 0);
    signals(&mut supervisor);
    feed(&mut supervisor, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#, 1);
    let told = signals(&mut supervisor);
    assert!(matches!(told[0], SupervisorSignal::Connection(Signal::Failed(_))));
    assert_eq!(told[1], SupervisorSignal::Process(Notice::StartFailed(StartFailure::Connection)));
    assert_eq!(ended(&told[2]), Some((handle, Cause::Closed, Delivery::NotSent)));
    assert_eq!(told.len(), 3);
    assert_eq!(steps(&mut supervisor), [Step::CloseStdin]);
    assert!(supervisor.output(at(1)).is_empty());
    crash(&mut supervisor, ExitStatus::Code(0), 2);
    assert_eq!(closed(&signals(&mut supervisor)[0]), Some(EndReason::StartFailed));
}

#[test]
fn ten_requests_start_a_lazy_process_once() {
    // RST-08
    let mut supervisor = new(|_, process| process.lazy = true);
    assert_eq!(steps(&mut supervisor), []);
    assert_eq!(supervisor.poll_timeout(), None);
    for _ in 0..10 {
        request(&mut supervisor, false, 1);
    }
    assert_eq!(steps(&mut supervisor), [Step::Spawn]);
}

#[test]
fn a_notification_starts_a_lazy_process_and_leaves_when_it_is_up() {
    // RST-08, CAN-12
    let mut supervisor = new(|_, process| process.lazy = true);
    supervisor.notify("notifications/x", None, at(1)).expect("there is room");
    start(&mut supervisor, 2);
    assert!(!written(&mut supervisor, 2).contains("notifications/x"));
    feed(&mut supervisor, DISCOVERED, 3);
    assert!(written(&mut supervisor, 3).contains("notifications/x"));
}
