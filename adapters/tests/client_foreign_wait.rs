//! A host that waits for every child of its own, as some frameworks do: the exits of servers are seen, their statuses may be anybody's, and nothing
//! hangs. One test, as it takes the children of all others in its process.

#![cfg(unix)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::rt::adapter::{CallError, ClientEvent, ServerCommand, StartFailedKind};
use crate::rt::block_on;
use crate::support::client::{builder, events_until, script};
use crate::support::in_time;
use serde_json::{Value, json};

// PRC-04, RST-05: a foreign `waitpid(-1)` takes the status or does not; closes, kills, crashes and restarts go on either way
#[test]
fn a_host_that_waits_for_all_children_takes_a_status_and_nothing_else() {
    block_on(async {
        static OVER: AtomicBool = AtomicBool::new(false);
        let reaper = std::thread::spawn(|| {
            let mut taken = 0;
            while !OVER.load(Ordering::Relaxed) {
                match rustix::process::wait(rustix::process::WaitOptions::empty()) {
                    Ok(_) => taken += 1,
                    // There is no child just now.
                    Err(_) => std::thread::yield_now(),
                }
            }
            taken
        });
        for round in 0..40 {
            let mut builder = builder().restarts(1).restart_delay(Duration::from_millis(1), Duration::from_millis(1));
            let mut events = builder.events();
            let body = if round % 2 == 0 { "discover; serve" } else { "discover; next; exit 3" };
            let client = in_time("the start", builder.spawn(script(body))).await.expect("it answers");
            match in_time("the call", client.call::<Value>("x", json!({}))).await {
                Ok(_) | Err(CallError::Failed { .. }) => {}
                other => panic!("{other:?}"),
            }
            let outcome = in_time("the end", if round % 4 < 2 { client.close() } else { client.kill() }).await;
            let outcome = outcome.expect("the driver runs");
            let seen = events_until(&mut events, "the end", |event| matches!(event, ClientEvent::Closed { .. })).await;
            assert!(seen.iter().any(|event| matches!(event, ClientEvent::Started { .. })), "{outcome:?}");
        }
        // It may be gone, and its id free, before there is anything to see its exit by.
        for _ in 0..40 {
            let error =
                in_time("the start", builder().spawn(ServerCommand::new("true"))).await.expect_err("it ends at once");
            assert_eq!(error.kind(), StartFailedKind::Exited, "{error}");
        }
        OVER.store(true, Ordering::Relaxed);
        // It may be in a wait, which ends with a child.
        let _ = std::process::Command::new("true").spawn();
        assert!(reaper.join().expect("it ends") > 0, "it did take some");
    });
}
