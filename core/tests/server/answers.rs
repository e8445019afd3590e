//! What handlers answer, and what the core answers in their place.

use mcp_wire::server::{Config, Signal};
use mcp_wire::{Json, SendError};

use super::support::*;

fn named() -> Peer {
    Peer::new(Config::new("s", "1"))
}

// VER-01, W-14
#[test]
fn discover_is_answered_by_the_core() {
    let mut peer = named();
    assert_eq!(peer.send(&request("1", "server/discover", "")), Seen::Handled);
    assert_eq!(
        peer.read(),
        [
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}"#
        ]
    );
    let mut peer = Peer::with(|config| {
        config.instructions = Some("say\n\"please\"".into());
        // FRM-02: what was given pretty-printed leaves on one line.
        config.capabilities = json("{\n  \"tools\": {}\n}");
    });
    peer.send(&request("1", "server/discover", ""));
    assert_eq!(
        peer.read(),
        [
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"say\n\"please\"","ttlMs":0,"cacheScope":"private"}}"#
        ]
    );
}

// MSG-04, MSG-03: the id token is echoed byte for byte, whatever its form.
#[test]
fn the_id_is_echoed_byte_for_byte() {
    let mut peer = Peer::default();
    for id in ["1.0", "1e2", "-0", "123456789012345678901234567890", "\"7\"", "\"\\u0061\"", "\"\"", "2.50e1"] {
        let ticket = peer.call(id);
        peer.respond(ticket, "{}").expect("in flight");
        assert_eq!(peer.read(), [empty_result(id)]);
        peer.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call"}}"#));
        assert!(peer.read()[0].starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error""#)));
    }
}

// META-05, MSG-12: a result names the server and has a resultType; a handler's own members stay (META-06).
#[test]
fn results_carry_their_type_and_the_servers_name() {
    let mut peer = named();
    let mut result = |text: &str| {
        let ticket = peer.call("7");
        peer.respond(ticket, text).expect("in flight");
        peer.read().remove(0)
    };
    const INFO: &str = r#""io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}"#;
    assert_eq!(
        result(r#"{"a":1}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"resultType":"complete","a":1,"_meta":{{{INFO}}}}}}}"#)
    );
    assert_eq!(
        result(r#"{"_meta":{"x":1},"resultType":"input_required"}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"_meta":{{"x":1,{INFO}}},"resultType":"input_required"}}}}"#)
    );
}

// FRM-02, case 019: a pretty-printed result leaves on one line; FRM-03, case 003: no raw line separators in what the core quotes.
#[test]
fn a_result_with_line_breaks_leaves_on_one_line() {
    let mut peer = Peer::default();
    let ticket = peer.call("7");
    peer.respond(ticket, "{\r\n  \"a\": \"x\\ny z\",\n  \"resultType\": \"complete\"\n}\n").expect("in flight");
    assert_eq!(peer.read(), [r#"{"jsonrpc":"2.0","id":7,"result":{"a":"x\ny z","resultType":"complete"}}"#]);
    let ticket = peer.call("7");
    peer.server.respond_error(ticket, 1, "a\u{2028}b\nc", None, peer.now).expect("in flight");
    assert_eq!(peer.read(), [error("7", 1, r"a\u2028b\nc")]);
}

// MSG-12, by option: a result without resultType is refused; a result that is no object always is. The client gets -32603.
#[test]
fn a_result_that_is_none_is_answered_with_an_error_and_reported() {
    let mut peer = Peer::with(|config| config.require_result_type = true);
    for result in ["[]", "null", "3", r#"{"a":1}"#] {
        let ticket = peer.call("7");
        assert_eq!(peer.respond(ticket, result), Err(SendError::InvalidResult));
        assert!(peer.read()[0].starts_with(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"#));
        assert_eq!(peer.respond(ticket, "{}"), Err(SendError::Ended));
    }
    let ticket = peer.call("7");
    assert_eq!(peer.respond(ticket, r#"{"resultType":"complete"}"#), Ok(()));
    assert_eq!(peer.read(), [empty_result("7")]);
}

// MSG-11: only the codes of the specification and those of applications leave; another becomes -32603 with its message, and a warning.
#[test]
fn a_forbidden_code_leaves_as_internal_error() {
    let mut peer = Peer::default();
    for code in [-32000, -32002, -32019, -32023, -32042, -32599, -32604, -32699, -32701, -32768, -32100] {
        let ticket = peer.call("7");
        peer.server.respond_error(ticket, code, "why", None, peer.now).expect("in flight");
        assert_eq!(peer.read(), [error("7", -32603, "why")], "{code}");
        assert_eq!(peer.signals(), [Signal::CodeReplaced { ticket, code }]);
    }
    for code in
        [-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022, -32769, -31999, 0, 1, i64::MIN, i64::MAX]
    {
        let ticket = peer.call("7");
        peer.server.respond_error(ticket, code, "why", None, peer.now).expect("in flight");
        assert_eq!(peer.read(), [error("7", code, "why")], "{code}");
        assert_eq!(peer.signals(), []);
    }
}

#[test]
fn an_error_carries_its_data() {
    let mut peer = Peer::default();
    let ticket = peer.call("7");
    let data = Json::parse(r#"{"x":[1]}"#).expect("JSON");
    peer.server.respond_error(ticket, -32602, "no", Some(data), peer.now).expect("in flight");
    assert_eq!(peer.read(), [r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no","data":{"x":[1]}}}"#]);
}

// META-04, W-08
#[test]
fn a_missing_capability_is_named() {
    let mut peer = Peer::default();
    let ticket = peer.call("7");
    let required = Json::parse(r#"{"elicitation":{}}"#).expect("JSON");
    peer.server.respond_missing_capability(ticket, required, peer.now).expect("in flight");
    assert_eq!(
        peer.read(),
        [
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"elicitation":{}}}}}"#
        ]
    );
}

// RTE-09: nothing follows the answer, and there is one answer.
#[test]
fn nothing_follows_the_answer() {
    let mut peer = Peer::default();
    let ticket = peer.call_with_token("7");
    peer.respond(ticket, "{}").expect("in flight");
    assert_eq!(peer.read(), [empty_result("7")]);
    assert_eq!(peer.respond(ticket, "{}"), Err(SendError::Ended));
    assert_eq!(peer.server.respond_error(ticket, 1, "x", None, peer.now), Err(SendError::Ended));
    assert_eq!(peer.server.abandon(ticket, peer.now), Err(SendError::Ended));
    assert_eq!(peer.report(ticket, 1.0), Err(SendError::Ended));
    let log = peer.server.log(ticket, mcp_wire::server::LogLevel::Error, None, Json::NULL, peer.now);
    assert_eq!(log, Err(SendError::Ended));
    assert!(peer.read().is_empty());
    // The slot is used again, the ticket is not.
    let next = peer.call("8");
    assert_eq!(next.slot(), ticket.slot());
    assert_ne!(next, ticket);
    assert_eq!(peer.respond(ticket, "{}"), Err(SendError::Ended));
}

// A handler that ends without an answer (a panic, say) costs its own request only.
#[test]
fn an_abandoned_request_gets_an_internal_error() {
    let mut peer = Peer::default();
    let ticket = peer.call("7");
    assert_eq!(peer.server.abandon(ticket, peer.now), Ok(()));
    assert_eq!(peer.read(), [error("7", -32603, "Internal error")]);
    assert_eq!(peer.server.abandon(ticket, peer.now), Err(SendError::Ended));
}

// MSG-07, W-04: a second request under an id that is in flight starts nothing and is refused with a null id.
#[test]
fn a_duplicate_id_is_refused_with_a_null_id() {
    let mut peer = Peer::default();
    let ticket = peer.call("1");
    for line in [
        request("1", "tools/call", ""),
        request("1.0", "server/discover", ""),
        r#"{"jsonrpc":"2.0","id":10e-1,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#.to_owned(),
        listen("1", "{}"),
    ] {
        assert!(matches!(peer.send(&line), Seen::Refused { code: -32600, .. }), "{line}");
        assert_eq!(peer.read(), [error("null", -32600, "Invalid Request")], "{line}");
    }
    // MSG-05: `"1"` is another id.
    peer.call("\"1\"");
    peer.respond(ticket, "{}").expect("in flight");
    assert_eq!(peer.read(), [empty_result("1")]);
    peer.call("1");
}

// MSG-07: as long as no byte of the answer has left, the id is in flight for the client.
#[test]
fn an_id_is_taken_until_its_answer_leaves() {
    let mut peer = Peer::default();
    let ticket = peer.call("1");
    peer.respond(ticket, "{}").expect("in flight");
    assert!(matches!(peer.send(&request("1", "tools/call", "")), Seen::Refused { code: -32600, .. }));
    assert_eq!(
        peer.server.output(peer.now).len(),
        empty_result("1").len() + 1 + error("null", -32600, "Invalid Request").len() + 1
    );
    peer.call("1");
}

// MSG-08: a notification gets no answer, not even an error.
#[test]
fn a_notification_is_never_answered() {
    let mut peer = Peer::default();
    for (method, params) in
        [("x/y", ""), ("notifications/roots/list_changed", ""), ("tools/call", r#","params":[1]"#), ("ping", "")]
    {
        let seen = peer.send(&format!(r#"{{"jsonrpc":"2.0","method":"{method}"{params}}}"#));
        assert_eq!(seen, Seen::Notification { method: method.into() });
    }
    assert!(peer.read().is_empty());
}
