//! Tests of the course of a run: what is performed, waited for and shown, with handles of a core that nobody drives.

use mcp_wire::client::{Config, Connection, ListenEnd};
use mcp_wire::lifecycle::ExitStatus;
use mcp_wire::{Filter, JsonBuf};

use super::*;

/// Handles as the core gives them.
struct Handles(Connection);

impl Handles {
    fn new() -> Self {
        Self(Connection::new(Config::new("t", "1")).expect("a good configuration"))
    }

    fn next(&mut self) -> Handle {
        self.0.request("x", None, Default::default(), mcp_wire::Instant::EPOCH).expect("there is room")
    }
}

fn request(key: &str) -> Op {
    Op::Request { key: key.into(), method: "m".into(), params: None, timeout: None, idempotent: false }
}

fn result(request: Handle) -> ClientEvent {
    ClientEvent::Result { request, result: JsonBuf::from(mcp_wire::Json::EMPTY) }
}

fn closed() -> ClientEvent {
    ClientEvent::Closed { exit: Some(ExitStatus::Code(0)), escalation: Escalation::None, restarts: 0 }
}

/// What is performed next; events in between are passed over.
fn performed(session: &mut Session, now: Instant) -> Option<Op> {
    loop {
        match session.next(now) {
            Next::Perform(op) => return Some(op),
            Next::Show(_) => {}
            Next::Wait { .. } | Next::Done => return None,
        }
    }
}

fn shown(session: &mut Session, now: Instant) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    while let Next::Show(Shown::Event(event)) = session.next(now) {
        kinds.push(event.kind());
    }
    kinds
}

#[test]
fn none_waits_for_another_unless_it_says_so() {
    let (now, mut handles) = (Instant::now(), Handles::new());
    let ops = vec![request("a"), request("b"), Op::Wait { key: "a".into() }, request("c")];
    let mut session = Session::new(ops, false);
    let (a, b) = (handles.next(), handles.next());
    for (key, handle) in [("a", a), ("b", b)] {
        assert_eq!(performed(&mut session, now), Some(request(key)));
        session.sent(key.into(), false, handle);
    }
    assert_eq!(performed(&mut session, now), None);
    session.event(result(b));
    assert_eq!(performed(&mut session, now), None, "it waits for a, not for b");
    session.event(result(a));
    assert_eq!(performed(&mut session, now), Some(request("c")));
}

#[test]
fn the_end_waits_for_requests_and_not_for_listens() {
    let (now, mut handles) = (Instant::now(), Handles::new());
    let listen = Op::Listen { key: "s".into(), filter: Filter::default() };
    let mut session = Session::new(vec![listen.clone(), request("a")], false);
    assert_eq!(performed(&mut session, now), Some(listen));
    session.sent("s".into(), true, handles.next());
    assert_eq!(performed(&mut session, now), Some(request("a")));
    let a = handles.next();
    session.sent("a".into(), false, a);
    assert_eq!(performed(&mut session, now), None);
    session.event(result(a));
    assert_eq!(performed(&mut session, now), Some(Op::Close));
    session.event(closed());
    // The listen had no word of its end; nothing ends without one.
    assert_eq!(shown(&mut session, now), ["failed", "closed"]);
    assert!(matches!(session.next(now), Next::Done));
}

#[test]
fn a_wait_for_an_event_consumes_one_from_the_start_on() {
    let now = Instant::now();
    let wait = || Op::WaitEvent { event: "era" };
    let mut session = Session::new(vec![wait(), Op::Notify { method: "n".into(), params: None }, wait()], false);
    let era = || ClientEvent::Era { era: "modern", version: "v".into() };
    session.event(era());
    assert!(matches!(performed(&mut session, now), Some(Op::Notify { .. })), "it came before the wait");
    assert_eq!(performed(&mut session, now), None, "that one is consumed");
    session.event(era());
    assert_eq!(performed(&mut session, now), Some(Op::Close));
}

#[test]
fn every_wait_ends_with_the_connection_and_closed_comes_last() {
    let (now, mut handles) = (Instant::now(), Handles::new());
    let ops =
        vec![request("a"), Op::WaitEvent { event: "result" }, Op::Wait { key: "a".into() }, request("b"), Op::Kill];
    let mut session = Session::new(ops, false);
    assert_eq!(performed(&mut session, now), Some(request("a")));
    session.sent("a".into(), false, handles.next());
    session.event(closed());
    assert_eq!(performed(&mut session, now), Some(request("b")), "the adapter refuses it, and says why");
    session.refused("b".into(), false, "closed", String::new());
    assert_eq!(shown(&mut session, now), ["failed", "closed"]);
    assert!(matches!(session.next(now), Next::Done));
    assert_eq!(session.status(), 4);
}

#[test]
fn a_failed_start_ends_a_listen_as_it_ends_a_request() {
    let (now, mut handles) = (Instant::now(), Handles::new());
    let mut session = Session::new(vec![Op::Listen { key: "s".into(), filter: Filter::default() }], false);
    assert!(performed(&mut session, now).is_some());
    let s = handles.next();
    session.sent("s".into(), true, s);
    let kind = mcp_wire_driver::client::StartFailedKind::NotFound;
    session.event(ClientEvent::StartFailed { kind, detail: String::new() });
    session.event(ClientEvent::ListenEnded { listen: s, how: ListenEnd::Closed });
    session.event(closed());
    assert_eq!(shown(&mut session, now), ["start_failed", "failed", "closed"]);
    assert_eq!(session.status(), 3);
}

#[test]
fn a_signal_ends_the_script_and_decides_the_status() {
    let (now, mut handles) = (Instant::now(), Handles::new());
    let mut session = Session::new(vec![request("a"), Op::Sleep { time: Duration::from_secs(9) }, request("b")], false);
    assert_eq!(performed(&mut session, now), Some(request("a")));
    session.sent("a".into(), false, handles.next());
    assert_eq!(performed(&mut session, now), None);
    session.interrupt(130);
    assert!(session.is_interrupted());
    assert_eq!(performed(&mut session, now), None);
    session.event(closed());
    assert_eq!(shown(&mut session, now), ["failed", "closed"]);
    assert_eq!(session.status(), 130);
}

#[test]
fn a_sleep_takes_its_time_and_a_slow_start_is_told_once() {
    let now = Instant::now();
    let mut session = Session::new(vec![Op::Sleep { time: PATIENCE * 2 }], false);
    session.starting(now);
    assert!(matches!(session.next(now), Next::Wait { until: Some(at), .. } if at == now + PATIENCE));
    assert!(matches!(session.next(now + PATIENCE), Next::Show(Shown::StillStarting)));
    assert!(matches!(session.next(now + PATIENCE), Next::Wait { until: Some(at), .. } if at == now + PATIENCE * 2));
    assert_eq!(performed(&mut session, now + PATIENCE * 2), Some(Op::Close));
}

#[test]
fn a_script_line_by_line_ends_with_silence_after_the_end_of_its_connection() {
    let now = Instant::now();
    let mut session = Session::new(Vec::new(), true);
    assert!(matches!(session.next(now), Next::Wait { until: None, input: true }));
    session.line(Some(Op::Close));
    assert_eq!(performed(&mut session, now), Some(Op::Close));
    session.event(closed());
    assert!(matches!(session.next(now), Next::Wait { until: Some(at), input: true } if at == now + SILENCE));
    assert_eq!(shown(&mut session, now + SILENCE), ["closed"]);
    assert!(matches!(session.next(now + SILENCE), Next::Done));
}
