//! Cancellations from the client: what they stop, and what they leave alone.

use std::time::Duration;

use mcp_wire::server::{Admission, LogLevel, Signal};
use mcp_wire::{Json, SendError};

use super::support::*;

fn applied(seen: &Seen) -> bool {
    matches!(seen, Seen::Cancellation { applied: true, .. })
}

// CAN-06, CAN-07: the handler is told at once with the reason; nothing more is written, whatever it does.
#[test]
fn nothing_is_written_for_a_cancelled_request() {
    let mut peer = Peer::default();
    let ticket = peer.call_with_token("1");
    let seen = peer.send(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"changed my mind"}}"#,
    );
    let reason = Some("changed my mind".to_owned());
    assert_eq!(seen, Seen::Cancellation { id: Some("1".into()), reason: reason.clone(), applied: true });
    assert_eq!(peer.signals(), [Signal::Cancelled { ticket, running: true, reason }]);
    assert_eq!(peer.report(ticket, 1.0), Ok(()));
    assert_eq!(peer.server.log(ticket, LogLevel::Error, None, Json::NULL, peer.now), Ok(()));
    assert_eq!(peer.respond(ticket, r#"{"a":1}"#), Ok(()));
    assert_eq!(peer.respond(ticket, "{}"), Err(SendError::Ended));
    assert!(peer.read().is_empty());
    // An error or a panic of a cancelled handler is as silent.
    let ticket = peer.call("1");
    peer.send(&cancel("1"));
    assert_eq!(peer.server.respond_error(ticket, -32002, "x", None, peer.now), Ok(()));
    let ticket = peer.call("1");
    peer.send(&cancel("1"));
    assert_eq!(peer.server.abandon(ticket, peer.now), Ok(()));
    assert!(peer.read().is_empty());
    assert!(peer.signals().iter().all(|signal| matches!(signal, Signal::Cancelled { .. })));
}

// case 066: a frame of a cancelled request that is queued and not begun is withdrawn.
#[test]
fn queued_frames_of_a_cancelled_request_are_withdrawn() {
    let mut peer = Peer::default();
    let other = peer.call("2");
    let (ticket, _) = peer.admitted(&request_with_meta(
        "1",
        "tools/call",
        r#""progressToken":"p","io.modelcontextprotocol/logLevel":"debug""#,
    ));
    peer.report(ticket, 1.0).expect("in flight");
    peer.server.log(ticket, LogLevel::Info, None, Json::NULL, peer.now).expect("in flight");
    peer.respond(other, "{}").expect("in flight");
    peer.server.log(ticket, LogLevel::Info, None, Json::NULL, peer.now).expect("in flight");
    assert!(applied(&peer.send(&cancel("1"))));
    assert_eq!(peer.read(), [empty_result("2")]);
}

// CAN-06, case 066: that holds for an answer too, with all that was queued before it.
#[test]
fn a_queued_answer_is_withdrawn() {
    let mut peer = Peer::default();
    let (ticket, _) = peer.admitted(&request_with_meta(
        "1",
        "tools/call",
        r#""progressToken":"p","io.modelcontextprotocol/logLevel":"debug""#,
    ));
    peer.server.log(ticket, LogLevel::Info, None, Json::NULL, peer.now).expect("in flight");
    peer.report(ticket, 1.0).expect("in flight");
    peer.respond(ticket, "{}").expect("in flight");
    assert!(applied(&peer.send(&cancel("1"))));
    assert_eq!(peer.signals(), []);
    assert!(peer.read().is_empty());
    assert_eq!(peer.server.pending_output(), 0);
    peer.call("1");
}

// CAN-08: a frame that is being written stays whole; the cancellation is late.
#[test]
fn an_answer_that_is_being_written_is_finished() {
    let mut peer = Peer::default();
    let ticket = peer.call("1");
    peer.respond(ticket, "{}").expect("in flight");
    let lent = peer.server.output(peer.now).len();
    peer.server.accepted(3, peer.now);
    assert!(!applied(&peer.send(&cancel("1"))));
    assert_eq!(peer.server.output(peer.now).len(), lent - 3);
}

// LIM-05: requests that are answered and cancelled while the peer does not read leave nothing behind.
#[test]
fn answers_that_come_and_go_leave_nothing_behind() {
    let mut peer = Peer::default();
    let kept = peer.call("\"kept\"");
    peer.respond(kept, "{}").expect("in flight");
    for id in 0..10_000 {
        let ticket = peer.call(&id.to_string());
        peer.respond(ticket, "{}").expect("in flight");
        assert!(applied(&peer.send(&cancel(&id.to_string()))));
    }
    assert_eq!(peer.read(), [empty_result("\"kept\"")]);
    assert!(format!("{:?}", peer.server).len() < 20_000);
}

// CAN-08: malformed, unknown or late: no answer, no harm, one event that says so.
#[test]
fn a_cancellation_that_names_nothing_is_ignored() {
    let mut peer = Peer::default();
    let ticket = peer.call("1");
    for params in [
        "",
        r#","params":{}"#,
        r#","params":[1]"#,
        r#","params":null"#,
        r#","params":{"requestId":null}"#,
        r#","params":{"requestId":1.5}"#,
        r#","params":{"requestId":{"id":1},"reason":5}"#,
    ] {
        let seen = peer.send(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled"{params}}}"#));
        assert_eq!(seen, Seen::Cancellation { id: None, reason: None, applied: false }, "{params}");
    }
    // MSG-05: ids compare by type and value.
    for id in ["999", "\"1\"", "11"] {
        assert!(!applied(&peer.send(&cancel(id))), "{id}");
    }
    assert_eq!(peer.signals(), []);
    peer.respond(ticket, "{}").expect("in flight");
    assert_eq!(peer.read(), [empty_result("1")]);
    assert!(!applied(&peer.send(&cancel("1"))));
    assert!(peer.read().is_empty());
}

// CAN-08: reasons are kept, up to 1 KiB, cut between characters.
#[test]
fn a_reason_is_cut() {
    let mut peer = Peer::default();
    peer.call("1");
    let line = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1e0,"reason":"x{}"}}}}"#,
        "é".repeat(5000)
    );
    let Seen::Cancellation { reason: Some(reason), applied: true, .. } = peer.send(&line) else { panic!("applied") };
    assert_eq!(reason.len(), 1023);
    let escaped = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9,"reason":"a\nb"}}"#;
    let Seen::Cancellation { reason, .. } = peer.send(escaped) else { panic!("a cancellation") };
    assert_eq!(reason.as_deref(), Some("a\nb"));
}

// CAN-09, LIM-02: cancellations are applied in a full house; a waiting request that is cancelled never starts; a running one keeps
// its permit until its handler has returned.
#[test]
fn a_full_house_still_hears_cancellations() {
    let mut peer = Peer::default();
    let running: Vec<_> = (0..256).map(|id| peer.call(&id.to_string())).collect();
    let (waiting, admission) = peer.admitted(&request("1000", "tools/call", ""));
    assert_eq!(admission, Admission::Wait);
    let (next, _) = peer.admitted(&request("1001", "tools/call", ""));

    assert!(applied(&peer.send(&cancel("1000"))));
    assert_eq!(peer.signals(), [Signal::Cancelled { ticket: waiting, running: false, reason: None }]);
    assert_eq!(peer.respond(waiting, "{}"), Err(SendError::Ended));

    assert!(applied(&peer.send(&cancel("5"))));
    assert_eq!(peer.signals(), [Signal::Cancelled { ticket: running[5], running: true, reason: None }]);
    peer.respond(running[5], "{}").expect("its handler returns");
    assert_eq!(peer.signals(), [Signal::Start(next)]);
    assert!(peer.read().is_empty());
}

// CAN-09: floods of requests and cancellations start no more handlers than there are permits.
#[test]
fn a_flood_of_requests_and_cancellations_starts_no_more_handlers() {
    let mut peer = Peer::with(|config| (config.running_limit, config.waiting_limit) = (4, 4));
    let mut started = 0;
    for id in 0..10_000 {
        match peer.send(&request(&id.to_string(), "tools/call", "")) {
            Seen::Request { admission: Admission::Run, .. } => started += 1,
            Seen::Request { .. } => {}
            other => panic!("{other:?}"),
        }
        peer.send(&cancel(&id.to_string()));
    }
    assert_eq!(started, 4);
    assert!(peer.signals().iter().all(|signal| !matches!(signal, Signal::Start(_))));
    assert!(peer.read().is_empty());
    assert!(format!("{:?}", peer.server).len() < 20_000, "nothing is left of those that are gone");
}

// MSG-07: the id of a cancelled request is taken until its handler has returned.
#[test]
fn the_id_of_a_cancelled_request_is_taken_until_its_handler_returns() {
    let mut peer = Peer::default();
    let ticket = peer.call("1");
    peer.send(&cancel("1"));
    assert!(!applied(&peer.send(&cancel("1"))), "once is enough");
    assert!(matches!(peer.send(&request("1", "tools/call", "")), Seen::Refused { code: -32600, .. }));
    peer.respond(ticket, "{}").expect("its handler returns");
    peer.call("1");
}

// Permits come back in the order of arrival.
#[test]
fn waiting_requests_start_in_order() {
    let mut peer = Peer::with(|config| config.running_limit = 2);
    let first = peer.call("1");
    let second = peer.call("2");
    let waiting: Vec<_> = (3..7).map(|id| peer.call(&id.to_string())).collect();
    peer.send(&cancel("4"));
    peer.signals();
    peer.respond(second, "{}").expect("in flight");
    peer.respond(first, "{}").expect("in flight");
    assert_eq!(peer.signals(), [Signal::Start(waiting[0]), Signal::Start(waiting[2])]);
    peer.server.abandon(waiting[0], peer.now).expect("in flight");
    assert_eq!(peer.signals(), [Signal::Start(waiting[3])]);
}

// A report that was kept back is forgotten with its request.
#[test]
fn a_report_that_was_kept_back_is_not_sent_after_the_cancellation() {
    let mut peer = Peer::default();
    let ticket = peer.call_with_token("1");
    for value in 0..150 {
        peer.report(ticket, f64::from(value)).expect("in flight");
        peer.read();
    }
    assert!(peer.server.poll_timeout().is_some());
    peer.send(&cancel("1"));
    assert_eq!(peer.server.poll_timeout(), None);
    peer.pass(Duration::from_secs(10));
    assert!(peer.read().is_empty());
}
