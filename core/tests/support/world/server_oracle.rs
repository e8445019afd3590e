//! Owns what must hold of an honest server's output: whole lines of valid JSON, responses to open requests only, once each, none
//! after a cancellation, each in the form of its era. It must not know how it is carried.

use std::collections::{BTreeMap, BTreeSet};

use mcp_wire::server::Ticket;
use serde_json::Value;

use super::random::Random;

/// Lines kept for duplicates.
const KEPT: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct ServerOracle {
    line: Vec<u8>,
    lines: Vec<Vec<u8>>,
    /// By the id token: the ticket of each request that was handed to the world.
    ids: BTreeMap<String, Ticket>,
    /// Ids of requests of the legacy era.
    legacy: BTreeSet<String>,
    /// A legacy session was opened.
    session: bool,
    /// The last id of the server's own.
    asked: u64,
    answered: BTreeMap<String, u32>,
    cancelled: Vec<Ticket>,
    /// Ids that a cancellation ended: their answer, queued or not, is not written.
    silenced: Vec<String>,
    truncated: bool,
    /// The server is written without the core, and asks its legacy client under ids of its own making.
    scripted: bool,
}

impl ServerOracle {
    pub(crate) fn initialized(&mut self) {
        self.session = true;
    }

    pub(crate) fn request(&mut self, id: &str, ticket: Ticket, legacy: bool) {
        assert!(self.session || !legacy, "VER-12: a legacy request without a session");
        if legacy {
            self.legacy.insert(id.to_string());
        }
        let old = self.ids.insert(id.to_string(), ticket);
        assert!(old.is_none(), "MSG-06: the client used the id {id} twice");
    }

    pub(crate) fn cancelled(&mut self, ticket: Ticket) {
        self.cancelled.push(ticket);
    }

    pub(crate) fn silenced(&mut self, id: &str) {
        self.silenced.push(id.to_string());
    }

    pub(crate) fn scripted(&mut self) {
        self.scripted = true;
    }

    pub(crate) fn truncated(&mut self) {
        self.truncated = true;
    }

    pub(crate) fn wrote(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = core::mem::take(&mut self.line);
                self.check(&line);
                if self.lines.len() == KEPT {
                    self.lines.remove(0);
                }
                self.lines.push(line);
            }
        }
    }

    fn check(&mut self, line: &[u8]) {
        let shown = String::from_utf8_lossy(line);
        let value: Value = serde_json::from_slice(line).unwrap_or_else(|error| panic!("{error}: {shown}"));
        if let Some(batch) = value.as_array() {
            assert!(self.scripted && !batch.is_empty(), "LEG-09: {shown}");
            return;
        }
        assert_eq!(value["jsonrpc"], "2.0", "MSG-02: {shown}");
        if value.get("method").is_some() {
            if let Some(id) = value.get("id").filter(|_| !self.scripted) {
                assert!(self.session, "RTE-02: the server sent a request: {shown}");
                let id = id.as_u64().expect("an id of the core's");
                assert!(id > self.asked, "LEG-07, MSG-06: {shown}");
                self.asked = id;
            }
            return;
        }
        assert!(value.get("result").is_some() != value.get("error").is_some(), "MSG-09: {shown}");
        let id = value["id"].to_string();
        if id == "null" {
            // The last line of a client that is closed or killed may be cut off.
            assert!(self.truncated, "an honest client wrote nothing else that could not be read: {shown}");
            self.truncated = false;
            return;
        }
        let count = self.answered.entry(id.clone()).or_default();
        *count += 1;
        assert_eq!(*count, 1, "two answers to {id}: {shown}");
        assert!(!self.silenced.contains(&id), "CAN-06: {shown}");
        if self.ids.contains_key(&id) && value.get("result").is_some() {
            let modern = value["result"].get("resultType").is_some();
            assert_eq!(modern, !self.legacy.contains(&id), "MSG-12, META-08: {shown}");
        }
    }

    /// Serving has ended by itself: every byte was accepted.
    pub(crate) fn ended(&self) {
        assert!(self.line.is_empty(), "the server ended in the middle of a line");
        for (id, ticket) in &self.ids {
            assert!(
                self.answered.contains_key(id) || self.cancelled.contains(ticket) || self.silenced.contains(id),
                "the request {id} was neither answered nor cancelled"
            );
        }
    }

    pub(crate) fn at_line_start(&self) -> bool {
        self.line.is_empty()
    }

    pub(crate) fn lines(&self) -> &[Vec<u8>] {
        &self.lines
    }

    /// An id that the client uses now, has used or will use.
    pub(crate) fn recent_id(&self, random: &mut Random) -> u64 {
        let last: u64 = self.ids.keys().filter_map(|id| id.parse().ok()).max().unwrap_or(1);
        (last + 2).saturating_sub(random.below(6)).max(1)
    }
}
