//! Ends of real servers under a client on Windows: close, kill, drop, the server's own exit. Compiled for each runtime, which `super::runtime` names.

use std::time::Duration;

use mcp_wire::lifecycle::{Escalation, ExitStatus};
use mcp_wire_driver::client::CallError;
use serde_json::Value;

use super::runtime::{Client, ClientEvent, builder, run};
use super::windows_support::{TempDir, helper_ends, helper_lives, misbehaving};

const MS: fn(u64) -> Duration = Duration::from_millis;
/// Nothing waits for it.
const NEVER: Duration = Duration::from_secs(600);

/// A server with a helper in its job that holds no pipe; the file that it holds, and its directory. `then` follows.
async fn with_helper(grace: Duration, then: &[&str]) -> (Client, String, TempDir) {
    let dir = TempDir::new();
    let file = dir.file("helper");
    let helper = format!("helper:{file}:-");
    let steps: Vec<&str> = [helper.as_str()].into_iter().chain(then.iter().copied()).collect();
    let client = builder().grace(grace).spawn(misbehaving(&steps)).await.expect("it starts");
    assert!(helper_lives(&file));
    (client, file, dir)
}

// SHD-01, case 133: a cooperative server ends when its input is closed, and its own status is told; PRC-03: what it leaves behind is ended
#[test]
fn a_cooperative_server_ends_with_its_input() {
    run(async {
        let (client, helper, _dir) = with_helper(NEVER, &["serve", "exit:7"]).await;
        let outcome = client.close().await.expect("an outcome");
        assert_eq!((outcome.exit, outcome.escalation), (Some(ExitStatus::Code(7)), Escalation::None));
        helper_ends(&helper);
    });
}

// SHD-01, case 189: no SIGTERM on Windows: after one grace a deaf server is killed, and nothing milder is tried
#[test]
fn a_deaf_server_is_killed() {
    run(async {
        let (client, helper, _dir) = with_helper(MS(200), &["serve", "sleep"]).await;
        let outcome = client.close().await.expect("an outcome");
        assert_eq!(outcome.escalation, Escalation::Kill);
        assert!(matches!(outcome.exit, Some(ExitStatus::Code(_))), "{outcome:?}");
        helper_ends(&helper);
    });
}

// SHD-04: kill ends the tree now, whatever the grace, also in the middle of a close
#[test]
fn a_kill_does_not_wait() {
    run(async {
        let (client, helper, _dir) = with_helper(NEVER, &["serve", "sleep"]).await;
        let closing = client.close();
        let outcome = client.kill().await.expect("an outcome");
        assert_eq!(outcome.escalation, Escalation::Kill);
        assert_eq!(closing.await, Ok(outcome));
        helper_ends(&helper);
    });
}

// SHD-04: dropping the last handle ends the tree, with nobody left who polls
#[test]
fn dropping_the_last_handle_kills() {
    run(async {
        let (client, helper, _dir) = with_helper(NEVER, &["serve", "sleep"]).await;
        let other = client.clone();
        drop(client);
        assert!(helper_lives(&helper), "a handle is left");
        std::thread::spawn(move || drop(other)).join().expect("no panic");
        // That blocks the only thread that polls.
        helper_ends(&helper);
    });
}

// PRC-03, RST-05: the server exits by itself: its calls end, its status is told, and what it leaves behind is ended
#[test]
fn an_exit_ends_calls_and_helpers() {
    run(async {
        let dir = TempDir::new();
        let file = dir.file("helper");
        let mut builder = builder();
        let mut events = builder.events();
        let command = misbehaving(&[&format!("helper:{file}:-"), "serve:2", "exit:3"]);
        let client = builder.spawn(command).await.expect("it starts");
        client.call::<Value>("x", ()).await.expect("the second that it answers");
        let end = client.call::<Value>("x", ()).await.expect_err("nobody answers");
        assert!(matches!(end, CallError::Failed { .. }), "{end:?}");
        helper_ends(&file);
        let exit = loop {
            if let ClientEvent::Closed { exit, escalation, .. } = events.next().await.expect("an end") {
                break (exit, escalation);
            }
        };
        assert_eq!(exit, (Some(ExitStatus::Code(3)), Escalation::None));
    });
}

// RST-01, RST-04: after a crash a new process, once nothing of the old is left
#[test]
fn a_crash_is_followed_by_a_restart() {
    run(async {
        let dir = TempDir::new();
        let (file, mark) = (dir.file("helper"), dir.file("mark"));
        let mut builder = builder().restarts(1).restart_delay(MS(1), MS(1));
        let mut events = builder.events();
        let (again, helper) = (format!("again:{mark}"), format!("helper:{file}:-"));
        let command = misbehaving(&[&again, &helper, "serve:2", "exit:5", "--", "serve"]);
        let client = builder.spawn(command).await.expect("it starts");
        client.call::<Value>("x", ()).await.expect("the first life answers once");
        let exit = loop {
            if let ClientEvent::Restarted { exit, .. } = events.next().await.expect("a restart") {
                break exit;
            }
        };
        assert_eq!(exit, ExitStatus::Code(5));
        assert!(!helper_lives(&file), "the old tree has gone before the new start");
        client.call::<Value>("x", ()).await.expect("the second life answers");
        let outcome = client.close().await.expect("an outcome");
        assert_eq!((outcome.exit, outcome.restarts), (Some(ExitStatus::Code(0)), 1));
    });
}
