//! Calls to a server: concurrency, cancellation, panics, order, what handlers say, and what a publisher tells.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::rt::adapter::{Ended, LogLevel};
use crate::rt::{block_on, block_on_threads};
use crate::support::in_time;
use crate::support::served::{builder, ids, serve};
use crate::support::server::{cancel, code, request, request_with};

#[test]
fn a_slow_handler_holds_up_nobody() {
    block_on(async {
        let mut served = serve(builder(), 4096);
        served.client.send(&request(1, "hold", json!({}))).await;
        served.client.send(&request("two", "echo", json!({"text": "hi"}))).await;
        let frame = served.client.frame().await;
        assert_eq!((&frame["id"], &frame["result"]["echo"]), (&json!("two"), &json!("hi")));
        assert_eq!(frame["result"]["resultType"], "complete"); // MSG-12
        served.world.gate.add_permits(1);
        assert_eq!(served.client.frame().await["id"], 1);
        served.client.close().await;
        assert_eq!(served.ended().await, Ended::EndOfInput);
    });
}

// case 092: the very first handler may speak before it answers. RTE-09: what it says precedes its answer, in order
#[test]
fn progress_precedes_the_answer_in_order() {
    block_on(async {
        let mut served = serve(builder(), 1 << 20);
        for round in 0..20 {
            let token = format!("t{round}");
            served
                .client
                .send(&request_with(round, "progress", json!({"steps": 10}), json!({"progressToken": token})))
                .await;
            let mut last = 0;
            loop {
                let frame = served.client.frame().await;
                if frame["id"] == round {
                    break;
                }
                assert_eq!(frame["method"], "notifications/progress");
                assert_eq!(frame["params"]["progressToken"], token);
                let step = frame["params"]["progress"].as_i64().expect("a number");
                assert!(step > last, "{step} after {last}");
                last = step;
            }
            assert_eq!(last, 10, "the last value survives (PRG-05)");
        }
    });
}

// RTE-09: emit after the answer ⇒ an error, and no byte
#[test]
fn a_call_that_outlives_its_handler_says_nothing() {
    block_on(async {
        let mut served = serve(builder(), 4096);
        let meta = json!({"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"});
        served.client.send(&request_with(1, "keep", json!({}), meta)).await;
        assert_eq!(served.client.frame().await["id"], 1);
        let kept = served.world.kept.lock().expect("no panic").take().expect("kept");
        assert!(kept.progress(1.0, None, None).is_err());
        assert!(kept.log(LogLevel::Error, None, "late").is_err());
        in_time("a call that is over", kept.cancelled()).await;
        served.client.close().await;
        assert_eq!(served.client.rest().await, Vec::<Value>::new());
    });
}

// LOG-01: only what the request asked for
#[test]
fn a_handler_logs_at_the_level_the_request_asked_for() {
    block_on(async {
        let mut served = serve(builder(), 4096);
        served.client.send(&request(1, "log", json!({}))).await;
        assert_eq!(served.client.frame().await["id"], 1);
        let meta = json!({"io.modelcontextprotocol/logLevel": "info"});
        served.client.send(&request_with(2, "log", json!({}), meta)).await;
        let frame = served.client.frame().await;
        assert_eq!((&frame["method"], &frame["params"]["data"]), (&json!("notifications/message"), &json!("seen")));
        assert_eq!(served.client.frame().await["id"], 2);
    });
}

// CAN-06: nothing more for a cancelled request, whatever its handler returns. CAN-07: the handler is told, with the reason
#[test]
fn a_cancelled_request_is_never_answered() {
    block_on(async {
        let mut served = serve(builder(), 4096);
        served.client.send(&request(1, "until_cancelled", json!({}))).await;
        served.client.send(&cancel(1)).await;
        let reason = in_time("the cancellation", served.cancelled.recv()).await.expect("told");
        assert_eq!(reason.as_deref(), Some("changed my mind"));
        served.client.send(&request(2, "echo", json!({}))).await;
        assert_eq!(served.client.frame().await["id"], 2);
        served.client.close().await;
        assert_eq!(served.client.rest().await, Vec::<Value>::new());
    });
}

// CAN-09: with all 256 permits taken a cancellation still gets through; the permit comes back, and a waiting request that is cancelled never starts
#[test]
fn a_cancellation_gets_through_a_full_house() {
    block_on(async {
        let mut served = serve(builder(), 64 << 10);
        for id in 0..256 {
            served.client.send(&request(id, "until_cancelled", json!({}))).await;
        }
        served.started(256).await;
        served.client.send(&request("waits", "until_cancelled", json!({}))).await;
        served.client.send(&request("next", "echo", json!({"text": "in"}))).await;
        served.client.send(&cancel("waits")).await;
        assert_eq!(served.world.started.load(Ordering::SeqCst), 256);
        served.client.send(&cancel(7)).await;
        let frame = served.client.frame().await;
        assert_eq!((&frame["id"], &frame["result"]["echo"]), (&json!("next"), &json!("in")));
        assert_eq!(
            served.world.started.load(Ordering::SeqCst),
            257,
            "the one that waited and was cancelled did not start"
        );
    });
}

// LIM-02: N = 2 and five requests: two run, two wait, one is refused at once
#[test]
fn beyond_the_limit_requests_wait_and_then_are_refused() {
    block_on(async {
        let mut served = serve(builder().max_in_flight(2), 64 << 10);
        for id in 1..=5 {
            served.client.send(&request(id, "hold", json!({}))).await;
        }
        let refused = served.client.frame().await;
        assert_eq!((&refused["id"], code(&refused)), (&json!(5), Some(-32603)));
        assert_eq!(served.world.started.load(Ordering::SeqCst), 2);
        served.world.gate.add_permits(4);
        let mut answered = Vec::new();
        for _ in 0..4 {
            answered.push(served.client.frame().await);
        }
        assert_eq!(ids(&answered), BTreeSet::from([1, 2, 3, 4]));
    });
}

// LIM-02, the option: a full house stops reading, and what waits in the pipe is served once there is room, though no byte arrives then
#[test]
fn a_house_that_pauses_when_full_refuses_nobody() {
    block_on_threads(async {
        let builder = builder().max_in_flight(2).configure(|config| config.pause_when_full = true);
        let mut served = serve(builder, 1 << 20);
        for id in 0..200 {
            served.client.send(&request(id, "hold", json!({}))).await;
        }
        served.world.gate.add_permits(200);
        let mut answered = Vec::new();
        for _ in 0..200 {
            answered.push(served.client.frame().await);
        }
        assert!(answered.iter().all(|frame| code(frame).is_none()), "none is refused");
        assert_eq!(ids(&answered).len(), 200);
    });
}

// case 223: a panic ends its request with -32603 and nothing else, whenever it comes
#[test]
fn a_panic_costs_its_request_only() {
    block_on(async {
        let mut served = serve(builder().max_in_flight(2), 4096);
        served.client.send(&request(0, "hold", json!({}))).await;
        for id in 1..=10 {
            let method = if id % 2 == 0 { "panic" } else { "panic_later" };
            served.client.send(&request(id, method, json!({}))).await;
            let frame = served.client.frame().await;
            assert_eq!((&frame["id"], code(&frame)), (&json!(id), Some(-32603)));
            assert!(!frame.to_string().contains("as the test wants"), "what a panic says stays here");
        }
        served.world.gate.add_permits(1);
        assert_eq!(served.client.frame().await["id"], 0);
        served.client.close().await;
        assert_eq!(served.ended().await, Ended::EndOfInput);
    });
}

// META-04: a capability that the client did not declare. MSG-11: a code that is not for applications leaves as -32603 with its message
#[test]
fn errors_of_handlers_leave_with_codes_that_are_theirs() {
    block_on(async {
        let mut served = serve(builder(), 4096);
        served.client.send(&request(1, "needs_sampling", json!({}))).await;
        let frame = served.client.frame().await;
        assert_eq!(code(&frame), Some(-32021));
        assert_eq!(frame["error"]["data"], json!({"requiredCapabilities": {"sampling": {}}}));
        let meta = json!({"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}});
        served.client.send(&request_with(2, "needs_sampling", json!({}), meta)).await;
        assert!(served.client.frame().await["result"].is_object());
        // RTE-10: nothing is inferred from an earlier request
        served.client.send(&request(3, "needs_sampling", json!({}))).await;
        assert_eq!(code(&served.client.frame().await), Some(-32021));
        served.client.send(&request(4, "forbidden_code", json!({}))).await;
        let frame = served.client.frame().await;
        assert_eq!((code(&frame), &frame["error"]["message"]), (Some(-32603), &json!("mine")));
        served.client.send(&request(5, "no_such_method", json!({}))).await;
        assert_eq!(code(&served.client.frame().await), Some(-32601));
    });
}

// SUB-05: a change goes to those who listen, and to nobody else
#[test]
fn a_publisher_tells_those_who_listen() {
    block_on(async {
        let mut served = serve(builder(), 4096);
        assert_eq!(served.publisher.tools_changed(), 0);
        served
            .client
            .send(&request("L", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})))
            .await;
        assert_eq!(served.client.frame().await["method"], "notifications/subscriptions/acknowledged");
        let publisher = served.publisher.clone();
        std::thread::spawn(move || publisher.tools_changed()).join().expect("no panic");
        let frame = served.client.frame().await;
        assert_eq!(frame["method"], "notifications/tools/list_changed");
        assert_eq!(frame["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "L");
    });
}
