//! The end of a stream, the next one, and the end of all.

use mcp_wire::client::{Config, ListenEnd, ProgressToken, Signal};
use mcp_wire::{Cause, Delivery, DropReason, Filter, SendError};

use crate::support::{Client, META, Seen, ended, established, json, ms, options};

fn closed(handle: mcp_wire::client::Handle, delivery: Delivery) -> Signal {
    ended(handle, Cause::Closed, delivery)
}

// RST-02, cases 099, 159: what is in flight ends with its delivery when the stream is lost; a response read before counts.
#[test]
fn what_is_in_flight_ends_with_its_delivery() {
    let mut client = Client::plain();
    let a = client.request("a");
    let b = client.request("b");
    let c = client.request_with(|o| o.progress = ProgressToken::Minted);
    client.wire();
    assert!(matches!(client.result(2), Seen::Result(handle, ..) if handle == a));
    client.progress("4", "1");
    let d = client.request("d");
    let n = client.lend();
    client.accept(n / 2);
    let e = client.request("e");
    client.conn.lost(false, client.now);
    assert_eq!(
        client.signals(),
        [
            closed(b, Delivery::Sent),
            closed(c, Delivery::Started),
            closed(d, Delivery::PartlySent),
            closed(e, Delivery::NotSent),
        ]
    );
    assert!(client.wire().is_empty(), "there is nobody to write to");
    assert_eq!(client.conn.request("f", None, options(), client.now), Err(SendError::Closed));
    client.open();
    assert!(client.wire().is_empty() && client.signals().is_empty());
}

// RST-03: an idempotent request without a frame is sent again with a new id and token; others end.
#[test]
fn only_idempotent_requests_without_a_frame_are_sent_again() {
    let mut client = Client::plain();
    let again = |o: &mut mcp_wire::client::RequestOptions| {
        (o.idempotent, o.progress) = (true, ProgressToken::Minted);
    };
    let a = client.request_with(again);
    let b = client.request_with(again);
    let c = client.request("c");
    client.wire();
    client.progress("3", "1");
    client.conn.lost(true, client.now);
    assert_eq!(client.signals(), [closed(b, Delivery::Started), closed(c, Delivery::Sent)]);
    assert_eq!(client.conn.in_flight(), 1);
    client.open();
    assert_eq!(client.signals(), [established()]);
    assert_eq!(
        client.wire(),
        [format!(r#"{{"jsonrpc":"2.0","id":5,"method":"m","params":{{"_meta":{{{META},"progressToken":5}}}}}}"#)]
    );
    assert_eq!(client.progress("5", "1"), Seen::Note(Some(a), "notifications/progress".into()));
    assert!(matches!(client.result(5), Seen::Result(handle, ..) if handle == a));
    assert!(client.conn.is_idle());
}

// RST-03: what an earlier life had of it is remembered in the delivery.
#[test]
fn the_delivery_remembers_an_earlier_life() {
    let mut client = Client::plain();
    let a = client.request_with(|o| o.idempotent = true);
    client.wire();
    client.conn.lost(true, client.now);
    client.cancel(a, None);
    assert_eq!(client.signals(), [ended(a, Cause::Cancelled, Delivery::Sent)]);
}

// RST-02, CAN-03: what was never lent waits for the next life, in its order and with its payload; so do notifications.
#[test]
fn what_was_never_lent_waits_for_the_next_life() {
    let mut client = Client::plain();
    let lost = client.request("lost");
    client.lend();
    let params = json(r#"{"x":[1,"\u0041"],"_meta":{"mine":true}}"#);
    client.conn.request("a", Some(params), options(), client.now).expect("there is room");
    client.conn.notify("notifications/x", Some(json(r#"{"n":1}"#)), client.now).expect("there is room");
    client.request("b");
    client.cancel(lost, None);
    client.signals();
    client.conn.lost(true, client.now);
    assert!(client.signals().is_empty());
    client.request("c");
    client.open();
    let request = |id: u64, method: &str, meta: &str, rest: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{{{META}{meta}}}{rest}}}}}"#)
    };
    assert_eq!(
        client.wire(),
        [
            request(5, "a", r#","mine":true"#, r#","x":[1,"\u0041"]"#),
            r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"n":1}}"#.into(),
            request(6, "b", "", ""),
            request(7, "c", "", ""),
        ],
        "and no cancellation of the old life"
    );
}

// RST-06, case 204: old ids never match, and what still comes of the old life is ignored.
#[test]
fn old_ids_never_match() {
    let mut client = Client::plain();
    let a = client.request_with(|o| o.idempotent = true);
    client.wire();
    client.conn.lost(true, client.now);
    assert_eq!(client.result(2), Seen::Dropped(DropReason::LateResponse, Some("2".into()), None));
    assert_eq!(client.note("notifications/message", "{}"), Seen::Handled);
    client.open();
    client.wire();
    assert_eq!(client.result(2), Seen::Dropped(DropReason::LateResponse, Some("2".into()), None));
    assert!(matches!(client.result(3), Seen::Result(handle, ..) if handle == a));
}

// RST-06: what was seen of the old server explains nothing about the next, not even in the same moment.
#[test]
fn what_an_old_server_wrote_explains_nothing() {
    let mut client = Client::plain();
    client.feed("not JSON");
    client.conn.lost(true, client.now);
    client.open();
    client.signals();
    let a = client.request("a");
    client.wire();
    client.pass(60_000);
    assert_eq!(client.signals(), [ended(a, Cause::TimedOut, Delivery::Sent)]);
}

// RST-07: requests made between two lives wait, or fail at once if that is wished.
#[test]
fn requests_between_two_lives_wait_or_fail() {
    let mut client = Client::plain();
    client.conn.lost(true, client.now);
    client.request("a");
    client.pass(1_000_000);
    assert!(client.signals().is_empty(), "the queue timeout stands still");
    client.open();
    assert_eq!(client.wire().len(), 1);
    let mut config = Config::new("c", "1");
    config.wait_for_restart = false;
    let mut client = Client::new(config);
    client.request("before the first life");
    client.open();
    client.wire();
    client.feed(crate::support::DISCOVERED);
    client.conn.lost(true, client.now);
    assert_eq!(client.conn.request("a", None, options(), client.now), Err(SendError::Closed));
    client.open();
    client.request("b");
}

// SUB-10, case 062: after a restart a listen is sent again with a new id; the same handle goes on and is told of the gap.
#[test]
fn a_listen_goes_on_over_a_restart() {
    let mut client = Client::plain();
    let l = client.listen(&Filter::default().tools_list_changed().prompts_list_changed());
    client.wire();
    client.acknowledge(2, r#"{"toolsListChanged":true,"promptsListChanged":true}"#);
    client.conn.lost(true, client.now);
    assert!(client.signals().is_empty());
    client.open();
    assert_eq!(client.signals(), [established()]);
    let lines = client.wire();
    assert!(lines[0].contains(r#""id":3,"method":"subscriptions/listen""#));
    assert!(lines[0].ends_with(r#""notifications":{"toolsListChanged":true,"promptsListChanged":true}}}"#));
    let method = "notifications/tools/list_changed";
    assert_eq!(client.change("2", method), Seen::Dropped(DropReason::UnknownSubscription, Some("2".into()), None));
    assert_eq!(client.change("3", method), Seen::Dropped(DropReason::NotAcknowledged, Some("3".into()), None));
    assert_eq!(client.acknowledge(3, r#"{"toolsListChanged":true}"#), Seen::Handled);
    assert_eq!(client.signals(), [Signal::Resubscribed { listen: l }]);
    assert!(!client.conn.granted(l).expect("it is acknowledged").prompts_list_changed, "what changed can be seen");
    assert_eq!(client.change("3", method), Seen::Note(Some(l), method.into()));
    // And over the next one.
    client.conn.lost(true, client.now);
    client.open();
    client.wire();
    client.acknowledge(4, r#"{"toolsListChanged":true}"#);
    assert_eq!(client.signals(), [established(), Signal::Resubscribed { listen: l }]);
}

// SUB-10: a listen that cannot be opened again ends as a stream does, not as a request.
#[test]
fn a_listen_that_is_not_opened_again_ends_by_the_server() {
    for answer in [true, false] {
        let mut client = Client::plain();
        let l = client.listen(&Filter::default());
        client.wire();
        client.acknowledge(2, "{}");
        client.conn.lost(true, client.now);
        client.open();
        client.wire();
        client.signals();
        if answer {
            assert_eq!(client.error("3", -32601), Seen::ListenEnded(l, ListenEnd::Server));
        } else {
            client.pass(60_000);
            assert_eq!(client.signals(), [Signal::ListenEnded { listen: l, how: ListenEnd::Server }]);
        }
    }
}

// A listen that was not acknowledged before the restart gets its acknowledgment after it.
#[test]
fn a_listen_that_was_not_acknowledged_waits_for_it_in_the_next_life() {
    let mut client = Client::plain();
    let l = client.listen(&Filter::default());
    client.wire();
    client.conn.lost(true, client.now);
    client.open();
    client.wire();
    assert!(matches!(client.acknowledge(3, "{}"), Seen::Acknowledged(listen, ..) if listen == l));
}

// SHD-03: after close everything has ended, nothing new is taken, no request and no cancellation is written. Closing twice is closing.
#[test]
fn close_ends_everything_at_once() {
    let mut client = Client::plain();
    let a = client.request("a");
    let l = client.listen(&Filter::default());
    client.wire();
    client.acknowledge(3, "{}");
    let b = client.request("b");
    client.conn.close(client.now);
    assert_eq!(
        client.signals(),
        [
            closed(a, Delivery::Sent),
            Signal::ListenEnded { listen: l, how: ListenEnd::Closed },
            closed(b, Delivery::NotSent),
        ]
    );
    assert!(client.wire().is_empty());
    client.conn.close(client.now);
    assert_eq!(client.conn.request("c", None, options(), client.now), Err(SendError::Closed));
    assert_eq!(client.conn.listen(&Filter::default(), options(), client.now), Err(SendError::Closed));
    assert_eq!(client.notify("notifications/x"), Err(SendError::Closed));
    assert!(matches!(client.result(2), Seen::Handled));
    assert_eq!(client.note("notifications/message", "{}"), Seen::Note(None, "notifications/message".into()));
    client.pass(1_000_000);
    assert!(client.signals().is_empty() && client.conn.poll_timeout().is_none() && client.conn.is_idle());
}

// SHD-03: what was lent before the close still leaves whole, and so does a notification that was queued.
#[test]
fn what_was_lent_before_the_close_leaves_whole() {
    let mut client = Client::plain();
    client.request("a");
    let n = client.lend();
    client.accept(n / 2);
    client.notify("notifications/x").expect("there is room");
    client.conn.close(client.now);
    let rest = client.conn.output(client.now).to_vec();
    assert!(rest.ends_with(b"}\n"));
    client.accept(rest.len());
    assert_eq!(client.wire(), [r#"{"jsonrpc":"2.0","method":"notifications/x"}"#]);
}

// SHD-03, RST-02: closing before, during and between lives ends what waits, without a byte.
#[test]
fn close_works_at_any_moment() {
    for moment in 0..4 {
        let mut client = Client::new(Config::new("c", "1"));
        let a = client.request("a");
        if moment > 0 {
            client.open();
        }
        if moment > 1 {
            client.wire();
        }
        if moment > 2 {
            client.conn.lost(true, client.now);
        }
        client.conn.close(client.now);
        assert_eq!(client.signals(), [closed(a, Delivery::NotSent)]);
        assert!(client.wire().is_empty());
        client.conn.lost(true, client.now);
        client.open();
        assert!(client.wire().is_empty() && client.signals().is_empty());
    }
}

// A restart that comes to nothing ends what waits for it.
#[test]
fn a_restart_that_fails_ends_what_waits() {
    let mut client = Client::plain();
    client.conn.lost(true, client.now);
    let a = client.request("a");
    client.conn.lost(false, client.now);
    assert_eq!(client.signals(), [closed(a, Delivery::NotSent)]);
}

// CAN-03: time spent in the queue of one life counts in the next; time between lives does not.
#[test]
fn time_in_the_queue_adds_up_over_lives() {
    let mut client = Client::plain();
    let a = client.request_with(|o| o.queue_timeout = Some(ms(1000)));
    client.pass(400);
    client.conn.lost(true, client.now);
    client.pass(5000);
    client.open();
    client.signals();
    client.pass(599);
    assert!(client.signals().is_empty());
    client.pass(1);
    assert_eq!(client.signals(), [ended(a, Cause::TimedOut, Delivery::NotSent)]);
}

// case 165: a normal close is reported as an error. What the server says of requests that the close has ended is its winding up.
#[test]
fn a_server_that_winds_up_after_a_close_is_not_reported() {
    let mut client = Client::plain();
    let request = client.request("a");
    let listen = client.listen(&Filter::default().tools_list_changed());
    client.wire();
    client.acknowledge(3, r#"{"toolsListChanged":true}"#);
    client.conn.close(client.now);
    let ends = client.signals();
    assert_eq!(ends, [closed(request, Delivery::Sent), Signal::ListenEnded { listen, how: ListenEnd::Closed }]);
    assert!(matches!(client.change("3", "notifications/tools/list_changed"), Seen::Handled));
    assert!(matches!(client.result(2), Seen::Handled));
    assert!(matches!(client.result(3), Seen::Handled));
    assert!(matches!(client.note("notifications/cancelled", r#"{"requestId":3}"#), Seen::Handled));
    // What names nothing that ever was is no winding up.
    assert!(matches!(client.result(99), Seen::Dropped(DropReason::UnknownId, ..)));
}
