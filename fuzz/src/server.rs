//! Owns the target for a server connection: any calls in any order, anything from the client, and what must hold after each, whatever they were.
//! It must not know what the connection believes.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use mcp_wire::server::{
    Admission, Change, ClientRequest, ClientRequestOptions, Config, Connection, Ended, Event, LogLevel, Session,
    Signal, Ticket,
};
use mcp_wire::{Eras, Instant, Json, JsonBuf, Message, RecvBuffer, SendError};
use serde_json::Value;

use crate::choices::Choices;

/// What a client may write; `@` is an id that is new (or, once in a while, one that is not), `%` the metadata of a modern request.
const LINES: [&str; 26] = [
    r#"{"jsonrpc":"2.0","id":@,"method":"x","params":{"_meta":{%,"progressToken":@,"io.modelcontextprotocol/logLevel":"info"}}}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"x","params":{"_meta":{%}}}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"server/discover","params":{"_meta":{%}}}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"subscriptions/listen","params":{"_meta":{%},"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a"]}}}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"subscriptions/listen","params":{"_meta":{%},"notifications":{}}}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"tools/call","params":{"_meta":{"progressToken":@}}}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"logging/setLevel","params":{"level":"debug"}}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"resources/subscribe","params":{"uri":"a"}}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"resources/unsubscribe","params":{"uri":"a"}}"#,
    r#"[{"jsonrpc":"2.0","id":@,"method":"tools/call"},{"jsonrpc":"2.0","method":"notifications/x"},7]"#,
    r#"[{"jsonrpc":"2.0","id":@,"method":"ping"},{"jsonrpc":"2.0","id":1,"result":{}}]"#,
    r#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#,
    r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"_meta":{}}}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"x","params":[1]}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1999-01-01"}}}"#,
    r#"{"jsonrpc":"2.0","id":true,"method":"x"}"#,
    r#"{"jsonrpc":"2.0","id":@,"method":"#,
    r#"[]"#,
];

const META: &str =
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

/// The input is a configuration, then calls.
pub fn server(data: &[u8]) {
    let outcome = Run::of(data);
    assert_eq!(outcome, Run::of(data), "the same calls give the same outputs");
}

struct Run {
    server: Connection,
    recv: RecvBuffer,
    now: Instant,
    queue: usize,
    next_id: usize,
    /// Handlers that have not returned.
    running: Vec<Ticket>,
    waiting: BTreeSet<Ticket>,
    tasks: Vec<Ticket>,
    /// Tokens of the admitted requests that are owed an answer.
    owed: BTreeMap<Ticket, String>,
    /// Tokens of requests whose answer must come.
    due: BTreeSet<String>,
    session: Option<Session>,
    open: BTreeSet<ClientRequest>,
    /// The line that is being written.
    line: Vec<u8>,
    /// How often each id was answered, by its token.
    answered: BTreeMap<String, usize>,
    /// Some line was not made here, or used an id again, so that not every answer can be counted.
    foreign: bool,
    /// What was lent by ownership.
    taken: Option<(Vec<u8>, usize)>,
    gone: bool,
    outputs: DefaultHasher,
}

impl Run {
    fn of(data: &[u8]) -> u64 {
        let mut choices = Choices::new(data);
        let mut config = Config::new("s", "1");
        let capabilities = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}}"#;
        config.capabilities = JsonBuf::from(Json::parse(capabilities).expect("JSON"));
        config.serve([Eras::Dual, Eras::Dual, Eras::Modern, Eras::Legacy][choices.below(4)]);
        config.running_limit = [1, 3, 50][choices.below(3)];
        config.waiting_limit = [0, 2, 50][choices.below(3)];
        config.waiting_bytes_limit = [300, 1 << 20][choices.below(2)];
        config.listen_limit = [1, 5][choices.below(2)];
        config.queue_limit = [700, 5000, 1 << 16][choices.below(3)];
        config.own_answers_limit = [300, 1 << 14][choices.below(2)];
        config.client_request_limit = [1, 5][choices.below(2)];
        config.client_request_timeout = Duration::from_millis([50, 500][choices.below(2)]);
        config.task_limit = [0, 1, 5][choices.below(3)];
        config.pause_when_full = choices.flip();
        config.omit_null_id = choices.flip();
        config.require_result_type = choices.flip();
        config.log_rate = [2, 1000][choices.below(2)];
        config.drain = Duration::from_millis(100);
        config.line_limit = 4096;
        let queue = config.queue_limit;
        let Ok(server) = Connection::new(config) else { return 0 };
        let mut run = Self {
            server,
            recv: RecvBuffer::new(4096),
            now: Instant::EPOCH,
            queue,
            next_id: 0,
            running: Vec::new(),
            waiting: BTreeSet::new(),
            tasks: Vec::new(),
            owed: BTreeMap::new(),
            due: BTreeSet::new(),
            session: None,
            open: BTreeSet::new(),
            line: Vec::new(),
            answered: BTreeMap::new(),
            foreign: false,
            taken: None,
            gone: false,
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
        let now = self.now;
        match choices.below(20) {
            0..=5 => self.send(choices),
            6 => {
                let bytes = choices.bytes();
                self.foreign = true;
                self.read(bytes);
                if choices.flip() {
                    self.read(b"\n");
                }
            }
            7 => {
                let id = self.next_id.saturating_sub(choices.below(6));
                self.read(format!("{}\n", CANCEL.replace('@', &token(id))).as_bytes());
            }
            8..=10 => {
                // A handler that has returned is told of nothing: what was told before is taken first.
                self.look();
                if let Some(ticket) = pick(choices, &self.running) {
                    self.answer(ticket, choices);
                }
            }
            11 => {
                let tickets = if choices.flip() { &self.running } else { &self.tasks };
                let Some(ticket) = pick(choices, tickets) else { return };
                let value = [0.0, 1.5, f64::NAN, 1e300][choices.below(4)];
                let message = "m\n".repeat(choices.below(200));
                let _ = self.server.progress(ticket, value, Some(1e3), Some(&message), now);
                let _ = self.server.log(ticket, LogLevel::Error, Some("l"), Json::NULL, now);
            }
            12 => {
                if let Some(task) = pick(choices, &self.tasks) {
                    self.tasks.retain(|other| *other != task);
                    self.server.end_task(task, now);
                    assert_eq!(self.server.progress(task, 1e9, None, None, now), Err(SendError::Ended));
                }
            }
            13 => {
                let change = [Change::ToolsList, Change::Resource { subscribed: "a", uri: "a/b" }][choices.below(2)];
                assert!(self.server.publish(change, now) <= 6, "more were told than there can be");
            }
            14 => self.ask(choices),
            15 => {
                if let Some(request) = pick(choices, &self.open.iter().copied().collect::<Vec<_>>()) {
                    self.server.cancel_client_request(request, [None, Some("r")][choices.below(2)], now);
                }
            }
            16 => {
                let time = Duration::from_millis([0, 1, 20, 60, 1000][choices.below(5)]);
                self.now = self.now.checked_add(time).expect("a short history");
                if choices.flip() {
                    self.server.handle_timeout(self.now);
                    let due = self.server.poll_timeout();
                    assert!(due.is_none_or(|due| due > self.now), "what was due has happened: {due:?}");
                }
            }
            17 if choices.below(12) == 0 => match choices.below(4) {
                0 => self.server.end_of_input(now),
                1 => self.server.stop(now),
                2 => self.server.end_drain(now),
                _ => {
                    self.server.peer_gone(now);
                    // Serving that has ended stays ended as it was.
                    self.gone = self.server.ended() == Some(Ended::PeerGone);
                }
            },
            _ => self.write(choices),
        }
    }

    fn send(&mut self, choices: &mut Choices<'_>) {
        // A pause is what bounds memory: nothing is handed in during one.
        if !self.server.wants_read() {
            return;
        }
        if choices.below(16) > 0 {
            self.next_id += 1;
        } else {
            self.foreign = true;
        }
        let line = LINES[choices.below(LINES.len())].replace('@', &token(self.next_id)).replace('%', META);
        self.read(line.as_bytes());
        self.read(b"\n");
    }

    /// Bytes of the client.
    fn read(&mut self, bytes: &[u8]) {
        self.recv.extend(bytes);
        let mut recv = std::mem::replace(&mut self.recv, RecvBuffer::new(1));
        while let Some(frame) = recv.next_frame() {
            match frame.batch().filter(|_| self.server.open_batch(self.now)) {
                Some(batch) => {
                    batch.for_each(|message| self.message(message));
                    self.server.close_batch(self.now);
                }
                None => self.message(frame.message()),
            }
        }
        self.recv = recv;
    }

    fn message(&mut self, message: Message<'_>) {
        let event = self.server.handle(message, self.now);
        format!("{event:?}").hash(&mut self.outputs);
        match event {
            Event::Request { ticket, admission, request } => {
                assert!(!self.running.contains(&ticket), "{ticket:?} names two requests");
                if admission == Admission::Run {
                    self.running.push(ticket);
                } else {
                    assert!(self.waiting.insert(ticket), "{ticket:?} names two requests");
                }
                let token = request.id.token().to_owned();
                self.due.insert(token.clone());
                self.owed.insert(ticket, token);
            }
            Event::Refused { id, .. } => drop(self.due.insert(id.token().to_owned())),
            Event::Initialize { session, .. } => self.session = Some(session),
            Event::ClientResult { request, .. } | Event::ClientError { request, .. } => {
                assert!(self.open.remove(&request), "{request:?} ended twice, or never was");
            }
            Event::ClientProgress { request, .. } => assert!(self.open.contains(&request)),
            Event::Cancellation { id: Some(id), applied: true, .. } => drop(self.due.remove(id.token())),
            _ => {}
        }
    }

    fn answer(&mut self, ticket: Ticket, choices: &mut Choices<'_>) {
        let size = [0, 10, 400, 3000][choices.below(4)];
        let text = match choices.below(4) {
            0 => "7".to_owned(),
            1 => r#"{"resultType":"input_required","_meta":{"a":1}}"#.to_owned(),
            _ => format!(r#"{{"resultType":"complete","a":"{}"}}"#, "x".repeat(size)),
        };
        let result = Json::parse(&text).expect("JSON");
        let task = choices.below(4) == 0 && self.server.begin_task(ticket);
        let silent = !self.owed.contains_key(&ticket);
        let (server, now) = (&mut self.server, self.now);
        let sent = match choices.below(6) {
            0 => server.respond_error(ticket, [-32002, -1, 7][choices.below(3)], &"\n".repeat(size), Some(result), now),
            1 if !task => server.abandon(ticket, now),
            2 if !task => server.respond_missing_capability(ticket, Json::EMPTY, now),
            _ => server.respond(ticket, result, now),
        };
        if sent == Err(SendError::Full) {
            assert!(server.pending_output() > 0 && !silent, "LIM-04: there is nothing in the way");
            server.end_task(ticket, now);
            return;
        }
        assert_ne!(sent, Err(SendError::Ended), "its handler had not returned");
        self.running.retain(|other| *other != ticket);
        self.owed.remove(&ticket);
        assert_eq!(server.respond(ticket, Json::EMPTY, now), Err(SendError::Ended), "RTE-09");
        if task && !silent && sent.is_ok() {
            self.tasks.push(ticket);
        }
    }

    fn ask(&mut self, choices: &mut Choices<'_>) {
        let Some(session) = self.session else { return };
        let mut options = ClientRequestOptions::default();
        options.progress = choices.flip();
        let method = ["ping", "roots/list", "tools/call", ""][choices.below(4)];
        let params = [None, Json::parse(r#"{"a":1}"#).ok(), Json::parse("[1]").ok()][choices.below(3)];
        let before = (self.server.client_requests(), self.server.pending_output());
        if choices.flip() {
            let _ = self.server.notify_client(session, "notifications/x", params, self.now);
            return;
        }
        match self.server.request_client(session, method, params, options, self.now) {
            Ok(request) => assert!(self.open.insert(request), "{request:?} names two requests"),
            Err(_) => {
                let after = (self.server.client_requests(), self.server.pending_output());
                assert_eq!(after, before, "an error changes nothing");
            }
        }
    }

    /// The writer takes some bytes of what there is.
    fn write(&mut self, choices: &mut Choices<'_>) {
        if self.taken.is_none() && choices.flip() {
            self.taken = self.server.take_output(self.now).map(|bytes| (bytes, 0));
        }
        let (bytes, done) = match self.taken.take() {
            Some((bytes, done)) => {
                assert!(self.server.take_output(self.now).is_none(), "one is out");
                (bytes, Some(done))
            }
            None => {
                let bytes = self.server.output(self.now).to_vec();
                assert_eq!(bytes, self.server.output(self.now), "asking twice is harmless");
                (bytes, None)
            }
        };
        let rest = &bytes[done.unwrap_or(0)..];
        let n = [rest.len(), rest.len(), 1.min(rest.len()), rest.len() / 2][choices.below(4)];
        self.server.accepted(n, self.now);
        self.wrote(&rest[..n]);
        if let Some(done) = done {
            if done + n == bytes.len() {
                self.server.recycle(bytes);
            } else {
                self.taken = Some((bytes, done + n));
            }
        }
    }

    fn wrote(&mut self, bytes: &[u8]) {
        bytes.hash(&mut self.outputs);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let value: Value = serde_json::from_slice(&line).expect("each line is JSON");
                match value {
                    Value::Array(answers) => {
                        assert!(!answers.is_empty(), "LEG-10");
                        answers.iter().for_each(|answer| self.one(answer));
                    }
                    value => self.one(&value),
                }
            }
        }
    }

    fn one(&mut self, message: &Value) {
        assert_eq!(message["jsonrpc"], "2.0");
        if message.get("method").is_none() {
            assert!(message.get("result").is_some() != message.get("error").is_some(), "MSG-02: {message}");
            if let Some(id) = message.get("id").filter(|id| !id.is_null()) {
                *self.answered.entry(id.to_string()).or_default() += 1;
            }
        }
    }

    /// Takes what is told, and looks at what must hold between two calls.
    fn look(&mut self) {
        while let Some(signal) = self.server.poll_signal() {
            format!("{signal:?}").hash(&mut self.outputs);
            match signal {
                Signal::Start(ticket) => {
                    assert!(self.waiting.remove(&ticket), "{ticket:?} does not wait");
                    self.running.push(ticket);
                }
                Signal::Cancelled { ticket, running, .. } => {
                    self.owed.remove(&ticket);
                    let known = if running { self.running.contains(&ticket) } else { self.waiting.remove(&ticket) };
                    assert!(known, "{ticket:?} is not there");
                }
                Signal::ClientRequestEnded { request, .. } => {
                    assert!(self.open.remove(&request), "{request:?} ended twice, or never was");
                }
                _ => {}
            }
        }
        assert_eq!(self.server.client_requests(), self.open.len());
        let most = 3 * self.queue + (1 << 16);
        assert!(self.server.pending_output() <= most, "LIM-04: {} bytes are queued", self.server.pending_output());
    }

    /// The end of the input, time for everybody, and a client that reads: nothing is left then.
    fn end(mut self) -> u64 {
        self.look();
        self.server.end_of_input(self.now);
        for _ in 0..3 {
            self.now = self.now.checked_add(Duration::from_secs(10)).expect("a short history");
            self.server.handle_timeout(self.now);
            self.look();
        }
        loop {
            if let Some((bytes, done)) = self.taken.take() {
                self.server.accepted(bytes.len() - done, self.now);
                self.wrote(&bytes[done..]);
                self.server.recycle(bytes);
            }
            self.taken = self.server.take_output(self.now).map(|bytes| (bytes, 0));
            self.look();
            if self.taken.is_none() {
                break;
            }
        }
        let how = self.server.ended().expect("serving has ended");
        assert_eq!(how == Ended::PeerGone, self.gone, "{how:?}");
        assert!(self.waiting.is_empty() && self.owed.is_empty() && self.open.is_empty());
        for ticket in std::mem::take(&mut self.running) {
            assert_eq!(self.server.respond(ticket, Json::EMPTY, self.now), Ok(()), "a handler that returns late");
        }
        assert_eq!(self.server.pending_output(), 0, "CAN-06: nothing follows the end");
        assert_eq!(self.server.poll_timeout(), None, "nothing is due after the end");
        assert_eq!(self.server.poll_signal(), None);
        if !self.gone {
            assert!(self.line.is_empty(), "FRM-02: the last line is whole");
            if !self.foreign {
                assert!(self.answered.values().all(|answers| *answers == 1), "MSG-07: {:?}", self.answered);
                let missing: Vec<_> = self.due.iter().filter(|id| !self.answered.contains_key(*id)).collect();
                assert!(missing.is_empty(), "MSG-07: {missing:?} were not answered");
            }
        }
        self.outputs.finish()
    }
}

const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":@,"reason":"r"}}"#;

fn token(id: usize) -> String {
    if id % 3 == 0 { format!("\"r{id}\"") } else { id.to_string() }
}

fn pick<T: Copy>(choices: &mut Choices<'_>, from: &[T]) -> Option<T> {
    from.get(choices.below(from.len().max(1))).copied()
}
