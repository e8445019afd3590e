//! The ways in which serving ends: the end of the input, a stop, a client that is gone, a future that is dropped.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::rt::adapter::Ended;
use crate::rt::{self, AsyncReadExt, block_on, block_on_threads};
use crate::support::in_time;
use crate::support::served::{Served, builder, none_alive, serve};
use crate::support::server::{code, request};

// SHD-05: after the end of the input a handler in flight still answers, and serving ends with it, not with the drain time
#[test]
fn the_end_of_input_waits_for_handlers() {
    block_on(async {
        let mut served = serve(builder().drain(Duration::from_secs(3600)), 4096);
        served.client.send(&request(1, "hold", json!({}))).await;
        served
            .client
            .send(&request("L1", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})))
            .await;
        assert_eq!(served.client.frame().await["method"], "notifications/subscriptions/acknowledged");
        served.client.close().await;
        // SUB-07: result, then cancellation, in this order
        let result = served.client.frame().await;
        assert_eq!((&result["id"], &result["result"]["resultType"]), (&json!("L1"), &json!("complete")));
        let cancelled = served.client.frame().await;
        assert_eq!(
            (&cancelled["method"], &cancelled["params"]["requestId"]),
            (&json!("notifications/cancelled"), &json!("L1"))
        );
        served.world.gate.add_permits(1);
        assert_eq!(served.client.frame().await["id"], 1);
        assert_eq!(served.ended().await, Ended::EndOfInput);
    });
}

// SHD-05: a handler that is stuck does not keep serving past the drain time
#[test]
fn the_drain_time_ends_a_stuck_handler() {
    block_on(async {
        let mut served = serve(builder().drain(Duration::from_millis(50)), 4096);
        served.client.send(&request(1, "hold", json!({}))).await;
        served.client.close().await;
        let frame = served.client.frame().await;
        assert_eq!((code(&frame), &frame["error"]["message"]), (Some(-32603), &json!("Server shutting down")));
        served.none_alive().await;
        assert_eq!(served.ended().await, Ended::EndOfInput);
    });
}

// case 210, case 212: the end before the first frame is a clean end
#[test]
fn an_empty_input_is_a_clean_end() {
    block_on(async {
        let mut served = serve(builder(), 4096);
        served.client.close().await;
        assert_eq!(served.client.rest().await, Vec::<Value>::new());
        assert_eq!(served.ended().await, Ended::EndOfInput);
    });
}

// SHD-06, case 217: stop() ends serving though the input stays open: W-12, W-02, W-20, the end
#[test]
fn stop_ends_serving_with_the_input_open() {
    block_on(async {
        let mut served = serve(builder().drain(Duration::from_millis(50)), 4096);
        served
            .client
            .send(&request("L1", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})))
            .await;
        served.client.send(&request(7, "hold", json!({}))).await;
        assert_eq!(served.client.frame().await["method"], "notifications/subscriptions/acknowledged");
        served.started(1).await;
        served.stop.stop();
        let frames = [served.client.frame().await, served.client.frame().await, served.client.frame().await];
        assert_eq!(frames[0]["id"], "L1");
        assert_eq!(frames[1]["method"], "notifications/cancelled");
        assert_eq!((&frames[2]["id"], code(&frames[2])), (&json!(7), Some(-32603)));
        assert_eq!(served.client.next().await, None);
        assert_eq!(served.ended().await, Ended::Stopped);
    });
}

// SHD-06: whenever stop() comes, also between a look and the sleep of the loop, it is not missed
#[test]
fn a_stop_from_another_thread_is_never_missed() {
    block_on_threads(async {
        for round in 0_u32..200 {
            let mut served = serve(builder(), 4096);
            served.client.send(&request(round, "echo", json!({}))).await;
            let stop = served.stop.clone();
            let stopper = std::thread::spawn(move || {
                (0..round % 50).for_each(|_| std::hint::spin_loop());
                stop.stop();
            });
            assert_eq!(served.ended().await, Ended::Stopped);
            stopper.join().expect("stop does not panic");
        }
    });
}

// SIGTERM: no drain for a handler that does not stop; what it owes is told
#[test]
fn terminate_waits_for_nobody() {
    block_on(async {
        let mut served = serve(builder().drain(Duration::from_secs(3600)), 4096);
        served.client.send(&request(1, "hold", json!({}))).await;
        served.started(1).await;
        served.stop.terminate();
        let frame = served.client.frame().await;
        assert_eq!((&frame["id"], &frame["error"]["message"]), (&json!(1), &json!("Server shutting down")));
        assert_eq!(served.ended().await, Ended::Stopped);
    });
}

// SHD-06, SHD-07: a client that does not read cannot keep a server that was told to end
#[test]
fn terminate_gives_up_on_a_client_that_does_not_read() {
    block_on(async {
        let mut served = serve(builder(), 1024);
        served.client.send(&request(1, "big", json!({"size": 100_000}))).await;
        let Served { client, serving, stop, .. } = served;
        let (mut reader, writer) = client.into_parts();
        // Of an answer that has begun to leave, the rest is owed too.
        in_time("the first byte", reader.read_exact(&mut [0])).await.expect("it answers");
        stop.terminate();
        let ended = in_time("the end", serving).await.expect("no error");
        assert_eq!(ended, Ended::PeerGone);
        drop((reader, writer));
    });
}

// SHD-07: a client that is gone ends serving without an error and without a panic
#[test]
fn a_vanished_client_ends_serving() {
    block_on(async {
        let served = serve(builder().drain(Duration::from_millis(50)), 4096);
        let Served { mut client, serving, world, .. } = served;
        client.send(&request(1, "until_cancelled", json!({}))).await;
        client.send(&request(2, "echo", json!({}))).await;
        client.frame().await;
        drop(client);
        let ended = in_time("the end", serving).await.expect("no error");
        // The end of its output and the end of its input came at once: which one was seen first makes no difference.
        assert!(matches!(ended, Ended::PeerGone | Ended::EndOfInput), "{ended:?}");
        in_time("the handler's end", async {
            while world.alive.load(Ordering::SeqCst) > 0 {
                rt::future::yield_now().await;
            }
        })
        .await;
    });
}

// SHD-07: dropping the future ends its handlers too, and leaves publishers with nothing to write to
#[test]
fn a_dropped_serve_leaves_no_task() {
    block_on(async {
        let mut served = serve(builder(), 4096);
        served.client.send(&request(1, "hold", json!({}))).await;
        served
            .client
            .send(&request("L", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})))
            .await;
        served.client.frame().await;
        assert_eq!(served.publisher.tools_changed(), 1);
        let Served { serving, world, publisher, .. } = served;
        serving.abort();
        none_alive(&world).await;
        assert_eq!(publisher.tools_changed(), 0);
    });
}
