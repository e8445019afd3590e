//! Owns a server that is written without the core: it splits lines by hand and answers in the order of its delays. What the core's two
//! sides might both get wrong the same way shows against it. It must not know pipes or the process around it.

use serde_json::{Value, json};

use super::brain::{Brain, PROMPT};
use super::random::Random;
use super::server_oracle::ServerOracle;
use super::temper::{Legacy, OnProbe};
use super::trace::Trace;

#[derive(Debug)]
pub(crate) struct Script {
    line: Vec<u8>,
    out: Vec<u8>,
    /// What is still to be said, and when.
    due: Vec<(u64, Value)>,
    ended: bool,
    legacy: Option<Legacy>,
    /// How far its legacy session is.
    session: Session,
    /// Ids of requests of its own that are not answered.
    asked: Vec<Value>,
    answered: Vec<Value>,
    exits: bool,
    answer_limit: usize,
    oracle: ServerOracle,
    trace: Trace,
}

impl Script {
    pub(crate) fn new(legacy: Option<Legacy>, answer_limit: usize, trace: &Trace) -> Self {
        Self {
            line: Vec::new(),
            out: Vec::new(),
            due: Vec::new(),
            ended: false,
            legacy,
            session: Session::None,
            asked: Vec::new(),
            answered: Vec::new(),
            exits: false,
            answer_limit,
            oracle: ServerOracle::default(),
            trace: trace.clone(),
        }
    }

    fn message(&mut self, line: &[u8], now_us: u64, random: &mut Random) {
        let message: Value = serde_json::from_slice(line).expect("an honest client writes JSON");
        self.trace.say("script", &message);
        if let Some(batch) = message.as_array() {
            assert!(self.legacy.is_some_and(|legacy| legacy.version == "2025-03-26"), "LEG-09: {message}");
            return batch.iter().for_each(|answer| self.answered(answer));
        }
        if message.get("method").is_none() {
            return self.answered(&message);
        }
        if let Some(legacy) = self.legacy {
            if !self.legacy_message(legacy, &message, now_us, random) {
                return;
            }
        }
        let (id, params) = (&message["id"], &message["params"]);
        let meta = |id: &Value| json!({"io.modelcontextprotocol/subscriptionId": id});
        let result = |id: &Value, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
        match message["method"].as_str().expect("requests and notifications only") {
            "server/discover" => {
                let discovered = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": {}, "ttlMs": 0, "cacheScope": "private"});
                self.due.push((now_us + random.below(20_000), result(id, discovered)));
            }
            "initialize" => {
                let error = json!({"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}});
                self.due.push((now_us, json!({"jsonrpc": "2.0", "id": id, "error": error})));
            }
            "subscriptions/listen" => {
                let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": {"_meta": meta(id), "notifications": params["notifications"]}});
                self.due.push((now_us, acknowledged));
                for _ in 0..random.below(3) {
                    let changed = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated",
                        "params": {"_meta": meta(id), "uri": "sim://1"}});
                    self.due.push((now_us + 1 + random.below(3_000_000), changed));
                }
                if random.once_in(4) {
                    let end = json!({"resultType": "complete", "_meta": meta(id)});
                    self.due.push((now_us + 4_000_000, result(id, end)));
                }
            }
            "notifications/cancelled" => {
                let gone = &params["requestId"];
                self.due.retain(|(_, message)| message["id"] != *gone && message["params"]["_meta"] != meta(gone));
            }
            _ if id.is_null() => {}
            _ => {
                let marker = params["n"].as_u64().expect("each request of the world has its number");
                let prompt = marker >= PROMPT;
                self.ask(prompt, now_us, random);
                let delay = if prompt { 0 } else { random.pick(&[0, 0, 10_000, 3_000_000]) };
                let size = if prompt { 0 } else { random.pick(&[0, 10, 5_000]).min(self.answer_limit) };
                let answer = json!({"n": marker, "pad": "z".repeat(size)});
                if !params["_meta"]["progressToken"].is_null() {
                    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                        "params": {"progressToken": params["_meta"]["progressToken"], "progress": 1}});
                    self.due.push((now_us, progress));
                }
                let due_us = now_us + random.below(delay + 1);
                if prompt || !random.once_in(8) {
                    self.due.push((due_us, result(id, answer)));
                } else {
                    self.trace.fault("a request that is never answered");
                }
                if !prompt {
                    self.flood(now_us, random);
                }
            }
        }
    }
}

/// How far a legacy session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Session {
    None,
    /// `initialize` is answered.
    Opened,
    /// The client has said that it is initialized.
    Ready,
}

impl Script {
    /// What only a legacy server has to look after. Whether the message is to be served as any other.
    fn legacy_message(&mut self, legacy: Legacy, message: &Value, now_us: u64, random: &mut Random) -> bool {
        let id = &message["id"];
        match message["method"].as_str().expect("it has one") {
            "server/discover" => {
                assert_ne!(self.session, Session::Ready, "VER-07: a probe in a session");
                match legacy.on_probe {
                    OnProbe::Error(code) => {
                        let error = json!({"code": code, "message": "no"});
                        self.due.push((now_us, json!({"jsonrpc": "2.0", "id": id, "error": error})));
                    }
                    OnProbe::Silence => {}
                    OnProbe::Exit => self.exits = true,
                }
                false
            }
            "initialize" => {
                // A forged refusal may lead to a second one.
                assert_ne!(self.session, Session::Ready, "LEG-01: an initialize in a session");
                self.session = Session::Opened;
                self.oracle.scripted();
                let opened = json!({"protocolVersion": legacy.version, "capabilities": {},
                    "serverInfo": {"name": "script", "version": "1"}});
                if random.once_in(4) {
                    self.due.push((now_us, json!({"jsonrpc": "2.0", "id": "early", "method": "ping"})));
                    self.asked.push(json!("early"));
                }
                let due_us = now_us + 1 + random.below(20_000);
                self.due.push((due_us, json!({"jsonrpc": "2.0", "id": id, "result": opened})));
                false
            }
            "notifications/initialized" => {
                assert_eq!(self.session, Session::Opened, "LEG-01: W-16 follows the result");
                self.session = Session::Ready;
                false
            }
            method => {
                assert_eq!(self.session, Session::Ready, "LEG-01: {method} before the session is open");
                assert!(method != "subscriptions/listen", "LEG-08: a listen");
                let text = message.to_string();
                assert!(!text.contains("io.modelcontextprotocol/"), "META-08: {text}");
                true
            }
        }
    }

    /// It says nothing more before some of what it said was taken.
    fn is_full(&self) -> bool {
        self.out.len() > 100_000
    }

    /// More of one kind than anybody wants: notifications, or what has to be answered.
    fn flood(&mut self, now_us: u64, random: &mut Random) {
        let (kind, line, count) = if random.once_in(24) {
            ("a flood of notifications", json!({"jsonrpc": "2.0", "method": "notifications/flood"}), 200)
        } else if self.legacy.is_some() && random.once_in(40) {
            self.asked.extend(core::iter::repeat_n(json!("flood"), 2_500));
            ("a flood of pings", json!({"jsonrpc": "2.0", "id": "flood", "method": "ping"}), 2_500)
        } else {
            return;
        };
        // Not through a pipe of one byte.
        if self.answer_limit > 50_000 {
            self.trace.fault(kind);
            self.due.extend(core::iter::repeat_n((now_us, line), count));
        }
    }

    /// Asks the client something, with ids that the client may use as well (LEG-07).
    fn ask(&mut self, prompt: bool, now_us: u64, random: &mut Random) {
        let Some(legacy) = self.legacy.filter(|_| !prompt && random.once_in(3)) else { return };
        let id = json!(random.below(6));
        if self.asked.contains(&id) {
            return;
        }
        self.asked.push(id.clone());
        let method = random.pick(&["ping", "roots/list", "elicitation/create"]);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"_meta": {"progressToken": 1}}});
        let due_us = now_us + random.below(10_000);
        if legacy.version == "2025-03-26" && random.once_in(2) {
            let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
            let ping = json!({"jsonrpc": "2.0", "id": format!("{id}"), "method": "ping"});
            self.asked.push(ping["id"].clone());
            self.due.push((due_us, json!([note, request, ping])));
        } else {
            self.due.push((due_us, request));
        }
        if random.once_in(4) {
            let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
            self.due.push((due_us + 1 + random.below(100_000), cancelled));
        }
    }

    /// An answer of the client's: to a request that was asked, once, whether it was given up or not.
    fn answered(&mut self, answer: &Value) {
        assert!(self.legacy.is_some(), "RTE-01: a modern server is answered: {answer}");
        assert!(answer["result"].is_object() != answer["error"].is_object(), "MSG-09: {answer}");
        match self.asked.iter().position(|id| *id == answer["id"]) {
            Some(at) => self.answered.push(self.asked.remove(at)),
            // Among the garbage are one request, and duplicates.
            None => {
                let known = answer["id"] == 7 || self.answered.contains(&answer["id"]);
                assert!(known, "LEG-07: nobody asked that: {answer}");
            }
        }
    }
}

impl Brain for Script {
    fn wants_read(&self) -> bool {
        true
    }

    fn read(&mut self, bytes: &[u8], now_us: u64, random: &mut Random) {
        for byte in bytes {
            if *byte == b'\n' {
                let line = core::mem::take(&mut self.line);
                self.message(&line, now_us, random);
            } else {
                self.line.push(*byte);
            }
        }
    }

    fn end_of_input(&mut self, _: u64, _: &mut Random) {
        self.ended = true;
        self.due.clear();
    }

    fn work(&mut self, now_us: u64, _: &mut Random) -> bool {
        // The earliest of all, of those the first that was lined up.
        let Some(next) = (0..self.due.len()).min_by_key(|n| (self.due[*n].0, *n)) else { return false };
        if self.due[next].0 > now_us || self.is_full() {
            return false;
        }
        let (_, message) = self.due.remove(next);
        self.out.extend_from_slice(message.to_string().as_bytes());
        self.out.push(b'\n');
        true
    }

    fn next_us(&self) -> Option<u64> {
        if self.is_full() {
            return None;
        }
        self.due.iter().map(|(due_us, _)| *due_us).min()
    }

    fn output(&mut self, _: u64) -> &[u8] {
        &self.out
    }

    fn accepted(&mut self, bytes: &[u8], _: u64, _: &mut Random) {
        self.oracle.wrote(bytes);
        self.out.drain(..bytes.len());
    }

    fn stop(&mut self, _: bool, now_us: u64, random: &mut Random) {
        self.end_of_input(now_us, random);
    }

    fn peer_gone(&mut self, _: u64, _: &mut Random) {
        self.out.clear();
        self.due.clear();
    }

    fn has_ended(&self) -> bool {
        self.ended && self.out.is_empty()
    }

    fn exits(&self) -> bool {
        self.exits
    }

    fn oracle(&self) -> &ServerOracle {
        &self.oracle
    }
}
