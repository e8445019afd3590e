//! Idle stops.

use core::time::Duration;
use mcp_wire::client::RequestOptions;
use mcp_wire::lifecycle::{ExitStatus, Notice, Step};
use mcp_wire::{Filter, SupervisorSignal};

use super::support::{at, crash, feed, fire, request, signals, start, steps, up, written};

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
