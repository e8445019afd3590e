//! Capacity: permits, waiting room, the outgoing queue, the core's own answers.

use mcp_wire::SendError;
use mcp_wire::server::{Admission, Change, Signal};

use super::support::*;

// LIM-02, W-09: N run, N wait in order, the rest are refused at once while reading goes on.
#[test]
fn requests_run_wait_or_are_refused() {
    let mut peer = Peer::with(|config| (config.running_limit, config.waiting_limit) = (2, 2));
    let admissions: Vec<_> = (1..=4).map(|id| peer.admitted(&request(&id.to_string(), "x", ""))).collect();
    assert_eq!(
        admissions.iter().map(|(_, admission)| *admission).collect::<Vec<_>>(),
        [Admission::Run, Admission::Run, Admission::Wait, Admission::Wait]
    );
    assert_eq!(peer.send(&request("5", "x", "")), Seen::Refused { id: "5".into(), code: -32603 });
    assert_eq!(peer.read(), [error("5", -32603, "Server busy")]);
    assert!(peer.server.wants_read());
    peer.respond(admissions[1].0, "{}").expect("in flight");
    assert_eq!(peer.signals(), [Signal::Start(admissions[2].0)]);
    peer.admitted(&request("5", "x", ""));
}

// LIM-02: one that waits can be answered without having been started; its place is free, and no permit comes of it.
#[test]
fn a_waiting_request_can_be_answered() {
    let mut peer = Peer::with(|config| (config.running_limit, config.waiting_limit) = (1, 1));
    let running = peer.call("1");
    let waiting = peer.call_with_token("2");
    peer.report(waiting, 1.0).expect("nothing is written for one that does not run");
    peer.respond(waiting, "{}").expect("in flight");
    assert_eq!(peer.read(), [empty_result("2")]);
    assert_eq!(peer.signals(), []);
    let (next, admission) = peer.admitted(&request("3", "x", ""));
    assert_eq!(admission, Admission::Wait);
    peer.respond(running, "{}").expect("in flight");
    assert_eq!(peer.signals(), [Signal::Start(next)]);
}

// LIM-02: what waits is bounded in bytes as well.
#[test]
fn the_payload_that_waits_is_bounded() {
    let mut peer = Peer::with(|config| (config.running_limit, config.waiting_bytes_limit) = (1, 10_000));
    let line = |id: &str| request(id, "x", &format!(r#""a":"{}""#, "x".repeat(4000)));
    peer.admitted(&line("1"));
    peer.admitted(&line("2"));
    peer.admitted(&line("3"));
    assert_eq!(peer.send(&line("4")), Seen::Refused { id: "4".into(), code: -32603 });
    peer.send(&cancel("2"));
    peer.admitted(&line("4"));
}

// LIM-02, by option: reading pauses instead, and nothing is refused.
#[test]
fn by_option_reading_pauses_while_the_house_is_full() {
    let mut peer = Peer::with(|config| {
        (config.running_limit, config.waiting_limit, config.pause_when_full) = (1, 1, true);
    });
    assert!(peer.server.wants_read());
    let first = peer.call("1");
    assert!(peer.server.wants_read());
    peer.call("2");
    assert!(!peer.server.wants_read());
    peer.respond(first, "{}").expect("in flight");
    assert!(peer.server.wants_read());
    peer.call("3");
    assert!(!peer.server.wants_read());
}

// LIM-04: a handler's answer that does not fit stays owed and keeps its permit; it is told when to try again.
#[test]
fn an_answer_without_room_stays_owed() {
    let mut peer = Peer::with(|config| (config.running_limit, config.queue_limit) = (2, 1000));
    let big = format!(r#"{{"resultType":"complete","a":"{}"}}"#, "x".repeat(600));
    let first = peer.call("1");
    let second = peer.call("2");
    let third = peer.call("3");
    assert_eq!(peer.respond(first, &big), Ok(()));
    assert_eq!(peer.signals(), [Signal::Start(third)]);
    assert_eq!(peer.respond(second, &big), Err(SendError::Full));
    // In turn: a small one does not overtake.
    assert_eq!(peer.respond(third, "{}"), Err(SendError::Full));
    assert_eq!(peer.signals(), []);
    assert!(peer.server.wants_read());
    assert_eq!(peer.admitted(&request("4", "x", "")).1, Admission::Wait, "the permits are taken");
    let n = peer.server.output(peer.now).len();
    peer.server.accepted(n - 1, peer.now);
    assert_eq!(peer.signals(), [Signal::Writable]);
    assert_eq!(peer.respond(second, &big), Ok(()));
    assert!(matches!(peer.signals()[..], [Signal::Start(_)]));
    assert_eq!(peer.respond(third, "{}"), Ok(()));
    peer.server.accepted(1, peer.now);
    assert_eq!(peer.read().len(), 2);
}

// LIM-04: a withdrawal makes room as well.
#[test]
fn a_cancellation_makes_room() {
    let mut peer = Peer::with(|config| config.queue_limit = 1000);
    let big = format!(r#"{{"resultType":"complete","a":"{}"}}"#, "x".repeat(600));
    let first = peer.call("1");
    let second = peer.call("2");
    peer.respond(first, &big).expect("it fits");
    assert_eq!(peer.respond(second, &big), Err(SendError::Full));
    peer.send(&cancel("1"));
    assert_eq!(peer.signals(), [Signal::Writable]);
    peer.respond(second, &big).expect("it fits");
}

// PRG-05, SUB-03: so it does for a report that was kept back and for a change that was not told.
#[test]
fn a_cancellation_makes_room_for_what_was_kept_back() {
    let mut peer = Peer::with(|config| config.queue_limit = 1000);
    let big = format!(r#"{{"resultType":"complete","a":"{}"}}"#, "x".repeat(900));
    peer.send(&listen("3", r#"{"toolsListChanged":true}"#));
    peer.read();
    let first = peer.call("1");
    let second = peer.call_with_token("2");
    peer.respond(first, &big).expect("it fits");
    peer.report(second, 1.0).expect("in flight");
    peer.server.publish(Change::ToolsList, peer.now);
    peer.send(&cancel("1"));
    assert_eq!(peer.read().len(), 2, "nothing of the answer; the report and the change");
}

// An answer larger than the whole queue can never leave: the client gets an error in its place, the handler is told.
#[test]
fn an_answer_that_can_never_fit_is_replaced() {
    let mut peer = Peer::with(|config| (config.running_limit, config.queue_limit) = (1, 20_000));
    let huge = format!(r#"{{"resultType":"complete","a":"{}"}}"#, "x".repeat(30_000));
    let first = peer.call("1");
    let size = huge.len() + r#"{"jsonrpc":"2.0","id":1,"result":}"#.len() + 1;
    assert_eq!(peer.respond(first, &huge), Err(SendError::TooLarge { size, limit: 20_000 }));
    let lines = peer.read();
    assert!(lines[0].starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"#));
    // Behind something else it waits first, and is found too large then.
    let first = peer.call("1");
    peer.send(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#);
    assert_eq!(peer.respond(first, &huge), Err(SendError::Full));
    peer.read();
    assert_eq!(peer.signals(), [Signal::Writable]);
    assert_eq!(peer.respond(first, &huge), Err(SendError::TooLarge { size, limit: 20_000 }));
    // A pretty-printed one that fits once its white space is gone is no such thing.
    let airy = format!("{{\"resultType\":\"complete\",{}\"a\":1}}", "\n".repeat(30_000));
    let first = peer.call("1");
    assert_eq!(peer.read().len(), 1);
    assert_eq!(peer.respond(first, &airy), Ok(()));
    assert_eq!(peer.read().len(), 1);
}

// LIM-04: what the core answers by itself has a budget; used up, reading pauses until half of it is free. Nothing is lost.
#[test]
fn reading_pauses_while_the_cores_own_answers_are_not_read() {
    let mut peer = Peer::with(|config| (config.own_answers_limit, config.queue_limit) = (10_000, 1000));
    let mut sent = 0;
    while peer.server.wants_read() {
        peer.send(&format!(r#"{{"jsonrpc":"2.0","id":{sent},"method":"ping"}}"#));
        sent += 1;
        assert!(sent < 1000);
    }
    assert!((10_000..10_100).contains(&peer.server.pending_output()));
    let lent = peer.server.output(peer.now).to_vec();
    let taken = lent.len();
    let mut accepted = 0;
    while !peer.server.wants_read() {
        peer.server.accepted(100, peer.now);
        accepted += 100;
    }
    assert!((5000..5200).contains(&accepted), "{accepted}");
    peer.server.accepted(taken - accepted, peer.now);
    assert_eq!(lines(lent).len(), sent);
}

// LIM-04: a peer that writes and does not read: memory stays flat, answers are kept, and all is well once it reads.
#[test]
fn a_peer_that_does_not_read_costs_bounded_memory() {
    let mut peer = Peer::with(|config| {
        (config.running_limit, config.waiting_limit) = (8, 8);
        (config.queue_limit, config.own_answers_limit) = (20_000, 5000);
        config.listen_bytes_limit = 2000;
    });
    let body = format!(r#"{{"resultType":"complete","a":"{}"}}"#, "x".repeat(1000));
    let (mut running, mut owed, mut answered, mut refused, mut id) = (Vec::new(), Vec::new(), 0, 0, 0);
    for round in 0..2000 {
        if peer.server.wants_read() {
            id += 1;
            match peer.send(&request(&id.to_string(), "x", "")) {
                Seen::Request { ticket, admission: Admission::Run, .. } => running.push(ticket),
                Seen::Request { .. } => {}
                Seen::Refused { code: -32603, .. } => refused += 1,
                other => panic!("{other:?}"),
            }
            peer.send(&listen(&format!("\"{round}\""), r#"{"toolsListChanged":true,"resourceSubscriptions":["a"]}"#));
        }
        for ticket in running.drain(..) {
            match peer.respond(ticket, &body) {
                Ok(()) => answered += 1,
                Err(SendError::Full) => owed.push(ticket),
                Err(error) => panic!("{error}"),
            }
        }
        peer.server.publish(Change::ToolsList, peer.now);
        for signal in peer.signals() {
            match signal {
                Signal::Start(ticket) => running.push(ticket),
                other => panic!("{other:?}"),
            }
        }
        assert!(peer.server.pending_output() <= 20_000 + 5000 + 500, "{}", peer.server.pending_output());
    }
    assert!(!peer.server.wants_read());
    assert_eq!(owed.len(), 8);
    // Now it reads.
    let mut lines = Vec::new();
    loop {
        lines.extend(peer.read());
        let signals = peer.signals();
        if signals.is_empty() {
            break;
        }
        for signal in signals {
            match signal {
                Signal::Start(ticket) => owed.push(ticket),
                Signal::Writable => {}
                other => panic!("{other:?}"),
            }
        }
        owed.retain(|ticket| match peer.respond(*ticket, &body) {
            Ok(()) => {
                answered += 1;
                false
            }
            Err(SendError::Full) => true,
            Err(error) => panic!("{error}"),
        });
    }
    assert!(owed.is_empty());
    let results = lines.iter().filter(|line| line.contains("xxxx")).count();
    assert_eq!((results, answered + refused), (answered, id));
    assert!(peer.server.wants_read());
}

// Issue: 600 requests at once with cancellations between, then the end of input: each gets what it is due, and nothing else comes out.
#[test]
fn six_hundred_requests_at_once() {
    let mut peer = Peer::default();
    let mut bytes = Vec::new();
    for id in 0..600 {
        bytes.extend(request(&id.to_string(), "x", "").into_bytes());
        bytes.push(b'\n');
        if id % 10 == 9 {
            // One that runs or waits, or (from 512 on) one that was refused: late, then.
            bytes.extend(cancel(&id.to_string()).into_bytes());
            bytes.push(b'\n');
        }
    }
    let seen = peer.send_bytes(&bytes);
    let mut running = Vec::new();
    let mut refused = 0;
    for event in seen {
        match event {
            Seen::Request { ticket, admission: Admission::Run, .. } => running.push(ticket),
            Seen::Refused { code: -32603, .. } => refused += 1,
            Seen::Request { .. } | Seen::Cancellation { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(running.len(), 256);
    peer.server.end_of_input(peer.now);
    // A waiting request that is cancelled makes room for another: 256 + 256 + those.
    let mut waiting_cancelled = 0;
    let mut lines = peer.read();
    assert_eq!(lines.len(), refused);
    assert!(lines.iter().all(|line| line.ends_with(r#""error":{"code":-32603,"message":"Server busy"}}"#)));
    let mut results = 0;
    loop {
        for signal in peer.signals() {
            match signal {
                Signal::Start(ticket) => running.push(ticket),
                Signal::Cancelled { running: false, .. } => waiting_cancelled += 1,
                Signal::Cancelled { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        let Some(ticket) = running.pop() else { break };
        peer.respond(ticket, "{}").expect("room is there");
        lines = peer.read();
        assert!(lines.len() <= 1);
        results += lines.len();
    }
    // 25 of the running were cancelled (9, 19, ... 249), and some of the waiting.
    assert_eq!(results + 25 + waiting_cancelled + refused, 600);
    assert!(waiting_cancelled >= 26, "{waiting_cancelled}");
    assert_eq!(refused, 600 - 256 - 256 - waiting_cancelled);
    assert_eq!(peer.server.ended(), Some(mcp_wire::server::Ended::EndOfInput));
    assert!(peer.read().is_empty());
}
