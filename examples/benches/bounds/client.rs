//! A client and a server that means it harm. It must not know how its lines are read.

use std::collections::VecDeque;
use std::io::Write;

use mcp_wire::client::{Config, Connection, Event, RequestOptions};
use mcp_wire::{Eras, Filter, Instant, Json, RecvBuffer, SendError};

use super::measure::{Meter, Row};
use super::row;

pub(crate) const NOW: Instant = Instant::EPOCH;
const VERSION: &str = "2026-07-28";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A modern client that needs no probe.
pub(crate) fn established() -> Connection {
    let mut config = Config::new("bounds", "1");
    config.speak(Eras::Modern);
    config.known_version = Some(VERSION.to_owned());
    let mut client = Connection::new(config).expect("a good configuration");
    client.opened(NOW);
    client
}

/// A client in a legacy session.
fn session(answers_requests: bool) -> Connection {
    let mut config = Config::new("bounds", "1");
    config.speak(Eras::Legacy);
    config.answers_requests = answers_requests;
    let mut client = Connection::new(config).expect("a good configuration");
    client.opened(NOW);
    write(&mut client);
    let mut recv = RecvBuffer::default();
    let facts = r#""protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}"#;
    recv.extend(format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{{facts}}}}}\n").as_bytes());
    take(&mut recv, &mut client);
    assert!(client.is_established());
    write(&mut client);
    client
}

/// The server reads all there is.
fn write(client: &mut Connection) {
    loop {
        let n = client.output(NOW).len();
        if n == 0 {
            return;
        }
        client.accepted(n, NOW);
    }
}

/// Takes all frames, and says how many there were. What a caller could keep is dropped: that is its own.
pub(crate) fn take(recv: &mut RecvBuffer, client: &mut Connection) -> usize {
    let mut frames = 0;
    while let Some(frame) = recv.next_frame() {
        let _ = client.handle(frame.message(), NOW);
        while client.poll_signal().is_some() {}
        frames += 1;
    }
    frames
}

/// Lines made of their number, to a client that writes what it has (`reads`) or cannot.
fn flood(
    client: fn() -> Connection,
    reads: bool,
    line: impl Fn(u64, &mut Vec<u8>) + 'static,
) -> impl Fn(u64, &mut Meter) + 'static {
    move |n, meter| {
        let mut client = client();
        let mut recv = RecvBuffer::default();
        meter.lines(n, &mut recv, &line, |recv| {
            while let Some(frame) = recv.next_frame() {
                let _ = client.handle(frame.message(), NOW);
                while client.poll_signal().is_some() {}
                if !client.wants_read() && !reads {
                    return false;
                }
            }
            if reads {
                write(&mut client);
            }
            true
        });
    }
}

fn line(text: &'static str) -> impl Fn(u64, &mut Vec<u8>) {
    // `#` stands for the number.
    let (before, after) = text.split_once('#').unwrap_or((text, ""));
    let numbered = text.contains('#');
    move |n, chunk| {
        chunk.extend_from_slice(before.as_bytes());
        if numbered {
            let _ = write!(chunk, "{}", n + 1_000_000);
        }
        chunk.extend_from_slice(after.as_bytes());
    }
}

/// Requests that are answered at once, in step: what everything else is compared with.
pub(crate) fn answers() -> Row {
    row("answers to requests in flight", 20_000, "requests in flight", |n, meter| {
        let mut client = established();
        let mut recv = RecvBuffer::default();
        let answer = |n: u64, chunk: &mut Vec<u8>| {
            let text = r#""result":{"resultType":"complete","content":[{"type":"text","text":"some words"}]}}"#;
            let _ = write!(chunk, r#"{{"jsonrpc":"2.0","id":{},{text}"#, n + 1);
        };
        let mut sent = 0;
        meter.lines(n, &mut recv, answer, |recv| {
            while sent < n && client.request("tools/call", None, RequestOptions::default(), NOW).is_ok() {
                sent += 1;
            }
            write(&mut client);
            while let Some(frame) = recv.next_frame() {
                let _ = client.handle(frame.message(), NOW);
                if sent < n && client.request("tools/call", None, RequestOptions::default(), NOW).is_ok() {
                    sent += 1;
                    write(&mut client);
                }
            }
            true
        });
    })
}

/// A client whose server reads nothing asks on, and gives up the oldest request where there is no room.
fn unread(n: u64, meter: &mut Meter) {
    let mut client = established();
    let text = format!(r#"{{"text":"{}"}}"#, "x".repeat(1000));
    let params = Json::parse(&text).expect("JSON");
    let mut open = VecDeque::new();
    meter.cost(text.len() * n as usize, || {
        let mut left = n;
        while left > 0 {
            match client.request("tools/call", Some(params), RequestOptions::default(), NOW) {
                Ok(handle) => {
                    open.push_back(handle);
                    left -= 1;
                }
                Err(SendError::Full) => {
                    let oldest = open.pop_front().expect("it is full of something");
                    client.cancel(oldest, None, NOW);
                    while client.poll_signal().is_some() {}
                }
                Err(error) => panic!("{error}"),
            }
        }
    });
    assert!(open.len() > 500, "{}", open.len());
}

/// Requests that are given up once they are written, each answered late.
fn given_up(n: u64, meter: &mut Meter) {
    let mut client = established();
    let mut recv = RecvBuffer::default();
    let mut late = Vec::new();
    let mut bytes = 0;
    meter.cost(0, || {
        for id in 1..=n {
            late.clear();
            let _ = writeln!(late, r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete"}}}}"#);
            bytes += late.len();
            let handle = client.request("tools/call", None, RequestOptions::default(), NOW).expect("there is room");
            write(&mut client);
            client.cancel(handle, Some("enough"), NOW);
            write(&mut client);
            recv.extend(&late);
            assert_eq!(take(&mut recv, &mut client), 1);
        }
    });
    meter.cost(bytes, || ());
    assert_eq!(client.in_flight(), 0);
}

/// As many listens as may be, acknowledged, and notifications for all of them.
fn listens(n: u64, meter: &mut Meter) {
    let mut client = established();
    let mut recv = RecvBuffer::default();
    let mut open = 0;
    while client.listen(&Filter::default().tools_list_changed(), RequestOptions::default(), NOW).is_ok() {
        open += 1;
        write(&mut client);
        let granted = format!(r#""_meta":{{"{SUBSCRIPTION}":{open}}},"notifications":{{"toolsListChanged":true}}"#);
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{{granted}}}}}\n"
        );
        recv.extend(line.as_bytes());
        take(&mut recv, &mut client);
    }
    let told = move |n: u64, chunk: &mut Vec<u8>| {
        let id = n % open + 1;
        let _ = write!(
            chunk,
            r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"{SUBSCRIPTION}":{id}}}}}}}"#
        );
    };
    meter.lines(n, &mut recv, told, |recv| {
        while let Some(frame) = recv.next_frame() {
            let event = client.handle(frame.message(), NOW);
            assert!(matches!(event, Event::ListenNotification { .. }), "{event:?}");
        }
        true
    });
}

pub(crate) fn rows() -> Vec<Row> {
    const MANY: u64 = 62_500;
    let read = "one read";
    vec![
        answers(),
        row(
            "results for ids that nobody asked with",
            MANY,
            read,
            flood(established, true, line(r##"{"jsonrpc":"2.0","id":#,"result":{"resultType":"complete"}}"##)),
        ),
        row(
            "errors for such ids",
            MANY,
            read,
            flood(established, true, line(r##"{"jsonrpc":"2.0","id":#,"error":{"code":-32603,"message":"m"}}"##)),
        ),
        row(
            "errors without an id",
            MANY,
            read,
            flood(established, true, line(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#)),
        ),
        row(
            "log messages",
            MANY,
            read,
            flood(
                established,
                true,
                line(
                    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"some words"}}"#,
                ),
            ),
        ),
        row(
            "progress of nothing",
            MANY,
            read,
            flood(
                established,
                true,
                line(
                    r##"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":#,"progress":1}}"##,
                ),
            ),
        ),
        row(
            "changes for listens that nobody opened",
            MANY,
            read,
            flood(
                established,
                true,
                line(
                    r##"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":#}}}"##,
                ),
            ),
        ),
        row("changes for as many listens as may be", MANY, "`listen_limit`", listens),
        row(
            "cancellations from a server",
            MANY,
            read,
            flood(
                established,
                true,
                line(r##"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":#}}"##),
            ),
        ),
        row(
            "requests from a modern server",
            MANY,
            read,
            flood(established, true, line(r##"{"jsonrpc":"2.0","id":#,"method":"roots/list"}"##)),
        ),
        row(
            "pings from a legacy server that reads",
            MANY,
            "`own_answers_limit`",
            flood(|| session(false), true, line(r##"{"jsonrpc":"2.0","id":#,"method":"ping"}"##)),
        ),
        row(
            "pings from one that never reads (reading pauses)",
            MANY,
            "`own_answers_limit`",
            flood(|| session(false), false, line(r##"{"jsonrpc":"2.0","id":#,"method":"ping"}"##)),
        ),
        row(
            "requests from a legacy server that nobody answers",
            MANY,
            "`server_request_limit`",
            flood(|| session(true), true, line(r##"{"jsonrpc":"2.0","id":#,"method":"roots/list"}"##)),
        ),
        row("requests to a server that never reads, of 1 KB", 62_500, "`in_flight_limit`, `queue_limit`", unread),
        row("requests given up, and answered late", MANY, "the last 1024 ids", given_up),
    ]
}
