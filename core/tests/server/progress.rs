//! What handlers tell while they run: progress and log messages.

use std::time::Duration;

use mcp_wire::server::LogLevel;
use mcp_wire::{Json, SendError};

use super::support::*;

fn progress(value: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"p","progress":{value}}}}}"#
    )
}

fn log(level: &str, data: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":{data}}}}}"#)
}

fn logging(peer: &mut Peer, level: &str) -> mcp_wire::server::Ticket {
    let meta = format!(r#""io.modelcontextprotocol/logLevel":"{level}""#);
    peer.admitted(&request_with_meta("1", "tools/call", &meta)).0
}

// PRG-02: only a request that gave a token gets progress, under the token as it came.
#[test]
fn progress_goes_only_to_a_request_with_a_token() {
    let mut peer = Peer::default();
    let without = peer.call("1");
    assert_eq!(peer.report(without, 1.0), Ok(()));
    assert!(peer.read().is_empty());
    for token in ["7", "1.0", "\"\\u0061\""] {
        let line = request_with_meta("2", "tools/call", &format!(r#""progressToken":{token}"#));
        let (ticket, _) = peer.admitted(&line);
        peer.server.progress(ticket, 1.0, Some(2.5), Some("a\nb"), peer.now).expect("in flight");
        assert_eq!(
            peer.read(),
            [format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1,"total":2.5,"message":"a\nb"}}}}"#
            )]
        );
        peer.respond(ticket, "{}").expect("in flight");
        peer.read();
    }
}

// PRG-03: progress strictly increases; what does not is dropped, what is no finite number is refused.
#[test]
fn progress_strictly_increases() {
    let mut peer = Peer::default();
    let ticket = peer.call_with_token("1");
    let mut lines = Vec::new();
    for value in [-1.5, 1.0, 1.0, 0.5, 2.0, 9_007_199_254_740_993.0] {
        peer.report(ticket, value).expect("in flight");
        lines.extend(peer.read());
    }
    assert_eq!(lines, [progress("-1.5"), progress("1"), progress("2"), progress("9007199254740992")]);
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(peer.report(ticket, value), Err(SendError::NotJson));
        assert_eq!(peer.server.progress(ticket, 2e300, Some(value), None, peer.now), Err(SendError::NotJson));
    }
    peer.report(ticket, 1.5e300).expect("a refused value counts for nothing");
    let line: serde_json::Value = serde_json::from_str(&peer.read()[0]).expect("JSON");
    assert_eq!(line["params"]["progress"], 1.5e300);
}

// PRG-05: while the previous report is unwritten the newest replaces it; a frame that is lent stays.
#[test]
fn the_newest_report_replaces_one_that_is_unwritten() {
    let mut peer = Peer::default();
    let ticket = peer.call_with_token("1");
    for value in 1..=100_000 {
        peer.report(ticket, f64::from(value)).expect("in flight");
    }
    assert_eq!(peer.server.pending_output(), progress("100000").len() + 1);
    assert_eq!(peer.server.output(peer.now).len(), progress("100000").len() + 1);
    peer.report(ticket, 100_001.0).expect("in flight");
    peer.report(ticket, 100_002.0).expect("in flight");
    assert_eq!(peer.read(), [progress("100000"), progress("100002")]);
}

// PRG-05: with a writer that keeps up nothing is coalesced up to 1000 a second.
#[test]
fn a_thousand_reports_a_second_are_not_coalesced() {
    let mut peer = Peer::default();
    let ticket = peer.call_with_token("1");
    for value in 0..3000 {
        peer.report(ticket, f64::from(value)).expect("in flight");
        assert_eq!(peer.read(), [progress(&value.to_string())]);
        peer.pass(Duration::from_millis(1));
    }
}

// PRG-05: over 1000 a second the newest of each moment is kept and sent by a timer; the last value survives.
#[test]
fn a_flood_of_reports_is_thinned_and_the_last_value_survives() {
    let mut peer = Peer::default();
    let ticket = peer.call_with_token("1");
    let mut lines = Vec::new();
    for value in 0..99_950 {
        peer.report(ticket, f64::from(value)).expect("in flight");
        lines.extend(peer.read());
        peer.now = peer.now.checked_add(Duration::from_micros(10)).expect("in range");
        if peer.server.poll_timeout().is_some_and(|due| due <= peer.now) {
            peer.server.handle_timeout(peer.now);
            lines.extend(peer.read());
        }
    }
    assert!((900..=1001).contains(&lines.len()), "{}", lines.len());
    assert_ne!(lines.last(), Some(&progress("99949")));
    let due = peer.server.poll_timeout().expect("the newest is kept");
    peer.now = due;
    peer.server.handle_timeout(due);
    assert_eq!(peer.read(), [progress("99949")]);
    assert_eq!(peer.server.poll_timeout(), None);
    peer.server.handle_timeout(due);
    assert!(peer.read().is_empty());
}

// PRG-04, PRG-05, RTE-09: the report that is kept back precedes the answer, and nothing follows it.
#[test]
fn the_newest_report_precedes_the_answer() {
    let mut peer = Peer::default();
    let ticket = peer.call_with_token("1");
    for value in 0..150 {
        peer.report(ticket, f64::from(value)).expect("in flight");
        peer.read();
    }
    peer.respond(ticket, "{}").expect("in flight");
    assert_eq!(peer.server.poll_timeout(), None);
    assert_eq!(peer.read(), [progress("149"), empty_result("1")]);
    peer.pass(Duration::from_secs(1));
    assert!(peer.read().is_empty());
    let ticket = peer.call_with_token("1");
    for value in 0..150 {
        peer.report(ticket, f64::from(value)).expect("in flight");
        peer.read();
    }
    peer.server.abandon(ticket, peer.now).expect("in flight");
    assert_eq!(peer.read(), [progress("149"), error("1", -32603, "Internal error")]);
}

// PRG-05, LIM-04: without room the newest report is kept, bounded, and follows when there is some.
#[test]
fn a_report_without_room_follows_later() {
    let mut peer = Peer::with(|config| config.queue_limit = 1000);
    let filler = peer.call("9");
    let ticket = peer.call_with_token("1");
    peer.respond(filler, &format!(r#"{{"resultType":"complete","a":"{}"}}"#, "x".repeat(900))).expect("it fits");
    let long = "m".repeat(5000);
    for value in 1..=10 {
        let sent = peer.server.progress(ticket, f64::from(value), None, Some("text"), peer.now);
        assert_eq!(sent, Ok(()));
    }
    assert_eq!(
        peer.server.progress(ticket, 10.5, None, Some(&long), peer.now),
        Err(SendError::TooLarge { size: 5000 + 112, limit: 1000 })
    );
    assert_eq!(peer.server.poll_timeout(), None, "no time will make room");
    let lines = peer.read();
    assert_eq!(lines.len(), 2);
    assert!(lines[1].contains(r#""progress":10,"message":"text""#), "{}", lines[1]);
    peer.report(ticket, 11.0).expect("in flight");
    assert_eq!(peer.read(), [progress("11")]);
}

// LOG-01: a log message goes only to a request that asked for its level, before its answer, with no subscription id.
#[test]
fn log_messages_go_only_to_who_asked_for_their_level() {
    let mut peer = Peer::default();
    let silent = peer.call("2");
    let ticket = logging(&mut peer, "warning");
    let mut log_to =
        |ticket, level| peer.server.log(ticket, level, None, Json::parse(r#"{"a":1}"#).expect("JSON"), peer.now);
    for level in [LogLevel::Debug, LogLevel::Notice, LogLevel::Warning, LogLevel::Emergency] {
        assert_eq!(log_to(silent, level), Ok(()));
        assert_eq!(log_to(ticket, level), Ok(()));
    }
    assert_eq!(peer.read(), [log("warning", r#"{"a":1}"#), log("emergency", r#"{"a":1}"#)]);
    peer.server.log(ticket, LogLevel::Error, Some("db\""), Json::NULL, peer.now).expect("in flight");
    assert_eq!(
        peer.read(),
        [
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"db\"","data":null}}"#
        ]
    );
}

// LOG-01: a server that logs declares it.
#[test]
fn a_server_without_the_capability_does_not_log() {
    let mut peer = Peer::with(|config| config.capabilities = json("{}"));
    let ticket = logging(&mut peer, "debug");
    let sent = peer.server.log(ticket, LogLevel::Error, None, Json::NULL, peer.now);
    assert_eq!(sent, Err(SendError::NotInThisEra));
    assert!(peer.read().is_empty());
}

// LOG-01: the rate is limited, all requests together.
#[test]
fn log_messages_are_limited_in_rate() {
    let mut peer = Peer::with(|config| config.log_rate = 10);
    let ticket = logging(&mut peer, "debug");
    for _ in 0..25 {
        peer.server.log(ticket, LogLevel::Info, None, Json::NULL, peer.now).expect("in flight");
    }
    assert_eq!(peer.read().len(), 10);
    assert_eq!(peer.server.shed_logs(), 15);
    peer.pass(Duration::from_secs(1));
    peer.server.log(ticket, LogLevel::Info, None, Json::NULL, peer.now).expect("in flight");
    assert_eq!(peer.read().len(), 1);
}

// LIM-04: logs are shed first: from half of the queue on, where answers still find room.
#[test]
fn logs_are_shed_while_half_of_the_queue_is_taken() {
    let mut peer = Peer::with(|config| config.queue_limit = 2000);
    let ticket = logging(&mut peer, "debug");
    for _ in 0..100 {
        peer.server.log(ticket, LogLevel::Info, None, Json::NULL, peer.now).expect("in flight");
    }
    let taken = peer.server.pending_output();
    assert!((1000..1200).contains(&taken), "{taken}");
    peer.respond(ticket, &format!(r#"{{"a":"{}"}}"#, "x".repeat(600))).expect("the rest of the queue is for answers");
}
