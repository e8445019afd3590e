//! Owns the target for a client connection: any calls in any order, anything from the server, and what must hold after each, whatever they were.
//! It must not know what the connection believes.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use mcp_wire::client::{Config, Connection, Event, Handle, ProgressToken, RequestOptions, ServerTicket, Signal};
use mcp_wire::{Eras, Filter, Id, IdBuf, Instant, Json, Message, RecvBuffer, SendError};
use serde_json::Value;

use crate::choices::Choices;

const QUEUE: usize = 3000;
const REQUESTS: usize = 6;
const LISTENS: usize = 3;
/// A cancellation has room of its own: its reason is cut at 1 KiB, and each byte may be escaped.
const CANCELLATION: usize = 200 + 6 * mcp_wire::config::REASON_LIMIT;

/// What a server may write; `@` is the id of something that was asked.
const LINES: [&str; 24] = [
    r#"{"jsonrpc":"2.0","id":@,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":@,"result":{"supportedVersions":["2026-07-28"]}}"#,
    r#"{"jsonrpc":"2.0","id":@,"result":{"protocolVersion":"2025-11-25"}}"#,
    r#"{"jsonrpc":"2.0","id":@,"result":{"protocolVersion":"2025-03-26"}}"#,
    r#"{"jsonrpc":"2.0","id":@,"result":{"resultType":"input_required"}}"#,
    r#"{"jsonrpc":"2.0","id":@,"result":{"task":{"taskId":"t"}}}"#,
    r#"{"jsonrpc":"2.0","id":@,"result":{"resultType":7}}"#,
    r#"{"jsonrpc":"2.0","id":@,"result":{"#,
    r#"{"jsonrpc":"2.0","id":"@","result":{}}"#,
    r#"{"jsonrpc":"2.0","id":@,"error":{"code":-32601,"message":"m"}}"#,
    r#"{"jsonrpc":"2.0","id":@,"error":{"code":-32022,"message":"m","data":{"supported":["2026-07-28"]}}}"#,
    r#"{"jsonrpc":"2.0","id":@,"error":{"code":-32022,"message":"m","data":{"supported":["1999-01-01"]}}}"#,
    r#"{"jsonrpc":"2.0","id":@,"error":{"code":-32021,"message":"m","data":{}}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@,"progress":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@,"progress":2.5,"total":3}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":@},"notifications":{"toolsListChanged":true}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":@}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":@,"reason":"r"}}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"roots/list","params":{}}"#,
    r#"[{"jsonrpc":"2.0","id":@,"result":{}},{"jsonrpc":"2.0","id":"x","method":"roots/list"}]"#,
    r#"[{"jsonrpc":"2.0","id":"y","method":"roots/list"},{"jsonrpc":"2.0","id":@,"method":"ping"},7]"#,
    r#"Server listening on stdio"#,
];

/// The input is a configuration, then calls.
pub fn client(data: &[u8]) {
    let outcome = Run::of(data);
    assert_eq!(outcome, Run::of(data), "the same calls give the same outputs");
}

struct Run {
    client: Connection,
    recv: RecvBuffer,
    now: Instant,
    /// Handles that have not ended.
    live: BTreeMap<Handle, bool>,
    asked: Vec<ServerTicket>,
    /// Ids of requests that were written whole.
    ids: Vec<u64>,
    cancelled: BTreeSet<u64>,
    /// The line that is being written.
    line: Vec<u8>,
    /// Bytes of this life that were accepted, and how many were lent.
    accepted: usize,
    lent: usize,
    /// What was lent by ownership.
    taken: Option<(Vec<u8>, usize)>,
    /// How much was lent when nothing more was to begin.
    closed: Option<usize>,
    outputs: DefaultHasher,
}

impl Run {
    fn of(data: &[u8]) -> u64 {
        let mut choices = Choices::new(data);
        let mut config = Config::new("c", "1");
        (config.queue_limit, config.in_flight_limit, config.listen_limit) = (QUEUE, REQUESTS, LISTENS);
        (config.server_request_limit, config.task_limit) = (2, 2);
        config.request_timeout = Duration::from_millis(500);
        config.probe_timeout = Duration::from_millis(300);
        config.start_timeout = Duration::from_millis(700);
        config.speak([Eras::Dual, Eras::Modern, Eras::Legacy][choices.below(3)]);
        config.answers_requests = choices.flip();
        config.wait_for_restart = choices.flip();
        config.queue_timeout = choices.flip().then(|| Duration::from_millis(100));
        config.known_version =
            [None, None, Some("2026-07-28".to_owned()), Some("2025-11-25".to_owned())][choices.below(4)].clone();
        let Ok(client) = Connection::new(config) else { return 0 };
        let mut run = Self {
            client,
            recv: RecvBuffer::new(4096),
            now: Instant::EPOCH,
            live: BTreeMap::new(),
            asked: Vec::new(),
            ids: Vec::new(),
            cancelled: BTreeSet::new(),
            line: Vec::new(),
            accepted: 0,
            lent: 0,
            taken: None,
            closed: None,
            outputs: DefaultHasher::new(),
        };
        while !choices.is_over() {
            run.call(&mut choices);
            // Signals that nobody takes are not lost.
            if choices.below(4) > 0 {
                run.look();
            }
        }
        run.end()
    }

    fn call(&mut self, choices: &mut Choices<'_>) {
        match choices.below(20) {
            0..=2 => self.request(choices),
            3 => {
                let filter = [Filter::default(), Filter::default().tools_list_changed().resource("a")];
                let listen = self.client.listen(&filter[choices.below(2)], RequestOptions::default(), self.now);
                self.begun(listen, true);
            }
            4 => {
                let method = ["notifications/x", "notifications/initialized", "m", ""][choices.below(4)];
                let params = [None, Json::parse(r#"{"a":1}"#).ok(), Json::parse("[1]").ok()][choices.below(3)];
                let before = self.client.pending_output();
                if self.client.notify(method, params, self.now).is_err() {
                    assert_eq!(self.client.pending_output(), before, "an error changes nothing");
                }
            }
            5 | 6 => {
                let Some(&handle) = self.live.keys().nth(choices.below(self.live.len().max(1))) else { return };
                match choices.below(4) {
                    0 => self.client.overflow(handle, self.now),
                    1 => {
                        let text = String::from_utf8_lossy(choices.bytes()).repeat(choices.below(9));
                        self.client.cancel(handle, Some(&text), self.now);
                    }
                    _ => self.client.cancel(handle, None, self.now),
                }
            }
            7..=9 => self.write(choices),
            10..=13 => {
                let id = match choices.below(4) {
                    0 => choices.below(20) as u64,
                    back => self.ids.iter().rev().nth(back - 1).copied().unwrap_or(1),
                };
                let line = LINES[choices.below(LINES.len())].replace('@', &id.to_string());
                self.read(line.as_bytes());
                self.read(b"\n");
            }
            14 => {
                // Bytes of any kind, with or without an end.
                let bytes = choices.bytes();
                self.read(bytes);
                if choices.flip() {
                    self.read(b"\n");
                }
            }
            15 => {
                let time = Duration::from_millis([0, 1, 60, 350, 1000, 60_000][choices.below(6)]);
                if choices.below(8) == 0 {
                    // Time that goes back is clamped.
                    self.client.handle_timeout(Instant::EPOCH);
                }
                self.now = self.now.checked_add(time).expect("a short history");
                if choices.flip() {
                    self.client.handle_timeout(self.now);
                    let due = self.client.poll_timeout();
                    assert!(due.is_none_or(|due| due > self.now), "what was due has happened: {due:?}");
                }
            }
            16 => self.client.opened(self.now),
            17 if choices.below(4) == 0 => self.lose(choices.below(4) > 0),
            18 if choices.below(8) == 0 => {
                self.client.close(self.now);
                self.closed.get_or_insert(self.lent);
            }
            _ => self.answer(choices),
        }
    }

    fn request(&mut self, choices: &mut Choices<'_>) {
        let mut options = RequestOptions::default();
        options.idempotent = choices.flip();
        options.progress = match choices.below(4) {
            0 => ProgressToken::Minted,
            1 => {
                let token = ["\"t\"", "40", "3"][choices.below(3)];
                ProgressToken::Own(IdBuf::from(Id::parse(token).expect("a token")))
            }
            _ => ProgressToken::None,
        };
        options.max_timeout = choices.flip().then(|| Duration::from_millis(900));
        options.timeout = [None, Some(Duration::MAX), Some(Duration::ZERO)][choices.below(3)];
        let method = ["tools/call", "ping", "tasks/get", "initialize", ""][choices.below(5)];
        let big = format!(r#"{{"a":"{}"}}"#, "x".repeat(1500));
        let params = match choices.below(5) {
            0 => Json::parse(r#"{"_meta":{"progressToken":7,"a":[1]},"b":{}}"#).ok(),
            1 => Json::parse("7").ok(),
            2 => Json::parse(&big).ok(),
            _ => None,
        };
        let before = (self.client.in_flight(), self.client.pending_output());
        let request = self.client.request(method, params, options, self.now);
        if request.is_err() {
            assert_eq!((self.client.in_flight(), self.client.pending_output()), before, "an error changes nothing");
        }
        self.begun(request, false);
    }

    fn begun(&mut self, begun: Result<Handle, SendError>, listen: bool) {
        if let Ok(handle) = begun {
            assert!(self.live.insert(handle, listen).is_none(), "{handle:?} names two things");
        }
    }

    fn ended(&mut self, handle: Handle) {
        assert!(self.live.remove(&handle).is_some(), "{handle:?} ended twice, or never was");
    }

    /// Bytes of the server.
    fn read(&mut self, bytes: &[u8]) {
        self.recv.extend(bytes);
        let mut recv = std::mem::replace(&mut self.recv, RecvBuffer::new(1));
        while let Some(frame) = recv.next_frame() {
            match frame.batch().filter(|_| self.client.open_batch(self.now)) {
                Some(batch) => {
                    batch.for_each(|message| self.message(message));
                    self.client.close_batch(self.now);
                }
                None => self.message(frame.message()),
            }
        }
        self.recv = recv;
    }

    fn message(&mut self, message: Message<'_>) {
        let event = self.client.handle(message, self.now);
        format!("{event:?}").hash(&mut self.outputs);
        match event {
            Event::Result { request: handle, .. }
            | Event::Error { request: handle, .. }
            | Event::ListenEnded { listen: handle, .. } => self.ended(handle),
            Event::RequestNotification { request: handle, .. } => {
                assert_eq!(self.live.get(&handle), Some(&false), "a notification of nothing");
            }
            Event::Acknowledged { listen: handle, .. } | Event::ListenNotification { listen: handle, .. } => {
                assert_eq!(self.live.get(&handle), Some(&true), "a notification of nothing");
            }
            Event::ServerRequest { ticket, .. } => {
                assert!(!self.asked.contains(&ticket), "{ticket:?} names two requests");
                self.asked.push(ticket);
            }
            _ => {}
        }
    }

    /// The writer takes some bytes of what there is.
    fn write(&mut self, choices: &mut Choices<'_>) {
        if self.taken.is_none() && choices.flip() {
            self.taken = self.client.take_output(self.now).map(|bytes| (bytes, 0));
            if let Some((bytes, _)) = &self.taken {
                assert!(!bytes.is_empty(), "there is something in what was taken");
                self.lent = self.accepted + bytes.len();
            }
        }
        let (bytes, done) = match self.taken.take() {
            Some((bytes, done)) => {
                assert!(self.client.take_output(self.now).is_none(), "one is out");
                (bytes, Some(done))
            }
            None => {
                let bytes = self.client.output(self.now).to_vec();
                assert_eq!(bytes, self.client.output(self.now), "asking twice is harmless");
                self.lent = self.accepted + bytes.len();
                (bytes, None)
            }
        };
        let rest = &bytes[done.unwrap_or(0)..];
        let n = [rest.len(), rest.len(), 1.min(rest.len()), rest.len() / 2][choices.below(4)];
        self.client.accepted(n, self.now);
        self.wrote(&rest[..n]);
        if let Some(done) = done {
            if done + n == bytes.len() {
                self.client.recycle(bytes);
            } else {
                self.taken = Some((bytes, done + n));
            }
        }
    }

    fn wrote(&mut self, bytes: &[u8]) {
        bytes.hash(&mut self.outputs);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let begins = self.accepted - self.line.len();
            self.accepted += piece.len();
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let late = self.closed.is_some_and(|lent| begins >= lent);
                self.whole_line(&line, late);
            }
        }
    }

    fn whole_line(&mut self, line: &[u8], late: bool) {
        let value: Value = serde_json::from_slice(line).expect("each line is JSON");
        if let Value::Array(answers) = &value {
            assert!(!answers.is_empty() && answers.iter().all(|answer| answer.get("method").is_none()), "LEG-09");
            return;
        }
        assert_eq!(value["jsonrpc"], "2.0");
        if value["method"] == "notifications/cancelled" {
            let id = value["params"]["requestId"].as_u64().expect("an id of ours");
            assert!(self.ids.contains(&id), "CAN-02: a cancellation of what was not written: {id}");
            assert!(self.cancelled.insert(id), "CAN-02: a second cancellation: {id}");
        } else if value.get("method").is_some() {
            if let Some(id) = value.get("id") {
                let id = id.as_u64().expect("an id of ours");
                assert!(!late, "SHD-03: a request begins after the close: {id}");
                assert!(self.ids.iter().all(|before| *before < id), "MSG-06: an id that is not new: {id}");
                self.ids.push(id);
            }
        }
    }

    /// The server's process is gone, and with it what was not read.
    fn lose(&mut self, restarting: bool) {
        self.client.lost(restarting, self.now);
        if let Some((bytes, _)) = self.taken.take() {
            self.client.recycle(bytes);
        }
        self.recv.reset();
        self.line.clear();
        self.lent = self.accepted;
        if !restarting {
            self.closed.get_or_insert(self.lent);
        }
    }

    fn answer(&mut self, choices: &mut Choices<'_>) {
        let Some(ticket) = self.asked.get(choices.below(self.asked.len().max(1))).copied() else { return };
        let result = Json::parse(["{}", "7", r#"{"a":"\u0000"}"#][choices.below(3)]).expect("JSON");
        let sent = match choices.below(3) {
            0 => self.client.respond_error(ticket, -1, "m\n", Some(result), self.now),
            1 => self.client.respond_unknown(ticket, self.now),
            _ => self.client.respond(ticket, result, self.now),
        };
        if sent.is_ok() {
            self.asked.retain(|asked| *asked != ticket);
            assert!(self.client.respond(ticket, Json::EMPTY, self.now).is_err(), "{ticket:?} is answered twice");
        }
    }

    /// Takes what is told, and looks at what must hold between two calls.
    fn look(&mut self) {
        while let Some(signal) = self.client.poll_signal() {
            format!("{signal:?}").hash(&mut self.outputs);
            match signal {
                Signal::Ended { request: handle, .. } | Signal::ListenEnded { listen: handle, .. } => {
                    self.ended(handle);
                }
                Signal::ServerRequestCancelled { ticket, .. } => {
                    let before = self.asked.len();
                    self.asked.retain(|asked| *asked != ticket);
                    assert_eq!(self.asked.len() + 1, before, "{ticket:?} ended twice, or never was");
                }
                Signal::Resubscribed { listen } => assert_eq!(self.live.get(&listen), Some(&true)),
                _ => {}
            }
        }
        assert_eq!(self.client.in_flight(), self.live.len());
        let pending = self.client.pending_output();
        assert!(pending <= 2 * QUEUE + (REQUESTS + LISTENS) * CANCELLATION, "LIM-04: {pending} bytes are queued");
    }

    fn end(mut self) -> u64 {
        self.look();
        self.lose(false);
        self.look();
        assert!(self.live.is_empty(), "{:?} never ended", self.live);
        assert!(self.asked.is_empty(), "{:?} were never cancelled", self.asked);
        assert_eq!(self.client.poll_timeout(), None, "nothing is due after the end");
        assert!(self.client.is_idle());
        assert!(self.client.output(self.now).is_empty(), "SHD-03: there is nobody to write to");
        assert!(self.client.request("m", None, RequestOptions::default(), self.now).is_err());
        self.outputs.finish()
    }
}
