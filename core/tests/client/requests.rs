//! Requests and responses: exact text, ids, routing.

use std::collections::BTreeSet;

use mcp_wire::client::{Config, ResultKind};
use mcp_wire::{Cause, Delivery, DropReason, SendError, UnreadableReason};

use crate::support::{Client, META, Seen, ended, json, options};

fn complete() -> ResultKind {
    ResultKind::Complete
}

// MSG-02, META-01: each request says JSON-RPC 2.0 and carries version, name and capabilities. The probe has taken the id 1.
#[test]
fn a_request_leaves_with_its_metadata() {
    let mut client = Client::plain();
    client
        .conn
        .request("tools/call", Some(json(r#"{"name":"add","arguments":{"a":40}}"#)), options(), client.now)
        .expect("there is room");
    assert_eq!(
        client.wire(),
        [format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"_meta":{{{META}}},"name":"add","arguments":{{"a":40}}}}}}"#
        )]
    );
}

// FRM-02, FRM-03: params with line breaks between their tokens leave on one line, a break inside a string stays escaped.
#[test]
fn params_with_line_breaks_leave_on_one_line() {
    let mut client = Client::plain();
    let params = json("{\r\n  \"a\" : \"x\\ny\",\n  \"b\" : 1 }");
    client.conn.request("m", Some(params), options(), client.now).expect("there is room");
    let lines = client.wire();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].ends_with(r#","a":"x\ny","b":1}}"#), "{}", lines[0]);
    assert!(!lines[0].contains('\r') && !lines[0].starts_with('\u{feff}'));
}

// FRM-10, FRM-11: a writer that takes a byte at a time gets whole lines in order; the client knows nothing of pipes.
#[test]
fn a_writer_that_takes_a_byte_at_a_time_gets_whole_lines() {
    let mut client = Client::plain();
    for _ in 0..3 {
        client.request("m");
    }
    client.notify("notifications/x").expect("there is room");
    let mut bytes = Vec::new();
    while let Some(&byte) = client.conn.output(client.now).first() {
        bytes.push(byte);
        client.accept(1);
    }
    let text = String::from_utf8(bytes).expect("UTF-8");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    assert_eq!(lines.iter().map(|line| line["id"].as_u64()).collect::<Vec<_>>(), [Some(2), Some(3), Some(4), None]);
}

// MSG-06, LIM-05, case 071: ids are never used twice, and ended requests leave nothing behind.
#[test]
fn ids_are_never_used_twice() {
    let mut client = Client::plain();
    let mut ids = BTreeSet::new();
    for _ in 0..5000 {
        let handle = client.request("m");
        let line = client.wire().pop().expect("a line");
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let id = line["id"].as_u64().expect("an integer");
        assert!(ids.insert(id));
        assert_eq!(handle.slot(), 0, "the slot is free again");
        assert_eq!(client.result(id), Seen::Result(handle, "{}".into(), complete()));
    }
    assert_eq!((client.conn.in_flight(), client.conn.is_idle()), (0, true));
}

// A handle never names another request, also when its slot is used again.
#[test]
fn a_handle_never_names_another_request() {
    let mut client = Client::plain();
    let first = client.request("m");
    client.wire();
    client.result(2);
    let second = client.request("m");
    assert_eq!(first.slot(), second.slot());
    assert_ne!(first, second);
    client.cancel(first, None);
    assert_eq!(client.conn.in_flight(), 1);
    client.cancel(second, None);
    let third = client.request("m");
    assert_ne!(third.slot(), second.slot(), "the end of the second was not taken yet");
    assert_eq!(client.signals(), [ended(second, Cause::Cancelled, Delivery::NotSent)]);
}

// RTE-03, cases 037, 043, 050, 085: answers go by their id; unknown and finished ids are dropped and reported.
#[test]
fn answers_go_by_their_id_alone() {
    let mut client = Client::plain();
    let (a, b) = (client.request("a"), client.request("b"));
    client.wire();
    assert_eq!(client.result(99), Seen::Dropped(DropReason::UnknownId, Some("99".into()), None));
    assert_eq!(client.error("0", -32700), Seen::Dropped(DropReason::UnknownId, Some("0".into()), Some(-32700)));
    assert_eq!(client.error("\"\"", 1), Seen::Dropped(DropReason::UnknownId, Some("\"\"".into()), Some(1)));
    assert_eq!(client.error("3", -32601), Seen::Error(b, -32601));
    assert_eq!(client.result(2), Seen::Result(a, "{}".into(), complete()));
    assert_eq!(client.result(2), Seen::Dropped(DropReason::DuplicateResponse, Some("2".into()), None));
    assert_eq!(client.result(1), Seen::Dropped(DropReason::DuplicateResponse, Some("1".into()), None), "the probe");
    assert!(client.signals().is_empty());
}

// MSG-05, cases 035, 039: "2" is not 2, but 2.0 and 2e0 are; nothing is rounded.
#[test]
fn ids_compare_by_type_and_value() {
    let mut client = Client::plain();
    let a = client.request("a");
    client.wire();
    for id in ["\"2\"", "2.0000000000000000001", "18446744073709551618", "-2"] {
        let seen = client.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        assert!(matches!(seen, Seen::Dropped(..)), "{id}");
    }
    let seen = client.feed(r#"{"jsonrpc":"2.0","id":20e-1,"result":{"a":1}}"#);
    assert_eq!(seen, Seen::Result(a, r#"{"a":1}"#.into(), complete()));
}

// case 042: an answer to an id that was minted but not lent is no answer; the server cannot know it.
#[test]
fn an_id_that_was_not_lent_cannot_be_answered() {
    let mut client = Client::plain();
    let a = client.request("a");
    assert!(matches!(client.result(2), Seen::Dropped(DropReason::UnknownId, ..)));
    client.wire();
    assert_eq!(client.result(2), Seen::Result(a, "{}".into(), complete()));
}

// case 046: the entry is there before a byte leaves, so no answer is too fast.
#[test]
fn no_answer_is_too_fast() {
    let mut client = Client::plain();
    let a = client.request("a");
    assert!(client.lend() > 0);
    assert_eq!(client.result(2), Seen::Result(a, "{}".into(), complete()));
    assert!(client.conn.output(client.now).starts_with(b"{"), "what was lent still leaves");
}

// RTE-01, case 048: a request from the server is no response, whatever its id; not a byte answers it.
#[test]
fn a_request_from_the_server_is_dropped_without_a_byte() {
    let mut client = Client::plain();
    let a = client.request("a");
    client.wire();
    let seen = client.feed(r#"{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{}}"#);
    assert_eq!(seen, Seen::Dropped(DropReason::UnexpectedRequest, Some("2".into()), None));
    assert!(client.wire().is_empty());
    assert!(matches!(client.result(2), Seen::Result(handle, ..) if handle == a));
}

// RTE-06, RTE-07, RTE-08, cases 051, 207: what belongs to nobody goes to the sink, in wire order, before the probe's answer too.
#[test]
fn notifications_of_nobody_go_to_the_sink_in_wire_order() {
    let mut client = Client::new(Config::new("c", "1"));
    client.open();
    client.wire();
    assert_eq!(client.note("notifications/message", "{}"), Seen::Note(None, "notifications/message".into()));
    assert_eq!(client.feed(crate::support::DISCOVERED), Seen::Handled);
    let a = client.request_with(|o| o.progress = mcp_wire::client::ProgressToken::Minted);
    let b = client.request("b");
    client.wire();
    let order = [
        client.progress("2", "1"),
        client.note("notifications/message", "{}"),
        client.result(3),
        client.progress("2", "2"),
        client.result(2),
    ];
    let progress = || Seen::Note(Some(a), "notifications/progress".into());
    let answer = |handle| Seen::Result(handle, "{}".into(), complete());
    assert_eq!(order, [progress(), Seen::Note(None, "notifications/message".into()), answer(b), progress(), answer(a)]);
}

// MSG-13: an absent resultType reads as complete; an unknown one ends the request, and as the server is done there is no cancellation.
#[test]
fn an_unknown_result_type_is_an_invalid_response() {
    let mut client = Client::plain();
    let a = client.request("a");
    client.wire();
    let seen = client.feed(r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"x"}}"#);
    let reason = DropReason::Unreadable(UnreadableReason::InvalidMessage);
    assert_eq!(seen, Seen::Dropped(reason, Some("2".into()), None));
    let cause = Cause::InvalidResponse { code: None, reason: None };
    assert_eq!(client.signals(), [ended(a, cause, Delivery::Started)]);
    assert!(client.wire().is_empty());
}

// MSG-15: `input_required` ends the first round; the retry is another request.
#[test]
fn input_required_ends_the_round() {
    let mut client = Client::plain();
    let a = client.request("a");
    client.wire();
    let seen = client.feed(r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","x":1}}"#);
    assert!(matches!(seen, Seen::Result(handle, _, ResultKind::InputRequired) if handle == a));
    assert_eq!(client.conn.in_flight(), 0);
    client.request("a");
    assert!(client.wire()[0].contains(r#""id":3,"#));
}

// MSG-14, RTE-02: params that are no object and methods that are the core's own are refused, and nothing has changed.
#[test]
fn mistakes_of_the_caller_change_nothing() {
    let mut client = Client::plain();
    for params in ["[1]", "3", "null", "\"x\""] {
        let error = client.conn.request("m", Some(json(params)), options(), client.now);
        assert_eq!(error, Err(SendError::ParamsNotAnObject));
        assert_eq!(client.conn.notify("m", Some(json(params)), client.now), Err(SendError::ParamsNotAnObject));
    }
    for method in ["initialize", "subscriptions/listen"] {
        let error = client.conn.request(method, None, options(), client.now);
        assert_eq!(error, Err(SendError::ReservedMethod));
    }
    for method in ["notifications/cancelled", "notifications/initialized", "notifications/progress"] {
        assert_eq!(client.notify(method), Err(SendError::ReservedMethod));
    }
    assert!(client.conn.is_idle() && client.wire().is_empty());
    client.request("server/discover");
    assert!(client.wire()[0].contains(r#""id":2,"#), "asking again by hand is allowed");
}

// META-06: the caller's metadata are kept, the core's keys win. A notification needs none and passes untouched.
#[test]
fn metadata_of_the_caller_stay() {
    let mut client = Client::plain();
    let params = json(r#"{"_meta":{"traceparent":"t","io.modelcontextprotocol/protocolVersion":"0"},"a":1}"#);
    client.conn.request("m", Some(params), options(), client.now).expect("there is room");
    client.conn.notify("notifications/x", Some(params), client.now).expect("there is room");
    client.notify("notifications/y").expect("there is room");
    assert_eq!(
        client.wire(),
        [
            format!(
                r#"{{"jsonrpc":"2.0","id":2,"method":"m","params":{{"_meta":{{{META},"traceparent":"t"}},"a":1}}}}"#
            ),
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{}}}"#, params.get()),
            r#"{"jsonrpc":"2.0","method":"notifications/y"}"#.into(),
        ]
    );
}

// MSG-11: what goes wrong here is a local cause; the client never writes an error, so no code of its own.
#[test]
fn a_client_never_writes_a_response() {
    let mut client = Client::plain();
    client.request("a");
    client.wire();
    client.feed(r#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#);
    client.feed(r#"{"foo":1}"#);
    client.feed("not JSON");
    client.error("null", -32700);
    for line in client.wire() {
        assert!(line.contains("notifications/cancelled"), "{line}");
    }
}
