//! What a request must be before a handler sees it, and in which order that is looked at.

use mcp_wire::server::{Config, Connection, Event, LogLevel};
use mcp_wire::{ConfigError, Instant, RecvBuffer};

use super::support::*;

const VERSION: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
const CAPABILITIES: &str = r#""io.modelcontextprotocol/clientCapabilities":{}"#;

fn with_meta(meta: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"_meta":{{{meta}}}}}}}"#)
}

/// The one line that answers.
fn answer(line: &str) -> String {
    let mut peer = Peer::default();
    let seen = peer.send(line);
    assert!(!matches!(seen, Seen::Request { .. }), "{line} reached a handler");
    assert_eq!(peer.signals(), []);
    let lines = peer.read();
    assert_eq!(lines.len(), 1, "{line}: {lines:?}");
    lines.into_iter().next().expect("one line")
}

// META-02, W-06: the first missing field is named; a wrong type counts as missing.
#[test]
fn missing_metadata_is_refused_by_name() {
    let missing = |field: &str| {
        error("7", -32602, &format!("Invalid params: missing _meta field io.modelcontextprotocol/{field}"))
    };
    for line in [
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":[]}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":7,"method":"server/discover"}"#.to_owned(),
        with_meta(""),
        with_meta(CAPABILITIES),
        with_meta(&format!(r#"{CAPABILITIES},"io.modelcontextprotocol/protocolVersion":20260728"#)),
        // Other prefixes and near misses are not the protocol's.
        with_meta(r#""protocolVersion":"2026-07-28","io.modelcontextprotocol/x":1"#),
    ] {
        assert_eq!(answer(&line), missing("protocolVersion"), "{line}");
    }
    for line in [
        with_meta(VERSION),
        with_meta(&format!(r#"{VERSION},"io.modelcontextprotocol/clientCapabilities":[]"#)),
        // The field before the version's value (META-07).
        with_meta(r#""io.modelcontextprotocol/protocolVersion":"1900-01-01""#),
    ] {
        assert_eq!(answer(&line), missing("clientCapabilities"), "{line}");
    }
    let line = with_meta(&format!(r#"{META},"io.modelcontextprotocol/clientInfo":"me""#));
    assert_eq!(answer(&line), missing("clientInfo"));
}

// MSG-14: params are an object or absent. Without an object there is no metadata either, which is looked at first.
#[test]
fn params_that_are_no_object_are_refused_with_the_id() {
    for params in ["[1]", "1", "\"x\"", "null", "true"] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
        assert!(answer(&line).starts_with(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"#), "{params}");
    }
}

// META-03, W-07: a version that is not served is refused with all that are, also for `server/discover`; legacy ones as well.
#[test]
fn a_version_that_is_not_served_is_refused_with_the_served_ones() {
    for (method, version) in
        [("tools/call", "1900-01-01"), ("server/discover", "2025-11-25"), ("subscriptions/listen", "2024-11-05")]
    {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}",{CAPABILITIES}}}}}}}"#
        );
        assert_eq!(
            answer(&line),
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":-32022,"message":"Unsupported protocol version","data":{{"supported":["2026-07-28"],"requested":"{version}"}}}}}}"#
            )
        );
    }
    let mut peer = Peer::with(|config| config.versions = vec!["2026-07-28".into(), "2027-01-01".into()]);
    peer.send(&with_meta(&format!(r#""io.modelcontextprotocol/protocolVersion":"x",{CAPABILITIES}"#)));
    assert!(peer.read()[0].contains(r#""supported":["2026-07-28","2027-01-01"]"#));
    let (ticket, _) =
        peer.admitted(&with_meta(&format!(r#""io.modelcontextprotocol/protocolVersion":"2027-01-01",{CAPABILITIES}"#)));
    peer.respond(ticket, "{}").expect("in flight");
}

// LIM-04: what the core echoes of a peer's text is bounded.
#[test]
fn the_echo_of_a_requested_version_is_bounded() {
    let version = "é".repeat(100_000);
    let line = with_meta(&format!(r#""io.modelcontextprotocol/protocolVersion":"{version}",{CAPABILITIES}"#));
    let line = answer(&line);
    assert!(line.len() < 1400, "{}", line.len());
    assert!(line.contains("éé"));
}

// LOG-02: the eight levels; another name or type is refused.
#[test]
fn an_unknown_log_level_is_refused() {
    for level in ["\"loud\"", "\"Info\"", "\"\"", "3", "null"] {
        let line = request_with_meta("7", "tools/call", &format!(r#""io.modelcontextprotocol/logLevel":{level}"#));
        assert_eq!(answer(&line), error("7", -32602, "Invalid params: unknown log level"));
    }
    for level in ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] {
        let line = request_with_meta("7", "tools/call", &format!(r#""io.modelcontextprotocol/logLevel":"{level}""#));
        Peer::default().admitted(&line);
    }
}

// META-07: a progress token is a string or an integer; LIM-03: one that is too long makes the frame unreadable.
#[test]
fn a_progress_token_of_another_type_is_refused() {
    for token in ["1.5", "null", "true", "{}", "[1]"] {
        let line = request_with_meta("7", "tools/call", &format!(r#""progressToken":{token}"#));
        assert_eq!(answer(&line), error("7", -32602, "Invalid params: progressToken must be a string or an integer"));
    }
    for token in [format!("\"{}\"", "t".repeat(1100)), "9".repeat(1100)] {
        let line = request_with_meta("7", "tools/call", &format!(r#""progressToken":{token}"#));
        assert_eq!(answer(&line), error("7", -32600, "Invalid Request"));
    }
    for token in ["\"\"", "0", "-3", "1e2", "\"\\u0061\""] {
        Peer::default().admitted(&request_with_meta("7", "tools/call", &format!(r#""progressToken":{token}"#)));
    }
}

// META-07: era before metadata before version before log level before token; the method is the handler's to know.
#[test]
fn the_checks_come_in_their_order() {
    let bad_level = r#""io.modelcontextprotocol/logLevel":"loud""#;
    let bad_version = r#""io.modelcontextprotocol/protocolVersion":"x""#;
    let bad_token = r#""progressToken":null"#;
    let code = |meta: &str| {
        let value: serde_json::Value = serde_json::from_str(&answer(&with_meta(meta))).expect("JSON");
        (value["error"]["code"].clone(), value["error"]["message"].as_str().unwrap_or_default().to_owned())
    };
    assert!(code(&format!("{bad_version},{bad_level},{bad_token}")).1.contains("missing"));
    assert_eq!(code(&format!("{bad_version},{CAPABILITIES},{bad_level},{bad_token}")).0, -32022);
    assert!(code(&format!("{META},{bad_level},{bad_token}")).1.contains("log level"));
    assert!(code(&format!("{META},{bad_token}")).1.contains("progressToken"));
    // An unknown method without metadata is refused for that; with it, it is the handler's.
    assert!(answer(r#"{"jsonrpc":"2.0","id":7,"method":"x/y"}"#).contains("-32602"));
    Peer::default().admitted(&request("7", "x/y", ""));
}

// META-07: rejections come before capacity: a full house is no excuse for a wrong request, and costs no permit.
#[test]
fn rejections_discover_and_ping_need_no_permit() {
    let mut peer = Peer::with(|config| (config.running_limit, config.waiting_limit) = (1, 0));
    peer.call("1");
    peer.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call"}"#);
    peer.send(&request("3", "server/discover", ""));
    peer.send(r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#);
    peer.send(&request("5", "tools/call", ""));
    let lines = peer.read();
    assert!(lines[0].contains("-32602"));
    assert!(lines[1].contains("supportedVersions"));
    assert!(lines[2].contains(r#""result":{}"#));
    assert_eq!(lines[3], error("5", -32603, "Server busy"));
}

// VER-12, W-17: before any era a ping is answered, in an era of its own or with a legacy progress token; notifications are ignored.
#[test]
fn a_ping_of_no_era_is_answered() {
    for params in ["", r#","params":{}"#, r#","params":{"_meta":{}}"#, r#","params":{"_meta":{"progressToken":1}}"#] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":"123","method":"ping"{params}}}"#);
        assert_eq!(answer(&line), r#"{"jsonrpc":"2.0","id":"123","result":{}}"#);
    }
    let mut peer = Peer::default();
    let seen = peer.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(seen, Seen::Notification { method: "notifications/initialized".into() });
    assert!(peer.read().is_empty());
    peer.call("1");
}

// VER-13, W-18: an `initialize` without a claim to be modern is refused with the versions, in the text and in the data.
#[test]
fn a_legacy_initialize_is_refused_with_the_versions() {
    let refused = |requested: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"error":{{"code":-32022,"message":"Unsupported protocol version; this server speaks 2026-07-28 without initialize","data":{{"supported":["2026-07-28"],"requested":"{requested}"}}}}}}"#
        )
    };
    let line = r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    assert_eq!(answer(line), refused("2025-11-25"));
    assert_eq!(answer(r#"{"jsonrpc":"2.0","id":2,"method":"initialize"}"#), refused(""));
    // A probe fixes nothing, and neither does an initialize (VER-11, case 200).
    let mut peer = Peer::default();
    peer.send(line);
    peer.call("3");
}

// VER-13, W-05: what the modern era has dropped is an unknown method there; W-06 without metadata.
#[test]
fn methods_of_the_legacy_era_are_unknown() {
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        assert_eq!(answer(&request("7", method, "")), error("7", -32601, "Method not found"));
    }
    for method in ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{"uri":"x"}}}}"#);
        assert!(answer(&line).contains("missing _meta field"), "{method}");
    }
}

// META-02: the metadata is found wherever it stands, and however an encoder spaces and escapes it.
#[test]
fn metadata_is_found_however_it_is_written() {
    const TIGHT: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    for params in [
        format!("{{{TIGHT}}}"),
        format!("{{{TIGHT},\"a\":1}}"),
        format!("{{\"a\":{{\"_meta\":1}},{TIGHT}}}"),
        format!("{{ {TIGHT} }}"),
        format!("{{{}}}", TIGHT.replace("\":", "\": ").replace(',', ", ")),
        format!("{{{}}}", TIGHT.replace(':', "\t:\t")),
        format!("{{{}}}", TIGHT.replace('/', "\\/")),
        format!("{{{}}}", TIGHT.replace("_meta", "\\u005fmeta").replace("2026", "\\u0032026")),
    ] {
        Peer::default().admitted(&format!(r#"{{"jsonrpc":"2.0","id":7,"method":"x","params":{params}}}"#));
    }
}

// RTE-10: nothing is inferred from earlier requests.
#[test]
fn each_request_is_judged_by_itself() {
    let mut peer = Peer::default();
    peer.call("1");
    let seen = peer.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}"#);
    assert_eq!(seen, Seen::Refused { id: "2".into(), code: -32602 });
}

// MSG-14, META-06: a handler gets the params as they came, and the fields of the metadata beside them.
#[test]
fn a_handler_gets_the_params_unchanged() {
    let params = format!(
        r#"{{ "a" : [1,  2],"_meta":{{{META},"io.modelcontextprotocol/clientInfo":{{"name":"c"}},"io.modelcontextprotocol\/logLevel":"error","traceparent":"00-1","progressToken":"p"}},"extra":null}}"#
    );
    let mut recv = RecvBuffer::default();
    recv.extend(format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\\u002fy\",\"params\":{params}}}\n").as_bytes());
    let mut server = Connection::new(Config::new("s", "1")).expect("a good configuration");
    let message = recv.next_frame().expect("a line").message();
    let Event::Request { request, .. } = server.handle(message, Instant::EPOCH) else { panic!("a request") };
    assert_eq!(request.params.get(), params);
    assert_eq!(request.method, "x/y");
    assert_eq!(request.version, "2026-07-28");
    assert_eq!(request.client_capabilities.expect("given").get(), "{}");
    assert_eq!(request.client_info.expect("given").get(), r#"{"name":"c"}"#);
    assert_eq!(request.log_level, Some(LogLevel::Error));
    assert!(request.wants_progress);
}

#[test]
fn a_configuration_that_contradicts_itself_is_refused() {
    let check = |change: fn(&mut Config)| {
        let mut config = config();
        change(&mut config);
        Connection::new(config).err()
    };
    assert_eq!(check(|_| {}), None);
    assert_eq!(check(|c| c.running_limit = 0), Some(ConfigError::ZeroLimit { field: "running_limit" }));
    assert_eq!(check(|c| c.queue_limit = 0), Some(ConfigError::ZeroLimit { field: "queue_limit" }));
    assert_eq!(check(|c| c.own_answers_limit = 0), Some(ConfigError::ZeroLimit { field: "own_answers_limit" }));
    assert_eq!(check(|c| c.line_limit = 0), Some(ConfigError::ZeroLimit { field: "line_limit" }));
    assert_eq!(check(|c| c.capabilities = json("[]")), Some(ConfigError::BadJson { field: "capabilities" }));
    assert_eq!(
        check(|c| c.server_info = Some(json(r#"{"name":"s"}"#))),
        Some(ConfigError::BadJson { field: "server_info" })
    );
    assert!(matches!(check(|c| c.versions.clear()), Some(ConfigError::Conflict { .. })));
    // META-03: a legacy version can never be claimed in `_meta`.
    assert!(matches!(check(|c| c.versions.push("2025-11-25".into())), Some(ConfigError::Conflict { .. })));
}
