//! Deadlines: of requests, of the queue, of listens; and time itself.

use core::time::Duration;

use mcp_wire::client::{Config, Hint, ProgressToken, Signal};
use mcp_wire::{Cause, Delivery, Filter, Instant};

use crate::support::{Client, Seen, cancelled_line, ended, ms};

// TMO-01, case 078: 60 s unless set otherwise; at expiry a cancellation with the reason "timeout", then the caller's timeout.
#[test]
fn every_request_has_a_deadline() {
    let mut client = Client::plain();
    let a = client.request("a");
    client.wire();
    client.pass(59_999);
    assert!(client.signals().is_empty() && client.wire().is_empty());
    client.pass(1);
    assert_eq!(client.wire(), [cancelled_line(2, Some("timeout"))]);
    assert_eq!(client.signals(), [ended(a, Cause::TimedOut, Delivery::Sent)]);
    client.pass(1);
    assert!(client.wire().is_empty() && client.signals().is_empty());
    assert_eq!(client.conn.poll_timeout(), None);
}

// TMO-01, TMO-05: deadlines are set per request and expire apart; the core says when it wants to be woken.
#[test]
fn deadlines_expire_apart() {
    let mut client = Client::plain();
    let a = client.request_with(|o| o.timeout = Some(ms(5000)));
    let b = client.request_with(|o| o.timeout = Some(ms(1000)));
    client.wire();
    assert_eq!(client.conn.poll_timeout(), Some(Instant::from_epoch(ms(1000))));
    client.pass(1000);
    assert_eq!(client.signals(), [ended(b, Cause::TimedOut, Delivery::Sent)]);
    assert_eq!(client.conn.poll_timeout(), Some(Instant::from_epoch(ms(5000))));
    client.pass(4000);
    assert_eq!(client.signals(), [ended(a, Cause::TimedOut, Delivery::Sent)]);
    assert_eq!(client.wire(), [cancelled_line(3, Some("timeout")), cancelled_line(2, Some("timeout"))]);
}

// case 077: a timeout that no clock can hold is no timeout; zero expires at the next poll.
#[test]
fn extreme_timeouts_are_defined() {
    let mut client = Client::plain();
    for timeout in [Duration::MAX, Duration::from_millis(u64::MAX)] {
        client.request_with(|o| (o.timeout, o.queue_timeout) = (Some(timeout), Some(timeout)));
    }
    client.wire();
    client.pass(1 << 40);
    assert!(client.signals().is_empty());
    let z = client.request_with(|o| (o.timeout, o.queue_timeout) = (Some(Duration::ZERO), Some(ms(1))));
    client.wire();
    assert!(client.signals().is_empty());
    client.pass(0);
    assert_eq!(client.signals(), [ended(z, Cause::TimedOut, Delivery::Sent)]);
}

// CAN-03: the clock of a request starts with its first byte; before that the queue timeout runs, and takes it back.
#[test]
fn the_queue_has_a_timeout_of_its_own() {
    let mut config = Config::new("c", "1");
    config.queue_timeout = Some(ms(300));
    config.request_timeout = ms(1000);
    let mut client = Client::ready(config);
    let a = client.request("a");
    client.pass(299);
    client.lend();
    client.pass(999);
    assert!(client.signals().is_empty(), "the request's clock started when it was lent");
    let b = client.request("b");
    client.pass(1);
    assert_eq!(client.signals(), [ended(a, Cause::TimedOut, Delivery::PartlySent)]);
    client.pass(299);
    assert_eq!(client.signals(), [ended(b, Cause::TimedOut, Delivery::NotSent)]);
    let lines = client.wire();
    assert_eq!(lines.len(), 2, "the second left no byte: {lines:?}");
    assert_eq!(lines[1], cancelled_line(2, Some("timeout")));
}

// CAN-03: the queue timeout stands still until the connection is established.
#[test]
fn the_queue_timeout_stands_still_while_the_server_starts() {
    let mut config = Config::new("c", "1");
    config.queue_timeout = Some(ms(300));
    config.probe_timeout = Duration::MAX;
    let mut client = Client::new(config);
    let a = client.request("a");
    client.pass(10_000);
    client.open();
    client.wire();
    client.pass(10_000);
    client.feed(crate::support::DISCOVERED);
    assert_eq!(client.signals(), [crate::support::established()]);
    client.pass(299);
    assert!(client.signals().is_empty());
    client.pass(1);
    assert_eq!(client.signals(), [ended(a, Cause::TimedOut, Delivery::NotSent)]);
    assert!(client.wire().is_empty());
}

// TMO-02: progress restarts the clock, if that is asked for; else it does not.
#[test]
fn progress_restarts_the_clock_on_demand() {
    let run = |max: Option<Duration>| {
        let mut client = Client::plain();
        client.request_with(|o| {
            (o.timeout, o.max_timeout, o.progress) = (Some(ms(1000)), max, ProgressToken::Minted);
        });
        client.wire();
        client.tick(900);
        client.progress("2", "1");
        client.pass(600);
        client.signals().len()
    };
    assert_eq!((run(None), run(Some(ms(3000)))), (1, 0));
}

// TMO-03: the maximum counts from the send and fires by itself, whatever progress there is.
#[test]
fn the_maximum_fires_by_itself() {
    let mut client = Client::plain();
    let a = client.request_with(|o| {
        (o.timeout, o.max_timeout, o.progress) = (Some(ms(1000)), Some(ms(3000)), ProgressToken::Minted);
    });
    client.wire();
    for step in 1..6 {
        client.pass(500);
        client.progress("2", &step.to_string());
        assert!(client.signals().is_empty());
    }
    assert_eq!(client.conn.poll_timeout(), Some(Instant::from_epoch(ms(3000))));
    client.pass(500);
    assert_eq!(client.signals(), [ended(a, Cause::TimedOut, Delivery::Started)]);
    let b = client.request_with(|o| (o.timeout, o.max_timeout) = (Some(ms(5000)), Some(ms(100))));
    client.wire();
    client.pass(100);
    assert_eq!(client.signals(), [ended(b, Cause::TimedOut, Delivery::Sent)], "without progress too");
}

// case 057: progress that does not increase is no sign of life.
#[test]
fn progress_that_does_not_increase_does_not_restart_the_clock() {
    let mut client = Client::plain();
    let a = client.request_with(|o| {
        (o.timeout, o.max_timeout, o.progress) = (Some(ms(1000)), Some(ms(9000)), ProgressToken::Minted);
    });
    client.wire();
    client.progress("2", "3");
    for progress in ["2", "3", "2.5"] {
        client.tick(300);
        let seen = client.progress("2", progress);
        assert_eq!(seen, Seen::Note(Some(a), "notifications/progress".into()), "it is delivered");
    }
    client.pass(100);
    assert_eq!(client.signals(), [ended(a, Cause::TimedOut, Delivery::Started)]);
}

// TMO-04: the clock of a listen stops at its acknowledgment; without one it expires like a request's.
#[test]
fn the_clock_of_a_listen_stops_at_its_acknowledgment() {
    let mut client = Client::plain();
    let filter = Filter::default().tools_list_changed();
    let (a, b) = (client.listen(&filter), client.listen(&filter));
    client.wire();
    client.tick(1000);
    client.acknowledge(2, r#"{"toolsListChanged":true}"#);
    client.pass(10_000_000);
    assert_eq!(client.signals(), [ended(b, Cause::TimedOut, Delivery::Sent)]);
    assert_eq!(client.wire(), [cancelled_line(3, Some("timeout"))]);
    assert!(matches!(client.change("2", "notifications/tools/list_changed"), Seen::Note(Some(l), _) if l == a));
}

// case 083: an answer that is handed in before the timeout wins over a deadline of the same moment.
#[test]
fn an_answer_wins_over_a_deadline_of_the_same_moment() {
    let mut client = Client::plain();
    let a = client.request("a");
    client.wire();
    client.tick(60_000);
    assert!(matches!(client.result(2), Seen::Result(handle, ..) if handle == a));
    client.pass(0);
    assert!(client.signals().is_empty() && client.wire().is_empty());
}

// case 079: a request that timed out is never sent again, not even one that is idempotent.
#[test]
fn a_timeout_sends_nothing_again() {
    let mut client = Client::plain();
    client.request_with(|o| o.idempotent = true);
    client.wire();
    client.pass(60_000);
    client.conn.lost(true, client.now);
    client.open();
    assert!(client.wire().is_empty());
}

// cases 035, 041, 085: what was seen meanwhile is told with the timeout.
#[test]
fn a_timeout_tells_what_was_seen_meanwhile() {
    let hint_of = |line: &str| {
        let mut client = Client::plain();
        client.feed(r#"{"jsonrpc":"2.0","id":777,"result":{}}"#);
        client.tick(1);
        client.request("a");
        client.request("b");
        client.wire();
        client.tick(1);
        client.feed(line);
        client.pass(60_000);
        match client.signals().first() {
            Some(Signal::Ended { hint, .. }) => hint.clone(),
            other => panic!("{other:?}"),
        }
    };
    let unknown = |id: &str| Some(Hint::UnknownId { id: id.into() });
    assert_eq!(hint_of(r#"{"jsonrpc":"2.0","id":9999,"result":{}}"#), unknown("9999"));
    assert_eq!(hint_of(r#"{"jsonrpc":"2.0","id":"2","result":{}}"#), unknown("\"2\""));
    assert_eq!(
        hint_of(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#),
        Some(Hint::UnattributedError { code: -32700 })
    );
    assert!(matches!(hint_of("hello"), Some(Hint::Unreadable { .. })));
    assert_eq!(hint_of(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#), None, "older than the request");
}

// case 082: there is no keep-alive: an idle client writes nothing and wants no waking.
#[test]
fn an_idle_client_writes_nothing() {
    let mut client = Client::plain();
    assert_eq!(client.conn.poll_timeout(), None);
    client.pass(1 << 40);
    assert!(client.wire().is_empty() && client.signals().is_empty());
}

// TMO-05: time that goes back counts as the latest time there was; early and double calls do nothing.
#[test]
fn time_never_goes_back() {
    let mut client = Client::plain();
    client.pass(10_000);
    let a = client.conn.request("a", None, crate::support::options(), Instant::EPOCH).expect("there is room");
    let _ = client.conn.output(Instant::EPOCH);
    client.conn.handle_timeout(Instant::EPOCH);
    client.pass(59_999);
    client.pass(0);
    assert!(client.signals().is_empty());
    client.pass(1);
    assert_eq!(client.signals(), [ended(a, Cause::TimedOut, Delivery::PartlySent)]);
}
