//! Many servers, many users of one, and a host that has plans of its own for its children.

#![cfg(unix)]

use std::time::{Duration, Instant};

use crate::rt::adapter::{Client, ClientEvent};
use crate::rt::{self, block_on};
use crate::support::client::{builder, events_until, exists, script};
use crate::support::{in_time, until};
use mcp_wire::lifecycle::Escalation;
use serde_json::{Value, json};

fn start(body: &str) -> Client {
    builder().grace(Duration::from_millis(500)).start(script(body)).expect("a good configuration")
}

// case 096: ten servers, the first of them silent: the others are up all the same, as fast as they are
#[test]
fn a_silent_server_holds_up_no_other() {
    block_on(async {
        let silent = start("exec sleep 1000");
        let others: Vec<Client> = (0..9).map(|_| start("discover; serve")).collect();
        for client in &others {
            in_time("the start", client.established()).await.expect("it answers");
        }
        assert!(silent.version().is_none(), "it waits for its probe, which has time for ten seconds");
        drop(silent);
    });
}

// SHD-01, case 158: three servers that are deaf are closed at the same time, which takes as long as for one
#[test]
fn closes_run_side_by_side() {
    block_on(async {
        let clients: Vec<Client> =
            (0..3).map(|_| start("trap '' TERM; discover; while :; do sleep 1000; done")).collect();
        for client in &clients {
            in_time("the start", client.established()).await.expect("it answers");
        }
        let begun = Instant::now();
        let closings: Vec<_> = clients.iter().map(|client| client.close()).collect();
        for closing in closings {
            let outcome = in_time("the close", closing).await.expect("it is killed");
            assert_eq!(outcome.escalation, Escalation::Kill);
        }
        // Two graces each: one second side by side, three one after the other.
        assert!(begun.elapsed() < Duration::from_millis(2900), "{:?}", begun.elapsed());
    });
}

// PRC-05, case 171: one server takes the place of another: when the close has returned, nothing of the old one is there
#[test]
fn a_replaced_server_is_gone_when_its_close_returns() {
    block_on(async {
        let old = start("discover; sleep 1000 & serve");
        in_time("the start", old.established()).await.expect("it answers");
        let pid = old.pid().expect("it runs");
        in_time("the close", old.close()).await.expect("it ends");
        assert!(!exists(pid), "neither alive nor a zombie");
        let new = start("discover; serve");
        in_time("the start", new.established()).await.expect("it answers");
        assert_ne!(new.pid(), Some(pid));
        in_time("the close", new.close()).await.expect("it ends");
    });
}

// RTE-01, case 180: ten users of one client share one process; each gets its own answers, and the last one ends it
#[test]
fn ten_users_share_one_server() {
    block_on(async {
        let mut builder = builder();
        let mut events = builder.events();
        // It answers with the parameters that it was given.
        let echo = r#"discover; while next; do params=${line#*'"params":'}; answer "{\"echo\":${params%\}}}"; done"#;
        let client = builder.lazy(true).start(script(echo)).expect("a good configuration");
        let users: Vec<_> = (0..10)
            .map(|user| {
                let client = client.clone();
                rt::spawn(async move {
                    for call in 0..10 {
                        let result: Value =
                            client.call("x", json!({"user": user, "call": call})).await.expect("an answer");
                        assert_eq!((&result["echo"]["user"], &result["echo"]["call"]), (&json!(user), &json!(call)));
                    }
                })
            })
            .collect();
        for user in users {
            in_time("a user", user).await;
        }
        let pid = client.pid().expect("it runs");
        drop(client);
        let seen = events_until(&mut events, "the end", |event| matches!(event, ClientEvent::Closed { .. })).await;
        assert_eq!(seen.iter().filter(|event| matches!(event, ClientEvent::Started { .. })).count(), 1, "{seen:?}");
        until("its process is gone", || !exists(pid)).await;
    });
}
