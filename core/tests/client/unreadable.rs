//! Lines that cannot be read, and errors without an id.

use mcp_wire::client::{ListenEnd, Signal};
use mcp_wire::{Cause, Delivery, DropReason, Filter, UnreadableReason};

use crate::support::{Client, Seen, cancelled_line, ended};

fn unattributed(code: i64) -> Seen {
    Seen::Dropped(DropReason::UnattributedError, None, Some(code))
}

// UNR-01, UNR-05: a bad line between two good ones costs itself only, and not a byte answers it.
#[test]
fn a_bad_line_costs_itself_only() {
    let mut client = Client::plain();
    let (a, b) = (client.request("a"), client.request("b"));
    client.wire();
    assert!(matches!(client.result(2), Seen::Result(handle, ..) if handle == a));
    for line in ["hello", r#"{"foo":1}"#, "[]", r#"{"jsonrpc":"2.0","id":99,"result":"#] {
        assert!(matches!(client.feed(line), Seen::Dropped(DropReason::Unreadable(_), ..)), "{line}");
    }
    assert!(client.wire().is_empty() && client.signals().is_empty());
    assert!(matches!(client.result(3), Seen::Result(handle, ..) if handle == b));
}

// UNR-02, UNR-04: the request whose response is damaged fails at once and is cancelled, as the server may still be at work.
#[test]
fn a_damaged_response_fails_its_request() {
    let mut client = Client::plain();
    let (a, b) = (client.request("a"), client.request_with(|o| o.idempotent = true));
    client.wire();
    let seen = client.feed(r#"{"jsonrpc":"2.0","id":3,"result":{"secret":"#);
    let reason = UnreadableReason::InvalidJson;
    assert_eq!(seen, Seen::Dropped(DropReason::Unreadable(reason), Some("3".into()), None));
    let cause = Cause::InvalidResponse { code: None, reason: Some(reason) };
    assert_eq!(client.signals(), [ended(b, cause, Delivery::Started)]);
    assert_eq!(client.wire(), [cancelled_line(3, Some("unreadable response"))]);
    // It is not tried again by itself.
    client.conn.lost(true, client.now);
    client.open();
    assert!(client.wire().is_empty());
    assert_eq!(client.signals()[0], ended(a, Cause::Closed, Delivery::Sent));
}

// UNR-08: two ids in one frame make it invalid, whatever they are: nothing is pinned on a request.
#[test]
fn a_frame_with_two_ids_fails_nobody() {
    let mut client = Client::plain();
    client.request("a");
    client.wire();
    let seen = client.feed(r#"{"jsonrpc":"2.0","id":2,"id":2,"result":{}}"#);
    assert!(matches!(seen, Seen::Dropped(DropReason::Unreadable(_), ..)));
    assert_eq!(client.conn.in_flight(), 1);
}

// UNR-04: a damaged request of the server's has an id of the server's making.
#[test]
fn a_damaged_request_of_the_servers_fails_nobody() {
    let mut client = Client::plain();
    client.request("a");
    client.wire();
    client.feed(r#"{"jsonrpc":"2.0","id":2,"method":"roots/list","params":"#);
    assert!(client.signals().is_empty());
    assert_eq!(client.conn.in_flight(), 1);
}

// UNR-04: a damaged frame for an open listen ends its stream; it is the caller's stream, so it ends as one.
#[test]
fn a_damaged_response_ends_an_open_listen() {
    let mut client = Client::plain();
    let l = client.listen(&Filter::default().tools_list_changed());
    client.wire();
    client.acknowledge(2, r#"{"toolsListChanged":true}"#);
    client.feed(r#"{"jsonrpc":"2.0","id":2,"result":{"#);
    assert_eq!(client.signals(), [Signal::ListenEnded { listen: l, how: ListenEnd::Server }]);
    assert_eq!(client.wire(), [cancelled_line(2, Some("unreadable response"))]);
}

// UNR-06, MSG-10, case 041: an error with a null or absent id fails the one request that can be meant, with its code.
#[test]
fn an_error_without_an_id_fails_the_only_candidate() {
    for id in ["\"id\":null,", ""] {
        let mut client = Client::plain();
        let a = client.request("a");
        client.wire();
        let line = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32700,"message":"Parse error"}}}}"#);
        assert_eq!(client.feed(&line), unattributed(-32700));
        let cause = Cause::InvalidResponse { code: Some(-32700), reason: None };
        assert_eq!(client.signals(), [ended(a, cause, Delivery::Sent)]);
        assert_eq!(client.wire(), [cancelled_line(2, Some("unreadable response"))]);
    }
}

// UNR-06: with two candidates none fails, with none neither.
#[test]
fn an_error_that_two_can_own_fails_none() {
    let mut client = Client::plain();
    assert_eq!(client.error("null", -32700), unattributed(-32700));
    client.request("a");
    client.request("b");
    client.wire();
    assert_eq!(client.error("null", -32700), unattributed(-32700));
    assert!(client.signals().is_empty() && client.wire().is_empty());
    assert_eq!(client.conn.in_flight(), 2);
}

// UNR-06: a request that is not written to its end, or whose listen was acknowledged, cannot be meant.
#[test]
fn only_a_whole_request_without_a_frame_is_a_candidate() {
    let mut client = Client::plain();
    client.request("a");
    let n = client.lend();
    client.accept(n - 1);
    client.error("null", -32700);
    assert!(client.signals().is_empty());
    client.accept(1);
    client.listen(&Filter::default());
    client.wire();
    client.acknowledge(3, "{}");
    client.error("null", -32700);
    assert_eq!(client.signals().len(), 1, "the acknowledged listen does not count beside it");
}

// UNR-06, LIM-05: one that was cancelled or timed out a moment ago counts too, until its late answer is there.
#[test]
fn a_request_given_up_a_moment_ago_is_a_candidate() {
    let mut client = Client::plain();
    let (a, b) = (client.request("a"), client.request("b"));
    client.wire();
    client.cancel(a, None);
    client.signals();
    client.error("null", -32700);
    assert!(client.signals().is_empty(), "it may be the cancelled one's");
    client.result(2);
    client.error("null", -32700);
    let cause = Cause::InvalidResponse { code: Some(-32700), reason: None };
    assert_eq!(client.signals(), [ended(b, cause, Delivery::Sent)]);
}

// UNR-06, PRG-06: one that had progress before it was given up is known to the server: no candidate.
#[test]
fn a_given_up_request_with_progress_is_no_candidate() {
    let mut client = Client::plain();
    let a = client.request_with(|o| o.progress = mcp_wire::client::ProgressToken::Minted);
    let b = client.request("b");
    client.wire();
    client.progress("2", "1");
    client.cancel(a, None);
    client.signals();
    client.error("null", -32700);
    let cause = Cause::InvalidResponse { code: Some(-32700), reason: None };
    assert_eq!(client.signals(), [ended(b, cause, Delivery::Sent)]);
}

// UNR-06: where only a given-up request can be meant, the error is spent on it.
#[test]
fn an_error_for_a_given_up_request_is_spent_on_it() {
    let mut client = Client::plain();
    let a = client.request("a");
    client.wire();
    client.cancel(a, None);
    client.signals();
    client.error("null", -32700);
    let b = client.request("b");
    client.wire();
    client.error("null", -32600);
    let cause = Cause::InvalidResponse { code: Some(-32600), reason: None };
    assert_eq!(client.signals(), [ended(b, cause, Delivery::Sent)]);
}

// UNR-06: a server of the next life says nothing about requests of the last.
#[test]
fn a_request_given_up_in_an_earlier_life_is_no_candidate() {
    let mut client = Client::plain();
    let a = client.request("a");
    client.wire();
    client.cancel(a, None);
    client.conn.lost(true, client.now);
    client.open();
    client.signals();
    let b = client.request("b");
    client.wire();
    client.error("null", -32700);
    let cause = Cause::InvalidResponse { code: Some(-32700), reason: None };
    assert_eq!(client.signals(), [ended(b, cause, Delivery::Sent)]);
}

// UNR-07, case 224: an event of a dropped frame has its reason, id and length, and nothing of its content.
#[test]
fn a_dropped_frame_shows_nothing_of_its_content() {
    use mcp_wire::client::{Config, Connection, Event};
    let mut client = Connection::new(Config::new("c", "1")).expect("sound");
    client.opened(mcp_wire::Instant::EPOCH);
    let mut recv = mcp_wire::RecvBuffer::default();
    let line = br#"{"jsonrpc":"2.0","id":7,"result":{"password":"SENTINEL"#;
    recv.extend(line);
    recv.extend(b"\n");
    let frame = recv.next_frame().expect("the line is whole");
    let event = client.handle(frame.message(), mcp_wire::Instant::EPOCH);
    assert!(!format!("{event:?}{client:?}").contains("SENTINEL"));
    let Event::Dropped(dropped) = event else { panic!("a dropped frame") };
    assert_eq!(dropped.len, line.len() as u64);
    assert_eq!(dropped.id.expect("it is there").token(), "7");
}

// SEC-03, case 224: what the client keeps of the caller's payloads does not show either: waiting, queued, lent, kept for a retry.
#[test]
fn a_client_shows_nothing_of_the_payloads_it_keeps() {
    use crate::support::{json, options};
    let mut client = Client::new(mcp_wire::client::Config::new("c", "1"));
    let params = json(r#"{"password":"SENTINEL"}"#);
    let bytes = format!("{:?}", b"SENTINEL").trim_matches(['[', ']']).to_string();
    let mut idempotent = options();
    idempotent.idempotent = true;
    let check = |client: &mut Client| {
        client.conn.request("m", Some(params), idempotent.clone(), client.now).expect("there is room");
        client.conn.notify("n", Some(params), client.now).expect("there is room");
        let shown = format!("{:?}", client.conn);
        assert!(!shown.contains("SENTINEL") && !shown.contains(&bytes), "{shown}");
    };
    check(&mut client);
    client.open();
    client.wire();
    client.feed(crate::support::DISCOVERED);
    check(&mut client);
    client.lend();
    check(&mut client);
    let lent = client.conn.take_output(client.now).expect("bytes are there");
    client.accept(lent.len());
    client.conn.recycle(lent);
    check(&mut client);
}
