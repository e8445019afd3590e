//! Listens: the acknowledgment, routing by subscription id, and their ends.

use mcp_wire::client::{ListenEnd, Signal};
use mcp_wire::{DropReason, Filter, SendError, UnreadableReason};

use crate::support::{Client, META, Seen, cancelled_line, options};

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const UPDATED: &str = "notifications/resources/updated";

fn tools() -> Filter {
    Filter::default().tools_list_changed()
}

fn granted() -> &'static str {
    r#"{"toolsListChanged":true}"#
}

/// A client with an open listen of the id 2.
fn open() -> (Client, mcp_wire::client::Handle) {
    let mut client = Client::plain();
    let listen = client.listen(&tools());
    client.wire();
    assert!(matches!(client.acknowledge(2, granted()), Seen::Acknowledged(l, ..) if l == listen));
    (client, listen)
}

#[test]
fn a_listen_leaves_as_a_request_with_its_filter() {
    let mut client = Client::plain();
    client.listen(&tools().resource("file:///a\nb"));
    client.listen(&Filter::default());
    let line = |id: u64, filter: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"_meta":{{{META}}},"notifications":{filter}}}}}"#
        )
    };
    assert_eq!(
        client.wire(),
        [line(2, r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///a\nb"]}"#), line(3, "{}")]
    );
}

// SUB-11, case 063: the acknowledgment carries what was granted, and what was asked for and is missing.
#[test]
fn the_acknowledgment_shows_what_is_missing() {
    let mut client = Client::plain();
    let asked = tools().prompts_list_changed().resource("a").resource("b");
    let l = client.listen(&asked);
    client.wire();
    let notifications = r#"{"promptsListChanged":true,"resourceSubscriptions":["b"],"later":{"x":1}}"#;
    let missing = tools().resource("a");
    assert_eq!(client.acknowledge(2, notifications), Seen::Acknowledged(l, notifications.into(), missing));
    let granted = client.conn.granted(l).expect("it is acknowledged");
    assert!(granted.prompts_list_changed && !granted.tools_list_changed);
}

// RTE-04: with two listens each sees its own, by type and value of the id.
#[test]
fn each_listen_sees_its_own() {
    let mut client = Client::plain();
    let (a, b) = (client.listen(&tools()), client.listen(&tools()));
    client.wire();
    client.acknowledge(3, granted());
    client.acknowledge(2, granted());
    assert_eq!(client.change("2", TOOLS), Seen::Note(Some(a), TOOLS.into()));
    assert_eq!(client.change("3.0", TOOLS), Seen::Note(Some(b), TOOLS.into()));
    let unknown = |id: &str| Seen::Dropped(DropReason::UnknownSubscription, Some(id.into()), None);
    assert_eq!(client.change("\"2\"", TOOLS), unknown("\"2\""));
    assert_eq!(client.change("99", TOOLS), unknown("99"));
    assert_eq!(client.change("{}", TOOLS), Seen::Dropped(DropReason::UnknownSubscription, None, None));
}

// RTE-05: the id of a request that is no listen names no subscription.
#[test]
fn the_id_of_a_request_names_no_subscription() {
    let mut client = Client::plain();
    client.request("a");
    client.wire();
    let unknown = Seen::Dropped(DropReason::UnknownSubscription, Some("2".into()), None);
    assert_eq!(client.change("2", TOOLS), unknown);
    assert_eq!(client.acknowledge(2, granted()), unknown);
}

// case 058: what comes before the acknowledgment is dropped and reported; the listen goes on.
#[test]
fn an_event_before_the_acknowledgment_is_dropped() {
    let mut client = Client::plain();
    let l = client.listen(&tools());
    client.wire();
    let seen = client.change("2", TOOLS);
    assert_eq!(seen, Seen::Dropped(DropReason::NotAcknowledged, Some("2".into()), None));
    client.acknowledge(2, granted());
    assert_eq!(client.change("2", TOOLS), Seen::Note(Some(l), TOOLS.into()));
}

// SUB-11: kinds outside the grant are dropped and reported; kinds only, since the URI of a part is its own.
#[test]
fn kinds_outside_the_grant_are_dropped() {
    let mut client = Client::plain();
    let l = client.listen(&tools().resource("file:///a"));
    client.wire();
    client.acknowledge(2, r#"{"resourceSubscriptions":["file:///a"]}"#);
    let outside = Seen::Dropped(DropReason::OutsideFilter, Some("2".into()), None);
    for method in [TOOLS, PROMPTS, "notifications/resources/list_changed", "notifications/message"] {
        assert_eq!(client.change("2", method), outside, "{method}");
    }
    let params = r#"{"uri":"file:///a/part","_meta":{"io.modelcontextprotocol\/subscriptionId":2}}"#;
    assert_eq!(client.note(UPDATED, params), Seen::Note(Some(l), UPDATED.into()));
    assert_eq!(client.acknowledge(2, granted()), outside, "a second acknowledgment");
    assert_eq!(client.change("2", TOOLS), outside, "which changes nothing");
}

// A malformed acknowledgment opens nothing: the listen's clock goes on.
#[test]
fn a_malformed_acknowledgment_opens_nothing() {
    let mut client = Client::plain();
    client.listen(&tools());
    client.wire();
    let invalid = DropReason::Unreadable(UnreadableReason::InvalidMessage);
    for notifications in ["[]", "null", "3", r#"{"toolsListChanged":"yes"}"#] {
        assert_eq!(client.acknowledge(2, notifications), Seen::Dropped(invalid, Some("2".into()), None));
    }
    let seen = client.note("notifications/subscriptions/acknowledged", r#"{"notifications":{}}"#);
    assert_eq!(seen, Seen::Dropped(invalid, None, None), "it names no listen");
    client.pass(60_000);
    assert_eq!(client.signals().len(), 1);
}

// SUB-08, case 060: the result ends a listen gracefully; the cancellation that follows belongs to it and is ignored, once.
#[test]
fn a_result_ends_a_listen_gracefully() {
    let (mut client, l) = open();
    let result = r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#;
    assert_eq!(client.feed(result), Seen::ListenEnded(l, ListenEnd::Graceful));
    let second = r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"requestId":2,"reason":"server shutdown"}"#;
    assert_eq!(client.note("notifications/cancelled", second), Seen::Handled);
    let third = client.note("notifications/cancelled", second);
    assert_eq!(third, Seen::Dropped(DropReason::UnexpectedCancellation, Some("2".into()), None));
    assert!(client.signals().is_empty() && client.wire().is_empty());
}

// SUB-08: a cancellation without a result ends it by the server; a result after that is a second answer.
#[test]
fn a_cancellation_ends_a_listen_by_the_server() {
    let (mut client, l) = open();
    assert_eq!(client.note("notifications/cancelled", r#"{"requestId":2}"#), Seen::ListenEnded(l, ListenEnd::Server));
    assert_eq!(client.result(2), Seen::Dropped(DropReason::DuplicateResponse, Some("2".into()), None));
    assert!(client.conn.is_idle());
}

// SUB-08: the end of the output ends it as closed.
#[test]
fn the_end_of_the_output_ends_a_listen_as_closed() {
    let (mut client, l) = open();
    client.conn.lost(false, client.now);
    assert_eq!(client.signals(), [Signal::ListenEnded { listen: l, how: ListenEnd::Closed }]);
}

// An error before the acknowledgment is the answer of the listen; after it, the end of its stream.
#[test]
fn an_error_ends_a_listen() {
    let mut client = Client::plain();
    let l = client.listen(&tools());
    client.wire();
    assert_eq!(client.error("2", -32603), Seen::Error(l, -32603));
    let (mut client, l) = open();
    assert_eq!(client.error("2", -32603), Seen::ListenEnded(l, ListenEnd::Server));
}

// SUB-09: a listen whose consumer lags is cancelled with that reason.
#[test]
fn a_lagging_listen_is_cancelled() {
    let (mut client, l) = open();
    client.conn.overflow(l, client.now);
    assert_eq!(client.wire(), [cancelled_line(2, Some("lagged"))]);
    assert_eq!(client.signals(), [Signal::ListenEnded { listen: l, how: ListenEnd::Lagged }]);
}

// A listen has a limit of its own; room is told when one has ended.
#[test]
fn listens_have_a_limit_of_their_own() {
    let mut config = mcp_wire::client::Config::new("c", "1");
    config.listen_limit = 1;
    let mut client = Client::ready(config);
    let l = client.listen(&tools());
    client.wire();
    assert_eq!(client.conn.listen(&tools(), options(), client.now), Err(SendError::Full));
    client.request("a");
    assert!(client.signals().is_empty());
    client.cancel(l, None);
    assert_eq!(client.signals(), [Signal::ListenEnded { listen: l, how: ListenEnd::Cancelled }, Signal::Writable]);
    client.listen(&tools());
}
