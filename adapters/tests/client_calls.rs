//! Calls over a real process and over a memory pipe: results, errors, notifications, hooks.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use crate::rt::adapter::{CallError, Cause, Client, ClientEvent, Delivery, SendError};
use crate::rt::{block_on, future};
use crate::support::client::{DISCOVER, Peer, builder, events_until};
use crate::support::in_time;
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

// Its server is a shell script.
#[cfg(unix)]
#[test]
fn a_call_to_a_real_process_and_a_clean_close() {
    block_on(async {
        let command = crate::support::client::script("discover; next; answer '{\"sum\":42}'; serve");
        let client = in_time("the start", builder().spawn(command)).await.expect("it starts");
        assert_eq!(client.version().as_deref(), Some("2026-07-28"));
        let sum: Value =
            in_time("the call", client.call("tools/call", json!({"name": "add"}))).await.expect("a result");
        assert_eq!(sum, json!({"sum": 42}));
        let outcome = in_time("the close", client.close()).await.expect("an outcome");
        assert_eq!(outcome.exit, Some(mcp_wire::lifecycle::ExitStatus::Code(0)));
    });
}

#[test]
fn an_error_response_is_the_error_of_its_call() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let (error, ()) = future::zip(client.call::<Value>("x", ()), async {
            let request = peer.next().await;
            let id = &request["id"];
            peer.say(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no","data":{{"a":1}}}}}}"#
            ))
            .await;
        })
        .await;
        match error {
            Err(CallError::Rpc { code: -32602, message, data: Some(data) }) => {
                assert_eq!((message.as_str(), data.as_json().get()), ("no", r#"{"a":1}"#));
            }
            other => panic!("{other:?}"),
        }
    });
}

// case 033: the payload crosses byte for byte; `input_required` is an error of the typed call only
#[test]
fn raw_results_cross_unchanged_and_input_required_is_told_apart() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let result = r#"{ "n":9007199254740993,"f":1.0,"e":1E400, "resultType":"input_required"}"#;
        let calls = future::zip(client.call_raw("a", ()), client.call::<Value>("b", ()));
        let ((raw, typed), ()) = future::zip(calls, async {
            for _ in 0..2 {
                let request = peer.next().await;
                peer.answer(&request, result).await;
            }
        })
        .await;
        assert_eq!(raw.expect("a result").as_json().get(), result);
        match typed {
            Err(CallError::InputRequired(json)) => assert_eq!(json.as_json().get(), result),
            other => panic!("{other:?}"),
        }
    });
}

// MSG-14: params that are no object are refused before anything is sent
#[test]
fn params_must_be_an_object_or_nothing() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        match client.call::<Value>("x", json!([1])).await {
            Err(CallError::Send(SendError::ParamsNotAnObject)) => {}
            other => panic!("{other:?}"),
        }
        client.notify("notifications/x", ()).expect("taken");
        let next = peer.next().await;
        assert_eq!(next, json!({"jsonrpc": "2.0", "method": "notifications/x"}), "nothing of the refused one was sent");
    });
}

#[test]
fn progress_comes_as_a_stream_before_the_result() {
    block_on(async {
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
    });
}

// PRG-07: unread notifications are bounded, the newest progress is there, and the result still arrives
#[test]
fn unread_progress_never_fails_its_request() {
    block_on(async {
        let (client, mut peer) = Peer::established(builder()).await;
        let mut events = client.events();
        let mut call = client.request("x", ()).progress().send();
        let request = peer.next().await;
        for n in 1..=1000 {
            peer.say(&progress(token(&request), n)).await;
        }
        peer.answer(&request, "{}").await;
        events_until(&mut events, "the result", |e| matches!(e, ClientEvent::Result { .. })).await;
        assert_eq!(call.missed(), 1000 - 64);
        let mut last = 0;
        while let Some(note) = in_time("a notification", call.next_notification()).await {
            let params: Value = note.params.expect("params").as_json().deserialize().expect("JSON");
            last = params["progress"].as_u64().expect("a number");
        }
        assert_eq!(last, 1000);
        in_time("the result", call).await.expect("a result");
    });
}

// case 090: ten thousand notifications that nobody reads do not block an answer
#[test]
fn unread_notifications_of_the_connection_block_nobody() {
    block_on(async {
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
    });
}

// RTE-07: what a server logs before it answers the probe is delivered
#[test]
fn what_arrives_before_the_connection_is_established_is_not_lost() {
    block_on(async {
        let (send, seen) = mpsc::channel();
        let (client, mut peer) = Peer::new(builder().on_notification(move |note| _ = send.send(note.method)), 4096);
        peer.say(&log(1)).await;
        peer.next().await;
        peer.say(DISCOVER).await;
        in_time("established", client.established()).await.expect("established");
        assert_eq!(seen.try_recv().as_deref(), Ok("notifications/message"));
    });
}

// case 098: a callback may send requests: no lock is held while it runs
#[test]
fn a_callback_may_use_the_connection() {
    block_on(async {
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
    });
}

// case 113: a callback that panics is contained
#[test]
fn a_panicking_callback_costs_one_notification() {
    block_on(async {
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
    });
}

// RTE-12: the hook sees the progress of its request before the response of another one that follows on the wire is routed
#[test]
fn an_inline_hook_runs_before_the_next_frame() {
    block_on(async {
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
    });
}

// RTE-12: an error or a panic in a hook cancels its request with the reason `lagged`, and nothing else
#[test]
fn a_failing_hook_costs_its_request_only() {
    block_on(async {
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
    });
}

// RTE-08: one tap shows everything in wire order
#[test]
fn events_come_in_wire_order() {
    block_on(async {
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
    });
}
