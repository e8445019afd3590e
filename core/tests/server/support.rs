//! A client made of text: it writes lines into a server connection and reads lines from it. It knows no rule.

use std::time::Duration;

use mcp_wire::Eras;
use mcp_wire::server::{Admission, ClientRequest, Config, Connection, Event, Session, Signal, Ticket};
use mcp_wire::{DropReason, Instant, Json, JsonBuf, RecvBuffer, SendError, UnreadableReason};

/// The metadata of a modern request, without braces.
pub(crate) const META: &str =
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

/// An event, owned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    Request { ticket: Ticket, admission: Admission, method: String },
    Cancellation { id: Option<String>, reason: Option<String>, applied: bool },
    Notification { method: String },
    Refused { id: String, code: i64 },
    Dropped { reason: DropReason, id: Option<String>, code: Option<i64>, len: u64 },
    Initialize { session: Session, version: &'static str },
    ClientResult { request: ClientRequest, result: String },
    ClientError { request: ClientRequest, code: i64 },
    ClientProgress { request: ClientRequest, params: String },
    Handled,
}

pub(crate) struct Peer {
    pub(crate) server: Connection,
    recv: RecvBuffer,
    /// Requests to the client may leave.
    legacy: bool,
    pub(crate) now: Instant,
}

/// A modern server whose answers carry no name, so that expected lines stay short.
pub(crate) fn config() -> Config {
    let mut config = Config::new("s", "1");
    config.serve(Eras::Modern);
    config.server_info = None;
    config.capabilities =
        json(r#"{"tools":{"listChanged":true},"resources":{"listChanged":false,"subscribe":true},"logging":{}}"#);
    config
}

/// A server for both eras.
pub(crate) fn dual() -> Config {
    let mut config = config();
    config.serve(Eras::Dual);
    config.server_info = Some(json(r#"{"name":"s","version":"1"}"#));
    config
}

pub(crate) fn json(text: &str) -> JsonBuf {
    JsonBuf::from(Json::parse(text).expect("JSON"))
}

/// A request line with metadata. `rest` are further members of its params.
pub(crate) fn request(id: &str, method: &str, rest: &str) -> String {
    let rest = if rest.is_empty() { String::new() } else { format!(",{rest}") };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{{{META}}}{rest}}}}}"#)
}

/// A request line with further members of `_meta`.
pub(crate) fn request_with_meta(id: &str, method: &str, meta: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{{{META},{meta}}}}}}}"#)
}

/// A request line of the legacy era. `params` are the members of its params.
pub(crate) fn legacy(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#)
}

pub(crate) fn initialize(id: &str, version: &str) -> String {
    let rest = r#""capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}"#;
    legacy(id, "initialize", &format!(r#""protocolVersion":"{version}",{rest}"#))
}

pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub(crate) fn cancel(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

pub(crate) fn listen(id: &str, filter: &str) -> String {
    request(id, "subscriptions/listen", &format!(r#""notifications":{filter}"#))
}

pub(crate) fn error(id: &str, code: i64, message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
}

/// What an empty result becomes.
pub(crate) fn empty_result(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete"}}}}"#)
}

impl Default for Peer {
    fn default() -> Self {
        Self::new(config())
    }
}

impl Peer {
    pub(crate) fn new(config: Config) -> Self {
        let recv = RecvBuffer::new(config.line_limit);
        let legacy = !config.legacy_versions.is_empty();
        let server = Connection::new(config).expect("a good configuration");
        Self { server, recv, legacy, now: Instant::EPOCH }
    }

    /// A server for both eras with a legacy client that is initialized.
    pub(crate) fn legacy(version: &str) -> (Self, Session) {
        Self::legacy_with(version, |_| {})
    }

    pub(crate) fn legacy_with(version: &str, change: impl FnOnce(&mut Config)) -> (Self, Session) {
        let mut config = dual();
        change(&mut config);
        let mut peer = Self::new(config);
        let session = peer.open(version);
        peer.send(INITIALIZED);
        peer.read();
        (peer, session)
    }

    /// Sends `initialize`.
    pub(crate) fn open(&mut self, version: &str) -> Session {
        match self.send(&initialize("0", version)) {
            Seen::Initialize { session, .. } => session,
            other => panic!("{other:?}"),
        }
    }

    /// Sends an array; gives the event of each element, or that of the line where it is none.
    pub(crate) fn send_batch(&mut self, elements: &[&str]) -> Vec<Seen> {
        self.recv.extend(format!("[{}]\n", elements.join(" , ")).as_bytes());
        let frame = self.recv.next_frame().expect("a whole line");
        match frame.batch().filter(|_| self.server.open_batch(self.now)) {
            Some(batch) => {
                let seen = batch.map(|message| owned(self.server.handle(message, self.now))).collect();
                self.server.close_batch(self.now);
                seen
            }
            None => vec![owned(self.server.handle(frame.message(), self.now))],
        }
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config();
        change(&mut config);
        Self::new(config)
    }

    /// Time passes. Whatever is due happens.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now.checked_add(time).expect("in range");
        self.server.handle_timeout(self.now);
    }

    /// Sends bytes; gives the events of the whole lines in them.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> Vec<Seen> {
        self.recv.extend(bytes);
        let mut seen = Vec::new();
        while let Some(frame) = self.recv.next_frame() {
            seen.push(owned(self.server.handle(frame.message(), self.now)));
        }
        seen
    }

    /// Sends one line.
    pub(crate) fn send(&mut self, line: &str) -> Seen {
        let seen = self.send_bytes(format!("{line}\n").as_bytes());
        assert_eq!(seen.len(), 1, "{line}");
        seen.into_iter().next().expect("one event")
    }

    /// Sends a request that is admitted.
    pub(crate) fn call(&mut self, id: &str) -> Ticket {
        self.admitted(&request(id, "tools/call", "")).0
    }

    pub(crate) fn admitted(&mut self, line: &str) -> (Ticket, Admission) {
        match self.send(line) {
            Seen::Request { ticket, admission, .. } => (ticket, admission),
            other => panic!("{line}: {other:?}"),
        }
    }

    /// A request that gave the progress token `"p"`.
    pub(crate) fn call_with_token(&mut self, id: &str) -> Ticket {
        self.admitted(&request_with_meta(id, "tools/call", r#""progressToken":"p""#)).0
    }

    pub(crate) fn respond(&mut self, ticket: Ticket, result: &str) -> Result<(), SendError> {
        self.server.respond(ticket, json(result).as_json(), self.now)
    }

    pub(crate) fn report(&mut self, ticket: Ticket, progress: f64) -> Result<(), SendError> {
        self.server.progress(ticket, progress, None, None, self.now)
    }

    /// Reads all there is. Each line is checked to be a message of its own (FRM-02, FRM-03, MSG-02).
    pub(crate) fn read(&mut self) -> Vec<String> {
        let mut bytes = Vec::new();
        loop {
            let lent = self.server.output(self.now).to_vec();
            if lent.is_empty() {
                break;
            }
            self.server.accepted(lent.len(), self.now);
            bytes.extend(lent);
        }
        lines_of(bytes, self.legacy)
    }

    /// The signals so far.
    pub(crate) fn signals(&mut self) -> Vec<Signal> {
        std::iter::from_fn(|| self.server.poll_signal()).collect()
    }
}

pub(crate) fn lines(bytes: Vec<u8>) -> Vec<String> {
    lines_of(bytes, false)
}

/// `requests`: whether requests to the client may be among them.
fn lines_of(bytes: Vec<u8>, requests: bool) -> Vec<String> {
    let text = String::from_utf8(bytes).expect("output is UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is closed");
    let lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    for line in &lines {
        let value: serde_json::Value = serde_json::from_str(line).expect("each line is JSON");
        for value in value.as_array().map_or_else(|| std::slice::from_ref(&value), Vec::as_slice) {
            assert_eq!(value["jsonrpc"], "2.0");
            let request = value.get("method").is_some() && value.get("id").is_some();
            assert!(requests || !request, "no request leaves (RTE-02): {line}");
        }
    }
    lines
}

/// `Unreadable` for short.
pub(crate) fn unreadable(reason: UnreadableReason, id: Option<&str>, len: usize) -> Seen {
    let len = u64::try_from(len).expect("fits");
    Seen::Dropped { reason: DropReason::Unreadable(reason), id: id.map(ToOwned::to_owned), code: None, len }
}

fn owned(event: Event<'_>) -> Seen {
    match event {
        Event::Request { ticket, admission, request } => {
            Seen::Request { ticket, admission, method: request.method.into_owned() }
        }
        Event::Cancellation { id, reason, applied } => Seen::Cancellation {
            id: id.map(|id| id.token().to_owned()),
            reason: reason.map(std::borrow::Cow::into_owned),
            applied,
        },
        Event::Notification { method, .. } => Seen::Notification { method: method.into_owned() },
        Event::Refused { id, code } => Seen::Refused { id: id.token().to_owned(), code },
        Event::Dropped(dropped) => Seen::Dropped {
            reason: dropped.reason,
            id: dropped.id.map(|id| id.token().to_owned()),
            code: dropped.code,
            len: dropped.len,
        },
        Event::Initialize { session, version } => Seen::Initialize { session, version },
        Event::ClientResult { request, result } => Seen::ClientResult { request, result: result.get().to_owned() },
        Event::ClientError { request, error } => Seen::ClientError { request, code: error.code },
        Event::ClientProgress { request, params } => Seen::ClientProgress { request, params: params.get().to_owned() },
        Event::Handled => Seen::Handled,
        other => panic!("an event that no test knows: {other:?}"),
    }
}
