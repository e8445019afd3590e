//! The life of a real server under a client: start, start-up errors, shutdown, restarts, lazy start, idle stop.

#![cfg(unix)]

use std::time::{Duration, Instant};

use crate::rt::adapter::{
    CallError, Cause, Client, ClientEvent, Delivery, Eras, Filter, ListenEvent, ServerCommand, StartFailedKind, Stderr,
};
use crate::rt::{self, block_on, block_on_threads, future};
use crate::support::client::{builder, events_until, exists, gone, script};
use crate::support::{in_time, until};
use mcp_wire::client::ListenEnd;
use mcp_wire::lifecycle::{EndReason, Escalation, ExitStatus};
use serde_json::Value;

const MS: fn(u64) -> Duration = Duration::from_millis;

// PRC-05, case 118: a missing program is a typed error that says what to do
#[test]
fn a_missing_program_is_a_start_error() {
    block_on(async {
        let mut builder = builder();
        let mut events = builder.events();
        let started = builder.spawn(ServerCommand::new("no-such-program-anywhere"));
        let error = in_time("the failure", started).await.expect_err("there is no such program");
        assert_eq!(error.kind(), StartFailedKind::NotFound);
        assert!(error.to_string().contains("no-such-program-anywhere"), "{error}");
        assert!(std::error::Error::source(&error).is_some());
        let seen = events_until(&mut events, "the end", |e| matches!(e, ClientEvent::Closed { .. })).await;
        assert!(
            matches!(seen.as_slice(), [ClientEvent::StartFailed { .. }, ClientEvent::Closed { exit: None, .. }]),
            "{seen:?}"
        );
    });
}

// RST-01, case 111: an exit before the handshake is told with its status and the end of standard error, and what was on stdout
#[test]
fn an_early_exit_is_explained() {
    block_on(async {
        let command = script("echo 'Cannot find module x' >&2; echo 'Traceback'; exit 3").stderr(Stderr::Lines);
        let error = in_time("the failure", builder().spawn(command)).await.expect_err("it exits");
        assert_eq!((error.kind(), error.exit()), (StartFailedKind::Exited, Some(ExitStatus::Code(3))));
        assert_eq!(error.stderr(), "Cannot find module x");
        assert_eq!(error.unreadable_lines(), ["Traceback"]);
        let text = error.to_string();
        assert!(
            text.contains("exit code 3") && text.contains("Cannot find module x") && text.contains("Traceback"),
            "{text}"
        );
    });
}

// case 122: the server exits at once, so the first write may hit a broken pipe: an error of the start, nothing worse
#[test]
fn a_server_that_exits_at_once_is_a_start_error() {
    block_on(async {
        for _ in 0..20 {
            let error =
                in_time("the failure", builder().spawn(ServerCommand::new("true"))).await.expect_err("it exits");
            assert_eq!((error.kind(), error.exit()), (StartFailedKind::Exited, Some(ExitStatus::Code(0))));
        }
    });
}

// case 124: standard output is closed and the process lives on: the start fails, and the process is ended by the ladder
#[test]
fn a_server_that_closes_its_output_is_ended() {
    block_on(async {
        let mut builder = builder().grace(MS(100));
        let mut events = builder.events();
        let command = script("exec 1>&-; exec sleep 1000");
        let error = in_time("the failure", builder.spawn(command)).await.expect_err("it never answers");
        assert_eq!(error.kind(), StartFailedKind::Exited);
        let seen = events_until(&mut events, "the end", |e| matches!(e, ClientEvent::Closed { .. })).await;
        let Some(ClientEvent::Started { pid, .. }) = seen.first() else { panic!("{seen:?}") };
        assert!(!exists(*pid), "spawn has ended the process when it fails");
    });
}

// VER-09: to a client that speaks the modern era alone, a server of an earlier revision is one clear error, and its process is ended
#[test]
fn a_legacy_server_is_a_clear_error() {
    block_on(async {
        let command = script(
            r#"next; say '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}'; serve"#,
        );
        let builder = builder().eras(Eras::Modern);
        let error = in_time("the failure", builder.spawn(command)).await.expect_err("a legacy server");
        assert_eq!(error.kind(), StartFailedKind::LegacyServer);
        assert!(error.to_string().contains("initialize"), "{error}");
    });
}

// RST-08: what waits for a start that fails gets its error
#[test]
fn a_start_error_ends_what_waits_for_it() {
    block_on(async {
        let client = builder().start(script("exit 1")).expect("a valid configuration");
        let calls: Vec<_> = (0..3).map(|_| client.request("x", ()).send()).collect();
        for call in calls {
            match in_time("its end", call).await {
                Err(CallError::Start(error)) => assert_eq!(error.kind(), StartFailedKind::Exited),
                end => panic!("{end:?}"),
            }
        }
        match in_time("a late call", client.call::<Value>("x", ())).await {
            Err(CallError::Start(_)) => {}
            end => panic!("{end:?}"),
        }
    });
}

// SHD-01, case 133: a cooperative server ends when its input is closed, without a signal, at once
#[test]
fn a_cooperative_server_ends_with_its_input() {
    block_on(async {
        let started = Instant::now();
        let client =
            in_time("the start", builder().spawn(script("discover; cat >/dev/null; exit 7"))).await.expect("starts");
        let outcome = in_time("the close", client.close()).await.expect("an outcome");
        assert_eq!((outcome.exit, outcome.escalation), (Some(ExitStatus::Code(7)), Escalation::None));
        assert_eq!(outcome.reason, EndReason::Asked);
        assert!(started.elapsed() < MS(1900), "no grace was used up");
    });
}

// SHD-01: a server that ignores the end of its input is terminated; one that ignores that is killed
#[test]
fn a_deaf_server_is_terminated_then_killed() {
    block_on(async {
        let deaf = script("discover; while :; do sleep 1000; done");
        let client = in_time("the start", builder().grace(MS(100)).spawn(deaf)).await.expect("starts");
        let outcome = in_time("the close", client.close()).await.expect("an outcome");
        assert_eq!((outcome.exit, outcome.escalation), (Some(ExitStatus::Signal(15)), Escalation::Terminate));

        let stubborn = script("trap '' TERM; discover; while :; do sleep 0.05; done");
        let client = in_time("the start", builder().grace(MS(100)).spawn(stubborn)).await.expect("starts");
        let outcome = in_time("the close", client.close()).await.expect("an outcome");
        assert_eq!((outcome.exit, outcome.escalation), (Some(ExitStatus::Signal(9)), Escalation::Kill));
    });
}

// SHD-04: kill ends the tree now, whatever the grace, also in the middle of a close
#[test]
fn a_kill_does_not_wait() {
    block_on(async {
        let command = script("trap '' TERM; discover; sleep 1000 & while :; do sleep 0.05; done");
        let client =
            in_time("the start", builder().grace(Duration::from_secs(600)).spawn(command)).await.expect("starts");
        let pid = client.pid().expect("a process");
        let closing = client.close();
        let outcome = in_time("the kill", client.kill()).await.expect("an outcome");
        assert_eq!((outcome.exit, outcome.escalation), (Some(ExitStatus::Signal(9)), Escalation::Kill));
        assert_eq!(in_time("the close", closing).await, Ok(outcome));
        assert!(!exists(pid));
    });
}

// SHD-04: dropping the last handle kills the tree without blocking, also outside a runtime, and leaves no zombie
#[test]
fn dropping_the_last_handle_kills() {
    block_on(async {
        let client =
            in_time("the start", builder().spawn(script("trap '' TERM; discover; sleep 1000"))).await.expect("starts");
        let pid = client.pid().expect("a process");
        let other = client.clone();
        drop(client);
        assert!(exists(pid), "a handle is left");
        std::thread::spawn(move || drop(other)).join().expect("no panic");
        until("the process is gone", || !exists(pid)).await;
    });
}

// SHD-04, case 161: the driver stands still or is gone when the last handle is dropped
#[test]
fn no_process_is_left_by_a_driver_that_nobody_polls() {
    for driver_first in [false, true] {
        let command = script("trap '' TERM; discover; sleep 1000");
        let (client, mut driver) = builder().start_parts(command).expect("a good configuration");
        block_on(future::or(async { (&mut driver).await }, async {
            in_time("the start", client.established()).await.expect("starts");
        }));
        let pid = client.pid().expect("a process");
        if driver_first {
            drop(driver);
            gone(pid);
            drop(client);
        } else {
            drop(client);
            gone(pid);
            drop(driver);
        }
    }
}

// PRC-05, case 154: the future of a start is dropped in the middle: nothing is left
#[test]
fn a_start_that_is_given_up_leaves_nothing() {
    block_on(async {
        for ms in [0, 1, 2, 5, 10] {
            let mut builder = builder();
            let mut events = builder.events();
            let start = builder.spawn(script("trap '' TERM; sleep 1000"));
            // The point at which it is dropped is the input of this test, not something that is waited for.
            assert!(rt::timeout(MS(ms), start).await.is_none(), "it never answers");
            let seen = events_until(&mut events, "the end", |e| matches!(e, ClientEvent::Closed { .. })).await;
            if let Some(ClientEvent::Started { pid, .. }) = seen.first() {
                until("the process is gone", || !exists(*pid)).await;
            }
        }
    });
}

// RST-01, RST-02, RST-03, SUB-10, VER-08: after a crash a new process; what may be sent again is, the rest ends; listens go on
#[test]
fn a_crash_is_followed_by_a_restart() {
    block_on(async {
        let dir = tempdir();
        let body = format!(
            r#"
ack() {{ say "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":$id}},\"notifications\":{{\"toolsListChanged\":true}}}}}}"; }}
if mkdir {dir}/lived 2>/dev/null; then
  discover; next; ack; next; next; exit 9
else
  while next; do case $line in *subscriptions/listen*) ack;; *'"id":'*) answer "{{\"again\":$id}}";; esac; done
fi"#
        );
        let mut builder = builder().restarts(3).restart_delay(MS(10), MS(20));
        let mut events = builder.events();
        let client = in_time("the start", builder.spawn(script(&body))).await.expect("starts");
        let first = client.pid().expect("a process");
        let mut listen = in_time("the listen", client.listen(Filter::default().tools_list_changed()).send())
            .await
            .expect("acknowledged");
        let risky = client.request("tools/call", ()).send();
        let safe = client.request("tools/list", ()).idempotent().send();
        match in_time("the risky one", risky).await {
            Err(CallError::Failed { cause: Cause::Closed, delivery: Delivery::Sent, .. }) => {}
            end => panic!("{end:?}"),
        }
        in_time("the safe one", safe).await.expect("answered by the new process");
        assert_eq!(in_time("the gap", listen.next()).await, Some(ListenEvent::Resubscribed));
        let during: Value = in_time("a later call", client.call("x", ())).await.expect("answered");
        assert!(during["again"].is_u64());
        assert_ne!(client.pid(), Some(first));
        assert_eq!(client.restarts(), 1);
        let outcome = in_time("the close", client.close()).await.expect("an outcome");
        assert_eq!((outcome.exit, outcome.restarts), (Some(ExitStatus::Code(0)), 1));
        assert_eq!(in_time("the end", listen.next()).await, Some(ListenEvent::Ended(ListenEnd::Closed)));
        let seen = events_until(&mut events, "the end", |e| matches!(e, ClientEvent::Closed { .. })).await;
        let restarted = ClientEvent::Restarted { restarts: 1, exit: ExitStatus::Code(9) };
        let at = seen.iter().position(|event| *event == restarted).unwrap_or_else(|| panic!("{seen:?}"));
        assert!(matches!(seen[at + 1], ClientEvent::Started { restarts: 1, .. }), "{seen:?}");
        assert!(matches!(seen[at + 2], ClientEvent::Era { .. }), "{seen:?}");
        std::fs::remove_dir_all(dir).expect("it is there");
    });
}

fn tempdir() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("mcp-wire-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let dir = std::env::temp_dir().join(name);
    std::fs::create_dir(&dir).expect("a fresh directory");
    dir.display().to_string()
}

// RST-01, RST-05, case 166: the budget is used up: the connection closes with the last status
#[test]
fn a_server_that_keeps_crashing_is_given_up() {
    block_on(async {
        let dir = tempdir();
        let mut builder = builder().restarts(2).restart_delay(MS(5), MS(10));
        let mut events = builder.events();
        // A later life is not probed: the verdict is kept (VER-08).
        let command = script(&format!("if mkdir {dir}/lived 2>/dev/null; then discover; fi; exit 4"));
        let client = in_time("the start", builder.spawn(command)).await.expect("starts");
        let outcome = in_time("the end", client.closed()).await.expect("an outcome");
        assert_eq!(
            (outcome.exit, outcome.restarts, outcome.reason),
            (Some(ExitStatus::Code(4)), 2, EndReason::Crashed)
        );
        let seen = events_until(&mut events, "the end", |e| matches!(e, ClientEvent::Closed { .. })).await;
        let starts = seen.iter().filter(|event| matches!(event, ClientEvent::Started { .. })).count();
        assert_eq!(starts, 3);
        std::fs::remove_dir_all(dir).expect("it is there");
    });
}

// RST-08: no process before the first request; ten callers that race start one
#[test]
fn a_lazy_server_is_started_once_by_the_first_request() {
    block_on_threads(async {
        let mut builder = builder().lazy(true);
        let mut events = builder.events();
        let client = in_time("nothing", builder.spawn(script("discover; serve"))).await.expect("a handle");
        assert_eq!((client.pid(), events.try_next()), (None, None));
        let callers: Vec<_> = (0..10)
            .map(|_| {
                let client = client.clone();
                rt::spawn(async move { client.call::<Value>("x", ()).await })
            })
            .collect();
        for caller in callers {
            in_time("an answer", caller).await.expect("a result");
        }
        in_time("the close", client.close()).await.expect("an outcome");
        let seen = events_until(&mut events, "the end", |e| matches!(e, ClientEvent::Closed { .. })).await;
        assert_eq!(seen.iter().filter(|event| matches!(event, ClientEvent::Started { .. })).count(), 1);
    });
}

// RST-08: no call, no process
#[test]
fn a_lazy_server_that_nobody_calls_is_never_started() {
    block_on(async {
        let client = in_time("nothing", builder().lazy(true).spawn(script("discover; serve"))).await.expect("a handle");
        let outcome = in_time("the close", client.close()).await.expect("an outcome");
        assert_eq!(outcome.exit, None);
    });
}

// RST-09: idle for its time, the server is stopped; the next request starts it again without a probe, and that is no restart
#[test]
fn an_idle_server_is_stopped_and_started_again() {
    block_on(async {
        let mut builder = builder().idle_stop(MS(30));
        let mut events = builder.events();
        // Ids go on, so a second life that is probed again would answer the probe with an empty result and fail.
        let client = in_time(
            "the start",
            builder.spawn(script("next; answer '{\"supportedVersions\":[\"2026-07-28\"]}'; serve")),
        )
        .await
        .expect("starts");
        let seen = events_until(&mut events, "the stop", |e| matches!(e, ClientEvent::IdleStopped { .. })).await;
        assert!(matches!(seen.last(), Some(ClientEvent::IdleStopped { exit: ExitStatus::Code(0) })), "{seen:?}");
        in_time("the answer", client.call::<Value>("x", ())).await.expect("a result");
        let seen = events_until(&mut events, "the start", |e| matches!(e, ClientEvent::Result { .. })).await;
        assert!(matches!(seen.first(), Some(ClientEvent::Started { restarts: 0, .. })), "{seen:?}");
        in_time("the close", client.close()).await.expect("an outcome");
    });
}

// PRC-03, case 137: the server exits by itself and leaves a helper in its group: nobody survives
#[test]
fn what_a_server_leaves_behind_is_ended() {
    block_on(async {
        let dir = tempdir();
        let body = format!("discover; sleep 1000 & echo $! > {dir}/helper; next; answer '{{}}'; exit 0");
        let client = in_time("the start", builder().spawn(script(&body))).await.expect("starts");
        in_time("the answer", client.call::<Value>("x", ())).await.expect("a result");
        let helper = std::fs::read_to_string(format!("{dir}/helper")).expect("written before the answer");
        let helper: u32 = helper.trim().parse().expect("a pid");
        in_time("the end", client.closed()).await.expect("an outcome");
        until("the helper is gone", || !alive(helper)).await;
        std::fs::remove_dir_all(dir).expect("it is there");
    });
}

/// Whether a process exists and is no zombie: the helper is an orphan that somebody else reaps.
fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

// RST-02, case 099, case 159: the server is killed under a call and under what is still queued: each resolves
#[test]
fn a_killed_server_leaves_no_call_waiting() {
    block_on(async {
        let client = in_time("the start", builder().spawn(script("discover; exec sleep 1000"))).await.expect("starts");
        let pid = client.pid().expect("a process");
        let big = "x".repeat(1 << 20);
        let calls: Vec<_> = (0..3).map(|_| client.request("x", serde_json::json!({ "big": big })).send()).collect();
        std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill runs");
        for call in calls {
            match in_time("its end", call).await {
                Err(CallError::Failed { cause: Cause::Closed, delivery, .. }) => assert_ne!(delivery, Delivery::Sent),
                end => panic!("{end:?}"),
            }
        }
        let outcome = in_time("the end", client.closed()).await.expect("an outcome");
        assert_eq!(outcome.exit, Some(ExitStatus::Signal(9)));
    });
}

// case 155, case 161: handles close from any task, in any order
#[test]
fn any_handle_may_close() {
    block_on(async {
        let start = || builder().spawn(script("discover; serve"));
        let (a, b): (Client, Client) =
            (in_time("a", start()).await.expect("starts"), in_time("b", start()).await.expect("starts"));
        let task = rt::spawn({
            let (a, b) = (a.clone(), b.clone());
            async move { (a.close().await, b.close().await) }
        });
        let (one, two) = in_time("the closes", task).await;
        assert_eq!((one, two), (in_time("a", a.close()).await, in_time("b", b.close()).await));
    });
}
