//! What the tests of the supervisor share: a supervisor that is up, a server's lines, a crash. It must not know what is tested.

use core::time::Duration;
use mcp_wire::client::{self, Handle, RequestOptions, Signal};
use mcp_wire::lifecycle::{self, EndReason, ExitStatus, Notice, Step};
use mcp_wire::{Cause, Delivery, Instant, RecvBuffer, Supervisor, SupervisorSignal};

pub(crate) const GRACE: u64 = 2_000;

pub(crate) const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}}"#;

pub(crate) fn at(ms: u64) -> Instant {
    Instant::from_epoch(Duration::from_millis(ms))
}

pub(crate) fn new(change: impl FnOnce(&mut client::Config, &mut lifecycle::Config)) -> Supervisor {
    let mut connection = client::Config::new("test", "1");
    let mut process = lifecycle::Config::default();
    change(&mut connection, &mut process);
    Supervisor::new(connection, process).expect("a good configuration")
}

/// Spawned, probed, established; its signals are taken.
pub(crate) fn up(change: impl FnOnce(&mut client::Config, &mut lifecycle::Config)) -> Supervisor {
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

pub(crate) fn start(supervisor: &mut Supervisor, ms: u64) {
    assert_eq!(steps(supervisor), [Step::Spawn]);
    supervisor.spawned(at(ms));
    supervisor.stderr_ended(at(ms));
}

pub(crate) fn steps(supervisor: &mut Supervisor) -> Vec<Step> {
    core::iter::from_fn(|| supervisor.poll_step()).collect()
}

pub(crate) fn signals(supervisor: &mut Supervisor) -> Vec<SupervisorSignal> {
    core::iter::from_fn(|| supervisor.poll_signal()).collect()
}

/// Writes all there is to write.
pub(crate) fn written(supervisor: &mut Supervisor, ms: u64) -> String {
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

pub(crate) fn feed(supervisor: &mut Supervisor, line: &str, ms: u64) {
    let mut recv = RecvBuffer::default();
    recv.extend(line.as_bytes());
    recv.extend(b"\n");
    let frame = recv.next_frame().expect("a line");
    supervisor.handle(frame.message(), at(ms));
}

pub(crate) fn request(supervisor: &mut Supervisor, idempotent: bool, ms: u64) -> Handle {
    let mut options = RequestOptions::default();
    options.idempotent = idempotent;
    supervisor.request("tools/list", None, options, at(ms)).expect("there is room")
}

/// Its output ends, it exits with nobody left behind, and it is reaped.
pub(crate) fn crash(supervisor: &mut Supervisor, status: ExitStatus, ms: u64) {
    supervisor.output_ended(at(ms));
    supervisor.exited(status, at(ms));
    assert_eq!(steps(supervisor), [Step::TerminateGroup]);
    supervisor.group_signalled(true, at(ms));
    assert_eq!(steps(supervisor), [Step::Reap]);
    supervisor.reaped(at(ms));
}

pub(crate) fn fire(supervisor: &mut Supervisor) -> u64 {
    let due = supervisor.poll_timeout().expect("a timer");
    supervisor.handle_timeout(due);
    u64::try_from(due.since_epoch().as_micros().div_ceil(1_000)).expect("a small time")
}

pub(crate) fn ended(signal: &SupervisorSignal) -> Option<(Handle, Cause, Delivery)> {
    match signal {
        SupervisorSignal::Connection(Signal::Ended { request, cause, delivery, .. }) => {
            Some((*request, cause.clone(), *delivery))
        }
        _ => None,
    }
}

pub(crate) fn closed(signal: &SupervisorSignal) -> Option<EndReason> {
    match signal {
        SupervisorSignal::Process(Notice::Closed(outcome)) => Some(outcome.reason),
        _ => None,
    }
}
