//! A server whose client does not read, or not as fast: nothing is blocked, nothing that is owed is lost, memory is bounded.

use serde_json::{Value, json};

use crate::rt::adapter::Ended;
use crate::rt::{self, AsyncReadExt, AsyncWriteExt, block_on};
use crate::support::in_time;
use crate::support::served::{Served, builder, ids, serve};
use crate::support::server::{cancel, code, request};

// case 094, RTE-11: large answers to a client that reads nothing block neither timers nor cancellations; an answer cancelled before a byte
// of it was lent never comes
#[test]
fn a_client_that_does_not_read_is_still_listened_to() {
    block_on(async {
        let mut served = serve(builder(), 1024);
        for id in 0..10 {
            served.client.send(&request(id, "big", json!({"size": 1 << 20}))).await;
        }
        served.client.send(&request(99, "until_cancelled", json!({}))).await;
        served.started(11).await;
        // The pipe has been full since the first answer, and all the same:
        served.client.send(&cancel(99)).await;
        served.client.send(&cancel(9)).await;
        in_time("the cancellation", served.cancelled.recv()).await.expect("told");
        served.client.close().await;
        let frames = served.client.rest().await;
        assert_eq!(
            ids(&frames),
            (0..9).collect(),
            "the first one is being written; the last one was cancelled in time"
        );
        assert_eq!(served.ended().await, Ended::EndOfInput);
    });
}

// LIM-04: answers beyond the outgoing queue stay with their requests, none is lost, and memory stays bounded meanwhile
#[test]
fn answers_that_do_not_fit_are_owed() {
    block_on(async {
        let builder = builder().configure(|config| config.queue_limit = 64 << 10);
        let mut served = serve(builder, 1024);
        for id in 0..64 {
            served.client.send(&request(id, "big", json!({"size": 20_000}))).await;
        }
        served.started(64).await;
        // CAN-06: an owed answer of a cancelled request is not written
        served.client.send(&cancel(63)).await;
        served.client.send(&request(1000, "until_cancelled", json!({}))).await;
        served.client.send(&cancel(1000)).await;
        in_time("the cancellation", served.cancelled.recv()).await.expect("told");
        served.client.close().await;
        let frames = served.client.rest().await;
        assert_eq!(ids(&frames), (0..63).collect());
        assert!(frames.iter().all(|frame| frame["result"]["text"].as_str().map(str::len) == Some(20_000)));
        assert_eq!(served.ended().await, Ended::EndOfInput);
    });
}

// LIM-04: while the core's own answers have used up their budget reading pauses; it goes on once they are read, and nothing is lost
#[test]
fn reading_pauses_for_unread_refusals_and_goes_on() {
    block_on(async {
        let builder = builder().configure(|config| config.own_answers_limit = 4 << 10);
        let served = serve(builder, 256);
        let Served { client, serving, .. } = served;
        let (mut reader, mut writer) = client.into_parts();
        let sender = rt::spawn(async move {
            for id in 0..2000 {
                let line = json!({"jsonrpc": "2.0", "id": id, "method": "x"}).to_string() + "\n";
                writer.write_all(line.as_bytes()).await.expect("read sooner or later");
            }
            writer.close().await.expect("can be closed");
        });
        let mut text = String::new();
        in_time("all refusals", reader.read_to_string(&mut text)).await.expect("UTF-8");
        in_time("the sender", sender).await;
        let frames: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert!(frames.iter().all(|frame| code(frame) == Some(-32602)));
        assert_eq!(ids(&frames), (0..2000).collect());
        assert_eq!(in_time("the end", serving).await.expect("no error"), Ended::EndOfInput);
    });
}
