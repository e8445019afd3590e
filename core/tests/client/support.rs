//! A client with a clock and a wire in memory: lines in, lines out, signals.

use core::time::Duration;

use mcp_wire::client::{
    Config, Connection, Event, Handle, ListenEnd, RequestOptions, ResultKind, ServerTicket, Signal,
};
use mcp_wire::{Cause, Delivery, DropReason, Era, Filter, Instant, Json, RecvBuffer, SendError};

/// What an event was, owned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    Result(Handle, String, ResultKind),
    Error(Handle, i64),
    Note(Option<Handle>, String),
    Acknowledged(Handle, String, Filter),
    ListenEnded(Handle, ListenEnd),
    Dropped(DropReason, Option<String>, Option<i64>),
    ServerRequest(ServerTicket, String),
    Answered(String, Option<i64>),
    Handled,
}

fn seen(event: Event<'_>) -> Seen {
    match event {
        Event::Result { request, result, kind } => Seen::Result(request, result.get().into(), kind),
        Event::Error { request, error } => Seen::Error(request, error.code),
        Event::RequestNotification { request, method, .. } => Seen::Note(Some(request), method.into()),
        Event::ListenNotification { listen, method, .. } => Seen::Note(Some(listen), method.into()),
        Event::Notification { method, .. } => Seen::Note(None, method.into()),
        Event::Acknowledged { listen, notifications, missing } => {
            Seen::Acknowledged(listen, notifications.get().into(), missing)
        }
        Event::ListenEnded { listen, how } => Seen::ListenEnded(listen, how),
        Event::Dropped(dropped) => Seen::Dropped(dropped.reason, dropped.id.map(|id| id.token().into()), dropped.code),
        Event::ServerRequest { ticket, method, .. } => Seen::ServerRequest(ticket, method.into()),
        Event::Answered { method, code } => Seen::Answered(method.into(), code),
        Event::Handled => Seen::Handled,
        other => panic!("an event that no test knows: {other:?}"),
    }
}

pub(crate) struct Client {
    pub(crate) conn: Connection,
    recv: RecvBuffer,
    pub(crate) now: Instant,
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn json(text: &str) -> Json<'_> {
    Json::parse(text).expect("a test's JSON is JSON")
}

pub(crate) fn options() -> RequestOptions {
    RequestOptions::default()
}

pub(crate) const META: &str = concat!(
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}"#
);

/// The text of W-13.
pub(crate) fn probe_line(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"server/discover","params":{{"_meta":{{{META}}}}}}}"#)
}

pub(crate) const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}"#;

pub(crate) fn established() -> Signal {
    Signal::Established { era: Era::Modern, version: "2026-07-28".into() }
}

pub(crate) fn ended(request: Handle, cause: Cause, delivery: Delivery) -> Signal {
    Signal::Ended { request, cause, delivery, hint: None }
}

impl Client {
    /// Not opened yet.
    pub(crate) fn new(config: Config) -> Self {
        Self {
            conn: Connection::new(config).expect("a test's configuration is sound"),
            recv: RecvBuffer::default(),
            now: Instant::EPOCH,
        }
    }

    /// Opened and past the probe, which had the id 1.
    pub(crate) fn ready(config: Config) -> Self {
        let mut client = Self::new(config);
        client.open();
        assert_eq!(client.wire(), [probe_line(1)]);
        assert_eq!(client.feed(DISCOVERED), Seen::Handled);
        assert_eq!(client.signals(), [established()]);
        client
    }

    /// With the defaults.
    pub(crate) fn plain() -> Self {
        Self::ready(Config::new("c", "1"))
    }

    pub(crate) fn open(&mut self) {
        self.conn.opened(self.now);
    }

    /// Moves the clock and tells the client.
    pub(crate) fn pass(&mut self, by: u64) {
        self.tick(by);
        self.conn.handle_timeout(self.now);
    }

    /// Moves the clock and tells nobody.
    pub(crate) fn tick(&mut self, by: u64) {
        self.now = self.now.checked_add(ms(by)).expect("a test ends in this era");
    }

    pub(crate) fn request(&mut self, method: &str) -> Handle {
        self.conn.request(method, None, options(), self.now).expect("there is room")
    }

    pub(crate) fn request_with(&mut self, change: impl FnOnce(&mut RequestOptions)) -> Handle {
        let mut options = options();
        change(&mut options);
        self.conn.request("m", None, options, self.now).expect("there is room")
    }

    pub(crate) fn listen(&mut self, filter: &Filter) -> Handle {
        self.conn.listen(filter, options(), self.now).expect("there is room")
    }

    pub(crate) fn notify(&mut self, method: &str) -> Result<(), SendError> {
        self.conn.notify(method, None, self.now)
    }

    pub(crate) fn cancel(&mut self, handle: Handle, reason: Option<&str>) {
        self.conn.cancel(handle, reason, self.now);
    }

    /// A line from the server.
    pub(crate) fn feed(&mut self, line: &str) -> Seen {
        self.recv.extend(line.as_bytes());
        self.recv.extend(b"\n");
        let frame = self.recv.next_frame().expect("the line is whole");
        seen(self.conn.handle(frame.message(), self.now))
    }

    pub(crate) fn result(&mut self, id: u64) -> Seen {
        self.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#))
    }

    pub(crate) fn error(&mut self, id: &str, code: i64) -> Seen {
        self.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"x"}}}}"#))
    }

    pub(crate) fn note(&mut self, method: &str, params: &str) -> Seen {
        self.feed(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#))
    }

    pub(crate) fn progress(&mut self, token: &str, progress: &str) -> Seen {
        let params = format!(r#"{{"progressToken":{token},"progress":{progress}}}"#);
        self.note("notifications/progress", &params)
    }

    pub(crate) fn acknowledge(&mut self, id: u64, notifications: &str) -> Seen {
        let params =
            format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{notifications}}}"#);
        self.note("notifications/subscriptions/acknowledged", &params)
    }

    pub(crate) fn change(&mut self, id: &str, method: &str) -> Seen {
        self.note(method, &format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#))
    }

    /// All lines that are queued, accepted by the writer.
    pub(crate) fn wire(&mut self) -> Vec<String> {
        let mut bytes = Vec::new();
        loop {
            let out = self.conn.output(self.now);
            if out.is_empty() {
                break;
            }
            let n = out.len();
            bytes.extend_from_slice(out);
            self.conn.accepted(n, self.now);
        }
        let text = String::from_utf8(bytes).expect("output is UTF-8");
        assert!(text.is_empty() || text.ends_with('\n'), "only whole lines leave");
        text.lines().map(Into::into).collect()
    }

    /// Lends what is queued; the writer takes nothing of it yet.
    pub(crate) fn lend(&mut self) -> usize {
        self.conn.output(self.now).len()
    }

    pub(crate) fn accept(&mut self, n: usize) {
        self.conn.accepted(n, self.now);
    }

    pub(crate) fn signals(&mut self) -> Vec<Signal> {
        core::iter::from_fn(|| self.conn.poll_signal()).collect()
    }
}

pub(crate) fn cancelled_line(id: u64, reason: Option<&str>) -> String {
    let reason = reason.map(|reason| format!(r#","reason":"{reason}""#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}{reason}}}}}"#)
}
