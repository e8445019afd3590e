//! A server that ends on the probe: it may be one that ends on anything but `initialize`, so it is started once more.

use mcp_wire::client::Signal;
use mcp_wire::lifecycle::{EndReason, ExitStatus, Notice, StartFailure, Step};
use mcp_wire::{ConfigError, Era, Eras, Supervisor, SupervisorSignal};

use crate::support::{at, closed, crash, feed, new, request, signals, start, steps, written};

fn started() -> SupervisorSignal {
    SupervisorSignal::Process(Notice::Started { restarts: 0 })
}

/// Started again, with `initialize` as its first line.
fn second(supervisor: &mut Supervisor, ms: u64) {
    start(supervisor, ms);
    let line = written(supervisor, ms);
    assert!(line.starts_with(r#"{"jsonrpc":"2.0","id":2,"method":"initialize""#), "{line}");
    assert_eq!(line.lines().count(), 1);
}

// VER-05: it is started again at once, whatever the budget of restarts, and asked for the handshake only; what waited is served.
#[test]
fn a_server_that_ends_on_the_probe_gets_the_handshake() {
    let mut supervisor = new(|_, process| process.restarts = 0);
    let waiting = request(&mut supervisor, false, 0);
    start(&mut supervisor, 0);
    assert!(written(&mut supervisor, 0).contains("server/discover"));
    crash(&mut supervisor, ExitStatus::Code(1), 10);
    assert_eq!(signals(&mut supervisor), [started()]);
    second(&mut supervisor, 20);
    let result = r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    feed(&mut supervisor, result, 30);
    let told = signals(&mut supervisor);
    let established =
        SupervisorSignal::Connection(Signal::Established { era: Era::Legacy, version: "2025-11-25".into() });
    assert_eq!(told, [started(), established]);
    assert!(written(&mut supervisor, 30).contains(r#""id":3,"method":"tools/list""#));
    assert!(supervisor.connection().in_flight() == 1, "{waiting:?}");
    // It is no restart and takes nothing from the budget: that was 0, so its next end is the last.
    crash(&mut supervisor, ExitStatus::Code(1), 40);
    assert_eq!(supervisor.outcome().map(|outcome| (outcome.reason, outcome.restarts)), Some((EndReason::Crashed, 0)));
}

// VER-05: also one that closes its output and lives; it is ended first.
#[test]
fn a_server_that_closes_its_output_on_the_probe_is_ended_first() {
    let mut supervisor = new(|_, _| {});
    start(&mut supervisor, 0);
    written(&mut supervisor, 0);
    supervisor.output_ended(at(5));
    assert_eq!(steps(&mut supervisor), [Step::CloseStdin]);
    supervisor.exited(ExitStatus::Code(0), at(6));
    assert_eq!(steps(&mut supervisor), [Step::TerminateGroup]);
    supervisor.group_signalled(true, at(6));
    assert_eq!(steps(&mut supervisor), [Step::Reap]);
    supervisor.reaped(at(6));
    second(&mut supervisor, 7);
}

// VER-05: it is never probed again, whatever it says to the handshake, unless it says that it is modern.
#[test]
fn a_server_that_ends_on_a_probe_gets_no_other() {
    for (code, probed) in [(-32601, false), (-32022, true)] {
        let mut supervisor = new(|_, _| {});
        start(&mut supervisor, 0);
        written(&mut supervisor, 0);
        crash(&mut supervisor, ExitStatus::Code(1), 10);
        second(&mut supervisor, 20);
        feed(&mut supervisor, &format!(r#"{{"jsonrpc":"2.0","id":2,"error":{{"code":{code},"message":"m"}}}}"#), 30);
        assert_eq!(written(&mut supervisor, 30).contains("server/discover"), probed, "{code}");
        let failed = |signal: &SupervisorSignal| matches!(signal, SupervisorSignal::Connection(Signal::Failed(_)));
        assert_eq!(signals(&mut supervisor).iter().any(failed), !probed);
    }
}

// VER-05, RST-01: once; a server that ends on the handshake too never came up.
#[test]
fn there_is_one_second_start() {
    let mut supervisor = new(|_, _| {});
    start(&mut supervisor, 0);
    written(&mut supervisor, 0);
    crash(&mut supervisor, ExitStatus::Code(3), 10);
    second(&mut supervisor, 20);
    crash(&mut supervisor, ExitStatus::Code(4), 30);
    let told = signals(&mut supervisor);
    assert_eq!(told[..2], [started(), started()]);
    let failure = StartFailure::Exited(ExitStatus::Code(4));
    assert_eq!(told[2], SupervisorSignal::Process(Notice::StartFailed(failure)));
    assert_eq!(closed(told.last().expect("the end")), Some(EndReason::StartFailed));
    assert!(steps(&mut supervisor).is_empty());
}

// VER-05: there is none where nothing was asked yet, where the legacy era is not spoken, or where a close has come first.
#[test]
fn a_second_start_needs_a_reason() {
    let mut unasked = new(|_, _| {});
    start(&mut unasked, 0);
    crash(&mut unasked, ExitStatus::Code(1), 10);
    let mut modern = new(|connection, _| connection.speak(Eras::Modern));
    start(&mut modern, 0);
    written(&mut modern, 0);
    crash(&mut modern, ExitStatus::Code(1), 10);
    for mut supervisor in [unasked, modern] {
        assert_eq!(supervisor.outcome().map(|outcome| outcome.reason), Some(EndReason::StartFailed));
        assert!(steps(&mut supervisor).is_empty());
    }
    let mut closing = new(|_, _| {});
    start(&mut closing, 0);
    written(&mut closing, 0);
    closing.close(at(5));
    assert_eq!(steps(&mut closing), [Step::CloseStdin]);
    crash(&mut closing, ExitStatus::Code(0), 10);
    assert_eq!(closing.outcome().map(|outcome| outcome.reason), Some(EndReason::Asked));
}

// RST-09: a legacy session has state, so it is never stopped because idle; without a modern version the two contradict each other.
#[test]
fn a_legacy_session_is_never_idle() {
    let mut supervisor = new(|_, process| process.idle_stop = Some(core::time::Duration::from_millis(50)));
    start(&mut supervisor, 0);
    written(&mut supervisor, 0);
    feed(&mut supervisor, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"m"}}"#, 1);
    written(&mut supervisor, 1);
    feed(&mut supervisor, r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25"}}"#, 2);
    written(&mut supervisor, 2);
    supervisor.handle_timeout(at(1_000_000));
    assert!(steps(&mut supervisor).is_empty() && supervisor.poll_timeout().is_none());
    let mut connection = mcp_wire::client::Config::new("test", "1");
    connection.speak(Eras::Legacy);
    let mut process = mcp_wire::lifecycle::Config::default();
    process.idle_stop = Some(core::time::Duration::from_millis(50));
    assert!(matches!(Supervisor::new(connection, process), Err(ConfigError::Conflict { .. })));
}
