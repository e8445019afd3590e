//! Any call may follow any other: random calls, and what must hold of the bytes that come out whatever they were.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mcp_wire::server::{Admission, Change, Ended, LogLevel, Signal, Ticket};
use mcp_wire::{Json, SendError};

use super::support::*;

/// A generator of the kind of xorshift; a failing seed is named by the failure.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % n
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.below(from.len())]) }
    }
}

struct Run {
    peer: Peer,
    random: Random,
    next_id: usize,
    /// Handlers that have not returned.
    running: Vec<Ticket>,
    waiting: BTreeSet<Ticket>,
    /// Requests that are owed an answer, by ticket.
    owed: BTreeMap<Ticket, String>,
    /// What the server has been asked and has not ended by a cancellation: one answer each, at most.
    asked: BTreeSet<String>,
    /// Answers that must come.
    due: BTreeSet<String>,
    /// Cancelled ids, with how many bytes had been lent by then.
    cancelled: Vec<(String, usize)>,
    listens: Vec<String>,
    written: Vec<u8>,
    /// Bytes lent so far.
    lent: usize,
    gone: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut config = config();
        config.running_limit = [1, 3, 50][random.below(3)];
        config.waiting_limit = [0, 2, 50][random.below(3)];
        config.listen_limit = [1, 10][random.below(2)];
        config.queue_limit = [700, 5000, 1 << 20][random.below(3)];
        config.own_answers_limit = [300, 1 << 20][random.below(2)];
        config.pause_when_full = random.below(3) == 0;
        Self {
            peer: Peer::new(config),
            random,
            next_id: 0,
            running: Vec::new(),
            waiting: BTreeSet::new(),
            owed: BTreeMap::new(),
            asked: BTreeSet::new(),
            due: BTreeSet::new(),
            cancelled: Vec::new(),
            listens: Vec::new(),
            written: Vec::new(),
            lent: 0,
            gone: false,
        }
    }

    fn fresh_id(&mut self) -> String {
        self.next_id += 1;
        if self.next_id % 3 == 0 { format!("\"{}\"", self.next_id) } else { self.next_id.to_string() }
    }

    fn request(&mut self) {
        let id = self.fresh_id();
        let line =
            request_with_meta(&id, "x", &format!(r#""progressToken":{id},"io.modelcontextprotocol/logLevel":"info""#));
        match self.peer.send(&line) {
            Seen::Request { ticket, admission, .. } => {
                if admission == Admission::Run {
                    self.running.push(ticket);
                } else {
                    assert!(self.waiting.insert(ticket));
                }
                self.owed.insert(ticket, id.clone());
                self.due.insert(id.clone());
            }
            Seen::Refused { code: -32603, .. } => assert!(self.due.insert(id.clone())),
            Seen::Handled => return,
            other => panic!("{other:?}"),
        }
        self.asked.insert(id);
    }

    fn cancel(&mut self, id: &str) {
        let seen = self.peer.send(&cancel(id));
        if matches!(seen, Seen::Cancellation { applied: true, .. }) {
            self.cancelled.push((id.to_owned(), self.lent));
            self.due.remove(id);
            self.asked.remove(id);
            self.listens.retain(|listen| listen != id);
        }
    }

    fn answer(&mut self, ticket: Ticket) {
        let size = [0, 10, 400, 3000][self.random.below(4)];
        let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(size));
        let now = self.peer.now;
        let sent = match self.random.below(4) {
            0 => self.peer.server.respond_error(ticket, -32002, &text, None, now),
            1 => self.peer.server.abandon(ticket, now),
            _ => self.peer.respond(ticket, &text),
        };
        match sent {
            Ok(()) | Err(SendError::TooLarge { .. }) => {
                self.running.retain(|other| *other != ticket);
                self.owed.remove(&ticket);
                assert_eq!(self.peer.respond(ticket, "{}"), Err(SendError::Ended));
            }
            Err(SendError::Full) => assert!(self.peer.server.pending_output() > 0 && self.owed.contains_key(&ticket)),
            Err(error) => panic!("{error}"),
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
                    if running {
                        assert!(self.running.contains(&ticket));
                    } else {
                        assert!(self.waiting.remove(&ticket));
                    }
                }
                Signal::Writable => {}
                Signal::CodeReplaced { code, .. } => assert_eq!(code, -32002),
                other => panic!("{other:?}"),
            }
        }
    }

    fn step(&mut self) {
        match self.random.below(16) {
            0..=3 => self.request(),
            4 => {
                let id = self.fresh_id();
                if self.peer.send(&listen(&id, r#"{"toolsListChanged":true,"resourceSubscriptions":["a"]}"#))
                    == Seen::Handled
                {
                    self.listens.push(id);
                }
            }
            5 => {
                let asked: Vec<String> = self.asked.iter().cloned().chain(self.listens.clone()).collect();
                if !asked.is_empty() {
                    let at = self.random.below(asked.len());
                    self.cancel(&asked[at]);
                }
            }
            6..=8 => {
                if let Some(ticket) = self.random.pick(&self.running) {
                    self.answer(ticket);
                }
            }
            9 | 10 => {
                if let Some(ticket) = self.random.pick(&self.running) {
                    let value = f64::from(u32::try_from(self.random.below(1000)).expect("small"));
                    let now = self.peer.now;
                    let message = "m".repeat(self.random.below(300));
                    let _ = self.peer.server.progress(ticket, value, Some(1e3), Some(&message), now);
                    self.peer.server.log(ticket, LogLevel::Error, None, Json::NULL, now).expect("in flight");
                }
            }
            11 => {
                let change = if self.random.below(2) == 0 {
                    Change::ToolsList
                } else {
                    Change::Resource { subscribed: "a", uri: "a/b" }
                };
                let told = self.peer.server.publish(change, self.peer.now);
                assert!(told <= 10);
            }
            12 => {
                let line = [
                    "oops",
                    "[]",
                    r#"{"jsonrpc":"2.0","id":true,"method":"x"}"#,
                    r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
                ];
                let line = line[self.random.below(4)];
                self.peer.send(line);
            }
            13 => {
                let time = Duration::from_micros(self.random.below(200_000) as u64);
                self.peer.now = self.peer.now.checked_add(time).expect("in range");
                if self.random.below(2) == 0 {
                    self.peer.server.handle_timeout(self.peer.now);
                    assert!(self.peer.server.poll_timeout().is_none_or(|due| due > self.peer.now));
                }
            }
            _ => {
                let most = [1, 50, 1000, usize::MAX][self.random.below(4)];
                self.read(most);
            }
        }
        self.signals();
    }

    /// Ends serving in some way, reads all that comes, and looks at it.
    fn finish(mut self) {
        match self.random.below(4) {
            0 => self.peer.server.end_of_input(self.peer.now),
            1 | 2 => self.peer.server.stop(self.peer.now),
            _ => {
                self.peer.server.peer_gone(self.peer.now);
                self.gone = true;
            }
        }
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
        assert!(self.waiting.is_empty() && self.owed.is_empty());
        // Handlers that return late write nothing.
        for ticket in std::mem::take(&mut self.running) {
            assert_eq!(self.peer.respond(ticket, "{}"), Ok(()));
        }
        assert_eq!(self.peer.server.pending_output(), 0);
        assert_eq!(self.peer.server.poll_timeout(), None);
        assert_eq!(self.peer.signals(), []);
        if !self.gone {
            self.check_output();
        }
    }

    fn check_output(&self) {
        let mut answered = BTreeSet::new();
        let mut at = 0;
        for line in lines(self.written.clone()) {
            let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            let of = value.get("id").or_else(|| value["params"].get("progressToken")).map(ToString::to_string);
            let of = of.or_else(|| {
                let of = value["params"]["_meta"].get("io.modelcontextprotocol/subscriptionId")?;
                Some(of.to_string())
            });
            if let Some(id) = of.filter(|id| id != "null") {
                assert!(
                    !self.cancelled.iter().any(|(cancelled, lent)| *cancelled == id && at >= *lent),
                    "CAN-06, SUB-06: nothing begins after the cancellation: {line}"
                );
                if value.get("id").is_some() {
                    assert!(answered.insert(id.clone()), "one answer each: {line}");
                } else if value["method"] == "notifications/progress" {
                    assert!(!answered.contains(&id), "RTE-09: nothing follows the answer: {line}");
                }
            }
            at += line.len() + 1;
        }
        for id in &self.due {
            assert!(answered.contains(id), "request {id} was not answered");
        }
    }
}

// CAN-06, RTE-09, LIM-04, SHD-05: every request is answered once or cancelled, and nothing follows either.
#[test]
fn every_request_ends_once_whatever_is_called() {
    for seed in 1..=100 {
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
