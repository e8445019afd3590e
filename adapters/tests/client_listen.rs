//! Subscriptions over a memory pipe: acknowledgment, events, lag, giving up, and every way in which they end.

use crate::rt::adapter::{CallError, Client, Filter, Listen, ListenEvent};
use crate::rt::block_on;
use crate::support::client::{Peer, builder};
use crate::support::in_time;
use mcp_wire::client::ListenEnd;
use serde_json::{Value, json};
use std::time::Duration;

fn acknowledgment(request: &Value, granted: &str) -> String {
    let id = &request["id"];
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{granted}}}}}"#
    )
}

fn updated(request: &Value, uri: &str) -> String {
    let id = &request["id"];
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"uri":"{uri}"}}}}"#
    )
}

fn tools_changed(request: &Value) -> String {
    let id = &request["id"];
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
    )
}

const GRANTED: &str = r#"{"toolsListChanged":true,"resourceSubscriptions":["demo://a"]}"#;

async fn open(client: &Client, peer: &mut Peer, capacity: usize) -> (Listen, Value) {
    let filter = Filter::default().tools_list_changed().resource("demo://a").prompts_list_changed();
    let opening = client.listen(filter).capacity(capacity).send();
    let request = peer.next().await;
    assert_eq!(request["method"], "subscriptions/listen");
    peer.say(&acknowledgment(&request, GRANTED)).await;
    (in_time("the acknowledgment", opening).await.expect("acknowledged"), request)
}

fn uri(event: &ListenEvent) -> String {
    let ListenEvent::Notification(note) = event else { panic!("{event:?}") };
    let params: Value = note.params.as_ref().expect("params").as_json().deserialize().expect("JSON");
    params["uri"].as_str().unwrap_or("none").to_owned()
}

// SUB-11: what was not granted is handed to the caller; RTE-04: events go to their listen only
#[test]
fn two_listens_get_their_own_events() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let (mut one, first) = open(&client, &mut peer, 8).await;
        let (mut two, second) = open(&client, &mut peer, 8).await;
        assert_eq!(*one.missing(), Filter::default().prompts_list_changed());
        assert_eq!(one.filter(), Filter::default().tools_list_changed().resource("demo://a"));
        peer.say(&updated(&second, "demo://a/two")).await;
        peer.say(&updated(&first, "demo://a/one")).await;
        assert_eq!(uri(&in_time("one's", one.next()).await.expect("an event")), "demo://a/one");
        assert_eq!(uri(&in_time("two's", two.next()).await.expect("an event")), "demo://a/two");
    });
}

// SUB-09: equal events that wait are merged, so a flood of one kind does not end a listen
#[test]
fn equal_pending_events_are_merged() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let (mut listen, request) = open(&client, &mut peer, 2).await;
        for _ in 0..100 {
            peer.say(&tools_changed(&request)).await;
        }
        peer.say(&updated(&request, "demo://a")).await;
        let first = in_time("an event", listen.next()).await.expect("an event");
        assert!(matches!(&first, ListenEvent::Notification(note) if note.method == "notifications/tools/list_changed"));
        // Later ones of the flood may come after the first was taken.
        let mut more = 0;
        while uri(&in_time("an event", listen.next()).await.expect("an event")) == "none" {
            more += 1;
        }
        assert!(more < 100);
    });
}

// SUB-09: capacity 4, 5 events unread: W-01 with the reason `lagged`, what is there can be read, then it ends as lagged
#[test]
fn a_consumer_that_does_not_keep_up_loses_its_listen() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let (mut listen, request) = open(&client, &mut peer, 4).await;
        for n in 0..5 {
            peer.say(&updated(&request, &format!("demo://a/{n}"))).await;
        }
        let cancelled = peer.next().await;
        assert_eq!(cancelled["params"], json!({"requestId": request["id"], "reason": "lagged"}));
        for n in 0..4 {
            assert_eq!(uri(&in_time("an event", listen.next()).await.expect("an event")), format!("demo://a/{n}"));
        }
        assert_eq!(in_time("the end", listen.next()).await, Some(ListenEvent::Ended(ListenEnd::Lagged)));
        assert_eq!(in_time("nothing more", listen.next()).await, None);
    });
}

// case 061: dropping a listen cancels it on the wire; before its acknowledgment too
#[test]
fn a_dropped_listen_is_cancelled() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let (listen, request) = open(&client, &mut peer, 4).await;
        drop(listen);
        assert_eq!(peer.next().await["params"], json!({"requestId": request["id"]}));
        let opening = client.listen(Filter::default().tools_list_changed()).send();
        let request = peer.next().await;
        drop(opening);
        assert_eq!(peer.next().await["params"], json!({"requestId": request["id"]}));
        assert_eq!(client.in_flight(), 0);
    });
}

// SUB-08, case 060: each way in which a listen ends is told once
#[test]
fn a_listen_tells_how_it_ended() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let (mut graceful, one) = open(&client, &mut peer, 4).await;
        let (mut torn, two) = open(&client, &mut peer, 4).await;
        let (mut cancelled, three) = open(&client, &mut peer, 4).await;
        let (mut closed, _) = open(&client, &mut peer, 4).await;
        peer.answer(&one, "{}").await;
        for id in [&one["id"], &two["id"]] {
            peer.say(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
            ))
            .await;
        }
        assert_eq!(in_time("graceful", graceful.next()).await, Some(ListenEvent::Ended(ListenEnd::Graceful)));
        assert_eq!(in_time("graceful", graceful.next()).await, None);
        assert_eq!(in_time("server", torn.next()).await, Some(ListenEvent::Ended(ListenEnd::Server)));
        cancelled.cancel("enough");
        assert_eq!(peer.next().await["params"], json!({"requestId": three["id"], "reason": "enough"}));
        assert_eq!(in_time("cancelled", cancelled.next()).await, Some(ListenEvent::Ended(ListenEnd::Cancelled)));
        let closing = client.close();
        assert_eq!(in_time("closed", closed.next()).await, Some(ListenEvent::Ended(ListenEnd::Closed)));
        drop(peer);
        in_time("the close", closing).await.expect("an outcome");
    });
}

// TMO-04: the deadline covers the time to the acknowledgment only; without one the listen fails and is cancelled
#[test]
fn a_listen_that_is_not_acknowledged_times_out() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let opening = client.listen(Filter::default().tools_list_changed()).timeout(Duration::from_millis(30)).send();
        let request = peer.next().await;
        let error = in_time("its end", opening).await.expect_err("no acknowledgment");
        assert!(matches!(&error, CallError::Failed { cause: mcp_wire::Cause::TimedOut, .. }), "{error:?}");
        assert_eq!(peer.next().await["params"], json!({"requestId": request["id"], "reason": "timeout"}));
    });
}

// SUB-12 on the client's side: an error before the acknowledgment is the error of the listen
#[test]
fn a_refused_listen_is_an_error() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let opening = client.listen(Filter::default().tools_list_changed()).send();
        let request = peer.next().await;
        let id = &request["id"];
        peer.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"busy"}}}}"#)).await;
        let error = in_time("its end", opening).await.expect_err("refused");
        assert!(matches!(error, CallError::Rpc { code: -32603, .. }), "{error:?}");
    });
}

// SHD-04: a listen does not keep the connection alive
#[test]
fn a_listen_ends_when_the_last_handle_is_dropped() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let (mut listen, _) = open(&client, &mut peer, 4).await;
        drop(client);
        assert_eq!(in_time("the end", listen.next()).await, Some(ListenEvent::Ended(ListenEnd::Closed)));
        assert!(peer.at_end().await);
    });
}
