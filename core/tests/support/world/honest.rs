//! Owns an honest server: the core's own server connection with handlers that take their time, report progress, ask a legacy client
//! something, fail and obey cancellations or not. It must not know pipes or the process around it.

use std::collections::BTreeMap;

use mcp_wire::server::{
    Admission, Change, ClientRequest, ClientRequestOptions, Config, Connection, Ended, Event, LogLevel, Session,
    Signal, Ticket,
};
use mcp_wire::{DropReason, JsonBuf, RecvBuffer, SendError};

use super::brain::{Brain, PROMPT, instant, time_us};
use super::random::Random;
use super::server_oracle::ServerOracle;
use super::trace::Trace;

#[derive(Debug)]
struct Handler {
    marker: u64,
    due_us: u64,
    reports: u64,
    cancelled: bool,
    /// Questions that it still has for its legacy client, and the one that it waits for.
    questions: u64,
    asked: Option<ClientRequest>,
}

#[derive(Debug)]
pub(crate) struct Honest {
    recv: RecvBuffer,
    server: Connection,
    handlers: BTreeMap<Ticket, Handler>,
    waiting: BTreeMap<Ticket, u64>,
    /// The sessions of legacy requests that have not ended.
    sessions: BTreeMap<Ticket, Session>,
    /// Who waits for an answer of the client.
    asked: BTreeMap<ClientRequest, Ticket>,
    oracle: ServerOracle,
    input_ended: bool,
    changes_left: u32,
    next_change_us: u64,
    /// Longest answer that makes sense with the pipes at hand.
    answer_limit: usize,
    trace: Trace,
}

impl Honest {
    pub(crate) fn new(config: Config, answer_limit: usize, trace: &Trace) -> Self {
        Self {
            recv: RecvBuffer::new(config.line_limit),
            server: Connection::new(config).expect("a good configuration"),
            handlers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            sessions: BTreeMap::new(),
            asked: BTreeMap::new(),
            oracle: ServerOracle::default(),
            input_ended: false,
            changes_left: 40,
            next_change_us: 0,
            answer_limit,
            trace: trace.clone(),
        }
    }

    fn take_frames(&mut self, now_us: u64, random: &mut Random) {
        loop {
            // Frames that are here while reading pauses wait in the buffer.
            if !self.server.wants_read() && !self.input_ended {
                return;
            }
            let Some(frame) = self.recv.next_frame() else { return };
            let text = String::from_utf8_lossy(frame.bytes()).into_owned();
            let event = self.server.handle(frame.message(), instant(now_us));
            self.trace.say("server", format_args!("{text} => {event:?}"));
            match event {
                Event::Request { ticket, admission, request } => {
                    self.oracle.request(request.id.token(), ticket, request.session.is_some());
                    match request.session {
                        Some(session) => self.sessions.insert(ticket, session),
                        None => self.sessions.remove(&ticket),
                    };
                    let marker = marker(request.params.get());
                    match admission {
                        Admission::Run => self.start(ticket, marker, now_us, random),
                        Admission::Wait => {
                            self.waiting.insert(ticket, marker);
                        }
                        _ => unreachable!("a new admission"),
                    }
                }
                Event::Cancellation { id: Some(id), applied: true, .. } => self.oracle.silenced(id.token()),
                Event::Initialize { .. } => self.oracle.initialized(),
                Event::ClientResult { request, .. } | Event::ClientError { request, .. } => {
                    self.told(request, now_us);
                }
                // An answer and the cancellation of its request may cross, and what is garbage among the questions is answered as well.
                Event::Dropped(dropped)
                    if matches!(
                        dropped.reason,
                        DropReason::LateResponse | DropReason::DuplicateResponse | DropReason::UnknownId
                    ) => {}
                Event::Dropped(dropped) => {
                    // The last line may be cut off: everything else of an honest client can be read.
                    assert!(self.input_ended, "the client wrote what its server drops: {dropped:?}: {text}");
                    self.oracle.truncated();
                }
                _ => {}
            }
            self.take_signals(now_us, random);
        }
    }

    fn start(&mut self, ticket: Ticket, marker: u64, now_us: u64, random: &mut Random) {
        let prompt = marker >= PROMPT;
        let wait = if prompt { 0 } else { random.pick(&[0, 0, 1_000, 50_000, 1_000_000, 30_000_000]) };
        let due_us = now_us + random.below(wait + 1);
        let reports = if random.once_in(3) && !prompt { random.below(6) } else { 0 };
        let legacy = self.sessions.contains_key(&ticket);
        let questions = if legacy && !prompt && random.once_in(3) { 1 + random.below(2) } else { 0 };
        let handler = Handler { marker, due_us, reports, cancelled: false, questions, asked: None };
        let old = self.handlers.insert(ticket, handler);
        assert!(old.is_none(), "one ticket, one handler");
    }

    fn take_signals(&mut self, now_us: u64, random: &mut Random) {
        while let Some(signal) = self.server.poll_signal() {
            self.trace.say("server", format_args!("{signal:?}"));
            match signal {
                Signal::Start(ticket) => {
                    let marker = self.waiting.remove(&ticket).expect("it waits");
                    self.start(ticket, marker, now_us, random);
                }
                Signal::Cancelled { ticket, running, .. } => {
                    self.oracle.cancelled(ticket);
                    if running {
                        let handler = self.handlers.get_mut(&ticket).expect("it runs");
                        assert!(!core::mem::replace(&mut handler.cancelled, true), "cancelled twice");
                        if random.once_in(2) {
                            handler.due_us = now_us;
                        }
                    } else {
                        assert!(self.waiting.remove(&ticket).is_some(), "it waits");
                    }
                }
                Signal::Writable => {}
                Signal::ClientRequestEnded { request, .. } => self.told(request, now_us),
                _ => unreachable!("a new signal"),
            }
        }
    }

    /// A question to the client has ended: its handler goes on.
    fn told(&mut self, request: ClientRequest, now_us: u64) {
        let ticket = self.asked.remove(&request).expect("a question ends once");
        if let Some(handler) = self.handlers.get_mut(&ticket) {
            handler.asked = None;
            handler.due_us = handler.due_us.min(now_us);
        }
    }

    /// A handler asks its client something, waits for the answer, or gives it up.
    fn ask(&mut self, ticket: Ticket, now_us: u64, random: &mut Random) {
        let now = instant(now_us);
        let (Some(handler), Some(session)) = (self.handlers.get_mut(&ticket), self.sessions.get(&ticket)) else {
            return;
        };
        handler.due_us = now_us + 1 + random.below(90_000_000);
        if let Some(request) = handler.asked {
            self.server.cancel_client_request(request, Some("enough"), now);
            self.take_signals(now_us, random);
            return;
        }
        handler.questions -= 1;
        let mut options = ClientRequestOptions::default();
        options.progress = random.once_in(2);
        let method = random.pick(&["roots/list", "sampling/createMessage", "ping"]);
        let sent = self.server.request_client(*session, method, None, options, now);
        self.trace.say("server", format_args!("{method} for {ticket:?}: {sent:?}"));
        match sent {
            Ok(request) => {
                handler.asked = Some(request);
                assert!(self.asked.insert(request, ticket).is_none(), "LEG-07: an id is never reused");
            }
            Err(
                SendError::Full
                | SendError::TooLarge { .. }
                | SendError::Closed
                | SendError::Ended
                | SendError::NotInitialized,
            ) => handler.due_us = now_us,
            Err(error) => panic!("a question was refused: {error:?}"),
        }
    }

    fn run_handlers(&mut self, now_us: u64, random: &mut Random) -> bool {
        let now = instant(now_us);
        if self.changes_left > 0 && self.next_change_us <= now_us {
            self.changes_left -= 1;
            self.next_change_us = now_us + random.below(5_000_000);
            let part = Change::Resource { subscribed: "sim://1", uri: "sim://1/part" };
            let change = random.pick(&[Change::ToolsList, part]);
            let told = self.server.publish(change, now);
            self.trace.say("server", format_args!("{change:?} told to {told}"));
            return true;
        }
        let due: Vec<Ticket> =
            self.handlers.iter().filter(|(_, handler)| handler.due_us <= now_us).map(|(ticket, _)| *ticket).collect();
        if due.is_empty() {
            return false;
        }
        let ticket = random.pick(&due);
        let handler = self.handlers.get_mut(&ticket).expect("it runs");
        if handler.asked.is_some() || handler.questions > 0 {
            self.ask(ticket, now_us, random);
            return true;
        }
        if handler.reports > 0 {
            handler.reports -= 1;
            handler.due_us = now_us + random.below(100_000);
            let level = LogLevel::Info;
            let sent = if random.once_in(4) {
                self.server.log(ticket, level, None, mcp_wire::Json::NULL, now)
            } else {
                self.server.progress(ticket, 10.0 - handler.reports as f64, None, None, now)
            };
            assert!(!matches!(sent, Err(SendError::Ended)), "the ticket of a running handler is good");
            return true;
        }
        let prompt = handler.marker >= PROMPT;
        // A pipe of one byte gets no large answers, or a history would be nothing but that.
        let most = if prompt { 0 } else { self.answer_limit };
        let pad = "x".repeat(random.pick(&[0, 0, 10, 300, 3_000, 40_000]).min(most));
        let answer = JsonBuf::new(&serde_json::json!({"n": handler.marker, "pad": pad})).expect("plain JSON");
        let (what, sent) = match random.below(12) {
            0 | 1 if prompt => ("result", self.server.respond(ticket, answer.as_json(), now)),
            0 => ("error", self.server.respond_error(ticket, 7, "no", Some(answer.as_json()), now)),
            1 => ("abandon", self.server.abandon(ticket, now)),
            _ => ("result", self.server.respond(ticket, answer.as_json(), now)),
        };
        self.trace.say("server", format_args!("{what} of {ticket:?}: {sent:?}"));
        match sent {
            Err(SendError::Full) => {
                // Owed; it is tried again, soon or when there is room.
                let handler = self.handlers.get_mut(&ticket).expect("it runs");
                handler.due_us = now_us + 1 + random.below(100_000);
            }
            Ok(()) | Err(SendError::TooLarge { .. }) => {
                self.handlers.remove(&ticket);
                self.sessions.remove(&ticket);
            }
            Err(error) => panic!("an answer was refused: {error:?}"),
        }
        self.take_signals(now_us, random);
        true
    }

    fn timers(&mut self, now_us: u64, random: &mut Random) -> bool {
        let due = self.server.poll_timeout().is_some_and(|at| at <= instant(now_us));
        if due {
            self.server.handle_timeout(instant(now_us));
            assert!(
                self.server.poll_timeout().is_none_or(|at| at > instant(now_us)),
                "a timer of the server that is due stays due"
            );
        }
        self.take_signals(now_us, random);
        due
    }
}

impl Brain for Honest {
    fn wants_read(&self) -> bool {
        self.server.wants_read()
    }

    fn read(&mut self, bytes: &[u8], now_us: u64, random: &mut Random) {
        self.recv.extend(bytes);
        self.take_frames(now_us, random);
    }

    fn end_of_input(&mut self, now_us: u64, random: &mut Random) {
        self.input_ended = true;
        self.recv.close();
        self.take_frames(now_us, random);
        self.server.end_of_input(instant(now_us));
        self.take_signals(now_us, random);
    }

    fn work(&mut self, now_us: u64, random: &mut Random) -> bool {
        self.timers(now_us, random) || self.run_handlers(now_us, random)
    }

    fn next_us(&self) -> Option<u64> {
        let handlers = self.handlers.values().map(|handler| handler.due_us);
        let change = (self.changes_left > 0).then_some(self.next_change_us);
        handlers.chain(change).chain(self.server.poll_timeout().and_then(time_us)).min()
    }

    fn output(&mut self, now_us: u64) -> &[u8] {
        self.server.output(instant(now_us))
    }

    fn accepted(&mut self, bytes: &[u8], now_us: u64, random: &mut Random) {
        self.oracle.wrote(bytes);
        self.server.accepted(bytes.len(), instant(now_us));
        self.take_signals(now_us, random);
        self.take_frames(now_us, random);
    }

    fn stop(&mut self, at_once: bool, now_us: u64, random: &mut Random) {
        self.server.stop(instant(now_us));
        if at_once {
            self.server.end_drain(instant(now_us));
        }
        self.take_signals(now_us, random);
    }

    fn peer_gone(&mut self, now_us: u64, random: &mut Random) {
        self.server.peer_gone(instant(now_us));
        self.take_signals(now_us, random);
    }

    fn has_ended(&self) -> bool {
        let ended = self.server.ended();
        if ended.is_some_and(|how| how != Ended::PeerGone) {
            self.oracle.ended();
        }
        ended.is_some()
    }

    fn oracle(&self) -> &ServerOracle {
        &self.oracle
    }
}

/// The number that the client put into the params.
fn marker(params: &str) -> u64 {
    let params: serde_json::Value = serde_json::from_str(params).expect("the core hands out valid JSON");
    params["n"].as_u64().expect("each request of the world has its number")
}
