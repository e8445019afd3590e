//! Both eras on one server: the handshake, how each request is judged by itself, and what a legacy client is answered.

use mcp_wire::server::{Config, Connection, Signal};
use mcp_wire::{Cause, ConfigError, Delivery, Eras, SendError};

use super::support::*;

const PONG: &str = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;

fn missing_version(id: &str) -> String {
    error(id, -32602, "Invalid params: missing _meta field io.modelcontextprotocol/protocolVersion")
}

/// A server for both eras, before any request.
fn fresh() -> Peer {
    Peer::new(dual())
}

fn legacy_only() -> Peer {
    let mut config = dual();
    config.serve(Eras::Legacy);
    Peer::new(config)
}

// LEG-03: the version asked for if it is served, else the newest that is.
#[test]
fn initialize_is_answered_with_the_version_asked_for_or_the_newest() {
    let chosen = |peer: &mut Peer, asked: &str| match peer.send(&initialize("0", asked)) {
        Seen::Initialize { version, .. } => version,
        other => panic!("{other:?}"),
    };
    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        assert_eq!(chosen(&mut fresh(), version), version);
    }
    for unknown in ["1.0", "2026-07-28", "2030-01-01", ""] {
        assert_eq!(chosen(&mut fresh(), unknown), "2025-11-25");
    }
    let mut config = dual();
    config.legacy_versions = vec!["2024-11-05".into(), "2025-06-18".into()];
    assert_eq!(chosen(&mut Peer::new(config.clone()), "2025-11-25"), "2025-06-18");
    assert_eq!(chosen(&mut Peer::new(config), "2024-11-05"), "2024-11-05");
}

// LEG-03, META-08: the result says what the discover result says, without a key of the modern era.
#[test]
fn the_result_of_initialize_is_exact() {
    let mut config = dual();
    config.instructions = Some("be kind".into());
    config.capabilities = json("{\n\"tools\":{}}");
    let mut peer = Peer::new(config);
    peer.send(&initialize("\"a\"", "2025-06-18"));
    assert_eq!(
        peer.read(),
        [
            r#"{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"be kind"}}"#
        ]
    );
}

// LIM-05: what a client tells of itself is kept with each of its calls, so it is bounded.
#[test]
fn an_initialize_that_says_too_much_is_refused() {
    let opening = |size: usize| {
        let long = "x".repeat(size);
        let facts = format!(r#""protocolVersion":"2025-11-25","clientInfo":{{"name":"{long}","version":"1"}}"#);
        fresh().send(&legacy("1", "initialize", &facts))
    };
    assert!(matches!(opening(60 << 10), Seen::Initialize { .. }));
    assert_eq!(opening(64 << 10), Seen::Refused { id: "1".into(), code: -32602 });
}

#[test]
fn an_initialize_that_names_no_version_is_refused() {
    for params in [
        "",
        r#""protocolVersion":3"#,
        r#""protocolVersion":"2025-06-18","capabilities":[]"#,
        r#""protocolVersion":"2025-06-18","clientInfo":"me""#,
    ] {
        let mut peer = fresh();
        assert!(
            matches!(peer.send(&legacy("1", "initialize", params)), Seen::Refused { code: -32602, .. }),
            "{params}"
        );
        assert!(
            peer.read()[0].starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: "#)
        );
        // Nothing is chosen by it.
        peer.send(&legacy("2", "tools/list", ""));
        assert_eq!(peer.read(), [missing_version("2")]);
    }
    // One that says little is let in.
    let mut peer = fresh();
    let Seen::Initialize { session, .. } = peer.send(&legacy("1", "initialize", r#""protocolVersion":"2025-06-18""#))
    else {
        panic!("let in")
    };
    assert_eq!(peer.server.client(session).expect("open").capabilities.get(), "{}");
}

#[test]
fn what_the_client_told_of_itself_can_be_read() {
    let mut peer = fresh();
    let session = peer.open("2025-06-18");
    let facts = peer.server.client(session).expect("open");
    assert_eq!((facts.version, facts.initialized), ("2025-06-18", false));
    assert_eq!(facts.capabilities.get(), r#"{"elicitation":{}}"#);
    assert_eq!(facts.info.expect("given").get(), r#"{"name":"c","version":"1"}"#);
    peer.send(INITIALIZED);
    assert!(peer.server.client(session).expect("open").initialized);
}

// VER-10: after initialize a request without modern metadata is legacy and one with it is modern, in any order; each is answered in its
// own form (META-05, META-08, MSG-12).
#[test]
fn both_eras_are_served_on_one_connection() {
    let (mut peer, session) = Peer::legacy("2025-11-25");
    let (modern, _) = peer.admitted(&request("1", "tools/list", ""));
    let (old, _) = peer.admitted(&legacy("2", "tools/list", ""));
    peer.respond(old, r#"{"tools":[],"resultType":"complete"}"#).expect("in flight");
    peer.respond(modern, r#"{"tools":[]}"#).expect("in flight");
    assert_eq!(
        peer.read(),
        [
            r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}"#
        ]
    );
    assert_eq!(peer.send(&request("3", "server/discover", "")), Seen::Handled);
    assert!(peer.read()[0].contains(r#""supportedVersions":["2026-07-28"]"#), "META-03: modern versions only");
    assert!(peer.server.client(session).is_some());
    // META-03: a legacy version in the metadata is none that is served.
    let wrong = request("4", "tools/list", "").replace("2026-07-28", "2025-11-25");
    assert_eq!(peer.send(&wrong), Seen::Refused { id: "4".into(), code: -32022 });
}

// case 199: era is decided by what completes first. Here by each request: a listen that never completes and a slow modern request stay what they are
// when a handshake comes and goes beside them.
#[test]
fn a_handshake_changes_nothing_of_what_runs() {
    let mut peer = fresh();
    peer.send(&listen("\"L\"", r#"{"toolsListChanged":true}"#));
    let (slow, _) = peer.admitted(&request("1", "tools/call", ""));
    peer.open("2025-11-25");
    peer.send(INITIALIZED);
    peer.read();
    peer.respond(slow, "{}").expect("in flight");
    assert!(peer.read()[0].contains(r#""resultType":"complete""#));
    assert_eq!(peer.server.publish(mcp_wire::server::Change::ToolsList, peer.now), 2);
    assert!(peer.read()[0].contains(r#""io.modelcontextprotocol/subscriptionId":"L""#));
    peer.server.end_of_input(peer.now);
    assert_eq!(peer.read().len(), 2, "SUB-07: the end of the listen, and nothing of the session");
}

// VER-11: a probe fixes nothing, and neither does a notification after it.
#[test]
fn a_probe_fixes_nothing() {
    let mut peer = fresh();
    peer.send(&request("1", "server/discover", ""));
    peer.send(&cancel("1"));
    peer.read();
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#);
    peer.open("2025-11-25");
    assert!(peer.read()[0].contains(r#""protocolVersion":"2025-11-25""#));
    peer.send(INITIALIZED);
    peer.admitted(&legacy("2", "tools/list", ""));
    peer.admitted(&request("3", "tools/list", ""));
}

// VER-12: before any era is chosen a ping is answered, another request without metadata is refused by name, a notification is ignored.
#[test]
fn before_any_era_only_a_ping_needs_no_metadata() {
    let mut peer = fresh();
    assert_eq!(peer.send(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#), Seen::Handled);
    assert_eq!(peer.read(), [PONG]);
    for method in ["tools/list", "server/discover", "logging/setLevel", "resources/subscribe", "x"] {
        assert_eq!(peer.send(&legacy("1", method, "")), Seen::Refused { id: "1".into(), code: -32602 });
        assert_eq!(peer.read(), [missing_version("1")]);
    }
    peer.send(INITIALIZED);
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#);
    assert!(peer.read().is_empty());
    peer.admitted(&request("1", "tools/list", ""));
}

// VER-13, LEG-05: with modern metadata the requests of the legacy era are unknown methods, also beside a legacy session.
#[test]
fn legacy_methods_with_modern_metadata_are_unknown() {
    let (mut peer, _) = Peer::legacy("2025-11-25");
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        let rest = r#""protocolVersion":"2025-11-25","level":"info","uri":"a""#;
        assert_eq!(peer.send(&request("1", method, rest)), Seen::Refused { id: "1".into(), code: -32601 }, "{method}");
        assert_eq!(peer.read(), [error("1", -32601, "Method not found")]);
    }
    // And the other way: without the metadata there is no probe and no listen.
    for method in ["server/discover", "subscriptions/listen"] {
        assert_eq!(
            peer.send(&legacy("1", method, r#""notifications":{}"#)),
            Seen::Refused { id: "1".into(), code: -32601 }
        );
    }
}

// A server that is legacy only looks to a probing client as any other, and never ends on what it does not know.
#[test]
fn a_legacy_only_server_knows_no_modern_request() {
    let mut peer = legacy_only();
    assert_eq!(peer.send(&request("1", "server/discover", "")), Seen::Refused { id: "1".into(), code: -32601 });
    assert_eq!(peer.send(&request("2", "tools/list", "")), Seen::Refused { id: "2".into(), code: -32600 });
    assert_eq!(peer.send(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#), Seen::Handled);
    assert_eq!(
        peer.read(),
        [
            error("1", -32601, "Method not found"),
            error("2", -32600, "Invalid Request: the session begins with initialize"),
            PONG.into()
        ]
    );
    peer.open("2025-11-25");
    peer.read();
    // Metadata that it does not know makes no difference.
    let (ticket, _) = peer.admitted(&request("3", "tools/list", ""));
    peer.respond(ticket, "{}").expect("in flight");
    assert_eq!(peer.read(), [r#"{"jsonrpc":"2.0","id":3,"result":{}}"#]);
    assert_eq!(peer.send(&request("9", "ping", "")), Seen::Handled);
    assert_eq!(peer.read(), [PONG]);
}

// A relay may carry one client after the other over one stream: each opens a session of its own, and nothing of the one before is left.
#[test]
fn another_initialize_opens_another_session() {
    let (mut peer, first) = Peer::legacy("2025-11-25");
    peer.send(&legacy("1", "resources/subscribe", r#""uri":"a""#));
    peer.send(&legacy("2", "logging/setLevel", r#""level":"debug""#));
    let (old, _) = peer.admitted(&legacy("3", "tools/call", ""));
    let options = mcp_wire::server::ClientRequestOptions::default();
    let request = peer.server.request_client(first, "ping", None, options, peer.now).expect("sent");
    let second = peer.open("2025-06-18");
    assert_ne!(first, second);
    // What the client of before was asked will not be answered by this one.
    let (cause, delivery) = (Cause::Closed, Delivery::NotSent);
    assert_eq!(peer.signals(), [Signal::ClientRequestEnded { request, cause, delivery }]);
    assert!(peer.server.client(first).is_none());
    assert_eq!(peer.server.request_client(first, "ping", None, options, peer.now), Err(SendError::Ended));
    peer.send(INITIALIZED);
    peer.read();
    let updated = mcp_wire::server::Change::Resource { subscribed: "a", uri: "a" };
    assert_eq!(peer.server.publish(updated, peer.now), 0);
    // A request of the first session is still owed its answer.
    peer.respond(old, r#"{"resultType":"complete"}"#).expect("in flight");
    assert_eq!(peer.read(), [r#"{"jsonrpc":"2.0","id":3,"result":{}}"#]);
}

// LEG-05, META-07: a ping is answered at once, in a full house too.
#[test]
fn a_ping_of_a_session_needs_no_permit() {
    let (mut peer, _) = Peer::legacy_with("2025-11-25", |config| (config.running_limit, config.waiting_limit) = (1, 0));
    peer.admitted(&legacy("1", "tools/call", ""));
    assert_eq!(peer.send(&legacy("2", "tools/call", "")), Seen::Refused { id: "2".into(), code: -32603 });
    assert_eq!(peer.send(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#), Seen::Handled);
    assert_eq!(peer.read(), [error("2", -32603, "Server busy"), PONG.into()]);
}

// MSG-14, META-07: params and token of a legacy request are looked at as well.
#[test]
fn a_legacy_request_is_checked() {
    let (mut peer, _) = Peer::legacy("2025-11-25");
    for params in ["[1]", "1", "null"] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        assert_eq!(peer.send(&line), Seen::Refused { id: "1".into(), code: -32602 });
        assert_eq!(peer.read(), [error("1", -32602, "Invalid params: params must be an object")]);
    }
    let token = |token: &str| legacy("1", "tools/call", &format!(r#""_meta":{{"progressToken":{token}}}"#));
    assert_eq!(peer.send(&token("1.5")), Seen::Refused { id: "1".into(), code: -32602 });
    peer.read();
    let (ticket, _) = peer.admitted(&token("\"t\""));
    peer.report(ticket, 1.0).expect("in flight");
    assert_eq!(
        peer.read(),
        [r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#]
    );
    peer.admitted(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call"}"#);
}

// MSG-11: a resource that is not there, and a URL to visit, have codes in the legacy era; other reserved codes have none.
#[test]
fn the_codes_of_the_legacy_era_leave_in_it_only() {
    let (mut peer, _) = Peer::legacy("2025-11-25");
    for (code, sent) in [(-32002, -32002), (-32042, -32042), (-32000, -32603), (-32019, -32603), (7, 7)] {
        let (ticket, _) = peer.admitted(&legacy("1", "tools/call", ""));
        peer.server.respond_error(ticket, code, "why", None, peer.now).expect("in flight");
        assert_eq!(peer.read(), [error("1", sent, "why")]);
        let replaced = peer.signals().contains(&Signal::CodeReplaced { ticket, code });
        assert_eq!(replaced, code != sent);
    }
    // META-04: the code for a missing capability is the modern era's.
    let (ticket, _) = peer.admitted(&legacy("1", "tools/call", ""));
    peer.server.respond_missing_capability(ticket, json(r#"{"roots":{}}"#).as_json(), peer.now).expect("in flight");
    assert!(peer.read()[0].contains(r#""code":-32602,"message":"Missing required client capability""#));
}

// META-08, MSG-12: a result that only the modern era has is an internal error towards a legacy client, and the handler is told.
#[test]
fn a_result_that_the_legacy_era_does_not_have_is_an_error() {
    let (mut peer, _) = Peer::legacy("2025-11-25");
    let (ticket, _) = peer.admitted(&legacy("1", "tools/call", ""));
    assert_eq!(peer.respond(ticket, r#"{"resultType":"input_required"}"#), Err(SendError::NotInThisEra));
    let (ticket, _) = peer.admitted(&legacy("2", "tools/call", ""));
    assert_eq!(peer.respond(ticket, "[]"), Err(SendError::InvalidResult));
    let lines = peer.read();
    assert_eq!(lines[0], error("1", -32603, "Internal error: the negotiated protocol version has no such result"));
    assert_eq!(lines[1], error("2", -32603, "Internal error: the handler gave no valid result"));
}

// SHD-05, SHD-06: the end is the same in both eras; a handshake that comes too late is refused.
#[test]
fn a_session_ends_with_serving() {
    let (mut peer, _) = Peer::legacy("2025-11-25");
    let (ticket, _) = peer.admitted(&legacy("1", "tools/call", ""));
    peer.server.stop(peer.now);
    assert_eq!(peer.send(&initialize("2", "2025-11-25")), Seen::Refused { id: "2".into(), code: -32603 });
    assert_eq!(
        peer.send(&legacy("3", "resources/subscribe", r#""uri":"a""#)),
        Seen::Refused { id: "3".into(), code: -32603 }
    );
    assert_eq!(peer.server.publish(mcp_wire::server::Change::ToolsList, peer.now), 0);
    peer.server.end_drain(peer.now);
    let shutting_down = |id| error(id, -32603, "Server shutting down");
    assert_eq!(peer.read(), [shutting_down("2"), shutting_down("3"), shutting_down("1")]);
    assert_eq!(peer.respond(ticket, "{}"), Ok(()));
    assert!(peer.server.ended().is_some());
}

#[test]
fn a_configuration_of_the_eras_that_contradicts_itself_is_refused() {
    let check = |change: fn(&mut Config)| {
        let mut config = dual();
        change(&mut config);
        Connection::new(config).err()
    };
    assert_eq!(check(|_| {}), None);
    assert_eq!(check(|c| c.versions.clear()), None);
    assert_eq!(check(|c| c.legacy_versions.clear()), None);
    let conflicts: [fn(&mut Config); 4] = [
        |c| {
            c.versions.clear();
            c.legacy_versions.clear();
        },
        |c| c.versions.push("2025-11-25".into()),
        |c| c.legacy_versions.push("2026-07-28".into()),
        |c| c.server_info = None,
    ];
    for change in conflicts {
        assert!(matches!(check(change), Some(ConfigError::Conflict { .. })));
    }
}
