//! Listen streams: what they are granted, what they are told, how they end.

use mcp_wire::server::Change;

use super::support::*;

fn acknowledged(id: &str, granted: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{granted}}}}}"#
    )
}

fn event(id: &str, method: &str, rest: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}{rest}}}}}"#
    )
}

fn ended(id: &str) -> [String; 2] {
    [
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"requestId":{id},"reason":"server shutdown"}}}}"#
        ),
    ]
}

const TOOLS: &str = r#"{"toolsListChanged":true}"#;

// SUB-01, SUB-02, W-10: the acknowledgment comes first and names what is honoured, in the order of the schema, each URI once.
#[test]
fn the_acknowledgment_names_what_is_honoured() {
    let mut peer = Peer::default();
    let seen = peer.send(&listen(
        "\"L1\"",
        r#"{"resourceSubscriptions":["file:///b","file:///a","file:///b"],"promptsListChanged":true,"resourcesListChanged":true,"toolsListChanged":true,"other":1}"#,
    ));
    assert_eq!(seen, Seen::Handled);
    peer.server.publish(Change::ToolsList, peer.now);
    assert_eq!(
        peer.read(),
        [
            acknowledged("\"L1\"", r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///b","file:///a"]}"#),
            event("\"L1\"", "tools/list_changed", ""),
        ]
    );
    let mut peer = Peer::with(|config| {
        config.capabilities = json(r#"{"prompts":{"listChanged":true},"resources":{"listChanged":true}}"#);
    });
    peer.send(&listen(
        "1",
        r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a"]}"#,
    ));
    assert_eq!(peer.read(), [acknowledged("1", r#"{"promptsListChanged":true,"resourcesListChanged":true}"#)]);
    assert_eq!(peer.server.publish(Change::PromptsList, peer.now), 1);
    assert_eq!(peer.server.publish(Change::ResourcesList, peer.now), 1);
    assert_eq!(peer.server.publish(Change::Resource { subscribed: "a", uri: "a" }, peer.now), 0);
    assert_eq!(peer.read(), [event("1", "prompts/list_changed", ""), event("1", "resources/list_changed", "")]);
}

// SUB-12: an empty honoured filter still opens the stream.
#[test]
fn an_empty_filter_opens_a_stream() {
    let mut peer = Peer::default();
    for filter in
        ["{}", r#"{"toolsListChanged":false}"#, r#"{"promptsListChanged":true}"#, r#"{"resourceSubscriptions":[]}"#]
    {
        peer.send(&listen("1", filter));
        assert_eq!(peer.read(), [acknowledged("1", "{}")]);
        assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 0);
        peer.send(&cancel("1"));
    }
    assert!(peer.read().is_empty());
}

// SUB-03: nothing outside the filter; an update goes to who subscribed to the URI, and may name a part of it.
#[test]
fn nothing_outside_the_filter_is_sent() {
    let mut peer = Peer::default();
    peer.send(&listen("1", r#"{"resourceSubscriptions":["file:///a","file:///c"]}"#));
    peer.send(&listen("2", r#"{"resourceSubscriptions":["file:///b"]}"#));
    peer.read();
    assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 0);
    assert_eq!(peer.server.publish(Change::Resource { subscribed: "file:///x", uri: "file:///a" }, peer.now), 0);
    assert_eq!(peer.server.publish(Change::Resource { subscribed: "file:///a", uri: "file:///a#\"1" }, peer.now), 1);
    assert_eq!(peer.read(), [event("1", "resources/updated", r#","uri":"file:///a#\"1""#)]);
}

// SUB-04: each frame carries the id of the listen, type and token as they came.
#[test]
fn each_frame_carries_the_id_as_it_came() {
    let mut peer = Peer::default();
    for id in ["7", "\"7\"", "1e1", "\"\\u0061\""] {
        peer.send(&listen(id, TOOLS));
    }
    let mut lines = peer.read();
    assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 4);
    lines.extend(peer.read());
    peer.server.stop(peer.now);
    lines.extend(peer.read());
    let mut expected: Vec<String> = Vec::new();
    let ids = ["7", "\"7\"", "1e1", "\"\\u0061\""];
    expected.extend(ids.map(|id| acknowledged(id, TOOLS)));
    expected.extend(ids.map(|id| event(id, "tools/list_changed", "")));
    expected.extend(ids.into_iter().flat_map(ended));
    assert_eq!(lines, expected);
}

// SUB-05: no listen, no frame; several live side by side and end each on its own. SUB-06: after the cancellation nothing more comes.
#[test]
fn a_cancelled_listen_is_silent_and_the_others_go_on() {
    let mut peer = Peer::default();
    assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 0);
    peer.send(&listen("\"A\"", TOOLS));
    peer.send(&listen("\"B\"", TOOLS));
    assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 2);
    // Nothing of A was lent: its acknowledgment and its event are taken back.
    let seen = peer.send(&cancel("\"A\""));
    assert_eq!(seen, Seen::Cancellation { id: Some("\"A\"".into()), reason: None, applied: true });
    assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 1);
    let event = event("\"B\"", "tools/list_changed", "");
    assert_eq!(peer.read(), [acknowledged("\"B\"", TOOLS), event.clone(), event]);
    peer.server.end_of_input(peer.now);
    assert_eq!(peer.read(), ended("\"B\""));
    assert_eq!(peer.signals(), []);
}

// SUB-13: the text of a reason decides nothing.
#[test]
fn a_clients_reason_is_no_shutdown() {
    let mut peer = Peer::default();
    peer.send(&listen("1", TOOLS));
    peer.read();
    peer.send(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"server shutdown"}}"#,
    );
    peer.server.stop(peer.now);
    assert!(peer.read().is_empty());
}

// SUB-07, CAN-11, W-12, W-02: the server ends each stream with its result, then the cancellation, and only those it ends itself.
#[test]
fn the_server_ends_each_listen_with_a_result_and_a_cancellation() {
    for stop in [false, true] {
        let mut peer = Peer::default();
        for id in ["\"L1\"", "2", "3"] {
            peer.send(&listen(id, TOOLS));
        }
        peer.send(&cancel("2"));
        peer.read();
        if stop {
            peer.server.stop(peer.now);
        } else {
            peer.server.end_of_input(peer.now);
        }
        let expected: Vec<_> = ["\"L1\"", "3"].into_iter().flat_map(ended).collect();
        assert_eq!(peer.read(), expected);
        assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 0);
        assert!(peer.read().is_empty());
    }
}

// META-05: the result of a listen names the server as well.
#[test]
fn a_listen_result_names_the_server() {
    let mut peer = Peer::new(mcp_wire::server::Config::new("s", "1"));
    peer.send(&listen("\"L1\"", "{}"));
    peer.read();
    peer.server.stop(peer.now);
    assert_eq!(
        peer.read()[0],
        r#"{"jsonrpc":"2.0","id":"L1","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"L1","io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}"#
    );
}

// SUB-12: a listen needs no permit and has its own limit; over it an error comes, and no acknowledgment.
#[test]
fn listens_have_their_own_limit() {
    let mut peer = Peer::with(|config| (config.running_limit, config.waiting_limit, config.listen_limit) = (1, 0, 1));
    peer.call("1");
    peer.send(&listen("2", TOOLS));
    assert_eq!(peer.send(&listen("3", TOOLS)), Seen::Refused { id: "3".into(), code: -32603 });
    assert_eq!(peer.read(), [acknowledged("2", TOOLS), error("3", -32603, "Server busy")]);
    peer.send(&cancel("2"));
    peer.send(&listen("3", TOOLS));
    assert_eq!(peer.read(), [acknowledged("3", TOOLS)]);
}

// `notifications` of a listen is required, and a filter.
#[test]
fn a_listen_without_a_filter_is_refused() {
    let mut peer = Peer::default();
    for rest in [
        "",
        r#""notifications":null"#,
        r#""notifications":[]"#,
        r#""notifications":{"toolsListChanged":"yes"}"#,
        r#""notifications":{"promptsListChanged":1}"#,
        r#""notifications":{"resourceSubscriptions":"file:///a"}"#,
        r#""notifications":{"resourceSubscriptions":[1]}"#,
    ] {
        assert_eq!(
            peer.send(&request("1", "subscriptions/listen", rest)),
            Seen::Refused { id: "1".into(), code: -32602 },
            "{rest}"
        );
    }
    assert_eq!(peer.read().len(), 7);
}

// LIM-05: what listens keep is bounded, however many URIs they name.
#[test]
fn the_uris_of_all_listens_together_are_bounded() {
    let mut peer = Peer::with(|config| config.listen_bytes_limit = 1000);
    let uris = |n: usize| {
        let uris: Vec<_> = (0..n).map(|i| format!("\"u{i}\"")).collect();
        format!(r#"{{"resourceSubscriptions":[{}]}}"#, uris.join(","))
    };
    assert_eq!(peer.send(&listen("1", &uris(100_000))), Seen::Refused { id: "1".into(), code: -32603 });
    assert_eq!(peer.send(&listen("2", &uris(10))), Seen::Handled);
    assert_eq!(peer.send(&listen("3", &uris(10))), Seen::Refused { id: "3".into(), code: -32603 });
    peer.send(&cancel("2"));
    assert_eq!(peer.send(&listen("3", &uris(10))), Seen::Handled);
}

// LIM-04: a URI that no queue could hold is told to nobody, and holds nothing up.
#[test]
fn a_change_that_can_never_fit_is_not_told() {
    let mut peer = Peer::with(|config| config.queue_limit = 1000);
    peer.send(&listen("1", r#"{"resourceSubscriptions":["a"]}"#));
    peer.read();
    let uri = "u".repeat(2000);
    assert_eq!(peer.server.publish(Change::Resource { subscribed: "a", uri: &uri }, peer.now), 0);
    assert_eq!(peer.server.publish(Change::Resource { subscribed: "a", uri: "a" }, peer.now), 1);
    assert_eq!(peer.read(), [event("1", "resources/updated", r#","uri":"a""#)]);
}

// SUB-03, LIM-04: while the queue is half full equal changes are merged; none is lost, and none is told twice.
#[test]
fn changes_are_merged_while_the_peer_does_not_read() {
    let mut peer = Peer::with(|config| config.queue_limit = 10_000);
    peer.send(&listen("1", r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///a","file:///b"]}"#));
    for _ in 0..100_000 {
        assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 1);
    }
    let taken = peer.server.pending_output();
    assert!(taken < 5200, "{taken}");
    assert_eq!(peer.server.publish(Change::Resource { subscribed: "file:///a", uri: "file:///a#1" }, peer.now), 1);
    assert_eq!(peer.server.publish(Change::Resource { subscribed: "file:///a", uri: "file:///a#2" }, peer.now), 1);
    assert_eq!(peer.server.pending_output(), taken);
    let lines = peer.read();
    let merged = lines.len() - 2;
    assert!(lines[1..merged].iter().all(|line| *line == event("1", "tools/list_changed", "")));
    assert_eq!(
        lines[merged..],
        [event("1", "tools/list_changed", ""), event("1", "resources/updated", r#","uri":"file:///a""#)]
    );
    peer.server.publish(Change::ToolsList, peer.now);
    assert_eq!(peer.read(), [event("1", "tools/list_changed", "")]);
}
