//! The probe: what is asked first, and what each answer means.

use core::time::Duration;

use mcp_wire::client::{Config, Signal};
use mcp_wire::{Cause, ConfigError, ConnectionError, Delivery, DropReason, Eras, Instant, JsonBuf, SendError};

use crate::support::{Client, DISCOVERED, META, Seen, ended, established, json, ms, options, probe_line};

/// Of a client that speaks the modern era only.
fn config() -> Config {
    let mut config = Config::new("c", "1");
    config.speak(Eras::Modern);
    config
}

/// Opened, the probe with the server, nothing answered.
fn asked(config: Config) -> Client {
    let mut client = Client::new(config);
    client.open();
    assert_eq!(client.wire(), [probe_line(1)]);
    client
}

fn plain() -> Client {
    asked(config())
}

fn legacy(code: Option<i64>) -> Signal {
    Signal::Failed(ConnectionError::LegacyServer { code })
}

fn no_common(server: &[&str]) -> Signal {
    Signal::Failed(ConnectionError::NoCommonVersion {
        client: vec!["2026-07-28".into()],
        server: server.iter().map(ToString::to_string).collect(),
    })
}

// VER-02, VER-03, CAN-12, case 206: the probe is the first frame and alone until the version is known; what waits follows in its order.
#[test]
fn the_probe_comes_first_and_alone() {
    let mut client = Client::new(config());
    client.request("a");
    client.notify("notifications/x").expect("there is room");
    assert!(client.wire().is_empty(), "there is no stream yet");
    client.open();
    let b = client.request("b");
    assert_eq!(client.wire(), [probe_line(1)]);
    let c = client.request("c");
    client.cancel(b, None);
    assert!(client.wire().is_empty());
    assert_eq!(client.signals(), [ended(b, Cause::Cancelled, Delivery::NotSent)]);
    assert!(!client.conn.is_established() && client.conn.facts().is_none());
    assert_eq!(client.feed(DISCOVERED), Seen::Handled);
    assert_eq!(client.signals(), [established()]);
    assert!(client.conn.is_established());
    assert!(client.conn.facts().expect("the result is kept").result().get().contains("ttlMs"));
    assert_eq!(client.conn.version(), Some("2026-07-28"));
    let request = |id: u64, method: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{{{META}}}}}}}"#)
    };
    let note = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#.to_string();
    assert_eq!(client.wire(), [request(2, "a"), note, request(3, "c")]);
    assert!(matches!(client.result(3), Seen::Result(handle, ..) if handle == c));
}

// VER-03, case 196: a version error is that of a modern server: one more probe in a version that it names, with an id of its own.
#[test]
fn a_version_error_leads_to_one_more_probe() {
    let mut config = config();
    config.versions = vec!["2027-01-01".into(), "2026-07-28".into()];
    let mut client = Client::new(config);
    client.open();
    assert_eq!(client.wire(), [probe_line(1).replace("2026-07-28", "2027-01-01")]);
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"m","data":{"supported":["x","2026-07-28"],"requested":"2027-01-01"}}}"#;
    assert_eq!(client.feed(error), Seen::Handled);
    assert!(client.signals().is_empty());
    assert_eq!(client.wire(), [probe_line(2)]);
    assert_eq!(client.feed(&DISCOVERED.replace(r#""id":1"#, r#""id":2"#)), Seen::Handled);
    assert_eq!(client.signals(), [established()]);
    client.request("a");
    assert!(client.wire()[0].contains(r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#));
}

// VER-03: nothing in common, malformed data, or a second version error: an error that names both sides.
#[test]
fn no_common_version_is_final() {
    let error = |id: u64, data: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32022,"message":"m","data":{data}}}}}"#)
    };
    let mut client = plain();
    assert_eq!(client.feed(&error(1, r#"{"supported":["2026-09-01"]}"#)), Seen::Handled);
    assert_eq!(client.signals(), [no_common(&["2026-09-01"])]);
    let mut client = plain();
    client.feed(&error(1, "[]"));
    assert_eq!(client.signals(), [no_common(&[])]);
    let mut client = plain();
    client.feed(&DISCOVERED.replace(r#"["2026-07-28"]"#, r#"["2026-09-01"]"#));
    assert_eq!(client.signals(), [no_common(&["2026-09-01"])]);
    let mut client = plain();
    client.feed(&error(1, r#"{"supported":["2026-07-28"]}"#));
    client.wire();
    client.feed(&error(2, r#"{"supported":["2026-07-28"]}"#));
    assert_eq!(client.signals(), [no_common(&["2026-07-28"])]);
    assert_eq!(
        client.conn.error(),
        Some(&ConnectionError::NoCommonVersion {
            client: vec!["2026-07-28".into()],
            server: vec!["2026-07-28".into()]
        })
    );
}

// VER-04, VER-09, case 194: any other error means a legacy server; its id may be the probe's, null or absent. All that waits ends.
#[test]
fn any_other_error_is_one_clear_error() {
    for code in [-32601, -32602, -32600, -32000, 0, 42] {
        for id in ["\"id\":1,", "\"id\":null,", ""] {
            let mut client = Client::new(config());
            let a = client.request("a");
            client.open();
            client.wire();
            let line = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":{code},"message":"x"}}}}"#);
            assert_eq!(client.feed(&line), Seen::Handled, "{line}");
            assert_eq!(client.signals(), [legacy(Some(code)), ended(a, Cause::Closed, Delivery::NotSent)]);
            assert!(client.wire().is_empty());
            let refused = client.conn.request("b", None, options(), client.now);
            assert_eq!(refused, Err(SendError::Closed));
            client.pass(1_000_000);
            assert!(client.signals().is_empty() && client.conn.poll_timeout().is_none());
        }
    }
}

// VER-09: a result that is no discover result, readable or not, comes from a server that is not modern.
#[test]
fn a_result_of_another_shape_is_a_legacy_servers() {
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":"2026-07-28"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]"#,
    ] {
        let mut client = plain();
        client.feed(line);
        assert_eq!(client.signals(), [legacy(None)], "{line}");
    }
}

// VER-04, CAN-12, case 193: silence for the probe's time, counted from its first byte, is an answer too; nothing is cancelled on the wire.
#[test]
fn silence_is_an_answer() {
    let mut client = Client::new(config());
    client.open();
    client.pass(5000);
    client.wire();
    assert_eq!(client.conn.poll_timeout(), Some(Instant::from_epoch(ms(15_000))));
    client.note("notifications/message", "{}");
    client.pass(9999);
    assert!(client.signals().is_empty());
    client.pass(1);
    assert_eq!(client.signals(), [legacy(None)]);
    assert!(client.wire().is_empty());
}

// case 080: the start-up limit bounds everything from the opening, and tells whether the server had written anything; case 191: npx waits on
// stdin although told not to ask: what reads its input to the end before it answers has written nothing.
#[test]
fn the_start_up_limit_bounds_everything() {
    let run = |speaks: bool| {
        let mut config = config();
        (config.start_timeout, config.probe_timeout) = (ms(3000), Duration::MAX);
        let mut client = asked(config);
        if speaks {
            client.note("notifications/message", "{}");
        }
        client.pass(2999);
        assert!(client.signals().is_empty());
        client.pass(1);
        client.signals()
    };
    let timeout = |output_seen| Signal::Failed(ConnectionError::StartTimeout { output_seen });
    assert_eq!(run(true), [timeout(true)]);
    assert_eq!(run(false), [timeout(false)]);
    // A request's own timeout never shortens a start.
    let mut client = Client::new(config());
    client.request_with(|o| (o.timeout, o.queue_timeout) = (Some(ms(1)), Some(ms(1))));
    client.open();
    client.wire();
    client.pass(9000);
    assert!(client.signals().is_empty());
}

// VER-04, case 080: a host that slept over both limits fails the start at once, and a second look at the clock changes nothing.
#[test]
fn a_start_that_slept_over_both_limits_fails_at_once() {
    let mut config = Config::new("c", "1");
    (config.start_timeout, config.probe_timeout) = (ms(3000), ms(300));
    let mut client = Client::new(config);
    client.open();
    assert_eq!(client.wire().len(), 1);
    client.pass(60_000);
    assert_eq!(client.signals(), [Signal::Failed(ConnectionError::StartTimeout { output_seen: false })]);
    assert_eq!(client.conn.poll_timeout(), None);
    assert!(client.wire().is_empty(), "no handshake is begun that is too late already");
    client.pass(0);
    assert!(client.signals().is_empty());
}

// case 020: a server that frames with headers gets its own error at once; after the start it is one more unreadable line.
#[test]
fn header_framing_is_named_during_the_start() {
    let mut client = plain();
    let seen = client.feed("Content-Length: 38");
    assert!(matches!(seen, Seen::Dropped(DropReason::Unreadable(_), None, None)));
    assert_eq!(client.signals(), [Signal::Failed(ConnectionError::ContentLengthFraming)]);
    let mut client = Client::plain();
    client.feed("Content-Length: 38");
    assert!(client.signals().is_empty());
}

// RTE-01: a request of the server's is dropped also while the era is being probed.
#[test]
fn a_request_of_the_servers_is_dropped_during_the_probe() {
    let mut client = plain();
    let seen = client.feed(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    assert_eq!(seen, Seen::Dropped(DropReason::UnexpectedRequest, Some("1".into()), None));
    assert!(client.wire().is_empty() && client.signals().is_empty());
    assert_eq!(client.feed(DISCOVERED), Seen::Handled);
}

// An error without an id cannot be about a probe of which no byte was lent.
#[test]
fn an_error_before_the_probe_left_is_not_its_answer() {
    let mut client = Client::new(config());
    client.open();
    let seen = client.error("null", -32700);
    assert_eq!(seen, Seen::Dropped(DropReason::UnattributedError, None, Some(-32700)));
    assert_eq!(client.feed(DISCOVERED), Seen::Dropped(DropReason::UnknownId, Some("1".into()), None));
    assert!(client.signals().is_empty());
}

// VER-08, case 203: a restart keeps the verdict and probes no second time; a verdict can be supplied.
#[test]
fn a_verdict_is_kept_and_can_be_supplied() {
    let mut client = Client::plain();
    client.conn.lost(true, client.now);
    assert!(!client.conn.is_established());
    client.open();
    assert_eq!(client.signals(), [established()]);
    assert!(client.wire().is_empty());
    let mut config = config();
    config.known_version = Some("2026-07-28".into());
    let mut client = Client::new(config);
    client.request("a");
    client.open();
    assert_eq!(client.signals(), [established()]);
    assert!(client.wire()[0].contains(r#""id":1,"method":"a""#));
}

// VER-08: if a supplied verdict does not hold, the caller gets its error and the server is probed after all.
#[test]
fn a_verdict_that_does_not_hold_is_probed() {
    let mut config = config();
    config.known_version = Some("2026-07-28".into());
    let mut client = Client::new(config);
    client.open();
    client.signals();
    let (a, b) = (client.request("a"), client.request("b"));
    client.wire();
    assert_eq!(client.error("1", -32022), Seen::Error(a, -32022));
    let c = client.request("c");
    assert_eq!(client.wire(), [probe_line(3)]);
    assert!(matches!(client.result(2), Seen::Result(handle, ..) if handle == b));
    client.feed(&DISCOVERED.replace(r#""id":1"#, r#""id":3"#));
    assert_eq!(client.signals(), [established()]);
    assert!(client.wire()[0].contains(r#""method":"c""#));
    assert!(matches!(client.error("4", -32022), Seen::Error(handle, _) if handle == c));
    assert!(client.wire().is_empty(), "once borne out, an error goes to the caller only");
}

#[test]
fn a_configuration_that_contradicts_itself_is_refused() {
    let refused = |change: fn(&mut Config)| {
        let mut config = config();
        change(&mut config);
        mcp_wire::client::Connection::new(config).expect_err("it contradicts itself")
    };
    assert_eq!(refused(|c| c.in_flight_limit = 0), ConfigError::ZeroLimit { field: "in_flight_limit" });
    assert_eq!(refused(|c| c.own_answers_limit = 0), ConfigError::ZeroLimit { field: "own_answers_limit" });
    assert_eq!(refused(|c| c.queue_limit = 0), ConfigError::ZeroLimit { field: "queue_limit" });
    let bad = |field| ConfigError::BadJson { field };
    assert_eq!(refused(|c| c.capabilities = JsonBuf::from(json("[]"))), bad("capabilities"));
    assert_eq!(refused(|c| c.client_info = Some(JsonBuf::from(json("3")))), bad("client_info"));
    assert!(matches!(refused(|c| c.versions.clear()), ConfigError::Conflict { .. }));
    assert!(matches!(refused(|c| c.known_version = Some("x".into())), ConfigError::Conflict { .. }));
}
