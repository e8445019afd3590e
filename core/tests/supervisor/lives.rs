//! From one life to the next: what ends, what is sent again, what goes nowhere.

use core::time::Duration;
use mcp_wire::client::{Event, Handle, ListenEnd, RequestOptions, Signal};
use mcp_wire::lifecycle::{EndReason, ExitStatus, Notice, Step};
use mcp_wire::{Cause, Delivery, Filter, RecvBuffer, SendError, SupervisorSignal};

use super::support::{GRACE, at, closed, crash, ended, feed, fire, request, signals, start, steps, up, written};

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
