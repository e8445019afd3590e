//! What a legacy session is told besides answers: changes, resource updates, logs, the progress of tasks.

use std::time::Duration;

use mcp_wire::SendError;
use mcp_wire::server::{Change, LogLevel, Ticket};

use super::support::*;

const TOOLS: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
const TOUCHED: Change<'_> = Change::Resource { subscribed: "a", uri: "a/b" };
const UPDATED: &str = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a/b"}}"#;

fn done(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

fn progress(value: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"p","progress":{value}}}}}"#
    )
}

// LEG-08: a list that the capabilities declare needs no subscription; kinds that they do not are not told.
#[test]
fn changes_of_lists_are_told_unasked() {
    let (mut peer, _) = Peer::legacy("2025-11-25");
    assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 1);
    assert_eq!(peer.server.publish(Change::PromptsList, peer.now), 0);
    assert_eq!(peer.server.publish(Change::ResourcesList, peer.now), 0);
    assert_eq!(peer.read(), [TOOLS]);
}

// LEG-08: before `initialized` a change is held back; then it is told, once.
#[test]
fn a_change_before_initialized_is_held_back() {
    let mut peer = Peer::new(dual());
    assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 0, "nobody is there");
    peer.open("2025-11-25");
    peer.send(&legacy("1", "resources/subscribe", r#""uri":"a""#));
    assert_eq!(peer.read().len(), 2);
    for _ in 0..3 {
        assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 1);
        assert_eq!(peer.server.publish(TOUCHED, peer.now), 1);
    }
    assert!(peer.read().is_empty());
    peer.send(INITIALIZED);
    let updated = UPDATED.replace("a/b", "a");
    assert_eq!(peer.read(), [TOOLS, updated.as_str()]);
    assert!(peer.read().is_empty());
    peer.server.publish(TOUCHED, peer.now);
    assert_eq!(peer.read(), [UPDATED]);
}

// LEG-08, SUB-05: a modern listen and a legacy session on one connection are told each in its own way.
#[test]
fn a_listen_and_a_session_live_side_by_side() {
    let (mut peer, _) = Peer::legacy("2025-11-25");
    peer.send(&listen("\"L\"", r#"{"toolsListChanged":true}"#));
    peer.read();
    assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 2);
    let lines = peer.read();
    assert!(lines[0].contains(r#""io.modelcontextprotocol/subscriptionId":"L""#));
    assert_eq!(lines[1], TOOLS);
    peer.send(&cancel("\"L\""));
    assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 1);
}

// SUB-03: an update reaches a legacy client that subscribed to the resource, once, until it unsubscribes.
#[test]
fn a_resource_is_told_of_while_it_is_subscribed_to() {
    let (mut peer, _) = Peer::legacy("2025-11-25");
    assert_eq!(peer.server.publish(TOUCHED, peer.now), 0);
    for id in ["1", "2"] {
        assert_eq!(peer.send(&legacy(id, "resources/subscribe", r#""uri":"a""#)), Seen::Handled);
    }
    assert_eq!(peer.read(), [done("1"), done("2")]);
    assert_eq!(peer.server.publish(TOUCHED, peer.now), 1);
    assert_eq!(peer.read(), [UPDATED]);
    for id in ["3", "4"] {
        peer.send(&legacy(id, "resources/unsubscribe", r#""uri":"a""#));
    }
    assert_eq!(peer.read(), [done("3"), done("4")]);
    assert_eq!(peer.server.publish(TOUCHED, peer.now), 0);
    assert_eq!(peer.send(&legacy("5", "resources/subscribe", "")), Seen::Refused { id: "5".into(), code: -32602 });
}

// LIM-05: what a session subscribes to is bounded, and comes back with the unsubscription.
#[test]
fn subscriptions_are_bounded() {
    let (mut peer, _) = Peer::legacy_with("2025-11-25", |config| config.listen_bytes_limit = 200);
    let mut send = |method: &str, uri: &str| peer.send(&legacy("1", method, &format!(r#""uri":"{uri}""#)));
    assert_eq!(send("resources/subscribe", "a"), Seen::Handled);
    assert_eq!(send("resources/subscribe", "b"), Seen::Handled);
    assert!(matches!(send("resources/subscribe", &"c".repeat(100)), Seen::Refused { code: -32603, .. }));
    send("resources/unsubscribe", "a");
    assert_eq!(send("resources/subscribe", "d"), Seen::Handled);
    assert_eq!(send("resources/subscribe", "e"), Seen::Handled);
    assert!(matches!(send("resources/subscribe", "f"), Seen::Refused { code: -32603, .. }));
}

// A method whose capability is not declared does not exist.
#[test]
fn without_the_capability_there_is_no_such_method() {
    let (mut peer, _) = Peer::legacy_with("2025-11-25", |config| config.capabilities = json(r#"{"tools":{}}"#));
    for (method, params) in [("logging/setLevel", r#""level":"info""#), ("resources/subscribe", r#""uri":"a""#)] {
        assert_eq!(peer.send(&legacy("1", method, params)), Seen::Refused { id: "1".into(), code: -32601 });
    }
    assert_eq!(peer.server.publish(Change::ToolsList, peer.now), 0);
}

fn log(peer: &mut Peer, ticket: Ticket, level: LogLevel) -> usize {
    peer.server.log(ticket, level, None, mcp_wire::Json::NULL, peer.now).expect("in flight");
    peer.read().len()
}

// LOG-01, LOG-02: in a legacy session the level is the session's: `info` unless configured otherwise, then what `logging/setLevel` says, also
// for requests that run already. It may come before `initialized`. A modern request beside it keeps its own.
#[test]
fn the_level_of_logs_is_the_sessions() {
    let mut peer = Peer::new(dual());
    peer.open("2025-11-25");
    peer.read();
    let (ticket, _) = peer.admitted(&legacy("1", "tools/call", ""));
    assert_eq!(log(&mut peer, ticket, LogLevel::Debug), 0);
    assert_eq!(log(&mut peer, ticket, LogLevel::Info), 1);
    assert_eq!(peer.send(&legacy("2", "logging/setLevel", r#""level":"error""#)), Seen::Handled);
    assert_eq!(peer.read(), [done("2")]);
    assert_eq!(log(&mut peer, ticket, LogLevel::Warning), 0);
    assert_eq!(log(&mut peer, ticket, LogLevel::Error), 1);
    let (modern, _) = peer.admitted(&request("3", "tools/call", ""));
    assert_eq!(log(&mut peer, modern, LogLevel::Emergency), 0);
    for level in [r#""level":"loud""#, r#""level":3"#, ""] {
        assert_eq!(peer.send(&legacy("4", "logging/setLevel", level)), Seen::Refused { id: "4".into(), code: -32602 });
    }

    let (mut peer, _) = Peer::legacy_with("2025-11-25", |config| config.legacy_log_level = None);
    let (ticket, _) = peer.admitted(&legacy("1", "tools/call", ""));
    assert_eq!(log(&mut peer, ticket, LogLevel::Emergency), 0);
    peer.send(&legacy("2", "logging/setLevel", r#""level":"debug""#));
    peer.read();
    assert_eq!(log(&mut peer, ticket, LogLevel::Debug), 1);
}

fn task(peer: &mut Peer, id: &str) -> Ticket {
    peer.admitted(&legacy(id, "tools/call", r#""task":{},"_meta":{"progressToken":"p"}"#)).0
}

// LEG-11: the token of a task lives until the task ends, after the answer that began it.
#[test]
fn a_task_reports_progress_after_its_first_result() {
    let (mut peer, _) = Peer::legacy_with("2025-11-25", |config| (config.running_limit, config.waiting_limit) = (1, 0));
    let ticket = task(&mut peer, "1");
    assert!(peer.server.begin_task(ticket));
    peer.report(ticket, 1.0).expect("in flight");
    peer.respond(ticket, r#"{"task":{"taskId":"t"}}"#).expect("in flight");
    // A cancellation goes by another way, so that of the request is late.
    assert_eq!(peer.read().len(), 2);
    assert!(matches!(peer.send(&cancel("1")), Seen::Cancellation { applied: false, .. }));
    peer.report(ticket, 2.0).expect("the task goes on");
    peer.report(ticket, 2.0).expect("not higher");
    assert_eq!(peer.read(), [progress(2)]);
    assert_eq!(peer.respond(ticket, "{}"), Err(SendError::Ended), "one answer");
    let log = peer.server.log(ticket, LogLevel::Error, None, mcp_wire::Json::NULL, peer.now);
    assert_eq!(log, Err(SendError::Ended), "RTE-09");
    // Its permit and its id are free, its slot is not.
    let other = task(&mut peer, "1");
    assert_ne!(other.slot(), ticket.slot());
    peer.report(ticket, 3.0).expect("the task goes on");
    peer.server.end_task(ticket, peer.now);
    assert_eq!(peer.read(), [progress(3)]);
    assert_eq!(peer.report(ticket, 4.0), Err(SendError::Ended));
    peer.server.end_task(ticket, peer.now);
    assert!(peer.read().is_empty());
}

// LEG-11: tasks are of one revision, take a token, and are bounded; those left end with serving.
#[test]
fn tasks_are_bounded_and_end_with_serving() {
    let (mut peer, _) = Peer::legacy("2025-06-18");
    let ticket = task(&mut peer, "1");
    assert!(!peer.server.begin_task(ticket));
    let (modern, _) = peer.admitted(&request_with_meta("2", "tools/call", r#""progressToken":"p""#));
    assert!(!peer.server.begin_task(modern));

    let (mut peer, _) = Peer::legacy_with("2025-11-25", |config| config.task_limit = 1);
    let (plain, _) = peer.admitted(&legacy("0", "tools/call", ""));
    assert!(!peer.server.begin_task(plain));
    let (first, second) = (task(&mut peer, "1"), task(&mut peer, "2"));
    assert!(peer.server.begin_task(first) && peer.server.begin_task(first));
    assert!(!peer.server.begin_task(second));
    peer.server.end_task(first, peer.now);
    assert!(peer.server.begin_task(second));
    for ticket in [plain, first, second] {
        peer.respond(ticket, "{}").expect("in flight");
    }
    peer.read();
    peer.server.end_of_input(peer.now);
    assert!(peer.server.ended().is_some(), "a task holds nothing up");
    assert_eq!(peer.report(second, 9.0), Err(SendError::Ended));
    peer.pass(Duration::from_secs(1));
    assert!(peer.read().is_empty());
}
