//! Batches of revision 2025-03-26: what is answered as one array, and what is none.

use mcp_wire::SendError;
use mcp_wire::config::BATCH_LIMIT;
use mcp_wire::server::{Signal, Ticket};

use super::support::*;

const NOTIFICATION: &str = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;

fn batched() -> Peer {
    Peer::legacy("2025-03-26").0
}

fn call(id: &str) -> String {
    legacy(id, "tools/call", "")
}

fn done(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

fn tickets(seen: &[Seen]) -> Vec<Ticket> {
    let ticket = |seen: &Seen| if let Seen::Request { ticket, .. } = seen { Some(*ticket) } else { None };
    seen.iter().filter_map(ticket).collect()
}

// LEG-09: one array answers the requests of one array, notifications get nothing, and a batch of them alone gets nothing at all.
#[test]
fn a_batch_is_answered_by_one_array() {
    let mut peer = batched();
    peer.send_batch(&[PING, NOTIFICATION]);
    assert_eq!(peer.read(), [format!("[{PONG}]")]);
    peer.send_batch(&[NOTIFICATION, NOTIFICATION]);
    assert!(peer.read().is_empty());
    let tickets = tickets(&peer.send_batch(&[&call("1"), PING, &call("2")]));
    assert!(peer.read().is_empty(), "the array waits for all of them");
    peer.respond(tickets[1], r#"{"resultType":"complete"}"#).expect("in flight");
    assert!(peer.read().is_empty());
    // What is not of the batch goes on meanwhile; MSG-07: an id is in flight until the array leaves.
    peer.send(&call("2"));
    peer.send(&PING.replace('9', "8"));
    assert_eq!(peer.read(), [error("null", -32600, "Invalid Request"), PONG.replace('9', "8")]);
    peer.server.respond_error(tickets[0], 7, "no", None, peer.now).expect("in flight");
    assert_eq!(peer.read(), [format!("[{PONG},{},{}]", done("2"), error("1", 7, "no"))]);
    peer.admitted(&call("2"));
}

// LEG-09: responses may come in an array as well.
#[test]
fn answers_of_the_client_may_come_in_a_batch() {
    let (mut peer, session) = Peer::legacy("2025-03-26");
    let options = mcp_wire::server::ClientRequestOptions::default();
    let request = peer.server.request_client(session, "roots/list", None, options, peer.now).expect("sent");
    assert_eq!(peer.read(), [r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#], "no batch is sent");
    let seen = peer.send_batch(&[r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]);
    assert_eq!(seen, [Seen::ClientResult { request, result: "{}".into() }]);
    assert!(peer.read().is_empty());
}

// LEG-10, MSG-01: no other version has batches, nor a connection without a session; the array is refused as a whole.
#[test]
fn elsewhere_an_array_is_no_message() {
    let mut peers = vec![Peer::default(), Peer::new(dual())];
    peers.extend(["2025-11-25", "2025-06-18", "2024-11-05"].map(|version| Peer::legacy(version).0));
    for mut peer in peers {
        peer.send_batch(&[PING]);
        assert_eq!(peer.read(), [error("null", -32600, "Invalid Request")]);
    }
    // An empty array is none in any version: one object answers it.
    let mut peer = batched();
    peer.send_batch(&[]);
    assert_eq!(peer.read(), [error("null", -32600, "Invalid Request")]);
    // LIM-03: one that is too long is none either.
    peer.send_batch(&[NOTIFICATION; BATCH_LIMIT]);
    assert!(peer.read().is_empty());
    peer.send_batch(&[PING; BATCH_LIMIT + 1]);
    assert_eq!(peer.read(), [error("null", -32600, "Invalid Request")]);
}

// LEG-10: `initialize` is refused inside a batch, and so is a request of the modern era; a bad element gets an error element.
#[test]
fn what_is_no_element_gets_an_error_element() {
    let mut peer = batched();
    peer.send_batch(&[&initialize("1", "2025-03-26"), &request("2", "tools/list", ""), "3", r#"{"id":4}"#, PING, PING]);
    let invalid = |id: &str| error(id, -32600, "Invalid Request");
    assert_eq!(
        peer.read(),
        [format!("[{},{},{},{},{PONG},{PONG}]", invalid("1"), invalid("2"), invalid("null"), invalid("4"))]
    );
    let seen = peer.send_batch(&[&call("1"), &call("1")]);
    peer.respond(tickets(&seen)[0], "{}").expect("in flight");
    assert_eq!(peer.read(), [format!("[{},{}]", invalid("null"), done("1"))], "MSG-07");
}

// CAN-06: a cancelled request is missing from the array, whether it runs, waits or was answered already; the rest does not wait for it.
#[test]
fn a_cancelled_request_is_missing_from_the_array() {
    let (mut peer, _) = Peer::legacy_with("2025-03-26", |config| config.running_limit = 3);
    let tickets = tickets(&peer.send_batch(&[&call("1"), &call("2"), &call("3"), &call("4")]));
    peer.respond(tickets[0], "{}").expect("in flight");
    assert!(matches!(peer.send(&cancel("1")), Seen::Cancellation { applied: true, .. }));
    assert!(matches!(peer.send(&cancel("2")), Seen::Cancellation { applied: true, .. }));
    peer.respond(tickets[1], "{}").expect("its handler returns");
    peer.respond(tickets[2], "{}").expect("in flight");
    assert!(peer.read().is_empty());
    let signals = peer.signals();
    assert!(signals.contains(&Signal::Start(tickets[3])));
    peer.send(&cancel("4"));
    assert_eq!(peer.read(), [format!("[{}]", done("3"))]);
    assert!(matches!(peer.send(&cancel("3")), Seen::Cancellation { applied: false, .. }));
    // Nothing is left of a batch of which everything is cancelled, and its ids are free.
    peer.send_batch(&[&call("1")]);
    peer.send(&cancel("1"));
    peer.send(PING);
    assert_eq!(peer.read(), [PONG]);
}

// LIM-02, SHD-06: a full house and a stop answer in the array too, and so does a handler that ends without an answer.
#[test]
fn refusals_and_the_end_come_in_the_array() {
    let (mut peer, _) = Peer::legacy_with("2025-03-26", |config| (config.running_limit, config.waiting_limit) = (2, 0));
    let tickets = tickets(&peer.send_batch(&[&call("1"), &call("2"), &call("3")]));
    peer.server.abandon(tickets[0], peer.now).expect("in flight");
    peer.server.stop(peer.now);
    assert!(peer.read().is_empty());
    peer.server.end_drain(peer.now);
    let internal = |id: &str, message: &str| error(id, -32603, message);
    assert_eq!(
        peer.read(),
        [format!(
            "[{},{},{}]",
            internal("3", "Server busy"),
            internal("1", "Internal error"),
            internal("2", "Server shutting down")
        )]
    );
    assert!(peer.server.ended().is_some());
}

// LIM-04: an array that finds no room waits for some, in order, and then leaves whole; meanwhile answers of further batches are owed.
#[test]
fn an_array_waits_for_room() {
    let (mut peer, _) = Peer::legacy_with("2025-03-26", |config| config.queue_limit = 3000);
    let text = |n: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(n));
    let (plain, _) = peer.admitted(&call("0"));
    peer.respond(plain, &text(2000)).expect("room");
    let first = tickets(&peer.send_batch(&[&call("1"), &call("2")]));
    for ticket in first {
        peer.respond(ticket, &text(1000)).expect("collected");
    }
    let second = tickets(&peer.send_batch(&[&call("3")]));
    assert_eq!(peer.respond(second[0], &text(1000)), Err(SendError::Full));
    assert_eq!(peer.signals(), []);
    let mut lines = peer.read();
    assert_eq!(peer.signals(), [Signal::Writable]);
    peer.respond(second[0], &text(1000)).expect("room");
    lines.extend(peer.read());
    let starts: Vec<&str> = lines.iter().map(|line| &line[..25]).collect();
    assert_eq!(
        starts,
        [r#"{"jsonrpc":"2.0","id":0,"r"#, r#"[{"jsonrpc":"2.0","id":1,""#, r#"[{"jsonrpc":"2.0","id":3,""#]
            .map(|s| &s[..25])
    );

    // One that can never fit is an error; nothing else would make room for it.
    let tickets = tickets(&peer.send_batch(&[&call("1"), &call("2")]));
    peer.respond(tickets[0], &text(2000)).expect("collected");
    assert!(matches!(peer.respond(tickets[1], &text(2000)), Err(SendError::TooLarge { .. })));
    assert!(peer.read()[0].contains("the answer is too large"));
}

// LIM-04: what batches hold of the core's own answers is bounded: then requests of further ones are refused, so that no handler can keep
// reading from going on.
#[test]
fn the_cores_own_answers_in_open_batches_are_bounded() {
    let (mut peer, _) = Peer::legacy_with("2025-03-26", |config| config.own_answers_limit = 300);
    let open = tickets(&peer.send_batch(&[&call("1"), PING, &call("2"), r#"{"id":4}"#, r#"{"id":5}"#]));
    assert_eq!(open.len(), 2);
    assert!(tickets(&peer.send_batch(&[&call("3")])).is_empty());
    assert_eq!(peer.read(), [format!("[{}]", error("3", -32603, "Server busy"))]);
    for ticket in open {
        peer.respond(ticket, "{}").expect("in flight");
    }
    peer.read();
    assert!(peer.server.wants_read());
    assert_eq!(tickets(&peer.send_batch(&[&call("3")])).len(), 1);
}

// LIM-04: what waits for a handler is not for the client to read: reading goes on, or nobody could cancel that handler or answer what it asks. What is
// complete and not read pauses it.
#[test]
fn reading_goes_on_while_a_batch_waits_for_its_handler() {
    let (mut peer, _) = Peer::legacy_with("2025-03-26", |config| config.own_answers_limit = 300);
    let (first, mut elements) = (call("1"), vec![PING; 20]);
    elements.push(&first);
    let open = tickets(&peer.send_batch(&elements));
    assert!(peer.server.wants_read(), "its answers are many, and none of them may leave");
    peer.respond(open[0], "{}").expect("in flight");
    assert!(!peer.server.wants_read(), "the array is there to be read");
    peer.read();
    assert!(peer.server.wants_read());
    let _ = peer.server.output(peer.now);
    let mut sent = 0;
    while peer.server.wants_read() {
        peer.send_batch(&[PING, PING]);
        sent += 1;
        assert!(sent < 10, "complete arrays that nobody reads");
    }
    assert_eq!(peer.read().len(), sent);
}

// SHD-07: a client that is gone in the middle of a batch leaves nothing behind.
#[test]
fn a_client_that_is_gone_leaves_no_batch() {
    let mut peer = batched();
    let tickets = tickets(&peer.send_batch(&[&call("1"), &call("2")]));
    peer.respond(tickets[0], "{}").expect("in flight");
    peer.server.peer_gone(peer.now);
    assert_eq!(peer.respond(tickets[1], "{}"), Ok(()));
    assert!(peer.read().is_empty());
}
