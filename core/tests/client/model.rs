//! Random operations against a plain model: every request and listen ends exactly once, ids are never reused, what is written is valid, and
//! the same operations give the same outcome.

use std::collections::{BTreeMap, BTreeSet};

use mcp_wire::client::{Config, Handle, ProgressToken, ServerTicket, Signal};
use mcp_wire::{Filter, Id, IdBuf};

use crate::support::{Client, Seen, json, ms, options};

/// A small generator (xorshift), so that a run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// What a naive map knows.
#[derive(Default)]
struct Model {
    /// Handles that have not ended; whether it is a listen.
    live: BTreeMap<Handle, bool>,
    /// Ids that the server has read and not answered; whether each is a listen.
    read: BTreeMap<u64, bool>,
    ids: BTreeSet<u64>,
    cancelled: BTreeSet<u64>,
    /// Requests of the server's that the client has been told of.
    asked: Vec<ServerTicket>,
    /// The client has opened a legacy session in some life.
    legacy: bool,
    trace: Vec<String>,
}

impl Model {
    fn end(&mut self, handle: Handle, seed: u64) {
        assert!(self.live.remove(&handle).is_some(), "seed {seed}: {handle:?} ended twice or never was");
    }

    fn event(&mut self, seen: &Seen, seed: u64) {
        match seen {
            Seen::Result(handle, ..) | Seen::Error(handle, _) | Seen::ListenEnded(handle, _) => {
                self.end(*handle, seed);
            }
            Seen::Note(Some(handle), _) | Seen::Acknowledged(handle, ..) => {
                assert!(self.live.contains_key(handle), "seed {seed}: a notification of one that has ended");
            }
            Seen::ServerRequest(ticket, _) => {
                assert!(!self.asked.contains(ticket), "seed {seed}: {ticket:?}");
                self.asked.push(*ticket);
            }
            _ => {}
        }
        self.trace.push(format!("{seen:?}"));
    }

    fn signals(&mut self, client: &mut Client, seed: u64) {
        for signal in client.signals() {
            match &signal {
                Signal::Ended { request: handle, .. } | Signal::ListenEnded { listen: handle, .. } => {
                    self.end(*handle, seed);
                }
                Signal::ServerRequestCancelled { ticket, .. } => {
                    let at = self.asked.iter().position(|asked| asked == ticket);
                    self.asked.remove(at.unwrap_or_else(|| panic!("seed {seed}: {ticket:?} ended twice")));
                }
                _ => {}
            }
            self.trace.push(format!("{signal:?}"));
        }
    }

    /// What the server reads. Gives the id of a probe, or (true) of a handshake.
    fn read_line(&mut self, line: &str, seed: u64) -> Option<(u64, bool)> {
        self.trace.push(line.into());
        let value: serde_json::Value = serde_json::from_str(line).expect("each line is JSON");
        assert_eq!(value["jsonrpc"], "2.0");
        if value["method"] == "notifications/cancelled" {
            let id = value["params"]["requestId"].as_u64().expect("an id of ours");
            assert!(self.ids.contains(&id), "seed {seed}: a cancellation of a request that was not written");
            assert!(self.cancelled.insert(id), "seed {seed}: a second cancellation");
            return None;
        }
        if value["method"].is_null() {
            // An answer. To a modern server there is none (RTE-01), but in a life in which it was silent for too long.
            assert!(self.legacy, "seed {seed}: an answer of a modern client");
            return None;
        }
        let id = value["id"].as_u64()?;
        assert!(self.ids.insert(id), "seed {seed}: the id {id} was used before");
        if value["method"] == "server/discover" {
            return Some((id, false));
        }
        if value["method"] == "initialize" {
            self.legacy = true;
            return Some((id, true));
        }
        assert!(self.legacy || value["params"]["_meta"].is_object(), "seed {seed}: no metadata");
        self.read.insert(id, value["method"] == "subscriptions/listen");
        None
    }
}

fn pick<T: Copy>(random: &mut Random, mut from: impl ExactSizeIterator<Item = T>) -> Option<T> {
    let len = from.len() as u64;
    if len == 0 { None } else { from.nth(random.below(len) as usize) }
}

fn run(seed: u64) -> Vec<String> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut config = Config::new("c", "1");
    (config.queue_limit, config.in_flight_limit, config.listen_limit) = (8000, 12, 4);
    (config.answers_requests, config.server_request_limit, config.probe_timeout) = (true, 3, ms(300));
    config.request_timeout = ms(500);
    let mut client = Client::new(config);
    let mut model = Model::default();
    let mut wire: Vec<u8> = Vec::new();
    let mut probe = None;
    for _ in 0..1500 {
        match random.below(20) {
            0..=3 => {
                let mut options = options();
                options.idempotent = random.below(2) == 0;
                options.progress = match random.below(4) {
                    0 => ProgressToken::Minted,
                    1 => ProgressToken::Own(IdBuf::from(
                        Id::parse(["\"t\"", "40", "3"][random.below(3) as usize]).expect("a token"),
                    )),
                    _ => ProgressToken::None,
                };
                if random.below(3) == 0 {
                    options.max_timeout = Some(ms(900));
                }
                let before = client.conn.in_flight();
                match client.conn.request("m", None, options, client.now) {
                    Ok(handle) => assert!(model.live.insert(handle, false).is_none(), "seed {seed}"),
                    Err(_) => assert_eq!(client.conn.in_flight(), before, "seed {seed}: an error changes nothing"),
                }
            }
            4 => {
                if let Ok(handle) = client.conn.listen(&Filter::default().tools_list_changed(), options(), client.now) {
                    model.live.insert(handle, true);
                }
            }
            5 => {
                let _ = client.notify("notifications/x");
            }
            6 | 7 => {
                if let Some(handle) = pick(&mut random, model.live.keys().copied()) {
                    if random.below(4) == 0 {
                        client.conn.overflow(handle, client.now);
                    } else {
                        client.cancel(handle, None);
                    }
                }
            }
            8..=11 => {
                // The writer takes some bytes, the server reads the whole lines among them.
                let out = client.conn.output(client.now);
                let n = random.below(out.len() as u64 + 1) as usize;
                wire.extend_from_slice(&out[..n]);
                client.accept(n);
                while let Some(end) = wire.iter().position(|&byte| byte == b'\n') {
                    let line: Vec<u8> = wire.drain(..=end).collect();
                    let line = String::from_utf8(line).expect("UTF-8");
                    probe = model.read_line(line.trim_end(), seed).or(probe);
                }
            }
            12 | 13 => {
                if let Some(id) = pick(&mut random, model.read.keys().copied()) {
                    let listen = model.read[&id];
                    let seen = match random.below(8) {
                        0 if listen => client.acknowledge(id, r#"{"toolsListChanged":true}"#),
                        1 if listen => client.change(&id.to_string(), "notifications/tools/list_changed"),
                        2 => client.error(&id.to_string(), -32603),
                        3 => client.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"odd"}}}}"#)),
                        4 => client.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"#)),
                        5 => client.note("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#)),
                        _ => client.result(id),
                    };
                    model.event(&seen, seed);
                }
            }
            14 => {
                let seen = match random.below(5) {
                    0 => client.error("null", -32700),
                    1 => client.progress("\"t\"", "1"),
                    2 => client.progress(&random.below(60).to_string(), &random.below(9).to_string()),
                    3 => client.result(random.below(100)),
                    _ => client.feed("garbage"),
                };
                model.event(&seen, seed);
            }
            15 | 16 => client.pass(random.below(200)),
            17 if random.below(6) == 0 => {
                client.conn.lost(true, client.now);
                (wire, probe) = (Vec::new(), None);
                model.read.clear();
            }
            18 => {
                let ask = |method: &str| format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}"}}"#, model.ids.len());
                let seen = match random.below(3) {
                    0 => client.feed(&ask("ping")),
                    1 => client.feed(&ask("roots/list")),
                    _ => match model.asked.pop() {
                        Some(ticket) => {
                            if client.conn.respond(ticket, json("{}"), client.now).is_err() {
                                model.asked.push(ticket);
                            }
                            Seen::Handled
                        }
                        None => Seen::Handled,
                    },
                };
                model.event(&seen, seed);
            }
            _ => client.open(),
        }
        // Half of the servers know no probe; a silent one is one of them.
        let result = match probe.take() {
            Some((id, true)) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25"}}}}"#),
            Some((id, false)) if seed % 2 == 0 => {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"supportedVersions":["2026-07-28"]}}}}"#)
            }
            Some((id, false)) if seed % 4 == 1 => {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"m"}}}}"#)
            }
            _ => String::new(),
        };
        if !result.is_empty() {
            let seen = client.feed(&result);
            model.event(&seen, seed);
        }
        if random.below(3) == 0 {
            model.signals(&mut client, seed);
            assert_eq!(client.conn.in_flight(), model.live.len(), "seed {seed}");
            assert!(client.conn.pending_output() <= 8000 + 16 * 110, "seed {seed}: the queue is bounded");
        }
    }
    client.conn.lost(false, client.now);
    model.signals(&mut client, seed);
    assert!(model.live.is_empty(), "seed {seed}: {:?} never ended", model.live);
    assert!(model.asked.is_empty(), "seed {seed}: {:?} were never cancelled", model.asked);
    assert!(client.conn.is_idle() && client.conn.poll_timeout().is_none(), "seed {seed}");
    model.trace
}

// MSG-06, CAN-02, RST-02, LIM-06, TMO-05: whatever happens in whatever order, each request and listen ends once, and the same again.
#[test]
fn every_request_ends_exactly_once_whatever_happens() {
    for seed in 1..=50 {
        assert_eq!(run(seed), run(seed), "seed {seed}: the same operations gave another outcome");
    }
}
