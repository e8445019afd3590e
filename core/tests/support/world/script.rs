//! Owns a server that is written without the core: it splits lines by hand and answers in the order of its delays. What the core's two
//! sides might both get wrong the same way shows against it. It must not know pipes or the process around it.

use serde_json::{Value, json};

use super::brain::{Brain, PROMPT};
use super::random::Random;
use super::server_oracle::ServerOracle;
use super::trace::Trace;

#[derive(Debug)]
pub(crate) struct Script {
    line: Vec<u8>,
    out: Vec<u8>,
    /// What is still to be said, and when.
    due: Vec<(u64, Value)>,
    ended: bool,
    legacy: bool,
    answer_limit: usize,
    oracle: ServerOracle,
    trace: Trace,
}

impl Script {
    pub(crate) fn new(legacy: bool, answer_limit: usize, trace: &Trace) -> Self {
        Self {
            line: Vec::new(),
            out: Vec::new(),
            due: Vec::new(),
            ended: false,
            legacy,
            answer_limit,
            oracle: ServerOracle::default(),
            trace: trace.clone(),
        }
    }

    fn message(&mut self, line: &[u8], now_us: u64, random: &mut Random) {
        let message: Value = serde_json::from_slice(line).expect("an honest client writes JSON");
        self.trace.say("script", &message);
        let (id, params) = (&message["id"], &message["params"]);
        let meta = |id: &Value| json!({"io.modelcontextprotocol/subscriptionId": id});
        let result = |id: &Value, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
        match message["method"].as_str().expect("requests and notifications only") {
            _ if self.legacy && !id.is_null() => {
                let error = json!({"code": -32601, "message": "Method not found"});
                self.due.push((now_us, json!({"jsonrpc": "2.0", "id": id, "error": error})));
            }
            "server/discover" => {
                let discovered = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": {}, "ttlMs": 0, "cacheScope": "private"});
                self.due.push((now_us + random.below(20_000), result(id, discovered)));
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
                } // else it never answers
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
        if self.due[next].0 > now_us || self.out.len() > 100_000 {
            return false;
        }
        let (_, message) = self.due.remove(next);
        self.out.extend_from_slice(message.to_string().as_bytes());
        self.out.push(b'\n');
        true
    }

    fn next_us(&self) -> Option<u64> {
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

    fn oracle(&self) -> &ServerOracle {
        &self.oracle
    }
}
