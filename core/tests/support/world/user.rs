//! Owns what a user of the client does at random: requests, listens, notifications, changes of mind, the end. It must not know
//! how the bytes move.

use core::time::Duration;

use mcp_wire::client::{Handle, ProgressToken, RequestOptions};
use mcp_wire::{Era, Eras, Filter, JsonBuf, SendError};

use super::brain::{PROMPT, instant};
use super::{Phase, World};

impl World {
    pub(super) fn intend(&mut self) -> bool {
        if self.phase != Phase::Storm || self.intents == 0 || self.next_intent_us > self.now_us {
            return false;
        }
        self.intents -= 1;
        let pause = self.random.below(self.pace_us + 1);
        // Now and then nothing happens for long.
        let pause = if self.random.once_in(30) { pause + 90_000_000 } else { pause };
        self.next_intent_us = self.now_us + pause;
        let now = instant(self.now_us);
        match self.random.below(40) {
            0..=19 => self.request(),
            20..=23 => self.listen(),
            24..=26 => {
                let sent = self.supervisor.notify("notifications/note", None, now);
                self.trace.say("user", format_args!("notification: {sent:?}"));
            }
            27..=33 => {
                if let Some(handle) = self.some_open() {
                    self.trace.say("user", format_args!("cancel {handle:?}"));
                    let reason = self.random.once_in(2).then_some("changed my mind");
                    self.supervisor.cancel(handle, reason, now);
                }
            }
            34 => {
                if let Some(handle) = self.some_open() {
                    self.trace.say("user", format_args!("overflow {handle:?}"));
                    self.supervisor.overflow(handle, now);
                }
            }
            35 | 36 => {
                self.trace.say("user", "retry now");
                self.supervisor.retry_now(now);
            }
            37 if self.random.once_in(3) => self.end(),
            38 | 39 => while self.random.once_in(2) && self.answer() {},
            _ => {}
        }
        self.take_signals();
        true
    }

    /// Answers one of the server's requests, in one way or another.
    pub(super) fn answer(&mut self) -> bool {
        let asked: Vec<_> = self.oracle.asked.iter().copied().collect();
        if asked.is_empty() {
            return false;
        }
        let (request, now) = (self.random.pick(&asked), instant(self.now_us));
        let answered = match self.random.below(3) {
            0 => self.supervisor.respond_unknown(request, now),
            1 => self.supervisor.respond_error(request, -1, "no", None, now),
            _ => self.supervisor.respond(request, mcp_wire::Json::EMPTY, now),
        };
        self.trace.say("user", format_args!("answers {request:?}: {answered:?}"));
        if answered.is_ok() {
            self.oracle.asked.remove(&request);
            self.oracle.answered += 1;
        }
        assert!(matches!(answered, Ok(()) | Err(SendError::Full)), "an honest answer is refused: {answered:?}");
        self.take_signals();
        true
    }

    fn some_open(&mut self) -> Option<Handle> {
        let open: Vec<Handle> = self.oracle.open.keys().copied().collect();
        (!open.is_empty()).then(|| self.random.pick(&open))
    }

    fn request(&mut self) {
        let marker = self.next_marker;
        self.next_marker += 1;
        let pad = "y".repeat(self.random.pick(&[0, 0, 20, 500, 3_000]));
        let mut params = serde_json::json!({"n": marker, "pad": pad});
        if self.random.once_in(4) {
            params["_meta"] = serde_json::json!({"io.modelcontextprotocol/logLevel": "info", "traceparent": "t"});
        }
        let mut options = RequestOptions::default();
        if self.random.once_in(3) {
            options.timeout = Some(Duration::from_millis(self.random.pick(&[1, 100, 5_000])));
        }
        if self.random.once_in(6) {
            options.queue_timeout = Some(Duration::from_millis(self.random.pick(&[1, 1_000])));
        }
        if self.random.once_in(3) {
            options.max_timeout = Some(Duration::from_secs(30));
        }
        if self.random.once_in(2) {
            options.progress = ProgressToken::Minted;
        }
        options.idempotent = self.random.once_in(3);
        // Refused or not, it is the oracle's.
        let _ = self.send(marker, &params, options);
    }

    fn send(&mut self, marker: u64, params: &serde_json::Value, options: RequestOptions) -> Result<(), SendError> {
        let idempotent = options.idempotent;
        let params = JsonBuf::new(params).expect("plain JSON");
        let sent = self.supervisor.request("tools/call", Some(params.as_json()), options, instant(self.now_us));
        self.trace.say("user", format_args!("request {marker}: {sent:?}"));
        let answer = sent.clone().map(|_| ());
        if let Some(handle) = self.taken(sent) {
            self.oracle.opened(handle, marker, false, idempotent);
        }
        self.take_signals();
        answer
    }

    fn listen(&mut self) {
        let marker = self.next_marker;
        self.next_marker += 1;
        // The resource first: its URI carries the number.
        let filter = Filter::default().resource(format!("sim://{marker}")).resource("sim://1");
        let filter = if self.random.once_in(2) { filter.tools_list_changed() } else { filter };
        let sent = self.supervisor.listen(&filter, RequestOptions::default(), instant(self.now_us));
        self.trace.say("user", format_args!("listen {marker}: {sent:?}"));
        if let Some(handle) = self.taken(sent) {
            self.oracle.opened(handle, marker, true, true);
        }
    }

    fn taken(&self, sent: Result<Handle, SendError>) -> Option<Handle> {
        match sent {
            Ok(handle) => {
                assert!(!self.asked, "SHD-03: a request after the close is taken");
                Some(handle)
            }
            Err(SendError::NotInThisEra) => {
                assert!(self.oracle.era == Some(Era::Legacy) || self.eras == Eras::Legacy);
                None
            }
            Err(SendError::Closed | SendError::Full | SendError::TooLarge { .. }) => None,
            Err(error) => panic!("an honest request is refused: {error}"),
        }
    }

    /// A request that a server that behaves answers at once. Not taken when the last life is over, or for now when what a dying
    /// one will not read fills the queue.
    pub(super) fn ask_promptly(&mut self) -> Result<(), SendError> {
        // A house full of listens takes no request.
        while let Some(handle) = self.some_open() {
            self.supervisor.cancel(handle, None, instant(self.now_us));
            self.take_signals();
        }
        let marker = PROMPT + self.next_marker;
        self.next_marker += 1;
        let mut options = RequestOptions::default();
        options.timeout = Some(Duration::from_secs(100));
        options.queue_timeout = Some(Duration::from_secs(100));
        self.send(marker, &serde_json::json!({"n": marker, "pad": ""}), options)
    }

    /// Closes, kills, or first the one and then the other.
    pub(super) fn end(&mut self) {
        let now = instant(self.now_us);
        self.asked = true;
        if let Some(wire) = self.wires.last_mut() {
            wire.closed();
        }
        let how = self.random.below(4);
        self.trace.say("user", if how == 0 { "kills" } else { "closes" });
        if how == 0 {
            self.supervisor.kill(now);
            assert!(self.supervisor.output(now).is_empty(), "SHD-04: bytes after the kill");
        } else {
            self.supervisor.close(now);
        }
        self.take_signals();
        assert!(self.oracle.open.is_empty(), "SHD-03: requests outlive the close: {:?}", self.oracle.open);
    }
}
