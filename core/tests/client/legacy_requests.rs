//! The requests of a legacy server: which reach the caller, how they are answered, and what ends them.

use mcp_wire::client::{Config, Event, ServerTicket, Signal};
use mcp_wire::{DropReason, RecvBuffer, SendError};

use crate::legacy::{session, session_with};
use crate::support::{Client, Seen, json};

fn ask(client: &mut Client, id: &str, method: &str) -> Seen {
    client.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#))
}

fn ticket(seen: Seen) -> ServerTicket {
    if let Seen::ServerRequest(ticket, _) = seen { ticket } else { panic!("{seen:?}") }
}

// LEG-05, W-17: a ping is answered at once, its id as it stands; before `initialize` has left it is not.
#[test]
fn a_ping_is_answered_at_once() {
    let mut client = session("2025-11-25");
    let pong = Seen::Answered("ping".into(), None);
    assert_eq!(ask(&mut client, "\"1\\u0032\"", "ping"), pong);
    assert_eq!(client.wire(), [r#"{"jsonrpc":"2.0","id":"1\u0032","result":{}}"#]);
    let mut client = Client::new(Config::new("c", "1"));
    client.open();
    client.wire();
    let unexpected = |id: &str| Seen::Dropped(DropReason::UnexpectedRequest, Some(id.into()), None);
    assert_eq!(ask(&mut client, "7", "ping"), unexpected("7"));
    client.error("1", -32601);
    assert_eq!(ask(&mut client, "8", "ping"), unexpected("8"));
    client.wire();
    // LEG-01: nothing else is, until the session is open.
    assert_eq!(ask(&mut client, "6", "roots/list"), unexpected("6"));
    assert_eq!(ask(&mut client, "9", "ping"), pong);
    assert_eq!(client.wire(), [r#"{"jsonrpc":"2.0","id":9,"result":{}}"#]);
    // RTE-01: a modern connection answers nothing.
    let mut client = Client::plain();
    assert_eq!(ask(&mut client, "1", "ping"), unexpected("1"));
    assert!(client.wire().is_empty());
}

// LEG-06, LEG-07: a request reaches the caller and is answered; its id has nothing to do with ours.
#[test]
fn a_request_is_answered_by_the_caller() {
    let mut client = session("2025-11-25");
    let a = client.request("a");
    client.wire();
    let roots = ticket(ask(&mut client, "3", "roots/list"));
    let sampling = ticket(ask(&mut client, "4", "sampling/createMessage"));
    let odd = ticket(ask(&mut client, "\"x\"", "x/y"));
    assert!(!client.conn.is_idle());
    assert!(matches!(client.result(3), Seen::Result(handle, ..) if handle == a), "our own id 3");
    client.conn.respond(sampling, json(r#"{"role":"user"}"#), client.now).expect("it is open");
    client.conn.respond_error(roots, -1, "no \"roots\"", Some(json("[1]")), client.now).expect("it is open");
    client.conn.respond_unknown(odd, client.now).expect("it is open");
    assert_eq!(
        client.wire(),
        [
            r#"{"jsonrpc":"2.0","id":4,"result":{"role":"user"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no \"roots\"","data":[1]}}"#,
            r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"Method not found"}}"#,
        ]
    );
    for ticket in [roots, sampling, odd] {
        assert_eq!(client.conn.respond(ticket, json("{}"), client.now), Err(SendError::Ended), "one answer each");
    }
    assert!(client.conn.is_idle());
}

// LEG-06: without anybody to ask, every request but a ping is of a method that is not known.
#[test]
fn without_a_handler_no_method_is_known() {
    let mut client = Client::new(Config::new("c", "1"));
    client.open();
    client.wire();
    client.error("1", -32601);
    client.wire();
    client.feed(&crate::legacy::initialize_result(2, "2025-11-25"));
    client.wire();
    for method in ["roots/list", "sampling/createMessage", "elicitation/create", "x"] {
        assert_eq!(ask(&mut client, "5", method), Seen::Answered(method.into(), Some(-32601)));
        let line = r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"Method not found"}}"#;
        assert_eq!(client.wire(), [line]);
    }
}

// LEG-06: a result is an object, params are too, and an id that is open is not taken twice.
#[test]
fn what_is_no_request_or_answer_is_refused() {
    let mut client = session("2025-11-25");
    let roots = ticket(ask(&mut client, "1", "roots/list"));
    assert_eq!(client.conn.respond(roots, json("[]"), client.now), Err(SendError::InvalidResult));
    assert_eq!(
        ask(&mut client, "1.0", "roots/list"),
        Seen::Dropped(DropReason::UnexpectedRequest, Some("1.0".into()), Some(-32600))
    );
    let seen = client.feed(r#"{"jsonrpc":"2.0","id":2,"method":"m","params":[1]}"#);
    assert_eq!(seen, Seen::Answered("m".into(), Some(-32602)));
    assert!(client.wire()[0].starts_with(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"#));
    client.conn.respond(roots, json("{}"), client.now).expect("it is still open");
}

// LEG-07: the server cancels its own request, and no other; whoever works on it is told, and its answer leaves no more.
#[test]
fn the_server_cancels_its_own_request() {
    let mut client = session("2025-11-25");
    let a = client.request("a");
    client.wire();
    let roots = ticket(ask(&mut client, "3", "roots/list"));
    assert_eq!(client.note("notifications/cancelled", r#"{"requestId":3,"reason":"enough"}"#), Seen::Handled);
    assert_eq!(client.signals(), [Signal::ServerRequestCancelled { ticket: roots, reason: Some("enough".into()) }]);
    assert_eq!(client.conn.respond(roots, json("{}"), client.now), Err(SendError::Ended));
    assert!(client.wire().is_empty());
    assert!(matches!(client.result(3), Seen::Result(handle, ..) if handle == a), "ours goes on");
    assert_eq!(
        client.note("notifications/cancelled", r#"{"requestId":3}"#),
        Seen::Dropped(DropReason::UnexpectedCancellation, Some("3".into()), None)
    );
}

// LEG-06, RST-06: the end of the session ends every request of the server's, by a close and by a loss.
#[test]
fn the_end_of_a_session_ends_its_requests() {
    for close in [true, false] {
        let mut client = session("2025-11-25");
        let roots = ticket(ask(&mut client, "1", "roots/list"));
        if close {
            client.conn.close(client.now);
        } else {
            client.conn.lost(true, client.now);
        }
        assert_eq!(client.signals(), [Signal::ServerRequestCancelled { ticket: roots, reason: None }]);
        assert_eq!(client.conn.respond(roots, json("{}"), client.now), Err(SendError::Ended));
    }
}

// LIM-04, LIM-05: a server that asks and asks is refused; an answer that does not fit stays owed.
#[test]
fn a_server_that_asks_too_much_is_bounded() {
    let mut client = session_with("2025-11-25", |config| (config.server_request_limit, config.queue_limit) = (2, 600));
    let first = ticket(ask(&mut client, "1", "m"));
    ask(&mut client, "2", "m");
    assert_eq!(ask(&mut client, "3", "m"), Seen::Answered("m".into(), Some(-32603)));
    assert_eq!(client.wire(), [r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Client busy"}}"#]);
    client.conn.notify("x", Some(json(&format!(r#"{{"a":"{}"}}"#, "x".repeat(300)))), client.now).expect("it fits");
    let result = format!(r#"{{"a":"{}"}}"#, "x".repeat(300));
    assert_eq!(client.conn.respond(first, json(&result), client.now), Err(SendError::Full));
    client.wire();
    assert_eq!(client.signals(), [Signal::Writable]);
    client.conn.respond(first, json(&result), client.now).expect("there is room now");
    assert!(client.wire()[0].contains(&result));
}

// LIM-04, RTE-11: what the core answers by itself has a budget of its own; used up, reading pauses until half of it is free. No ping is lost, also
// while the queue is full of the caller's messages.
#[test]
fn reading_pauses_while_the_cores_own_answers_are_not_read() {
    let mut client =
        session_with("2025-11-25", |config| (config.own_answers_limit, config.queue_limit) = (10_000, 200));
    client.conn.notify("x", Some(json(&format!(r#"{{"a":"{}"}}"#, "x".repeat(100)))), client.now).expect("it fits");
    client.wire();
    let mut asked = 0;
    while client.conn.wants_read() {
        assert_eq!(ask(&mut client, &asked.to_string(), "ping"), Seen::Answered("ping".into(), None));
        asked += 1;
        assert!(asked < 1000);
    }
    assert!((10_000..10_100).contains(&client.conn.pending_output()));
    let (lent, mut accepted) = (client.lend(), 0);
    while !client.conn.wants_read() {
        client.conn.accepted(100, client.now);
        accepted += 100;
    }
    assert!((5000..5200).contains(&accepted), "{accepted}");
    client.conn.accepted(lent - accepted, client.now);
    while client.conn.wants_read() {
        ask(&mut client, "\"again\"", "ping");
    }
    client.conn.lost(false, client.now);
    assert!(client.conn.wants_read(), "the end of a stream is read to the end");
}

// LIM-04: what waits for the caller's answer is not for the server to read: reading goes on, however long a person thinks about that answer.
#[test]
fn reading_goes_on_while_an_array_waits_for_the_caller() {
    let mut client = session_with("2025-03-26", |config| config.own_answers_limit = 300);
    let pings: Vec<_> = (2..30).map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).collect();
    let array = format!(r#"[{{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}},{}]"#, pings.join(","));
    let open = hand_in(&mut client, &array);
    assert!(client.conn.wants_read(), "its answers are many, and none of them may leave");
    client.conn.respond(open[0], json("{}"), client.now).expect("it is open");
    assert!(!client.conn.wants_read(), "the array is there to be read");
    assert_eq!(client.wire().len(), 1);
    assert!(client.conn.wants_read());
}

// LIM-04, LEG-09: open arrays cannot collect without bound either: once they hold half of the budget, no further request of an array goes to the caller,
// so that the server's own reading lets them leave.
#[test]
fn the_cores_own_answers_in_open_arrays_are_bounded() {
    let mut client = session_with("2025-03-26", |config| config.own_answers_limit = 400);
    let pings = |from: u64| {
        let ping = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        (from..from + 3).map(ping).collect::<Vec<_>>().join(",")
    };
    let array = |id: u64| format!(r#"[{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}},{}]"#, pings(id + 1));
    let first = hand_in(&mut client, &array(10));
    let second = hand_in(&mut client, &array(20));
    assert_eq!((first.len(), second.len()), (1, 1));
    assert!(hand_in(&mut client, &array(30)).is_empty(), "crowded");
    let lines = client.wire();
    assert!(lines.len() == 1 && lines[0].contains(r#""id":30,"error":{"code":-32603"#), "{lines:?}");
    client.conn.respond(first[0], json("{}"), client.now).expect("it is open");
    client.conn.respond(second[0], json("{}"), client.now).expect("it is open");
    assert_eq!(client.wire().len(), 2);
    assert!(client.conn.wants_read());
    assert_eq!(hand_in(&mut client, &array(40)).len(), 1, "there is room again");
}

/// Hands in an array, and gives the requests that reached the caller.
fn hand_in(client: &mut Client, line: &str) -> Vec<ServerTicket> {
    let mut recv = RecvBuffer::default();
    recv.extend(line.as_bytes());
    recv.extend(b"\n");
    let frame = recv.next_frame().expect("a line");
    assert!(client.conn.open_batch(client.now));
    let mut tickets = Vec::new();
    for message in frame.batch().expect("an array") {
        if let Event::ServerRequest { ticket, .. } = client.conn.handle(message, client.now) {
            tickets.push(ticket);
        }
    }
    client.conn.close_batch(client.now);
    tickets
}

// LEG-09: the answers to one array leave as one array, when there are all of them; a notification has none.
#[test]
fn the_answers_to_an_array_leave_as_one() {
    let mut client = session("2025-03-26");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    hand_in(&mut client, &format!("[{ping},{note}]"));
    assert_eq!(client.wire(), [r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#]);
    hand_in(&mut client, &format!("[{note}]"));
    assert!(client.wire().is_empty());
    let roots = |id: u64| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#);
    let tickets = hand_in(&mut client, &format!("[{},{ping},{},{}]", roots(5), roots(6), roots(7)));
    client.conn.respond(tickets[1], json(r#"{"b":1}"#), client.now).expect("it is open");
    assert!(client.wire().is_empty(), "two are owed");
    client.note("notifications/cancelled", r#"{"requestId":7}"#);
    client.conn.respond(tickets[0], json(r#"{"a":1}"#), client.now).expect("it is open");
    assert_eq!(
        client.wire(),
        [
            r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":6,"result":{"b":1}},{"jsonrpc":"2.0","id":5,"result":{"a":1}}]"#
        ]
    );
    assert!(client.conn.is_idle());
}
