//! Lines that are no message, and what a server says to them.

use std::time::Duration;

use mcp_wire::{DropReason, UnreadableReason};

use super::support::*;

const W_03: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;
const W_04: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}"#;

fn answers(line: &[u8]) -> Vec<String> {
    let mut peer = Peer::with(|config| config.line_limit = 4096);
    let seen = peer.send_bytes(&[line, b"\n"].concat());
    assert_eq!(seen.len(), 1);
    assert!(matches!(&seen[0], Seen::Dropped { reason: DropReason::Unreadable(_), .. }), "{seen:?}");
    let lines = peer.read();
    // UNR-01: the connection lives.
    peer.call("1");
    lines
}

// UNR-03, W-03: not JSON or not UTF-8 is a parse error, with the id if one can be found.
#[test]
fn what_is_no_json_is_a_parse_error() {
    for line in
        [&b"{oops"[..], b"Starting server v1", b"{\"a\":\"\xff\"}", b"Content-Length: 10", b"{\"jsonrpc\":\"2.0\""]
    {
        assert_eq!(answers(line), [W_03], "{line:?}");
    }
    assert_eq!(answers(br#"{"id":4,"method":"x""#), [error("4", -32700, "Parse error")]);
    // LIM-03: no stack is used up.
    assert_eq!(answers(&[b'['; 4000]), [W_03]);
}

// UNR-03, W-04, MSG-01, MSG-02, MSG-03: JSON that is no message is an invalid request.
#[test]
fn json_that_is_no_message_is_an_invalid_request() {
    for line in [
        "[]",
        "1",
        "null",
        "\"x\"",
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        "{}",
        r#"{"foo":1}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#,
        // UNR-08: two ids are none.
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#,
    ] {
        assert_eq!(answers(line.as_bytes()), [W_04], "{line}");
    }
    for line in [
        r#"{"id":7,"method":"x"}"#,
        r#"{"jsonrpc":"1.0","id":7,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":7}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":3}"#,
        // UNR-08
        r#"{"jsonrpc":"2.0","id":7,"method":"x","method":"y"}"#,
    ] {
        assert_eq!(answers(line.as_bytes()), [error("7", -32600, "Invalid Request")], "{line}");
    }
}

// UNR-03, LIM-03: too deep, or a method too long: with the id; an id too long: without.
#[test]
fn what_passes_a_bound_is_an_invalid_request() {
    let deep = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"x","params":{}1{}}}"#, "[".repeat(200), "]".repeat(200));
    assert_eq!(answers(deep.as_bytes()), [error("7", -32600, "Invalid Request")]);
    let method = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{}"}}"#, "m".repeat(1100));
    assert_eq!(answers(method.as_bytes()), [error("7", -32600, "Invalid Request")]);
    let id = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"x"}}"#, "i".repeat(1100));
    assert_eq!(answers(id.as_bytes()), [W_04]);
}

// UNR-03, W-19: a line too long is answered if its id was found, before or after, and not at all without one.
#[test]
fn a_line_too_long_is_answered_if_its_id_is_found() {
    let padding = "x".repeat(10_000);
    let limit =
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"Message too large","data":{"limit":4096}}}"#;
    for line in [
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"x","params":{{"a":"{padding}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","params":{{"a":"{padding}"}},"method":"x","id":7}}"#),
    ] {
        assert_eq!(answers(line.as_bytes()), [limit]);
    }
    for line in [
        padding.clone(),
        format!(r#"{{"jsonrpc":"2.0","method":"x","params":{{"a":"{padding}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":"{padding}"}}}}"#),
    ] {
        assert!(answers(line.as_bytes()).is_empty());
    }
}

// UNR-03, MSG-08: a damaged notification or response gets no answer, so two ends cannot feed each other errors.
#[test]
fn damaged_notifications_and_responses_are_not_answered() {
    for line in [
        r#"{"method":"x"}"#,
        r#"{"jsonrpc":"2.0","method":3}"#,
        r#"{"id":7,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":"x"}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
    ] {
        assert!(answers(line.as_bytes()).is_empty(), "{line}");
    }
}

// RTE-01, UNR-03: a server has asked nothing: responses are dropped and reported, errors without an id too.
#[test]
fn responses_are_dropped() {
    let mut peer = Peer::default();
    peer.call("1");
    let dropped = |id: Option<&str>, code| Seen::Dropped {
        reason: DropReason::UnexpectedResponse,
        id: id.map(ToOwned::to_owned),
        code,
        len: 0,
    };
    assert_eq!(peer.send(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), dropped(Some("1"), None));
    assert_eq!(peer.send(W_03), dropped(None, Some(-32700)));
    assert_eq!(peer.send(r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"x"}}"#), dropped(None, Some(-32600)));
    assert!(peer.read().is_empty());
}

// MSG-10, by option: an id that could not be read is left out.
#[test]
fn by_option_an_unreadable_id_is_left_out() {
    let mut peer = Peer::with(|config| config.omit_null_id = true);
    peer.send("{oops");
    peer.send("[]");
    peer.call("1");
    peer.send(&request("1", "tools/call", ""));
    assert_eq!(
        peer.read(),
        [
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"}}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"}}"#,
        ]
    );
}

// UNR-03: replies without an id: a burst of 32, then ten a second, the rest counted. Those with an id are never limited.
#[test]
fn replies_without_an_id_are_limited_in_rate() {
    let mut peer = Peer::default();
    let bad = b"oops\n".repeat(100_000);
    peer.send_bytes(&bad);
    assert_eq!(peer.read().len(), 32);
    assert_eq!(peer.server.suppressed_answers(), 100_000 - 32);
    for _ in 0..100 {
        peer.send(r#"{"id":4,"method":"x""#);
    }
    assert_eq!(peer.read().len(), 100);
    peer.pass(Duration::from_secs(1));
    peer.send_bytes(&bad);
    assert_eq!(peer.read().len(), 10);
    peer.pass(Duration::from_secs(3600));
    peer.send_bytes(&bad);
    assert_eq!(peer.read().len(), 32);
}

// MSG-07: an id found in a damaged line that is in flight is not answered: that would end the request that has it.
#[test]
fn a_damaged_line_does_not_answer_a_request_in_flight() {
    let mut peer = Peer::default();
    let ticket = peer.call("4");
    peer.send(r#"{"id":4,"method":"x""#);
    assert_eq!(peer.read(), [W_03]);
    peer.respond(ticket, "{}").expect("in flight");
    assert_eq!(peer.read(), [empty_result("4")]);
}

// UNR-07: one event for each dropped frame: reason, id, length; no content.
#[test]
fn each_dropped_frame_gives_one_event() {
    let mut peer = Peer::default();
    let line = r#"{"id":4,"method":"secret""#;
    assert_eq!(peer.send(line), unreadable(UnreadableReason::InvalidJson, Some("4"), line.len()));
    let line = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"secret"},"result":1}"#;
    assert_eq!(
        peer.send(line),
        Seen::Dropped {
            reason: DropReason::Unreadable(UnreadableReason::InvalidMessage),
            id: Some("7".into()),
            code: Some(-1),
            len: line.len() as u64,
        }
    );
    assert!(!format!("{:?}", peer.server).contains("secret"));
}

// SEC-03: what is printed of a connection shows no payload: not what waits to leave, not what a listen named.
#[test]
fn a_connection_that_is_printed_shows_no_payload() {
    let mut peer = Peer::default();
    peer.send(&listen("1", r#"{"resourceSubscriptions":["file:///secret"]}"#));
    let ticket = peer.call("2");
    peer.respond(ticket, r#"{"a":"secret"}"#).expect("in flight");
    let ticket = peer.call_with_token("3");
    for value in 0..150 {
        peer.server.progress(ticket, f64::from(value), None, Some("secret"), peer.now).expect("in flight");
        let lent = peer.server.output(peer.now).len();
        peer.server.accepted(lent, peer.now);
    }
    peer.send(&cancel("99"));
    let ticket = peer.call("4");
    peer.respond(ticket, r#"{"a":"secret"}"#).expect("in flight");
    let printed = format!("{:?}", peer.server);
    let as_numbers = "secret".bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
    assert!(!printed.contains("secret") && !printed.contains(&as_numbers), "{printed}");
}
