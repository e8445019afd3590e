//! Requests of the server to a legacy client: what leaves, how each ends once, and that nothing of it mixes with the client's requests.

use std::time::Duration;

use mcp_wire::server::{ClientRequest, ClientRequestOptions, Session, Signal};
use mcp_wire::{Cause, Delivery, DropReason, SendError, UnreadableReason};

use super::support::*;

fn peer() -> (Peer, Session) {
    Peer::legacy("2025-11-25")
}

fn ask_with(peer: &mut Peer, session: Session, change: impl FnOnce(&mut ClientRequestOptions)) -> ClientRequest {
    let mut options = ClientRequestOptions::default();
    change(&mut options);
    peer.server.request_client(session, "roots/list", None, options, peer.now).expect("sent")
}

fn ask(peer: &mut Peer, session: Session) -> ClientRequest {
    ask_with(peer, session, |_| {})
}

fn line(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#)
}

fn result(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}}}}"#)
}

fn cancelled(id: u64, reason: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}{reason}}}}}"#)
}

fn dropped(reason: DropReason, id: &str) -> Seen {
    Seen::Dropped { reason, id: Some(id.into()), code: None, len: 0 }
}

fn ended(request: ClientRequest, cause: Cause, delivery: Delivery) -> Vec<Signal> {
    vec![Signal::ClientRequestEnded { request, cause, delivery }]
}

// LIM-02: with the option to pause, a full house still reads while one of its handlers waits for an answer of the client: it would wait for ever
// behind its own pause. What comes before that answer is refused.
#[test]
fn a_full_house_reads_on_for_the_answer_that_a_handler_waits_for() {
    let (mut peer, session) = Peer::legacy_with("2025-11-25", |config| {
        (config.running_limit, config.waiting_limit, config.pause_when_full) = (1, 0, true);
    });
    peer.admitted(&legacy("1", "tools/call", ""));
    assert!(!peer.server.wants_read(), "the house is full");
    let request = ask(&mut peer, session);
    assert!(peer.server.wants_read(), "its own handler waits for what is not read");
    peer.send(&legacy("2", "tools/call", ""));
    assert_eq!(peer.read(), [line(1), error("2", -32603, "Server busy")]);
    assert_eq!(peer.send(&result("1")), Seen::ClientResult { request, result: r#"{"roots":[]}"#.into() });
    assert!(!peer.server.wants_read(), "nobody waits any more");
}

// RTE-02: a modern request brings no session, and without one there is nothing to send a request with. LEG-08: before `initialized` there
// is only ping.
#[test]
fn only_an_initialized_legacy_client_can_be_asked() {
    let mut peer = Peer::new(dual());
    let session = peer.open("2025-11-25");
    peer.read();
    let options = ClientRequestOptions::default();
    let refused = peer.server.request_client(session, "roots/list", None, options, peer.now);
    assert_eq!(refused, Err(SendError::NotInitialized));
    assert_eq!(peer.server.notify_client(session, "x", None, peer.now), Err(SendError::NotInitialized));
    peer.server.request_client(session, "ping", None, options, peer.now).expect("sent");
    assert_eq!(peer.read(), [r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#]);
    peer.send(INITIALIZED);
    ask(&mut peer, session);
    assert_eq!(peer.read(), [line(2)]);
    for params in ["[]", "1"] {
        let refused = peer.server.request_client(session, "x", Some(json(params).as_json()), options, peer.now);
        assert_eq!(refused, Err(SendError::ParamsNotAnObject));
    }
    let refused = peer.server.request_client(session, "initialize", None, options, peer.now);
    assert_eq!(refused, Err(SendError::ReservedMethod));
    assert!(peer.read().is_empty());
}

#[test]
fn params_leave_as_they_are_given() {
    let (mut peer, session) = peer();
    let params = json("{\"message\":\"a\\nb\",\n \"_meta\":{\"x\":1}}");
    let mut options = ClientRequestOptions::default();
    peer.server.request_client(session, "elicitation/create", Some(params.as_json()), options, peer.now).expect("sent");
    options.progress = true;
    peer.server.request_client(session, "m", Some(params.as_json()), options, peer.now).expect("sent");
    peer.server.request_client(session, "m", None, options, peer.now).expect("sent");
    peer.server.notify_client(session, "n", Some(params.as_json()), peer.now).expect("sent");
    peer.server.notify_client(session, "n", None, peer.now).expect("sent");
    assert_eq!(
        peer.read(),
        [
            r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"a\nb","_meta":{"x":1}}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"m","params":{"_meta":{"progressToken":2,"x":1},"message":"a\nb"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"m","params":{"_meta":{"progressToken":3}}}"#,
            r#"{"jsonrpc":"2.0","method":"n","params":{"message":"a\nb","_meta":{"x":1}}}"#,
            r#"{"jsonrpc":"2.0","method":"n"}"#,
        ]
    );
    let reserved = peer.server.notify_client(session, "notifications/cancelled", None, peer.now);
    assert_eq!(reserved, Err(SendError::ReservedMethod));
}

// META-06: a name that has no other form, such as half of a surrogate pair, is not mended where a progress token joins the params.
#[test]
fn names_leave_as_they_were_written() {
    let (mut peer, session) = peer();
    let params = json(r#"{"\udeee\/":1,"_meta":{"\ud800":2}}"#);
    let mut options = ClientRequestOptions::default();
    options.progress = true;
    peer.server.request_client(session, "m", Some(params.as_json()), options, peer.now).expect("sent");
    let line =
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1,"\ud800":2},"\udeee\/":1}}"#;
    assert_eq!(peer.server.output(peer.now), format!("{line}\n").as_bytes());
}

// RTE-03: an answer goes to the request of its id; MSG-05: compared by value. One that names nothing is dropped, with the reason.
#[test]
fn an_answer_goes_to_its_request_and_ends_it() {
    let (mut peer, session) = peer();
    let (first, second) = (ask(&mut peer, session), ask(&mut peer, session));
    assert_eq!(peer.send(&result("1")), dropped(DropReason::UnknownId, "1"), "no byte of it has left");
    peer.read();
    let answer = Seen::ClientResult { request: second, result: r#"{"roots":[]}"#.into() };
    assert_eq!(peer.send(&result("2.0")), answer);
    assert_eq!(peer.send(&error("1", -32601, "no")), Seen::ClientError { request: first, code: -32601 });
    assert_eq!(peer.server.client_requests(), 0);
    assert_eq!(peer.send(&result("2")), dropped(DropReason::DuplicateResponse, "2"));
    assert_eq!(peer.send(&result("\"2\"")), dropped(DropReason::UnknownId, "\"2\""));
    let nobodys = Seen::Dropped { reason: DropReason::UnattributedError, id: None, code: Some(-32600), len: 0 };
    assert_eq!(peer.send(&error("null", -32600, "x")), nobodys);
    assert_eq!((peer.signals(), peer.read()), (vec![], vec![]));
    // RTE-01: without a session an answer is unexpected, whatever it names.
    assert_eq!(Peer::new(dual()).send(&result("1")), dropped(DropReason::UnexpectedResponse, "1"));
}

// LEG-07: the same id may be open both ways, and a cancellation of either side is about its own requests only.
#[test]
fn ids_are_separate_for_each_direction() {
    let (mut peer, session) = peer();
    let (ticket, _) = peer.admitted(&legacy("1", "tools/call", ""));
    let request = ask(&mut peer, session);
    assert_eq!(peer.read(), [line(1)]);
    assert!(matches!(peer.send(&cancel("1")), Seen::Cancellation { applied: true, .. }));
    assert_eq!(peer.signals(), [Signal::Cancelled { ticket, running: true, reason: None }]);
    assert!(matches!(peer.send(&result("1")), Seen::ClientResult { request: answered, .. } if answered == request));

    let (ticket, _) = peer.admitted(&legacy("2", "tools/call", ""));
    let request = ask(&mut peer, session);
    peer.read();
    peer.server.cancel_client_request(request, Some("enough"), peer.now);
    assert_eq!(peer.read(), [cancelled(2, r#","reason":"enough""#)]);
    peer.respond(ticket, "{}").expect("it is not cancelled");
}

// CAN-01, CAN-02, CAN-05: one cancellation for a request that the client may have seen, none before or after; a late answer is ignored.
#[test]
fn a_request_that_is_given_up_is_cancelled_on_the_wire_once() {
    let (mut peer, session) = peer();
    let request = ask(&mut peer, session);
    peer.server.cancel_client_request(request, None, peer.now);
    assert_eq!(peer.signals(), ended(request, Cause::Cancelled, Delivery::NotSent));
    assert!(peer.read().is_empty(), "CAN-03: no byte of it had left");

    let request = ask(&mut peer, session);
    peer.read();
    for _ in 0..2 {
        peer.server.cancel_client_request(request, None, peer.now);
    }
    assert_eq!(peer.signals(), ended(request, Cause::Cancelled, Delivery::Sent));
    assert_eq!(peer.read(), [cancelled(2, "")]);
    assert_eq!(peer.send(&result("2")), dropped(DropReason::LateResponse, "2"));

    let request = ask(&mut peer, session);
    let lent = peer.server.output(peer.now).len();
    peer.server.cancel_client_request(request, None, peer.now);
    assert_eq!(peer.signals(), ended(request, Cause::Cancelled, Delivery::PartlySent));
    peer.server.accepted(lent, peer.now);
    assert_eq!(peer.read(), [cancelled(3, "")]);

    let request = ask(&mut peer, session);
    peer.read();
    peer.send(&result("4"));
    peer.server.cancel_client_request(request, None, peer.now);
    assert_eq!((peer.signals(), peer.read()), (vec![], vec![]));
}

// TMO-01: the clock starts with the first byte; at its end the client is told, and the server's user too. CAN-03: the time in the queue is
// bounded alike.
#[test]
fn a_request_that_is_not_answered_times_out() {
    let (mut peer, session) = peer();
    let second = Duration::from_secs(1);
    let request = ask(&mut peer, session);
    peer.pass(second);
    peer.read();
    assert_eq!(peer.server.poll_timeout(), peer.now.checked_add(60 * second));
    peer.pass(59 * second);
    assert_eq!(peer.signals(), []);
    peer.pass(second);
    assert_eq!(peer.signals(), ended(request, Cause::TimedOut, Delivery::Sent));
    assert_eq!(peer.read(), [cancelled(1, r#","reason":"timeout""#)]);
    assert_eq!(peer.server.poll_timeout(), None);

    let request = ask_with(&mut peer, session, |options| options.timeout = Some(second));
    peer.pass(second);
    assert_eq!(peer.signals(), ended(request, Cause::TimedOut, Delivery::NotSent));
    ask_with(&mut peer, session, |options| options.timeout = Some(Duration::MAX));
    assert!(peer.read().iter().all(|line| !line.contains("cancelled")));
    assert_eq!(peer.server.poll_timeout(), None, "a person may take as long as they like");
}

// TMO-02, TMO-03, RTE-05: progress that increases restarts the clock, under the ceiling; a token that names nothing is reported.
#[test]
fn progress_of_a_client_restarts_the_clock() {
    let (mut peer, session) = peer();
    let second = Duration::from_secs(1);
    let request = ask_with(&mut peer, session, |options| {
        options.progress = true;
        options.timeout = Some(2 * second);
        options.max_timeout = Some(5 * second);
    });
    peer.read();
    let report = |value: &str| {
        let params = format!(r#"{{"progressToken":1,"progress":{value}}}"#);
        (format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#), params)
    };
    for value in ["1", "2", "3.5", "4"] {
        peer.pass(second);
        let (line, params) = report(value);
        assert_eq!(peer.send(&line), Seen::ClientProgress { request, params });
    }
    assert_eq!(peer.signals(), []);
    peer.pass(second);
    assert_eq!(peer.signals(), ended(request, Cause::TimedOut, Delivery::Started), "the ceiling");
    assert_eq!(peer.send(&report("4").0), dropped(DropReason::UnknownProgressToken, "1"));
    // A token that equals the id of a request that asked for none.
    ask(&mut peer, session);
    peer.read();
    let other = report("1").0.replace(":1,", ":2,");
    assert_eq!(peer.send(&other), dropped(DropReason::UnknownProgressToken, "2"));

    // A value that does not increase restarts nothing.
    let (mut peer, session) = self::peer();
    let request = ask_with(&mut peer, session, |options| {
        options.progress = true;
        options.timeout = Some(2 * second);
        options.max_timeout = Some(9 * second);
    });
    peer.read();
    for _ in 0..2 {
        peer.pass(second / 2);
        peer.send(&report("1").0);
    }
    peer.pass(3 * second / 2);
    assert_eq!(peer.signals(), ended(request, Cause::TimedOut, Delivery::Started));
}

// UNR-04: an answer that cannot be read fails its request at once, and the client is told that it is given up.
#[test]
fn an_unreadable_answer_fails_its_request() {
    let (mut peer, session) = peer();
    let request = ask(&mut peer, session);
    peer.read();
    peer.send(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":5,"message":"x"}}"#);
    let cause = Cause::InvalidResponse { code: Some(5), reason: Some(UnreadableReason::InvalidMessage) };
    assert_eq!(peer.signals(), ended(request, cause, Delivery::Sent));
    assert_eq!(peer.read(), [cancelled(1, r#","reason":"unreadable response""#)]);
}

// LIM-04, LIM-05, MSG-06: requests in flight are bounded, in number and by the queue; ids are never reused.
#[test]
fn requests_to_the_client_are_bounded() {
    let (mut peer, session) = Peer::legacy_with("2025-11-25", |config| {
        config.client_request_limit = 2;
        config.queue_limit = 200;
    });
    let options = ClientRequestOptions::default();
    let first = ask(&mut peer, session);
    ask(&mut peer, session);
    let full = peer.server.request_client(session, "x", None, options, peer.now);
    assert_eq!(full, Err(SendError::Full));
    peer.server.cancel_client_request(first, None, peer.now);
    assert_eq!(ask(&mut peer, session), ask_is(3));
    assert_eq!(peer.read(), [line(2), line(3)]);
    let text = json(&format!(r#"{{"a":"{}"}}"#, "x".repeat(300)));
    peer.send(&result("2"));
    let too_large = peer.server.request_client(session, "x", Some(text.as_json()), options, peer.now);
    assert!(matches!(too_large, Err(SendError::TooLarge { .. })));
    // What failed has used up no id.
    assert_eq!(ask(&mut peer, session), ask_is(4));
}

/// The request of this number, by asking as often.
fn ask_is(id: usize) -> ClientRequest {
    let (mut peer, session) = peer();
    let mut last = None;
    for _ in 0..id {
        let request = ask(&mut peer, session);
        peer.server.cancel_client_request(request, None, peer.now);
        last = Some(request);
    }
    last.expect("at least one")
}

// RST-02 for the server: when no answer can come any more, each request ends, and nothing is said about it.
#[test]
fn the_end_of_the_input_ends_what_is_open() {
    let (mut peer, session) = peer();
    let (ticket, _) = peer.admitted(&legacy("1", "tools/call", ""));
    let sent = ask(&mut peer, session);
    peer.read();
    let waiting = ask(&mut peer, session);
    peer.server.end_of_input(peer.now);
    let signals = peer.signals();
    assert_eq!(
        signals,
        [ended(sent, Cause::Closed, Delivery::Sent), ended(waiting, Cause::Closed, Delivery::NotSent)].concat()
    );
    let closed = peer.server.request_client(session, "x", None, ClientRequestOptions::default(), peer.now);
    assert_eq!(closed, Err(SendError::Closed));
    peer.respond(ticket, "{}").expect("in flight");
    assert_eq!(peer.read(), [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]);
    assert!(peer.server.ended().is_some());
}

// SHD-06: while the server winds up by itself, a handler may still ask and be answered; what is open at the end has ended.
#[test]
fn a_server_that_stops_still_takes_answers() {
    let (mut peer, session) = peer();
    let (ticket, _) = peer.admitted(&legacy("1", "tools/call", ""));
    peer.server.stop(peer.now);
    let answered = ask(&mut peer, session);
    let open = ask(&mut peer, session);
    peer.read();
    assert!(matches!(peer.send(&result("1")), Seen::ClientResult { request, .. } if request == answered));
    peer.respond(ticket, "{}").expect("in flight");
    assert_eq!(peer.signals(), ended(open, Cause::Closed, Delivery::Sent));
    assert_eq!(peer.read().len(), 1);
    assert!(peer.server.ended().is_some());

    let (mut peer, session) = self::peer();
    let open = ask(&mut peer, session);
    peer.server.peer_gone(peer.now);
    assert_eq!(peer.signals(), ended(open, Cause::Closed, Delivery::NotSent));
    assert_eq!(peer.server.poll_timeout(), None);
}

// LIM-03: what no peer reads is not sent.
#[test]
fn a_method_that_no_client_reads_is_refused() {
    let (mut peer, session) = peer();
    let options = ClientRequestOptions::default();
    for method in ["m".repeat(1023), "\u{1}".repeat(171)] {
        let refused = peer.server.request_client(session, &method, None, options, peer.now);
        assert_eq!(refused, Err(SendError::MethodTooLong));
        assert_eq!(peer.server.notify_client(session, &method, None, peer.now), Err(SendError::MethodTooLong));
    }
    assert!(peer.read().is_empty());
    peer.server.request_client(session, &"m".repeat(1022), None, options, peer.now).expect("sent");
    assert_eq!(peer.read().len(), 1);
}
