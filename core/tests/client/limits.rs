//! Bounds: of the queue, of what is in flight, of what is remembered.

use mcp_wire::client::{Config, ProgressToken, Signal};
use mcp_wire::{DropReason, SendError};

use crate::support::{Client, Seen, json, options};

fn small(queue_limit: usize) -> Config {
    let mut config = Config::new("c", "1");
    config.queue_limit = queue_limit;
    config
}

// LIM-04: a full queue refuses, keeps what it has, and tells once when there is room.
#[test]
fn a_full_queue_refuses_and_tells_of_room() {
    let mut client = Client::ready(small(2000));
    let mut taken = 0;
    while client.conn.request("m", None, options(), client.now).is_ok() {
        taken += 1;
    }
    assert_eq!(client.conn.request("m", None, options(), client.now), Err(SendError::Full));
    assert!(client.conn.pending_output() <= 2000);
    assert!(client.signals().is_empty());
    assert_eq!(client.wire().len(), taken);
    assert_eq!(client.signals(), [Signal::Writable]);
    assert!(client.signals().is_empty());
    client.request("m");
}

// LIM-04, SHD-03: who waits for room learns of the end as well.
#[test]
fn a_close_wakes_who_waits_for_room() {
    let mut client = Client::ready(small(2000));
    while client.conn.request("m", None, options(), client.now).is_ok() {}
    client.lend();
    client.conn.close(client.now);
    assert_eq!(client.signals().last(), Some(&Signal::Writable));
    assert_eq!(client.conn.request("m", None, options(), client.now), Err(SendError::Closed));
    assert!(client.signals().is_empty());
}

// LIM-04: one message that is larger than the whole queue is told apart from a full queue, established or not.
#[test]
fn a_message_larger_than_the_queue_is_told_apart() {
    let big = format!(r#"{{"a":"{}"}}"#, "x".repeat(3000));
    for ready in [true, false] {
        let mut client = if ready { Client::ready(small(2000)) } else { Client::new(small(2000)) };
        let refused = client.conn.request("m", Some(json(&big)), options(), client.now);
        assert!(matches!(refused, Err(SendError::TooLarge { limit: 2000, .. })), "{refused:?}");
        let refused = client.conn.notify("m", Some(json(&big)), client.now);
        assert!(matches!(refused, Err(SendError::TooLarge { limit: 2000, .. })), "{refused:?}");
        assert!(client.signals().is_empty() && client.conn.pending_output() == 0);
    }
}

// LIM-04, RST-03: the copy that is kept of an idempotent request counts too; what can never fit with it is too large, not full.
#[test]
fn a_kept_copy_counts_against_the_queue() {
    let mut client = Client::ready(small(4000));
    let params = format!(r#"{{"a":"{}"}}"#, "x".repeat(1300));
    let mut idempotent = options();
    idempotent.idempotent = true;
    client.conn.request("m", Some(json(&params)), idempotent.clone(), client.now).expect("there is room");
    client.wire();
    assert_eq!(client.conn.request("m", Some(json(&params)), idempotent.clone(), client.now), Err(SendError::Full));
    assert!(client.signals().is_empty());
    client.result(2);
    assert_eq!(client.signals(), [Signal::Writable], "the copy is gone with its request");
    let params = format!(r#"{{"a":"{}"}}"#, "x".repeat(2500));
    let refused = client.conn.request("m", Some(json(&params)), idempotent, client.now);
    assert!(matches!(refused, Err(SendError::TooLarge { .. })), "{refused:?}");
    client.conn.request("m", Some(json(&params)), options(), client.now).expect("without a copy it fits");
}

// LIM-04: what waits for the connection is bounded by the same queue, and leaves though its metadata make it longer.
#[test]
fn what_waits_is_bounded_too() {
    let mut client = Client::new(small(2000));
    let mut taken = 0;
    while client.conn.notify("notifications/x", None, client.now).is_ok() {
        taken += 1;
    }
    while client.conn.request("m", None, options(), client.now).is_ok() {
        taken += 1;
    }
    assert!(taken > 5 && taken < 40, "{taken}");
    client.open();
    client.wire();
    client.feed(crate::support::DISCOVERED);
    assert_eq!(client.wire().len(), taken);
    assert_eq!(client.signals().last(), Some(&Signal::Writable));
}

// LIM-04: what waited is kept no longer once it is written, a copy no longer once its request has ended, in whatever way.
#[test]
fn what_is_kept_no_longer_gives_its_room_back() {
    let params = format!(r#"{{"a":"{}"}}"#, "x".repeat(1300));
    let big = json(&params);
    let mut client = Client::new(small(2000));
    client.conn.request("m", Some(big), options(), client.now).expect("there is room");
    client.open();
    client.wire();
    client.feed(crate::support::DISCOVERED);
    client.wire();
    client.conn.request("m", Some(big), options(), client.now).expect("the first is written");
    let mut client = Client::ready(small(4000));
    let mut idempotent = options();
    idempotent.idempotent = true;
    for _ in 0..5 {
        let handle = client.conn.request("m", Some(big), idempotent.clone(), client.now).expect("there is room");
        client.wire();
        client.cancel(handle, None);
        client.wire();
        client.signals();
    }
}

// Requests in flight are bounded; a slot whose end was not taken still counts, so untaken endings are bounded as well.
#[test]
fn requests_in_flight_are_bounded() {
    let mut config = Config::new("c", "1");
    config.in_flight_limit = 2;
    let mut client = Client::ready(config);
    let a = client.request("a");
    client.request("b");
    assert_eq!(client.conn.request("c", None, options(), client.now), Err(SendError::Full));
    client.cancel(a, None);
    assert_eq!(client.conn.request("c", None, options(), client.now), Err(SendError::Full), "its end was not taken");
    assert!(matches!(client.conn.poll_signal(), Some(Signal::Ended { .. })));
    assert_eq!(client.conn.poll_signal(), Some(Signal::Writable));
    client.request("c");
}

// LIM-05, LIM-06, case 229: many calls with a timeout, a late answer, odd progress and an unreadable line each leave nothing.
#[test]
fn many_small_things_leave_nothing() {
    let mut client = Client::plain();
    for round in 0..3000_u64 {
        let handle = client.request_with(|o| o.progress = ProgressToken::Minted);
        client.wire();
        client.feed("not JSON");
        client.progress("\"nobody\"", "1");
        client.feed(r#"{"jsonrpc":"2.0","id":"unknown","result":{}}"#);
        client.pass(60_000);
        assert_eq!(client.wire().len(), 1);
        assert_eq!(client.signals().len(), 1);
        assert!(matches!(client.result(round + 2), Seen::Dropped(DropReason::LateResponse, ..)));
        assert_eq!(handle.slot(), 0);
    }
    assert!(client.conn.is_idle() && client.conn.poll_timeout().is_none());
    assert!(format!("{:?}", client.conn).len() < 100_000, "its tables have a fixed size");
}

// LIM-03: an id or a token beyond 64 bits is an id like any other, and here it names nothing.
#[test]
fn giant_ids_name_nothing() {
    let mut client = Client::plain();
    client.request_with(|o| o.progress = ProgressToken::Minted);
    client.wire();
    let giant = "9".repeat(900);
    let seen = client.feed(&format!(r#"{{"jsonrpc":"2.0","id":{giant},"result":{{}}}}"#));
    assert!(matches!(seen, Seen::Dropped(DropReason::UnknownId, ..)));
    assert!(matches!(client.progress(&giant, "1"), Seen::Dropped(DropReason::UnknownProgressToken, ..)));
    assert_eq!(client.conn.in_flight(), 1);
}

// LIM-03: what no peer reads is not sent; what counts is the string on the wire, with its quotes and escapes.
#[test]
fn a_method_that_no_peer_reads_is_refused() {
    let mut client = Client::ready(Config::new("c", "1"));
    for (method, fits) in
        [("m".repeat(1022), true), ("m".repeat(1023), false), ("\u{1}".repeat(170), true), ("\u{1}".repeat(171), false)]
    {
        let want = if fits { Ok(()) } else { Err(SendError::MethodTooLong) };
        assert_eq!(client.conn.request(&method, None, options(), client.now).map(|_| ()), want);
        assert_eq!(client.notify(&method), want);
        assert_eq!(client.wire().len(), if fits { 2 } else { 0 });
    }
}
