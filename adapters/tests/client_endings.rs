//! How calls end without an answer: cancellation, timeouts, no room, the close of the connection.

use std::time::Duration;

use crate::rt::adapter::{CallError, Cause, ClientEvent, Delivery, SendError};
use crate::rt::{block_on, future};
use crate::support::client::{DISCOVER, Peer, builder};
use crate::support::in_time;
use serde_json::{Value, json};

// CAN-04: dropping a call cancels it on the wire, without a reason; CAN-05: a late answer harms nobody
#[test]
fn a_dropped_call_is_cancelled_on_the_wire() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let call = client.request("slow", ()).send();
        let request = peer.next().await;
        drop(call);
        let cancelled = peer.next().await;
        assert_eq!(cancelled["params"], json!({"requestId": request["id"]}));
        let mut events = client.events();
        peer.answer(&request, "{}").await;
        let event = in_time("an event", events.next()).await;
        assert!(
            matches!(&event, Some(ClientEvent::Dropped { reason, .. }) if reason.as_str() == "late_response"),
            "{event:?}"
        );
        let (next, ()) = future::zip(client.call::<Value>("next", ()), async {
            let request = peer.next().await;
            peer.answer(&request, "{}").await;
        })
        .await;
        next.expect("a result");
    });
}

// CAN-01: `cancel` carries its reason and the call says how it ended; twice is once
#[test]
fn a_cancelled_call_ends_as_cancelled() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let call = client.request("slow", ()).send();
        let request = peer.next().await;
        call.cancel("changed my mind");
        call.cancel("again");
        let cancelled = peer.next().await;
        assert_eq!(cancelled["params"], json!({"requestId": request["id"], "reason": "changed my mind"}));
        match in_time("its end", call).await {
            Err(CallError::Failed { cause: Cause::Cancelled, delivery: Delivery::Sent, .. }) => {}
            end => panic!("{end:?}"),
        }
        client.notify("notifications/marker", ()).expect("taken");
        assert_eq!(peer.next().await["method"], "notifications/marker", "one cancellation only");
    });
}

// CAN-03: a request of which no byte left is withdrawn: neither it nor a cancellation is written
#[test]
fn a_call_that_never_left_is_withdrawn() {
    block_on(async {
        let (client, mut peer) = Peer::new(builder(), 64 << 10);
        let dropped = client.request("dropped", ()).send();
        let kept = client.request("kept", ()).send();
        drop(dropped);
        peer.next().await;
        peer.say(DISCOVER).await;
        let request = peer.next().await;
        assert_eq!(request["method"], "kept");
        peer.answer(&request, "{}").await;
        in_time("the kept one", kept).await.expect("a result");
    });
}

// TMO-01: at its deadline a request is cancelled with the reason `timeout` and ends as timed out
#[test]
fn a_timeout_cancels_and_tells() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let short = client.request("short", ()).timeout(Duration::from_millis(30)).send();
        let long = client.request("long", ()).send();
        let (request, other) = (peer.next().await, peer.next().await);
        match in_time("its end", short).await {
            Err(CallError::Failed { cause: Cause::TimedOut, delivery: Delivery::Sent, .. }) => {}
            end => panic!("{end:?}"),
        }
        let cancelled = peer.next().await;
        assert_eq!(cancelled["params"], json!({"requestId": request["id"], "reason": "timeout"}));
        peer.answer(&other, "{}").await;
        in_time("the long one", long).await.expect("a result");
    });
}

// case 085: the error of a call that timed out names the answer with an unknown id that came meanwhile
#[test]
fn a_timeout_shows_what_was_seen_meanwhile() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let call = client.request("x", ()).timeout(Duration::from_millis(200)).send();
        peer.next().await;
        peer.say(r#"{"jsonrpc":"2.0","id":9999,"result":{}}"#).await;
        let error = in_time("its end", call).await.expect_err("no answer");
        assert!(error.to_string().contains("9999"), "{error}");
    });
}

// LIM: more calls than may be in flight wait for room in their order; `try_send` says that there is none
#[test]
fn calls_beyond_the_limit_wait_for_their_turn() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder().in_flight_limit(2)).await;
        let calls: Vec<_> = (0..20).map(|n| client.request("x", json!({"n": n})).send()).collect();
        match client.request("y", ()).try_send() {
            Err(CallError::Send(SendError::Full)) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(client.in_flight(), 2);
        let serving = async {
            for n in 0..20 {
                let request = peer.next().await;
                assert_eq!(request["params"]["n"], n);
                peer.answer(&request, &format!(r#"{{"n":{n}}}"#)).await;
            }
        };
        let collecting = async {
            for (n, call) in calls.into_iter().enumerate() {
                let result = in_time("a result", call).await.expect("a result");
                assert_eq!(result.as_json().get(), format!(r#"{{"n":{n}}}"#));
            }
        };
        future::zip(serving, collecting).await;
    });
}

// CAN-03, CAN-04: a call that waits for room and is dropped or cancelled is never sent, and those behind it move up
#[test]
fn a_waiting_call_can_be_given_up() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder().in_flight_limit(1)).await;
        let first = client.request("first", ()).send();
        let dropped = client.request("dropped", ()).send();
        let cancelled = client.request("cancelled", ()).send();
        let last = client.request("last", ()).send();
        drop(dropped);
        cancelled.cancel("no need");
        match in_time("its end", cancelled).await {
            Err(CallError::Failed { cause: Cause::Cancelled, delivery: Delivery::NotSent, .. }) => {}
            end => panic!("{end:?}"),
        }
        for expected in ["first", "last"] {
            let request = peer.next().await;
            assert_eq!(request["method"], expected);
            peer.answer(&request, "{}").await;
        }
        in_time("first", first).await.expect("a result");
        in_time("last", last).await.expect("a result");
    });
}

// LIM-04: what waits for room is bounded too: at last a call is refused
#[test]
fn a_caller_that_never_waits_is_refused_at_last() {
    block_on(async {
        let (client, _peer) = Peer::established(builder().in_flight_limit(1)).await;
        let mut calls: Vec<_> = (0..18).map(|_| client.request("x", ()).send()).collect();
        match in_time("the refusal", calls.pop().expect("the last one")).await {
            Err(CallError::Send(SendError::Full)) => {}
            end => panic!("{end:?}"),
        }
    });
}

// SHD-03: at close everything pending ends with Closed at once, also what waits for room; later calls are refused; closes share one outcome
#[test]
fn a_close_ends_everything_at_once() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder().in_flight_limit(1)).await;
        let sent = client.request("sent", ()).send();
        let waiting = client.request("waiting", ()).send();
        peer.next().await;
        let (one, two) = (client.close(), client.close());
        match in_time("the sent one", sent).await {
            Err(CallError::Failed { cause: Cause::Closed, delivery: Delivery::Sent, .. }) => {}
            end => panic!("{end:?}"),
        }
        match in_time("the waiting one", waiting).await {
            Err(CallError::Failed { cause: Cause::Closed, delivery: Delivery::NotSent, .. }) => {}
            end => panic!("{end:?}"),
        }
        match client.call::<Value>("late", ()).await {
            Err(CallError::Send(SendError::Closed)) => {}
            end => panic!("{end:?}"),
        }
        assert!(peer.at_end().await, "no cancellation is written at a close");
        drop(peer);
        let (one, two) = (in_time("one", one).await, in_time("two", two).await);
        assert_eq!(one, two);
        assert_eq!(in_time("a third", client.close()).await, one);
    });
}
