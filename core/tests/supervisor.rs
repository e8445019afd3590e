//! The supervisor from outside: one connection over many lives of a process, the order of its signals, what waits and what ends.

use core::time::Duration;

use mcp_wire::client::{self, Event, Handle, ListenEnd, RequestOptions, Signal};
use mcp_wire::lifecycle::{self, EndReason, Escalation, ExitStatus, Notice, SpawnFailure, StartFailure, Step};
use mcp_wire::{Cause, Delivery, Filter, Instant, RecvBuffer, SendError, Supervisor, SupervisorSignal};

const GRACE: u64 = 2_000;
const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}}"#;

fn at(ms: u64) -> Instant {
    Instant::from_epoch(Duration::from_millis(ms))
}

fn new(change: impl FnOnce(&mut client::Config, &mut lifecycle::Config)) -> Supervisor {
    let mut connection = client::Config::new("test", "1");
    let mut process = lifecycle::Config::default();
    change(&mut connection, &mut process);
    Supervisor::new(connection, process).expect("a good configuration")
}

/// Spawned, probed, established; its signals are taken.
fn up(change: impl FnOnce(&mut client::Config, &mut lifecycle::Config)) -> Supervisor {
    let mut supervisor = new(change);
    start(&mut supervisor, 0);
    assert!(written(&mut supervisor, 0).contains("server/discover"));
    feed(&mut supervisor, DISCOVERED, 0);
    let told = signals(&mut supervisor);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0], SupervisorSignal::Process(Notice::Started { restarts: 0 }));
    assert!(matches!(told[1], SupervisorSignal::Connection(Signal::Established { .. })));
    supervisor
}

fn start(supervisor: &mut Supervisor, ms: u64) {
    assert_eq!(steps(supervisor), [Step::Spawn]);
    supervisor.spawned(at(ms));
    supervisor.stderr_ended(at(ms));
}

fn steps(supervisor: &mut Supervisor) -> Vec<Step> {
    core::iter::from_fn(|| supervisor.poll_step()).collect()
}

fn signals(supervisor: &mut Supervisor) -> Vec<SupervisorSignal> {
    core::iter::from_fn(|| supervisor.poll_signal()).collect()
}

/// Writes all there is to write.
fn written(supervisor: &mut Supervisor, ms: u64) -> String {
    let mut text = String::new();
    loop {
        let lent = supervisor.output(at(ms));
        if lent.is_empty() {
            return text;
        }
        text.push_str(core::str::from_utf8(lent).expect("FRM-03"));
        let n = lent.len();
        supervisor.accepted(n, at(ms));
    }
}

fn feed(supervisor: &mut Supervisor, line: &str, ms: u64) {
    let mut recv = RecvBuffer::default();
    recv.extend(line.as_bytes());
    recv.extend(b"\n");
    let frame = recv.next_frame().expect("a line");
    supervisor.handle(frame.message(), at(ms));
}

fn request(supervisor: &mut Supervisor, idempotent: bool, ms: u64) -> Handle {
    let mut options = RequestOptions::default();
    options.idempotent = idempotent;
    supervisor.request("tools/list", None, options, at(ms)).expect("there is room")
}

/// Its output ends, it exits with nobody left behind, and it is reaped.
fn crash(supervisor: &mut Supervisor, status: ExitStatus, ms: u64) {
    supervisor.output_ended(at(ms));
    supervisor.exited(status, at(ms));
    assert_eq!(steps(supervisor), [Step::TerminateGroup]);
    supervisor.group_signalled(true, at(ms));
    assert_eq!(steps(supervisor), [Step::Reap]);
    supervisor.reaped(at(ms));
}

fn fire(supervisor: &mut Supervisor) -> u64 {
    let due = supervisor.poll_timeout().expect("a timer");
    supervisor.handle_timeout(due);
    u64::try_from(due.since_epoch().as_micros().div_ceil(1_000)).expect("a small time")
}

fn ended(signal: &SupervisorSignal) -> Option<(Handle, Cause, Delivery)> {
    match signal {
        SupervisorSignal::Connection(Signal::Ended { request, cause, delivery, .. }) => {
            Some((*request, cause.clone(), *delivery))
        }
        _ => None,
    }
}

fn closed(signal: &SupervisorSignal) -> Option<EndReason> {
    match signal {
        SupervisorSignal::Process(Notice::Closed(outcome)) => Some(outcome.reason),
        _ => None,
    }
}

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
        let mut supervisor = new(|connection, _| connection.probe_timeout = Duration::from_millis(10));
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
    let mut supervisor = new(|_, _| {});
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
fn a_crash_ends_what_was_sent_before_the_restart_is_told() {
    // RST-02, RST-03, RST-06
    let mut supervisor = up(|_, _| {});
    let call = request(&mut supervisor, false, 10);
    let list = request(&mut supervisor, true, 10);
    assert!(written(&mut supervisor, 10).contains(r#""id":3"#));
    let unsent = request(&mut supervisor, false, 11);
    crash(&mut supervisor, ExitStatus::Signal(11), 20);
    let told = signals(&mut supervisor);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(ended(&told[0]), Some((call, Cause::Closed, Delivery::Sent)));
    assert!(supervisor.output(at(20)).is_empty());

    let ms = fire(&mut supervisor);
    let exit = ExitStatus::Signal(11);
    assert_eq!(signals(&mut supervisor), [SupervisorSignal::Process(Notice::Restarting { restarts: 1, exit })]);
    start(&mut supervisor, ms);
    let text = written(&mut supervisor, ms);
    assert!(!text.contains("server/discover"), "VER-08: the verdict is kept: {text}");
    assert_eq!(text.matches("tools/list").count(), 2);
    let told = signals(&mut supervisor);
    assert_eq!(told[0], SupervisorSignal::Process(Notice::Started { restarts: 1 }));
    assert!(matches!(told[1], SupervisorSignal::Connection(Signal::Established { .. })));
    // An answer of the old life's id names nothing now.
    feed(&mut supervisor, r#"{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete"}}"#, ms);
    assert_eq!(supervisor.connection().in_flight(), 2);
    supervisor.close(at(ms));
    let told: Vec<Handle> = signals(&mut supervisor).iter().filter_map(ended).map(|(handle, ..)| handle).collect();
    assert!(told.contains(&list) && told.contains(&unsent));
}

#[test]
fn a_response_that_is_read_after_the_exit_counts() {
    // RST-02: the exit may be known before the last output is read
    let mut supervisor = up(|_, process| process.restarts = 0);
    request(&mut supervisor, false, 10);
    written(&mut supervisor, 10);
    supervisor.exited(ExitStatus::Code(0), at(11));
    assert_eq!(steps(&mut supervisor), [Step::TerminateGroup]);
    supervisor.group_signalled(true, at(11));
    assert_eq!(signals(&mut supervisor), []);
    let mut recv = RecvBuffer::default();
    recv.extend(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}"); // without its LF, too
    recv.close();
    let frame = recv.next_frame().expect("FRM-09");
    assert!(matches!(supervisor.handle(frame.message(), at(12)), Event::Result { .. }));
    supervisor.output_ended(at(12));
    assert_eq!(steps(&mut supervisor), [Step::Reap]);
    supervisor.reaped(at(12));
    let told = signals(&mut supervisor);
    assert_eq!(closed(&told[0]), Some(EndReason::Crashed));
    assert_eq!(told.len(), 1);
}

#[test]
fn a_listen_is_sent_again_after_a_restart_and_told_of_the_gap() {
    // SUB-10
    let mut supervisor = up(|_, _| {});
    let filter = Filter::default().tools_list_changed();
    let listen = supervisor.listen(&filter, RequestOptions::default(), at(1)).expect("there is room");
    written(&mut supervisor, 1);
    let acknowledged = |id: u64| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{{"toolsListChanged":true}}}}}}"#
        )
    };
    feed(&mut supervisor, &acknowledged(2), 2);
    crash(&mut supervisor, ExitStatus::Code(1), 3);
    assert_eq!(signals(&mut supervisor), []);
    let ms = fire(&mut supervisor);
    start(&mut supervisor, ms);
    assert!(written(&mut supervisor, ms).contains("subscriptions/listen"));
    feed(&mut supervisor, &acknowledged(3), ms);
    let told = signals(&mut supervisor);
    assert!(matches!(told[0], SupervisorSignal::Process(Notice::Restarting { .. })));
    assert!(matches!(told[1], SupervisorSignal::Process(Notice::Started { .. })));
    assert!(matches!(told[2], SupervisorSignal::Connection(Signal::Established { .. })));
    assert_eq!(told[3], SupervisorSignal::Connection(Signal::Resubscribed { listen }));
    supervisor.close(at(ms));
    let told = signals(&mut supervisor);
    assert_eq!(told[0], SupervisorSignal::Connection(Signal::ListenEnded { listen, how: ListenEnd::Closed }));
}

#[test]
fn the_last_crash_ends_everything_and_then_closes() {
    // RST-01, RST-05
    let mut supervisor = up(|_, process| process.restarts = 0);
    let list = request(&mut supervisor, true, 1);
    crash(&mut supervisor, ExitStatus::Code(3), 2);
    let told = signals(&mut supervisor);
    assert_eq!(ended(&told[0]), Some((list, Cause::Closed, Delivery::NotSent)));
    assert_eq!(closed(&told[1]), Some(EndReason::Crashed));
    let outcome = supervisor.outcome().expect("it is over");
    assert_eq!((outcome.exit, outcome.restarts), (Some(ExitStatus::Code(3)), 0));
    let late = supervisor.request("tools/list", None, RequestOptions::default(), at(3));
    assert_eq!(late, Err(SendError::Closed));
    assert_eq!(supervisor.poll_timeout(), None);
}

#[test]
fn stdin_is_closed_when_the_half_line_is_finished() {
    // SHD-01, SHD-03: what was begun is finished, what was not is withdrawn
    let mut supervisor = up(|_, _| {});
    let begun = request(&mut supervisor, false, 1);
    let lent = supervisor.output(at(1)).len();
    supervisor.accepted(10, at(1));
    let waiting = request(&mut supervisor, false, 1);
    supervisor.close(at(2));
    let told = signals(&mut supervisor);
    let find =
        |handle| told.iter().filter_map(ended).find(|(ended, ..)| *ended == handle).map(|(.., delivery)| delivery);
    assert_eq!(find(begun), Some(Delivery::PartlySent));
    assert_eq!(find(waiting), Some(Delivery::NotSent));
    assert_eq!(steps(&mut supervisor), []);
    let rest = supervisor.output(at(2)).to_vec();
    assert_eq!(rest.len(), lent - 10);
    assert!(rest.ends_with(b"\n"));
    supervisor.accepted(rest.len(), at(3));
    assert_eq!(steps(&mut supervisor), [Step::CloseStdin]);
    assert!(supervisor.output(at(3)).is_empty());
}

#[test]
fn a_server_that_does_not_read_delays_the_close_of_its_stdin_by_one_grace() {
    // SHD-01, case 105: a full pipe to a deaf server
    let mut supervisor = up(|_, _| {});
    request(&mut supervisor, false, 1);
    let _ = supervisor.output(at(1));
    supervisor.accepted(1, at(1));
    supervisor.close(at(2));
    assert_eq!(steps(&mut supervisor), []);
    assert_eq!(fire(&mut supervisor), 2 + GRACE);
    assert_eq!(steps(&mut supervisor), [Step::CloseStdin, Step::Terminate]);
    assert!(supervisor.output(at(3 + GRACE)).is_empty());
}

#[test]
fn kill_writes_nothing_more() {
    // SHD-03, SHD-04
    let mut supervisor = up(|_, _| {});
    let handle = request(&mut supervisor, false, 1);
    let _ = supervisor.output(at(1));
    supervisor.accepted(1, at(1));
    supervisor.kill(at(2));
    assert!(supervisor.output(at(2)).is_empty());
    assert!(supervisor.take_output(at(2)).is_none());
    assert_eq!(steps(&mut supervisor), [Step::Kill]);
    assert_eq!(ended(&signals(&mut supervisor)[0]), Some((handle, Cause::Closed, Delivery::PartlySent)));
    supervisor.exited(ExitStatus::Signal(9), at(3));
    assert_eq!(steps(&mut supervisor), [Step::KillGroup, Step::Reap]);
    supervisor.reaped(at(3));
    let outcome = supervisor.outcome().expect("it is over");
    assert_eq!((outcome.escalation, outcome.reason), (Escalation::Kill, EndReason::Asked));
}

#[test]
fn a_write_error_ends_the_life_and_what_was_not_begun_goes_to_the_next() {
    // case 122
    let mut supervisor = up(|_, _| {});
    let handle = request(&mut supervisor, false, 1);
    supervisor.input_failed(at(1));
    assert!(supervisor.output(at(1)).is_empty());
    assert_eq!(steps(&mut supervisor), [Step::CloseStdin]);
    crash(&mut supervisor, ExitStatus::Code(0), 2);
    assert_eq!(signals(&mut supervisor), []);
    let ms = fire(&mut supervisor);
    start(&mut supervisor, ms);
    assert!(written(&mut supervisor, ms).contains("tools/list"));
    supervisor.cancel(handle, None, at(ms));
    assert!(signals(&mut supervisor).iter().any(|signal| ended(signal).is_some()));
}

#[test]
fn a_report_of_an_old_write_does_not_count_for_the_next_life() {
    // RST-06
    let mut supervisor = up(|_, _| {});
    request(&mut supervisor, true, 1);
    let old = supervisor.take_output(at(1)).expect("a request");
    crash(&mut supervisor, ExitStatus::Code(0), 2);
    supervisor.accepted(old.len(), at(2));
    supervisor.recycle(old);
    let ms = fire(&mut supervisor);
    start(&mut supervisor, ms);
    assert!(written(&mut supervisor, ms).starts_with(r#"{"jsonrpc":"2.0","id":"#));
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
fn a_request_during_an_idle_stop_waits_for_the_new_process() {
    // RST-09
    let mut supervisor = up(|_, process| process.idle_stop = Some(Duration::from_secs(1)));
    assert_eq!(fire(&mut supervisor), 1_000);
    assert_eq!(steps(&mut supervisor), [Step::CloseStdin]);
    let handle = request(&mut supervisor, false, 1_001);
    assert!(supervisor.output(at(1_001)).is_empty());
    crash(&mut supervisor, ExitStatus::Code(0), 1_002);
    let told = signals(&mut supervisor);
    assert_eq!(told, [SupervisorSignal::Process(Notice::IdleStopped { exit: ExitStatus::Code(0) })]);
    start(&mut supervisor, 1_003);
    assert!(written(&mut supervisor, 1_003).contains("tools/list"));
    feed(&mut supervisor, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#, 1_004);
    assert_eq!(supervisor.connection().in_flight(), 0, "{handle:?}");
    let outcome = supervisor.process().outcome();
    assert_eq!(outcome, None);
}

#[test]
fn a_request_or_a_listen_keeps_the_process_from_being_idle() {
    // RST-09
    let mut supervisor = up(|_, process| process.idle_stop = Some(Duration::from_secs(1)));
    let listen = supervisor.listen(&Filter::default(), RequestOptions::default(), at(500)).expect("there is room");
    written(&mut supervisor, 500);
    supervisor.handle_timeout(at(5_000));
    assert_eq!(steps(&mut supervisor), []);
    supervisor.cancel(listen, None, at(6_000));
    written(&mut supervisor, 6_000);
    assert_eq!(fire(&mut supervisor), 7_000);
    assert_eq!(steps(&mut supervisor), [Step::CloseStdin]);
}

#[test]
fn an_unkillable_process_ends_what_was_to_wait_for_the_next() {
    // RST-04
    let mut supervisor = up(|_, _| {});
    let list = request(&mut supervisor, true, 1);
    supervisor.output_ended(at(2));
    assert_eq!(signals(&mut supervisor), []);
    for ms in [GRACE + 2, 2 * GRACE + 2, 3 * GRACE + 2] {
        supervisor.handle_timeout(at(ms));
    }
    assert_eq!(steps(&mut supervisor), [Step::Kill, Step::GiveUp]);
    let told = signals(&mut supervisor);
    assert_eq!(ended(&told[0]).map(|(handle, ..)| handle), Some(list));
    assert_eq!(closed(&told[1]), Some(EndReason::Unkillable));
}

#[test]
fn a_stream_without_a_process_closes_with_its_output() {
    // FRM-11
    let mut supervisor = Supervisor::without_process(client::Config::new("test", "1"), at(0)).expect("good");
    assert_eq!(steps(&mut supervisor), []);
    assert!(written(&mut supervisor, 0).contains("server/discover"));
    feed(&mut supervisor, DISCOVERED, 1);
    let handle = request(&mut supervisor, true, 2);
    written(&mut supervisor, 2);
    signals(&mut supervisor);
    supervisor.output_ended(at(3));
    let told = signals(&mut supervisor);
    assert_eq!(ended(&told[0]), Some((handle, Cause::Closed, Delivery::Sent)));
    assert_eq!(closed(&told[1]), Some(EndReason::Crashed));
    assert_eq!(steps(&mut supervisor), [Step::CloseStdin]);
    assert_eq!(supervisor.poll_timeout(), None);
}

#[test]
fn the_close_of_a_stream_waits_one_grace_for_the_peer() {
    // FRM-11, SHD-01
    for answers in [false, true] {
        let mut supervisor = Supervisor::without_process(client::Config::new("test", "1"), at(0)).expect("good");
        written(&mut supervisor, 0);
        supervisor.close(at(10));
        assert_eq!(steps(&mut supervisor), [Step::CloseStdin]);
        assert_eq!(supervisor.outcome(), None);
        if answers {
            supervisor.output_ended(at(11));
        } else {
            assert_eq!(fire(&mut supervisor), 10 + GRACE);
        }
        let outcome = supervisor.outcome().expect("it is over");
        assert_eq!((outcome.exit, outcome.reason), (None, EndReason::Asked));
    }
}

#[test]
fn a_stream_that_ends_before_it_is_up_is_a_failed_start() {
    // RST-01
    let mut supervisor = Supervisor::without_process(client::Config::new("test", "1"), at(0)).expect("good");
    supervisor.output_ended(at(1));
    let told = signals(&mut supervisor);
    assert_eq!(told[0], SupervisorSignal::Process(Notice::StartFailed(StartFailure::StreamEnded)));
    assert_eq!(closed(&told[1]), Some(EndReason::StartFailed));
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

#[test]
fn an_overflow_ends_its_request_and_cancels_it_on_the_wire() {
    // RTE-12
    let mut supervisor = up(|_, _| {});
    let handle = request(&mut supervisor, false, 1);
    written(&mut supervisor, 1);
    supervisor.overflow(handle, at(2));
    assert_eq!(signals(&mut supervisor).iter().find_map(ended), Some((handle, Cause::Overflow, Delivery::Sent)));
    assert!(written(&mut supervisor, 2).contains("notifications/cancelled"));
}

#[test]
fn output_after_the_exit_keeps_the_drain_open() {
    // PRC-03, case 162
    let mut supervisor = up(|_, process| process.restarts = 0);
    supervisor.exited(ExitStatus::Code(0), at(100));
    assert_eq!(steps(&mut supervisor), [Step::TerminateGroup]);
    supervisor.group_signalled(false, at(100));
    supervisor.output_seen(at(300));
    supervisor.handle_timeout(at(400));
    assert_eq!(steps(&mut supervisor), []);
    assert_eq!(fire(&mut supervisor), 550);
    assert_eq!(steps(&mut supervisor), [Step::KillGroup, Step::Reap]);
    assert!(supervisor.output(at(550)).is_empty());
}

#[test]
fn retry_now_starts_the_next_life_at_once() {
    // case 168
    let mut supervisor = up(|_, _| {});
    crash(&mut supervisor, ExitStatus::Code(1), 10);
    assert!(supervisor.process().restarts_at().is_some());
    supervisor.retry_now(at(11));
    start(&mut supervisor, 12);
    let exit = ExitStatus::Code(1);
    let told = signals(&mut supervisor);
    assert_eq!(told[0], SupervisorSignal::Process(Notice::Restarting { restarts: 1, exit }));
    assert_eq!(told[1], SupervisorSignal::Process(Notice::Started { restarts: 1 }));
}

#[test]
fn a_message_of_a_life_that_counts_no_more_is_ignored() {
    // RST-06: the bytes came before the end was known, and are looked at after it
    let mut supervisor = up(|_, process| process.idle_stop = Some(Duration::from_secs(1)));
    fire(&mut supervisor);
    assert_eq!(steps(&mut supervisor), [Step::CloseStdin]);
    request(&mut supervisor, false, 1_001);
    feed(&mut supervisor, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#, 1_002);
    assert_eq!(supervisor.connection().in_flight(), 1);
}
