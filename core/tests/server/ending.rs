//! The end of serving: end of input, stop, a peer that is gone.

use std::time::Duration;

use mcp_wire::server::{Admission, Change, Ended, LogLevel, Signal};
use mcp_wire::{Instant, Json, SendError};

use super::support::*;

fn shutting_down(id: &str) -> String {
    error(id, -32603, "Server shutting down")
}

// SHD-05: without anything in flight serving ends at once, once the output is written.
#[test]
fn an_idle_server_ends_with_its_input() {
    let mut peer = Peer::default();
    assert_eq!(peer.server.ended(), None);
    peer.send(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    peer.server.end_of_input(peer.now);
    assert_eq!(peer.server.ended(), None, "an answer is still to be written");
    assert!(!peer.server.wants_read());
    assert_eq!(peer.read().len(), 1);
    assert_eq!(peer.server.ended(), Some(Ended::EndOfInput));
    assert_eq!(peer.server.poll_timeout(), None);
}

// SHD-05: handlers in flight may finish, and requests that wait still start; then serving ends at once.
#[test]
fn handlers_finish_within_the_drain() {
    let mut peer = Peer::with(|config| config.running_limit = 1);
    let first = peer.call("1");
    let (second, admission) = peer.admitted(&request("2", "x", ""));
    assert_eq!(admission, Admission::Wait);
    peer.server.end_of_input(peer.now);
    peer.pass(Duration::from_millis(500));
    assert_eq!(peer.signals(), []);
    peer.respond(first, "{}").expect("in flight");
    assert_eq!(peer.signals(), [Signal::Start(second)]);
    assert_eq!(peer.read(), [empty_result("1")]);
    assert_eq!(peer.server.ended(), None);
    peer.pass(Duration::from_millis(500));
    peer.respond(second, "{}").expect("in flight");
    assert_eq!(peer.read(), [empty_result("2")]);
    assert_eq!(peer.server.ended(), Some(Ended::EndOfInput));
    peer.pass(Duration::from_secs(60));
    assert_eq!(peer.signals(), []);
    assert!(peer.read().is_empty());
}

// SHD-05, SHD-06, W-20: at the end of the drain handlers are told, and whoever is not answered gets W-20, once.
#[test]
fn at_the_end_of_the_drain_the_rest_is_answered() {
    for stop in [false, true] {
        let mut peer = Peer::with(|config| config.running_limit = 2);
        let first = peer.call("1");
        let cancelled = peer.call("2");
        let (waiting, _) = peer.admitted(&request("3", "x", ""));
        peer.send(&cancel("2"));
        peer.signals();
        if stop {
            peer.server.stop(peer.now);
        } else {
            peer.server.end_of_input(peer.now);
        }
        let due = peer.server.poll_timeout().expect("the drain ends by itself");
        assert_eq!(due, Instant::from_epoch(Duration::from_secs(10)));
        peer.server.handle_timeout(Instant::from_epoch(Duration::from_millis(9999)));
        assert_eq!(peer.signals(), []);
        peer.now = due;
        peer.server.handle_timeout(due);
        assert_eq!(
            peer.signals(),
            [
                Signal::Cancelled { ticket: first, running: true, reason: None },
                Signal::Cancelled { ticket: waiting, running: false, reason: None },
            ]
        );
        peer.server.handle_timeout(due);
        assert_eq!(peer.read(), [shutting_down("1"), shutting_down("3")]);
        let how = if stop { Ended::Stopped } else { Ended::EndOfInput };
        assert_eq!(peer.server.ended(), Some(how), "handlers that do not return hold nothing up");
        // They may return later: nothing is written.
        assert_eq!(peer.respond(first, "{}"), Ok(()));
        assert_eq!(peer.respond(cancelled, "{}"), Ok(()));
        assert_eq!(peer.respond(waiting, "{}"), Err(SendError::Ended));
        assert!(peer.read().is_empty());
        assert_eq!(peer.server.poll_timeout(), None);
        assert_eq!(peer.signals(), []);
    }
}

// SHD-05: the drain can be ended at once (SIGTERM); before the end of input that changes nothing.
#[test]
fn the_drain_can_be_ended() {
    let mut peer = Peer::with(|config| config.drain = Duration::MAX);
    peer.pass(Duration::from_secs(1));
    let ticket = peer.call_with_token("1");
    peer.server.end_drain(peer.now);
    peer.report(ticket, 1.0).expect("still running");
    assert_eq!(peer.read().len(), 1);
    peer.server.end_of_input(peer.now);
    assert_eq!(peer.server.poll_timeout(), None, "as long as it takes");
    peer.server.end_drain(peer.now);
    peer.server.end_drain(peer.now);
    assert_eq!(peer.read(), [shutting_down("1")]);
    assert_eq!(peer.server.ended(), Some(Ended::EndOfInput));
    assert_eq!(peer.report(ticket, 2.0), Ok(()), "told, and nothing is written");
    assert!(peer.read().is_empty());
}

// SHD-06: after stop() what still arrives is refused with W-20; cancellations count; discover and ping are answered.
#[test]
fn a_stopping_server_takes_no_new_requests() {
    let mut peer = Peer::default();
    let ticket = peer.call("1");
    peer.server.stop(peer.now);
    peer.server.stop(peer.now);
    assert!(peer.server.wants_read());
    assert_eq!(peer.send(&request("2", "x", "")), Seen::Refused { id: "2".into(), code: -32603 });
    assert_eq!(peer.send(&listen("3", "{}")), Seen::Refused { id: "3".into(), code: -32603 });
    assert_eq!(peer.send(r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#), Seen::Handled);
    assert_eq!(peer.read()[..2], [shutting_down("2"), shutting_down("3")]);
    peer.send(&cancel("1"));
    assert_eq!(peer.signals(), [Signal::Cancelled { ticket, running: true, reason: None }]);
    assert_eq!(peer.server.ended(), Some(Ended::Stopped), "nothing is owed any more");
    assert!(!peer.server.wants_read());
    // The end of the input changes nothing about how it ended.
    peer.server.end_of_input(peer.now);
    assert_eq!(peer.server.ended(), Some(Ended::Stopped));
}

// SHD-05: after the end nothing is written, whatever is called.
#[test]
fn after_the_end_nothing_is_written() {
    let mut peer = Peer::default();
    peer.send(&listen("9", r#"{"toolsListChanged":true}"#));
    let ticket = peer.call_with_token("1");
    peer.server.end_of_input(peer.now);
    peer.server.end_drain(peer.now);
    peer.read();
    for line in [
        request("2", "x", ""),
        request("3", "server/discover", ""),
        listen("4", "{}"),
        cancel("1"),
        "oops".to_owned(),
        r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#.to_owned(),
    ] {
        assert_eq!(peer.send(&line), Seen::Handled, "{line}");
    }
    assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 0);
    assert_eq!(peer.report(ticket, 5.0), Ok(()));
    assert_eq!(peer.server.log(ticket, LogLevel::Error, None, Json::NULL, peer.now), Ok(()));
    assert_eq!(peer.respond(ticket, "{}"), Ok(()));
    peer.server.stop(peer.now);
    peer.pass(Duration::from_secs(100));
    assert!(peer.read().is_empty());
    assert_eq!(peer.signals().len(), 1, "the one cancellation at the end of the drain");
    assert_eq!(peer.server.ended(), Some(Ended::EndOfInput));
    peer.server.peer_gone(peer.now);
    assert_eq!(peer.server.ended(), Some(Ended::EndOfInput), "sticky");
}

// SHD-05: an answer that is owed for lack of room is not lost in the drain.
#[test]
fn owed_answers_are_written_in_the_drain() {
    let mut peer = Peer::with(|config| config.queue_limit = 1000);
    let big = format!(r#"{{"resultType":"complete","a":"{}"}}"#, "x".repeat(600));
    let first = peer.call("1");
    let second = peer.call("2");
    peer.respond(first, &big).expect("it fits");
    assert_eq!(peer.respond(second, &big), Err(SendError::Full));
    peer.server.end_of_input(peer.now);
    assert_eq!(peer.read().len(), 1);
    assert_eq!(peer.server.ended(), None);
    assert_eq!(peer.signals(), [Signal::Writable]);
    peer.respond(second, &big).expect("it fits");
    assert_eq!(peer.read().len(), 1);
    assert_eq!(peer.server.ended(), Some(Ended::EndOfInput));
}

// SHD-05: at the end of the drain one that is owed for lack of room gets W-20, for which there is always room.
#[test]
fn the_end_of_the_drain_finds_room() {
    let mut peer = Peer::with(|config| config.queue_limit = 1000);
    let big = format!(r#"{{"resultType":"complete","a":"{}"}}"#, "x".repeat(600));
    let first = peer.call("1");
    let second = peer.call("2");
    peer.respond(first, &big).expect("it fits");
    assert_eq!(peer.respond(second, &big), Err(SendError::Full));
    peer.server.stop(peer.now);
    peer.pass(Duration::from_secs(10));
    assert_eq!(peer.signals(), [Signal::Cancelled { ticket: second, running: true, reason: None }]);
    let lines = peer.read();
    assert_eq!(lines[1..], [shutting_down("2")]);
    assert_eq!(peer.server.ended(), Some(Ended::Stopped));
    assert_eq!(peer.signals(), [], "nothing is owed that could become writable");
}

// SHD-07: a writer that fails ends serving: handlers are told, nothing is written or kept.
#[test]
fn a_peer_that_is_gone_ends_serving() {
    let mut peer = Peer::with(|config| config.running_limit = 1);
    let first = peer.call_with_token("1");
    let (waiting, _) = peer.admitted(&request("2", "x", ""));
    peer.send(&listen("3", r#"{"toolsListChanged":true}"#));
    peer.report(first, 1.0).expect("in flight");
    assert!(!peer.server.output(peer.now).is_empty());
    peer.server.peer_gone(peer.now);
    peer.server.peer_gone(peer.now);
    assert_eq!(
        peer.signals(),
        [
            Signal::Cancelled { ticket: first, running: true, reason: None },
            Signal::Cancelled { ticket: waiting, running: false, reason: None },
        ]
    );
    assert_eq!(peer.server.ended(), Some(Ended::PeerGone));
    assert_eq!(peer.server.pending_output(), 0);
    assert!(!peer.server.wants_read());
    assert_eq!(peer.report(first, 2.0), Ok(()));
    assert_eq!(peer.respond(first, "{}"), Ok(()));
    assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 0);
    peer.server.accepted(1000, peer.now);
    peer.server.end_of_input(peer.now);
    peer.server.stop(peer.now);
    peer.pass(Duration::from_secs(100));
    assert!(peer.read().is_empty());
    assert_eq!(peer.signals(), []);
    assert_eq!(peer.server.ended(), Some(Ended::PeerGone));
}

// Promise: time that goes backwards is clamped; the drain is not made longer by it.
#[test]
fn time_that_goes_backwards_is_clamped() {
    let mut peer = Peer::default();
    peer.pass(Duration::from_secs(100));
    peer.call("1");
    peer.server.end_of_input(Instant::EPOCH);
    assert_eq!(peer.server.poll_timeout(), Some(Instant::from_epoch(Duration::from_secs(110))));
    peer.server.handle_timeout(Instant::EPOCH);
    assert_eq!(peer.signals(), []);
}

// Promise: any call may follow any other: tickets that name nothing are refused, and nothing panics.
#[test]
fn a_ticket_of_another_connection_names_nothing() {
    let mut other = Peer::default();
    let mut tickets: Vec<_> = (0..5).map(|id| other.call(&id.to_string())).collect();
    other.respond(tickets[4], "{}").expect("in flight");
    tickets.push(other.call("9"));
    let mut peer = Peer::default();
    for ticket in tickets {
        assert_eq!(peer.respond(ticket, "{}"), Err(SendError::Ended));
        assert_eq!(peer.report(ticket, 1.0), Err(SendError::Ended));
    }
    peer.server.recycle(Vec::new());
    assert_eq!(peer.server.take_output(peer.now), None);
    peer.server.accepted(7, peer.now);
}

// The same bytes by ownership.
#[test]
fn output_can_be_taken_by_ownership() {
    let mut peer = Peer::default();
    let ticket = peer.call("1");
    peer.respond(ticket, "{}").expect("in flight");
    let bytes = peer.server.take_output(peer.now).expect("something to write");
    assert_eq!(bytes, format!("{}\n", empty_result("1")).into_bytes());
    assert_eq!(peer.server.take_output(peer.now), None, "one is out");
    peer.call("1");
    peer.server.accepted(bytes.len(), peer.now);
    peer.server.recycle(bytes);
    peer.server.end_of_input(peer.now);
    peer.server.end_drain(peer.now);
    assert_eq!(peer.read(), [shutting_down("1")]);
}
