//! Calls over a real process and over a memory pipe: results, errors, notifications, hooks, cancellation, timeouts, room.

mod client_support;

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client_support::{DISCOVER, Peer, builder, in_time, script};
use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_tokio::{CallError, Cause, Client, ClientEvent, Delivery, SendError};
use serde_json::{Value, json};

fn progress(token: &Value, n: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n}}}}}"#
    )
}

fn log(n: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"n":{n}}}}}"#)
}

fn token(request: &Value) -> &Value {
    &request["params"]["_meta"]["progressToken"]
}

#[tokio::test]
async fn a_call_to_a_real_process_and_a_clean_close() {
    let command = script("discover; next; answer '{\"sum\":42}'; serve");
    let client = in_time("the start", builder().spawn(command)).await.expect("it starts");
    assert_eq!(client.version().as_deref(), Some("2026-07-28"));
    let sum: Value = in_time("the call", client.call("tools/call", json!({"name": "add"}))).await.expect("a result");
    assert_eq!(sum, json!({"sum": 42}));
    let outcome = in_time("the close", client.close()).await.expect("an outcome");
    assert_eq!(outcome.exit, Some(ExitStatus::Code(0)));
}

#[tokio::test]
async fn an_error_response_is_the_error_of_its_call() {
    let (client, mut peer) = Peer::established(builder()).await;
    let (error, ()) = tokio::join!(client.call::<Value>("x", ()), async {
        let request = peer.next().await;
        let id = &request["id"];
        peer.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no","data":{{"a":1}}}}}}"#
        ))
        .await;
    });
    match error {
        Err(CallError::Rpc { code: -32602, message, data: Some(data) }) => {
            assert_eq!((message.as_str(), data.as_json().get()), ("no", r#"{"a":1}"#));
        }
        other => panic!("{other:?}"),
    }
}

// case 033: the payload crosses byte for byte; `input_required` is an error of the typed call only
#[tokio::test]
async fn raw_results_cross_unchanged_and_input_required_is_told_apart() {
    let (client, mut peer) = Peer::established(builder()).await;
    let result = r#"{ "n":9007199254740993,"f":1.0,"e":1E400, "resultType":"input_required"}"#;
    let (raw, typed, ()) = tokio::join!(client.call_raw("a", ()), client.call::<Value>("b", ()), async {
        for _ in 0..2 {
            let request = peer.next().await;
            peer.answer(&request, result).await;
        }
    });
    assert_eq!(raw.expect("a result").as_json().get(), result);
    match typed {
        Err(CallError::InputRequired(json)) => assert_eq!(json.as_json().get(), result),
        other => panic!("{other:?}"),
    }
}

// MSG-14: params that are no object are refused before anything is sent
#[tokio::test]
async fn params_must_be_an_object_or_nothing() {
    let (client, mut peer) = Peer::established(builder()).await;
    match client.call::<Value>("x", json!([1])).await {
        Err(CallError::Send(SendError::ParamsNotAnObject)) => {}
        other => panic!("{other:?}"),
    }
    client.notify("notifications/x", ()).expect("taken");
    let next = peer.next().await;
    assert_eq!(next, json!({"jsonrpc": "2.0", "method": "notifications/x"}), "nothing of the refused one was sent");
}

#[tokio::test]
async fn progress_comes_as_a_stream_before_the_result() {
    let (client, mut peer) = Peer::established(builder()).await;
    let mut call = client.request("tools/call", json!({"name": "sleep"})).progress().send();
    let request = peer.next().await;
    for n in 1..=3 {
        peer.say(&progress(token(&request), n)).await;
    }
    peer.answer(&request, "{}").await;
    let mut seen = Vec::new();
    while let Some(note) = in_time("a notification", call.next_notification()).await {
        let params: Value = note.params.expect("params").as_json().deserialize().expect("JSON");
        seen.push(params["progress"].as_u64().expect("a number"));
    }
    assert_eq!(seen, [1, 2, 3]);
    in_time("the result", call).await.expect("a result");
}

// PRG-07: unread notifications are bounded, the newest progress is there, and the result still arrives
#[tokio::test]
async fn unread_progress_never_fails_its_request() {
    let (client, mut peer) = Peer::established(builder()).await;
    let mut events = client.events();
    let mut call = client.request("x", ()).progress().send();
    let request = peer.next().await;
    for n in 1..=1000 {
        peer.say(&progress(token(&request), n)).await;
    }
    peer.answer(&request, "{}").await;
    client_support::events_until(&mut events, "the result", |e| matches!(e, ClientEvent::Result { .. })).await;
    assert_eq!(call.missed(), 1000 - 64);
    let mut last = 0;
    while let Some(note) = in_time("a notification", call.next_notification()).await {
        let params: Value = note.params.expect("params").as_json().deserialize().expect("JSON");
        last = params["progress"].as_u64().expect("a number");
    }
    assert_eq!(last, 1000);
    in_time("the result", call).await.expect("a result");
}

// case 090: ten thousand notifications that nobody reads do not block an answer
#[tokio::test]
async fn unread_notifications_of_the_connection_block_nobody() {
    let (client, mut peer) = Peer::established(builder()).await;
    let call = client.request("x", ()).send();
    let request = peer.next().await;
    for n in 0..10_000 {
        peer.say(&log(n)).await;
    }
    peer.answer(&request, "{}").await;
    in_time("the result", call).await.expect("a result");
    let mut notes = client.notifications();
    assert_eq!(notes.missed(), 10_000 - 1024, "the oldest were dropped, counted");
    let first = in_time("a notification", notes.next()).await.expect("one is there");
    assert_eq!(first.params.expect("params").as_json().get(), format!(r#"{{"n":{}}}"#, 10_000 - 1024));
    drop(client);
    let mut rest = 0;
    while in_time("the rest", notes.next()).await.is_some() {
        rest += 1;
    }
    assert_eq!(rest, 1023);
}

// RTE-07: what a server logs before it answers the probe is delivered
#[tokio::test]
async fn what_arrives_before_the_connection_is_established_is_not_lost() {
    let (send, seen) = mpsc::channel();
    let (client, mut peer) = Peer::new(builder().on_notification(move |note| _ = send.send(note.method)), 4096);
    peer.say(&log(1)).await;
    peer.next().await;
    peer.say(DISCOVER).await;
    in_time("established", client.established()).await.expect("established");
    assert_eq!(seen.try_recv().as_deref(), Ok("notifications/message"));
}

// case 098: a callback may send requests: no lock is held while it runs
#[tokio::test]
async fn a_callback_may_use_the_connection() {
    let slot: Arc<Mutex<Option<Client>>> = Arc::default();
    let (send, calls) = mpsc::channel();
    let callback = {
        let slot = Arc::clone(&slot);
        move |_| {
            if let Some(client) = slot.lock().expect("no panic").as_ref() {
                let _ = send.send(client.request("from/callback", ()).send());
            }
        }
    };
    let (client, mut peer) = Peer::established(builder().on_notification(callback)).await;
    *slot.lock().expect("no panic") = Some(client.clone());
    peer.say(&log(1)).await;
    let request = peer.next().await;
    assert_eq!(request["method"], "from/callback");
    peer.answer(&request, "{}").await;
    let call = calls.try_recv().expect("it was sent");
    in_time("the result", call).await.expect("a result");
    slot.lock().expect("no panic").take();
}

// case 113: a callback that panics is contained
#[tokio::test]
async fn a_panicking_callback_costs_one_notification() {
    let (send, seen) = mpsc::channel();
    let mut count = 0;
    let callback = move |_| {
        count += 1;
        assert_ne!(count, 1, "the first one panics");
        let _ = send.send(count);
    };
    let (client, mut peer) = Peer::established(builder().on_notification(callback)).await;
    let call = client.request("x", ()).send();
    let request = peer.next().await;
    peer.say(&log(1)).await;
    peer.say(&log(2)).await;
    peer.answer(&request, "{}").await;
    in_time("the result", call).await.expect("a result");
    assert_eq!(seen.try_recv(), Ok(2));
}

// RTE-12: the hook sees the progress of its request before the response of another one that follows on the wire is routed
#[tokio::test]
async fn an_inline_hook_runs_before_the_next_frame() {
    let (client, mut peer) = Peer::established(builder()).await;
    let (seen, probe) = (Arc::new(Mutex::new(Vec::new())), client.clone());
    let record = Arc::clone(&seen);
    let first = client
        .request("first", ())
        .progress()
        .on_notification_inline(move |method, params| {
            let n = params.expect("params").deserialize::<Value>()?["progress"].as_u64();
            // Both requests are in flight still: nothing behind this frame has been routed.
            record.lock().expect("no panic").push((method.to_owned(), n, probe.in_flight()));
            Ok(())
        })
        .send();
    let second = client.request("second", ()).send();
    let (one, two) = (peer.next().await, peer.next().await);
    let batch = format!(
        "{}\n{}\n",
        progress(token(&one), 5),
        format_args!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, two["id"])
    );
    peer.say(batch.trim_end()).await;
    in_time("the second", second).await.expect("a result");
    assert_eq!(*seen.lock().expect("no panic"), [("notifications/progress".to_owned(), Some(5), 2)]);
    peer.answer(&one, "{}").await;
    in_time("the first", first).await.expect("a result");
}

// RTE-12: an error or a panic in a hook cancels its request with the reason `lagged`, and nothing else
#[tokio::test]
async fn a_failing_hook_costs_its_request_only() {
    for panics in [false, true] {
        let (client, mut peer) = Peer::established(builder()).await;
        let failing = client
            .request("failing", ())
            .progress()
            .on_notification_inline(move |_, _| if panics { panic!("the hook panics") } else { Err("no".into()) })
            .send();
        let other = client.request("other", ()).send();
        let (one, two) = (peer.next().await, peer.next().await);
        peer.say(&progress(token(&one), 1)).await;
        let cancelled = peer.next().await;
        assert_eq!(
            (&cancelled["method"], &cancelled["params"]["requestId"]),
            (&json!("notifications/cancelled"), &one["id"])
        );
        match in_time("the failing one", failing).await {
            Err(CallError::Failed { cause: Cause::Overflow, delivery: Delivery::Started, .. }) => {}
            end => panic!("{end:?}"),
        }
        peer.answer(&two, "{}").await;
        in_time("the other", other).await.expect("a result");
    }
}

// CAN-04: dropping a call cancels it on the wire, without a reason; CAN-05: a late answer harms nobody
#[tokio::test]
async fn a_dropped_call_is_cancelled_on_the_wire() {
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
    let (next, ()) = tokio::join!(client.call::<Value>("next", ()), async {
        let request = peer.next().await;
        peer.answer(&request, "{}").await;
    });
    next.expect("a result");
}

// CAN-01: `cancel` carries its reason and the call says how it ended; twice is once
#[tokio::test]
async fn a_cancelled_call_ends_as_cancelled() {
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
}

// CAN-03: a request of which no byte left is withdrawn: neither it nor a cancellation is written
#[tokio::test]
async fn a_call_that_never_left_is_withdrawn() {
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
}

// TMO-01: at its deadline a request is cancelled with the reason `timeout` and ends as timed out
#[tokio::test]
async fn a_timeout_cancels_and_tells() {
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
}

// case 085: the error of a call that timed out names the answer with an unknown id that came meanwhile
#[tokio::test]
async fn a_timeout_shows_what_was_seen_meanwhile() {
    let (client, mut peer) = Peer::established(builder()).await;
    let call = client.request("x", ()).timeout(Duration::from_millis(200)).send();
    peer.next().await;
    peer.say(r#"{"jsonrpc":"2.0","id":9999,"result":{}}"#).await;
    let error = in_time("its end", call).await.expect_err("no answer");
    assert!(error.to_string().contains("9999"), "{error}");
}

// LIM: more calls than may be in flight wait for room in their order; `try_send` says that there is none
#[tokio::test]
async fn calls_beyond_the_limit_wait_for_their_turn() {
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
    tokio::join!(serving, collecting);
}

// CAN-03, CAN-04: a call that waits for room and is dropped or cancelled is never sent, and those behind it move up
#[tokio::test]
async fn a_waiting_call_can_be_given_up() {
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
}

// LIM-04: what waits for room is bounded too: at last a call is refused
#[tokio::test]
async fn a_caller_that_never_waits_is_refused_at_last() {
    let (client, _peer) = Peer::established(builder().in_flight_limit(1)).await;
    let mut calls: Vec<_> = (0..18).map(|_| client.request("x", ()).send()).collect();
    match in_time("the refusal", calls.pop().expect("the last one")).await {
        Err(CallError::Send(SendError::Full)) => {}
        end => panic!("{end:?}"),
    }
}

// SHD-03: at close everything pending ends with Closed at once, also what waits for room; later calls are refused; closes share one outcome
#[tokio::test]
async fn a_close_ends_everything_at_once() {
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
}

// case 159: the runtime goes away under a call: it resolves, and so does the close
#[test]
fn a_call_outlives_its_runtime_and_resolves() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let (client, peer) = runtime.block_on(Peer::established(builder()));
    let call = client.request("x", ()).send();
    let closed = client.closed();
    drop(runtime);
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    other.block_on(async {
        match in_time("its end", call).await {
            Err(CallError::Failed { cause: Cause::Closed, .. }) => {}
            end => panic!("{end:?}"),
        }
        let outcome = in_time("the close", closed).await;
        assert_eq!(outcome, Err(mcp_wire_tokio::CloseError::DriverStopped));
    });
    drop(peer);
}

// RTE-08: one tap shows everything in wire order
#[tokio::test]
async fn events_come_in_wire_order() {
    let (client, mut peer) = Peer::established(builder()).await;
    let mut events = client.events();
    let one = client.request("one", ()).progress().send();
    let two = client.request("two", ()).send();
    let (handle_one, handle_two) = (one.handle().expect("sent"), two.handle().expect("sent"));
    let (first, second) = (peer.next().await, peer.next().await);
    peer.say(&progress(token(&first), 1)).await;
    peer.answer(&second, "{}").await;
    peer.say(&progress(token(&first), 2)).await;
    peer.say("a banner").await;
    peer.answer(&first, "{}").await;
    in_time("one", one).await.expect("a result");
    in_time("two", two).await.expect("a result");
    let is = |event: &ClientEvent| match event {
        ClientEvent::Notification { of: Some(of), .. } if *of == handle_one => "progress of one",
        ClientEvent::Result { request, .. } if *request == handle_one => "result of one",
        ClientEvent::Result { request, .. } if *request == handle_two => "result of two",
        ClientEvent::Dropped { .. } => "dropped",
        _ => "something else",
    };
    let seen: Vec<_> = std::iter::from_fn(|| events.try_next()).map(|event| is(&event)).collect();
    assert_eq!(seen, ["progress of one", "result of two", "progress of one", "dropped", "result of one"]);
}
