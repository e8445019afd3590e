//! A server and a client that means it harm. It must not know how its lines are read.

use std::io::Write;

use mcp_wire::server::{Admission, Change, Config, Connection, Event, LogLevel, Signal, Ticket};
use mcp_wire::{Instant, Json, JsonBuf, RecvBuffer};

use super::measure::{Meter, Row};
use super::row;

const NOW: Instant = Instant::EPOCH;

/// What the handlers do.
#[derive(Clone, Copy, PartialEq)]
enum Handlers {
    /// They answer at once.
    Answer,
    /// They wait to be cancelled.
    Wait,
}

fn server() -> Connection {
    let mut config = Config::new("bounds", "1");
    config.capabilities = JsonBuf::from(Json::parse(r#"{"tools":{"listChanged":true},"logging":{}}"#).expect("JSON"));
    Connection::new(config).expect("a good configuration")
}

/// The client reads all there is.
fn write(server: &mut Connection) {
    loop {
        let n = server.output(NOW).len();
        if n == 0 {
            return;
        }
        server.accepted(n, NOW);
    }
}

fn answer(server: &mut Connection, ticket: Ticket) {
    let result = Json::parse(r#"{"content":[]}"#).expect("JSON");
    // Where the queue is full the answer stays with its handler, and the permit with both.
    let _ = server.respond(ticket, result, NOW);
}

/// Takes all frames; says whether it reads on.
fn take(recv: &mut RecvBuffer, server: &mut Connection, handlers: Handlers, reads: bool) -> bool {
    loop {
        if !server.wants_read() {
            if !reads {
                return false;
            }
            write(server);
        }
        let Some(frame) = recv.next_frame() else { break };
        let batch = frame.batch().filter(|_| server.open_batch(NOW));
        match batch {
            None => one(frame.message(), server, handlers),
            Some(batch) => {
                batch.for_each(|message| one(message, server, handlers));
                server.close_batch(NOW);
            }
        }
    }
    if reads {
        write(server);
    }
    true
}

fn one(message: mcp_wire::Message<'_>, server: &mut Connection, handlers: Handlers) {
    let event = server.handle(message, NOW);
    if let Event::Request { ticket, admission: Admission::Run, .. } = event
        && handlers == Handlers::Answer
    {
        answer(server, ticket);
    }
    while let Some(signal) = server.poll_signal() {
        match signal {
            Signal::Start(ticket) if handlers == Handlers::Answer => answer(server, ticket),
            Signal::Cancelled { ticket, running: true, .. } => {
                let _ = server.abandon(ticket, NOW);
            }
            _ => {}
        }
    }
}

/// `#` stands for the number, `META` for the metadata of a modern request.
fn line(text: &str) -> impl Fn(u64, &mut Vec<u8>) + 'static {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let text = text.replace("META", meta);
    let parts: Vec<String> = text.split('#').map(str::to_owned).collect();
    move |n, chunk| {
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                let _ = write!(chunk, "{}", n + 1_000_000);
            }
            chunk.extend_from_slice(part.as_bytes());
        }
    }
}

fn flood(handlers: Handlers, reads: bool, first: &'static str, text: &str) -> impl Fn(u64, &mut Meter) + 'static {
    let line = line(text);
    move |n, meter| {
        let mut server = server();
        let mut recv = RecvBuffer::default();
        recv.extend(first.as_bytes());
        take(&mut recv, &mut server, handlers, true);
        meter.lines(n, &mut recv, &line, |recv| take(recv, &mut server, handlers, reads));
    }
}

/// As many listens as may be, and changes that a client does or does not read.
fn listens(reads: bool) -> impl Fn(u64, &mut Meter) + 'static {
    move |n, meter| {
        let mut server = server();
        let mut recv = RecvBuffer::default();
        let open = line(LISTEN);
        let mut lines = Vec::new();
        for id in 0..64 {
            open(id, &mut lines);
            lines.push(b'\n');
        }
        recv.extend(&lines);
        take(&mut recv, &mut server, Handlers::Wait, true);
        meter.cost(64 * 120 * n as usize, || {
            for _ in 0..n {
                server.publish(Change::ToolsList, NOW);
                if reads {
                    write(&mut server);
                }
            }
        });
    }
}

/// One handler that tells of its progress, or logs, and a client that does not read.
fn chatter(log: bool) -> impl Fn(u64, &mut Meter) + 'static {
    move |n, meter| {
        let mut server = server();
        let mut recv = RecvBuffer::default();
        let meta = r#""progressToken":1,"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
        recv.extend(
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"_meta\":{{{meta}}}}}}}\n")
                .as_bytes(),
        );
        let frame = recv.next_frame().expect("a line");
        let Event::Request { ticket, .. } = server.handle(frame.message(), NOW) else { panic!("it is a request") };
        let data = Json::parse("\"some words of a handler that has much to tell\"").expect("JSON");
        meter.cost(100 * n as usize, || {
            for at in 0..n {
                let now = Instant::from_epoch(std::time::Duration::from_millis(at * 10));
                let _ = if log {
                    server.log(ticket, LogLevel::Info, None, data, now)
                } else {
                    server.progress(ticket, at as f64, None, Some("some words of a handler"), now)
                };
            }
        });
    }
}

const REQUEST: &str = r##"{"jsonrpc":"2.0","id":#,"method":"tools/call","params":{META}}"##;
const LISTEN: &str = r##"{"jsonrpc":"2.0","id":#,"method":"subscriptions/listen","params":{META,"notifications":{"toolsListChanged":true}}}"##;
const CANCEL: &str = r##"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":#}}"##;
const SESSION: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
);

pub(crate) fn rows() -> Vec<Row> {
    const MANY: u64 = 62_500;
    let read = "one read";
    let (house, own) = ("`running_limit`, `waiting_limit`", "`own_answers_limit`");
    let ping = |at| format!(r##"{{"jsonrpc":"2.0","id":"p{at}-#","method":"ping"}}"##);
    let batch = (0..100).map(ping).collect::<Vec<_>>().join(",");
    vec![
        row("requests that are answered", MANY, read, flood(Handlers::Answer, true, "", REQUEST)),
        row("requests into a full house", MANY, house, flood(Handlers::Wait, true, "", REQUEST)),
        row(
            "requests whose answers are never read (reading pauses)",
            500_000,
            "`queue_limit`, `own_answers_limit`",
            flood(Handlers::Answer, false, "", REQUEST),
        ),
        row("requests with one id", MANY, house, flood(Handlers::Wait, true, "", &REQUEST.replace('#', "7"))),
        row("requests, each cancelled", MANY, house, flood(Handlers::Wait, true, "", &format!("{REQUEST}\n{CANCEL}"))),
        row("cancellations of nothing", MANY, read, flood(Handlers::Wait, true, "", CANCEL)),
        row("listens, more than may be", MANY, "`listen_limit`", flood(Handlers::Wait, true, "", LISTEN)),
        row(
            "listens, each cancelled",
            MANY,
            "`listen_limit`",
            flood(Handlers::Wait, true, "", &format!("{LISTEN}\n{CANCEL}")),
        ),
        row("changes for as many listens as may be", 12_500, "`listen_limit`", listens(true)),
        row("the same to a client that never reads", 12_500, "`queue_limit`", listens(false)),
        row("progress to a client that never reads", MANY, "one a request", chatter(false)),
        row("logs to a client that never reads", 250_000, "`queue_limit`", chatter(true)),
        row(
            "responses to a server that asked nothing",
            MANY,
            read,
            flood(Handlers::Wait, true, "", r##"{"jsonrpc":"2.0","id":#,"result":{}}"##),
        ),
        row(
            "notifications of unknown methods",
            MANY,
            read,
            flood(Handlers::Wait, true, "", r##"{"jsonrpc":"2.0","method":"notifications/x#"}"##),
        ),
        row(
            "lines that get an error, to a client that reads",
            MANY,
            own,
            flood(Handlers::Wait, true, "", r##"{"jsonrpc":"2.0","id":#,"method":1}"##),
        ),
        row(
            "the same to one that never reads (reading pauses)",
            MANY,
            own,
            flood(Handlers::Wait, false, "", r##"{"jsonrpc":"2.0","id":#,"method":1}"##),
        ),
        row(
            "legacy sessions, one after the other",
            MANY,
            "the newest session",
            flood(Handlers::Wait, true, "", SESSION.trim_end()),
        ),
        row(
            "arrays of a hundred pings",
            1_000,
            "the array",
            flood(Handlers::Wait, true, SESSION, &format!("[{batch}]")),
        ),
    ]
}
