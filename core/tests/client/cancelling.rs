//! Giving up: on the wire, before the wire, and what comes too late.

use mcp_wire::client::{Config, ListenEnd, Signal};
use mcp_wire::{Cause, Delivery, DropReason, Filter, Instant};

use crate::support::{Client, Seen, cancelled_line, ended};

// CAN-01, CAN-02, case 067: one cancellation with the caller's reason, or with none; cancelling twice or after the end adds nothing.
#[test]
fn a_request_in_flight_is_cancelled_once() {
    let mut client = Client::plain();
    let (a, b) = (client.request("a"), client.request("b"));
    client.wire();
    client.cancel(a, Some("changed \"my\" mind"));
    client.cancel(a, Some("again"));
    client.cancel(b, None);
    assert_eq!(client.wire(), [cancelled_line(2, Some(r#"changed \"my\" mind"#)), cancelled_line(3, None)]);
    let cancelled = |handle| ended(handle, Cause::Cancelled, Delivery::Sent);
    assert_eq!(client.signals(), [cancelled(a), cancelled(b)]);
    let c = client.request("c");
    client.wire();
    client.result(4);
    client.cancel(c, None);
    assert!(client.wire().is_empty() && client.signals().is_empty());
}

// CAN-03: what was never lent is taken back: neither the request nor a cancellation is on the wire.
#[test]
fn a_request_that_was_not_lent_leaves_no_byte() {
    let mut client = Client::plain();
    let (a, _b, c) = (client.request("a"), client.request("b"), client.request("c"));
    client.cancel(a, None);
    client.cancel(c, None);
    let lines = client.wire();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains(r#""method":"b""#));
    let gone = |handle| ended(handle, Cause::Cancelled, Delivery::NotSent);
    assert_eq!(client.signals(), [gone(a), gone(c)]);
}

// CAN-03: from the first byte that was lent the frame leaves whole, and the cancellation follows it.
#[test]
fn a_request_of_which_a_byte_was_lent_leaves_whole() {
    let mut client = Client::plain();
    let a = client.request("a");
    assert!(client.lend() > 0);
    client.cancel(a, None);
    // It still leaves, so nobody may take it for not sent.
    assert_eq!(client.signals(), [ended(a, Cause::Cancelled, Delivery::PartlySent)]);
    let lines = client.wire();
    assert!(lines[0].contains(r#""id":2"#));
    assert_eq!(lines[1..], [cancelled_line(2, None)]);
}

// The delivery tells how much of a request the writer has, and whether the server has shown that it knows it.
#[test]
fn an_ending_tells_what_is_known_of_the_delivery() {
    let cancel_after = |accepted: fn(usize) -> usize| {
        let mut client = Client::plain();
        let a = client.request("a");
        let n = client.lend();
        client.accept(accepted(n));
        client.cancel(a, None);
        match client.signals().pop() {
            Some(Signal::Ended { delivery, .. }) => delivery,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(cancel_after(|_| 0), Delivery::PartlySent);
    assert_eq!(cancel_after(|_| 1), Delivery::PartlySent);
    assert_eq!(cancel_after(|n| n - 1), Delivery::PartlySent);
    assert_eq!(cancel_after(|n| n), Delivery::Sent);
    // Once the stream has ended nothing more leaves: what was lent and not accepted was not sent.
    let mut client = Client::plain();
    let a = client.request("a");
    assert!(client.lend() > 0);
    client.conn.lost(false, Instant::EPOCH);
    assert_eq!(client.signals(), [ended(a, Cause::Closed, Delivery::NotSent)]);
    let mut client = Client::plain();
    let a = client.request_with(|o| o.progress = mcp_wire::client::ProgressToken::Minted);
    client.wire();
    client.progress("2", "1");
    client.cancel(a, None);
    assert_eq!(client.signals(), [ended(a, Cause::Cancelled, Delivery::Started)]);
}

// CAN-04, LIM-04: with a full queue the cancellation has its room and leaves once the writer goes on.
#[test]
fn a_cancellation_has_room_in_a_full_queue() {
    let mut config = Config::new("c", "1");
    config.queue_limit = 2000;
    let mut client = Client::ready(config);
    let a = client.request("a");
    client.lend();
    while client.conn.request("m", None, crate::support::options(), client.now).is_ok() {}
    client.cancel(a, None);
    client.cancel(a, None);
    let lines = client.wire();
    assert_eq!(lines.last(), Some(&cancelled_line(2, None)));
    assert_eq!(lines.iter().filter(|line| line.contains("cancelled")).count(), 1);
}

// CAN-05, case 066: an answer after the cancellation is one late event and no delivery.
#[test]
fn an_answer_after_the_cancellation_is_late() {
    let mut client = Client::plain();
    let (a, b) = (client.request("a"), client.request("b"));
    client.wire();
    client.cancel(a, None);
    client.cancel(b, None);
    client.signals();
    assert_eq!(client.result(2), Seen::Dropped(DropReason::LateResponse, Some("2".into()), None));
    assert_eq!(client.error("3", 0), Seen::Dropped(DropReason::LateResponse, Some("3".into()), Some(0)));
    assert!(client.signals().is_empty());
}

// CAN-10, CAN-08, case 072: a server's cancellation counts for a listen only; any other, malformed too, is reported and harmless.
#[test]
fn a_servers_cancellation_of_a_request_is_ignored() {
    let mut client = Client::plain();
    let a = client.request("a");
    client.wire();
    let dropped = |id: Option<&str>| Seen::Dropped(DropReason::UnexpectedCancellation, id.map(Into::into), None);
    let method = "notifications/cancelled";
    assert_eq!(client.note(method, r#"{"requestId":2,"reason":"x"}"#), dropped(Some("2")));
    assert_eq!(client.note(method, r#"{"requestId":77}"#), dropped(Some("77")));
    assert_eq!(client.note(method, r#"{"requestId":{}}"#), dropped(None));
    assert_eq!(client.note(method, "[]"), dropped(None));
    assert_eq!(client.feed(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#), dropped(None));
    assert!(client.wire().is_empty());
    assert!(matches!(client.result(2), Seen::Result(handle, ..) if handle == a));
}

// RTE-12, SUB-09: an overflow of the caller's ends a request as overflow, a listen as lagged, with a cancellation each.
#[test]
fn an_overflow_cancels() {
    let mut client = Client::plain();
    let a = client.request("a");
    let l = client.listen(&Filter::default().tools_list_changed());
    client.wire();
    client.acknowledge(3, r#"{"toolsListChanged":true}"#);
    client.conn.overflow(a, client.now);
    client.conn.overflow(l, client.now);
    assert_eq!(client.wire(), [cancelled_line(2, Some("lagged")), cancelled_line(3, Some("lagged"))]);
    assert_eq!(
        client.signals(),
        [ended(a, Cause::Overflow, Delivery::Sent), Signal::ListenEnded { listen: l, how: ListenEnd::Lagged },]
    );
}

// case 061: closing a listen is a cancellation on the wire; what still comes for it is dropped.
#[test]
fn a_listen_is_cancelled_like_a_request() {
    let mut client = Client::plain();
    let l = client.listen(&Filter::default().tools_list_changed());
    client.wire();
    client.acknowledge(2, r#"{"toolsListChanged":true}"#);
    client.cancel(l, None);
    assert_eq!(client.wire(), [cancelled_line(2, None)]);
    assert_eq!(client.signals(), [Signal::ListenEnded { listen: l, how: ListenEnd::Cancelled }]);
    let seen = client.change("2", "notifications/tools/list_changed");
    assert_eq!(seen, Seen::Dropped(DropReason::UnknownSubscription, Some("2".into()), None));
    assert_eq!(client.result(2), Seen::Dropped(DropReason::LateResponse, Some("2".into()), None));
}
