//! Any call may follow any other with a legacy client too: random calls over batches, requests of both sides and tasks, and what must hold of the
//! bytes that come out whatever they were.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mcp_wire::server::{
    Admission, Change, ClientRequest, ClientRequestOptions, Ended, LogLevel, Session, Signal, Ticket,
};
use mcp_wire::{Json, SendError};
use serde_json::Value;

use super::any_order::Random;
use super::support::*;

const QUEUES: [usize; 3] = [700, 5000, 1 << 20];

struct Run {
    peer: Peer,
    random: Random,
    session: Session,
    batches: bool,
    queue_limit: usize,
    next_id: usize,
    running: Vec<Ticket>,
    waiting: BTreeSet<Ticket>,
    owed: BTreeMap<Ticket, String>,
    /// Requests of the client that were not cancelled, with the number of their batch.
    asked: BTreeMap<String, Option<usize>>,
    next_batch: usize,
    /// Answers that must come.
    due: BTreeSet<String>,
    /// Cancelled ids, with how many bytes had been lent by then.
    cancelled: Vec<(String, usize)>,
    tasks: Vec<Ticket>,
    /// Requests of the server that have not ended, with their id; and the ids of those that ended unanswered.
    open: BTreeMap<ClientRequest, u64>,
    given_up: BTreeSet<u64>,
    next_ask: u64,
    written: Vec<u8>,
    lent: usize,
    gone: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut config = dual();
        config.running_limit = [1, 3, 50][random.below(3)];
        config.waiting_limit = [0, 2, 50][random.below(3)];
        let queue_limit = QUEUES[random.below(3)];
        config.queue_limit = queue_limit;
        config.own_answers_limit = [300, 1 << 20][random.below(2)];
        config.client_request_limit = [1, 5, 1000][random.below(3)];
        config.client_request_timeout = Duration::from_millis([50, 500][random.below(2)]);
        config.task_limit = [0, 1, 5][random.below(3)];
        config.pause_when_full = random.below(3) == 0;
        let version = ["2025-11-25", "2025-03-26"][random.below(2)];
        let mut peer = Peer::new(config);
        let session = peer.open(version);
        if random.below(4) > 0 {
            peer.send(INITIALIZED);
        }
        peer.read();
        Self {
            peer,
            random,
            session,
            batches: version == "2025-03-26",
            queue_limit,
            next_id: 0,
            running: Vec::new(),
            waiting: BTreeSet::new(),
            owed: BTreeMap::new(),
            asked: BTreeMap::new(),
            next_batch: 0,
            due: BTreeSet::new(),
            cancelled: Vec::new(),
            tasks: Vec::new(),
            open: BTreeMap::new(),
            given_up: BTreeSet::new(),
            next_ask: 0,
            written: Vec::new(),
            lent: 0,
            gone: false,
        }
    }

    fn fresh_id(&mut self) -> String {
        self.next_id += 1;
        if self.next_id % 3 == 0 { format!("\"{}\"", self.next_id) } else { self.next_id.to_string() }
    }

    /// A line of the client's and what is due for it.
    fn line(&mut self) -> (String, Option<String>) {
        let id = self.fresh_id();
        match self.random.below(8) {
            0 => (legacy(&id, "ping", ""), Some(id)),
            1 => (legacy(&id, "logging/setLevel", r#""level":"info""#), Some(id)),
            2 => (legacy(&id, "resources/subscribe", r#""uri":"a""#), Some(id)),
            3 => (r#"{"jsonrpc":"2.0","method":"notifications/x"}"#.into(), None),
            _ => (legacy(&id, "x", &format!(r#""_meta":{{"progressToken":{id}}}"#)), Some(id)),
        }
    }

    fn note(&mut self, seen: &Seen, id: Option<String>, batch: Option<usize>) {
        let Some(id) = id else { return };
        if let Seen::Request { ticket, admission, .. } = seen {
            if *admission == Admission::Run {
                self.running.push(*ticket);
            } else {
                assert!(self.waiting.insert(*ticket));
            }
            self.owed.insert(*ticket, id.clone());
        } else {
            assert!(matches!(seen, Seen::Handled | Seen::Refused { code: -32603, .. }), "{seen:?}");
        }
        self.due.insert(id.clone());
        self.asked.insert(id, batch);
    }

    fn request(&mut self) {
        if !self.peer.server.wants_read() {
            return;
        }
        if !self.batches || self.random.below(2) == 0 {
            let (line, id) = self.line();
            let seen = self.peer.send(&line);
            self.note(&seen, id, None);
            return;
        }
        let lines: Vec<_> = (0..=self.random.below(5)).map(|_| self.line()).collect();
        let texts: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
        let seen = self.peer.send_batch(&texts);
        assert_eq!(seen.len(), lines.len());
        self.next_batch += 1;
        for (seen, (_, id)) in seen.iter().zip(lines) {
            self.note(seen, id, Some(self.next_batch));
        }
    }

    fn cancel(&mut self) {
        let asked: Vec<String> = self.asked.keys().cloned().collect();
        if asked.is_empty() {
            return;
        }
        let id = asked[self.random.below(asked.len())].clone();
        if matches!(self.peer.send(&cancel(&id)), Seen::Cancellation { applied: true, .. }) {
            self.due.remove(&id);
            self.asked.remove(&id);
            self.cancelled.push((id, self.lent));
        }
    }

    fn answer(&mut self, ticket: Ticket) {
        let size = [0, 10, 400, 3000][self.random.below(4)];
        let text = format!(r#"{{"resultType":"complete","a":"{}"}}"#, "x".repeat(size));
        let now = self.peer.now;
        let task = self.random.below(3) == 0 && self.peer.server.begin_task(ticket);
        let silent = !self.owed.contains_key(&ticket);
        let sent = match self.random.below(5) {
            0 => self.peer.server.respond_error(ticket, -32002, &"x".repeat(size), None, now),
            1 if !task => self.peer.server.abandon(ticket, now),
            2 if !task => self.peer.respond(ticket, r#"{"resultType":"input_required"}"#),
            _ => self.peer.respond(ticket, &text),
        };
        match sent {
            Ok(()) | Err(SendError::TooLarge { .. } | SendError::NotInThisEra) => {
                self.running.retain(|other| *other != ticket);
                self.owed.remove(&ticket);
                assert_eq!(self.peer.respond(ticket, "{}"), Err(SendError::Ended));
                if task && !silent && sent.is_ok() {
                    self.tasks.push(ticket);
                }
            }
            Err(SendError::Full) => {
                assert!(self.peer.server.pending_output() > 0 && !silent);
                self.peer.server.end_task(ticket, now);
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn ask(&mut self) {
        let mut options = ClientRequestOptions::default();
        options.progress = self.random.below(2) == 0;
        let params = format!(r#"{{"a":"{}"}}"#, "x".repeat([0, 300, 1000][self.random.below(3)]));
        let method = if self.random.below(3) == 0 { "ping" } else { "roots/list" };
        let now = self.peer.now;
        let params = json(&params);
        match self.peer.server.request_client(self.session, method, Some(params.as_json()), options, now) {
            Ok(request) => {
                self.next_ask += 1;
                assert!(self.open.insert(request, self.next_ask).is_none(), "never reused");
            }
            Err(SendError::Full | SendError::TooLarge { .. } | SendError::NotInitialized | SendError::Closed) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// The client answers something that was asked, or nothing that was.
    fn answer_of_client(&mut self) {
        let id = 1 + self.random.below(usize::try_from(self.next_ask).expect("small") + 2);
        let line = match self.random.below(4) {
            0 => error(&id.to_string(), -1, "no"),
            1 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"error":{{}}}}"#),
            2 => format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":1}}}}"#
            ),
            _ => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#),
        };
        match self.peer.send(&line) {
            Seen::ClientResult { request, .. } | Seen::ClientError { request, .. } => {
                assert_eq!(self.open.remove(&request), Some(id as u64), "to the one that was asked, once");
            }
            Seen::ClientProgress { request, .. } => assert_eq!(self.open.get(&request), Some(&(id as u64))),
            Seen::Dropped { .. } | Seen::Handled => {}
            other => panic!("{other:?}"),
        }
    }

    fn read(&mut self, most: usize) {
        let now = self.peer.now;
        let lent = self.peer.server.output(now).to_vec();
        assert_eq!(lent, self.peer.server.output(now), "asking twice is harmless");
        self.lent = self.written.len() + lent.len();
        let n = lent.len().min(most);
        self.written.extend(&lent[..n]);
        self.peer.server.accepted(n, now);
    }

    fn signals(&mut self) {
        for signal in self.peer.signals() {
            match signal {
                Signal::Start(ticket) => {
                    assert!(self.waiting.remove(&ticket));
                    self.running.push(ticket);
                }
                Signal::Cancelled { ticket, running, .. } => {
                    self.owed.remove(&ticket);
                    assert!(if running { self.running.contains(&ticket) } else { self.waiting.remove(&ticket) });
                }
                Signal::ClientRequestEnded { request, .. } => {
                    let id = self.open.remove(&request).expect("each ends once");
                    self.given_up.insert(id);
                }
                Signal::Writable => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(self.peer.server.client_requests(), self.open.len());
        let most = 3 * self.queue_limit + (1 << 20);
        assert!(self.peer.server.pending_output() <= most, "LIM-04: {}", self.peer.server.pending_output());
    }

    fn step(&mut self) {
        match self.random.below(18) {
            0..=3 => self.request(),
            4 => self.cancel(),
            5..=7 => {
                if let Some(ticket) = self.random.pick(&self.running) {
                    self.answer(ticket);
                }
            }
            8 => {
                let tickets = if self.random.below(2) == 0 { &self.running } else { &self.tasks };
                if let Some(ticket) = self.random.pick(tickets) {
                    let value = f64::from(u32::try_from(self.random.below(1000)).expect("small"));
                    let now = self.peer.now;
                    let _ = self.peer.server.progress(ticket, value, None, Some(&"m".repeat(300)), now);
                    let _ = self.peer.server.log(ticket, LogLevel::Error, None, Json::NULL, now);
                }
            }
            9 => {
                if let Some(task) = self.random.pick(&self.tasks) {
                    self.tasks.retain(|other| *other != task);
                    self.peer.server.end_task(task, self.peer.now);
                    assert_eq!(self.peer.report(task, 1e9), Err(SendError::Ended));
                }
            }
            10 => {
                let change =
                    [Change::ToolsList, Change::Resource { subscribed: "a", uri: "a/b" }][self.random.below(2)];
                assert!(self.peer.server.publish(change, self.peer.now) <= 1);
            }
            11 | 12 => self.ask(),
            13 => self.answer_of_client(),
            14 => {
                let open: Vec<ClientRequest> = self.open.keys().copied().collect();
                if let Some(request) = self.random.pick(&open) {
                    self.peer.server.cancel_client_request(request, None, self.peer.now);
                }
            }
            15 => {
                let time = Duration::from_micros(self.random.below(200_000) as u64);
                self.peer.now = self.peer.now.checked_add(time).expect("in range");
                self.peer.server.handle_timeout(self.peer.now);
                assert!(self.peer.server.poll_timeout().is_none_or(|due| due > self.peer.now));
            }
            _ => {
                let most = [1, 50, 1000, usize::MAX][self.random.below(4)];
                self.read(most);
            }
        }
        self.signals();
    }

    fn finish(mut self) {
        match self.random.below(4) {
            0 => self.peer.server.end_of_input(self.peer.now),
            1 | 2 => self.peer.server.stop(self.peer.now),
            _ => {
                self.peer.server.peer_gone(self.peer.now);
                self.gone = true;
            }
        }
        self.signals();
        for _ in 0..self.random.below(100) {
            if !self.gone {
                self.step();
            }
        }
        self.peer.pass(Duration::from_secs(10));
        self.signals();
        while self.peer.server.pending_output() > 0 {
            self.read(1000);
        }
        self.signals();
        let how = self.peer.server.ended().expect("serving has ended");
        assert_eq!(how == Ended::PeerGone, self.gone);
        assert!(self.waiting.is_empty() && self.owed.is_empty() && self.open.is_empty());
        for ticket in std::mem::take(&mut self.running) {
            assert_eq!(self.peer.respond(ticket, "{}"), Ok(()));
        }
        for task in std::mem::take(&mut self.tasks) {
            assert_eq!(self.peer.report(task, 1e9), Err(SendError::Ended));
        }
        assert_eq!(self.peer.server.pending_output(), 0);
        assert_eq!(self.peer.server.poll_timeout(), None);
        assert_eq!(self.peer.signals(), []);
        if !self.gone {
            self.check_output();
        }
    }

    fn check_output(&self) {
        let mut answered = BTreeMap::new();
        let (mut written, mut cancelled) = (BTreeSet::new(), BTreeSet::new());
        let mut at = 0;
        let text = String::from_utf8(self.written.clone()).expect("UTF-8");
        for (number, line) in text.lines().enumerate() {
            assert!(!line.contains("resultType") && !line.contains("io.modelcontextprotocol/"), "META-08: {line}");
            let value: Value = serde_json::from_str(line).expect("JSON");
            let batched = value.is_array();
            let messages = if let Value::Array(messages) = value { messages } else { vec![value] };
            assert!(!messages.is_empty(), "LEG-10");
            let mut batch = None;
            for message in &messages {
                assert_eq!(message["jsonrpc"], "2.0");
                let id = message.get("id").filter(|id| !id.is_null()).map(ToString::to_string);
                if message.get("method").is_some() {
                    assert!(!batched, "LEG-09: a batch is answers only: {line}");
                    let number = |value: &Value| value.as_u64().expect("an id of the server's");
                    if message.get("id").is_some() {
                        assert!(written.insert(number(&message["id"])), "one request each: {line}");
                    } else if message["method"] == "notifications/cancelled" {
                        let id = number(&message["params"]["requestId"]);
                        assert!(written.contains(&id), "CAN-02: only what was written: {line}");
                        assert!(self.given_up.contains(&id), "LEG-07: only what was given up: {line}");
                        assert!(cancelled.insert(id), "CAN-02: once: {line}");
                    }
                    continue;
                }
                let Some(id) = id else { continue };
                assert!(
                    !self.cancelled.iter().any(|(cancelled, lent)| *cancelled == id && at >= *lent),
                    "CAN-06: nothing begins after the cancellation: {line}"
                );
                if let Some(of) = self.asked.get(&id) {
                    assert_eq!(of.is_some(), batched, "LEG-09: as it was asked: {line}");
                    let same = *batch.get_or_insert(*of) == *of;
                    assert!(same, "LEG-09: the answers of one batch: {line}");
                }
                assert!(answered.insert(id, number).is_none(), "one answer each: {line}");
            }
            at += line.len() + 1;
        }
        for id in &self.due {
            assert!(answered.contains_key(id), "request {id} was not answered");
        }
        let mut arrays: BTreeMap<usize, usize> = BTreeMap::new();
        for (id, batch) in &self.asked {
            let (Some(batch), Some(line)) = (batch, answered.get(id)) else { continue };
            assert_eq!(arrays.entry(*batch).or_insert(*line), line, "LEG-09: one array for a batch");
        }
    }
}

// LEG-07, LEG-09, LEG-11, CAN-06, LIM-04: whatever is called in whatever order, each request of either side ends once, and a batch is answered by
// one array.
#[test]
fn every_request_of_either_side_ends_once_whatever_is_called() {
    for seed in 1..=150 {
        let result = std::panic::catch_unwind(|| {
            let mut run = Run::new(seed);
            for _ in 0..250 {
                run.step();
            }
            run.finish();
        });
        assert!(result.is_ok(), "seed {seed}");
    }
}
