//! Owns what the client wrote to one life of the server: its lines, checked as they are completed, and how far each request
//! of the world came. It must not know what the client believes.

use std::collections::BTreeMap;

use mcp_wire::Era;
use serde_json::Value;

/// How far a request came on the wire of one life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    Nothing,
    Partly,
    Whole,
}

#[derive(Debug, Default)]
pub(crate) struct Wire {
    /// The line under way, as far as it was written.
    line: Vec<u8>,
    /// The number of the request in the line under way.
    partly: Option<u64>,
    partly_known: bool,
    whole: BTreeMap<u64, u64>,
    /// Of those, the ones that nobody has looked at.
    fresh: Vec<u64>,
    requests: BTreeMap<u64, bool>,
    probed: bool,
    /// `initialize` was written.
    opening: bool,
    /// W-16 was written.
    session: bool,
    /// Bytes of the lent frames that are not written.
    lent: usize,
    /// Nothing new may begin but what was lent before, of which that much is left, and cancellations.
    closed: Option<usize>,
}

impl Wire {
    pub(crate) fn closed(&mut self) {
        self.closed = Some(self.lent);
    }

    pub(crate) fn lent(&mut self, lent: &[u8]) {
        self.lent = lent.len();
    }

    /// `lent` was offered, and the first `n` bytes of it were taken.
    pub(crate) fn wrote(&mut self, lent: &[u8], n: usize, established: Option<Era>, last_id: &mut u64) {
        for piece in lent[..n].split_inclusive(|byte| *byte == b'\n') {
            if self.line.is_empty() && self.closed == Some(0) {
                let rest = line_of(lent, piece);
                let request = rest.contains("\"id\":") && rest.contains("\"method\":");
                assert!(!request, "SHD-03: a request begins after the close: {rest}");
            }
            self.lent = self.lent.saturating_sub(piece.len());
            self.closed = self.closed.map(|left| left.saturating_sub(piece.len()));
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = core::mem::take(&mut self.line);
                self.check(&line, established, last_id);
                self.partly = None;
                self.partly_known = false;
            }
        }
        if !self.line.is_empty() && !self.partly_known {
            self.partly_known = true;
            let end = lent[n..].iter().position(|byte| *byte == b'\n').expect("whole frames are lent");
            let whole = [&self.line[..], &lent[n..n + end]].concat();
            self.partly = number(&serde_json::from_slice(&whole).expect("a frame is JSON"));
        }
    }

    fn check(&mut self, line: &[u8], established: Option<Era>, last_id: &mut u64) {
        let shown = String::from_utf8_lossy(line).into_owned();
        let value: Value = serde_json::from_slice(line).unwrap_or_else(|error| panic!("FRM-01: {error}: {shown}"));
        if let Some(batch) = value.as_array() {
            assert!(self.session && batch.iter().all(|answer| answer.get("method").is_none()), "LEG-09: {shown}");
            return;
        }
        assert_eq!(value["jsonrpc"], "2.0", "MSG-02: {shown}");
        let Some(method) = value["method"].as_str() else {
            // Before the session is open only a ping is answered (LEG-01, LEG-05).
            let pong = self.opening && value["result"].as_object().is_some_and(serde_json::Map::is_empty);
            assert!(self.session || pong, "RTE-01: neither a request nor a notification: {shown}");
            return;
        };
        if method == "notifications/initialized" {
            assert!(self.opening && !core::mem::replace(&mut self.session, true), "LEG-01: {shown}");
            assert_eq!(established, Some(Era::Legacy), "LEG-01: {shown}");
            return;
        }
        if established == Some(Era::Legacy) || method == "initialize" {
            assert!(!shown.contains("io.modelcontextprotocol/"), "META-08: {shown}");
        }
        if let Some(id) = value.get("id") {
            let id = id.as_u64().expect("ids are minted integers");
            assert!(id > *last_id, "MSG-06: the id {id} after {last_id}: {shown}");
            *last_id = id;
            if method == "initialize" {
                assert!(!self.session && self.requests.is_empty() | self.probed, "LEG-01: {shown}");
                self.opening = true;
                self.requests.insert(id, true);
                return;
            }
            let meta = &value["params"]["_meta"];
            let legacy = established == Some(Era::Legacy);
            assert!(!legacy || self.session, "LEG-01: {shown} before W-16");
            assert!(legacy || meta["io.modelcontextprotocol/protocolVersion"].is_string(), "META-01: {shown}");
            assert!(legacy || meta["io.modelcontextprotocol/clientCapabilities"].is_object(), "META-01: {shown}");
            if method == "server/discover" {
                self.probed = true;
            } else {
                assert!(established.is_some(), "VER-02: {shown} before the era is known");
                let marker = number(&value).expect("each request of the world has its number");
                assert!(self.whole.insert(marker, id).is_none(), "RST-03: sent twice in one life: {shown}");
                self.fresh.push(marker);
            }
            self.requests.insert(id, false);
        } else {
            assert!(established.is_some(), "CAN-12: {shown} before the era is known");
            if method == "notifications/cancelled" {
                let id = value["params"]["requestId"].as_u64().expect("an id of ours");
                let cancelled = self.requests.get_mut(&id).unwrap_or_else(|| panic!("CAN-02: never sent: {shown}"));
                assert!(!core::mem::replace(cancelled, true), "CAN-02: cancelled twice: {shown}");
            }
        }
    }

    /// The numbers of the requests that were completed since the last call.
    pub(crate) fn take_fresh(&mut self) -> Vec<u64> {
        core::mem::take(&mut self.fresh)
    }

    pub(crate) fn reach(&self, marker: u64) -> Reach {
        if self.whole.contains_key(&marker) {
            Reach::Whole
        } else if self.partly == Some(marker) {
            Reach::Partly
        } else {
            Reach::Nothing
        }
    }
}

/// The whole line in `lent` that `piece`, a part of it, begins.
fn line_of<'a>(lent: &'a [u8], piece: &[u8]) -> std::borrow::Cow<'a, str> {
    let start = piece.as_ptr() as usize - lent.as_ptr() as usize;
    let end = lent[start..].iter().position(|byte| *byte == b'\n').map_or(lent.len(), |end| start + end);
    String::from_utf8_lossy(&lent[start..end])
}

/// The number that the world put into a request: in its params, or as the URI of a listen.
fn number(value: &Value) -> Option<u64> {
    let params = &value["params"];
    params["n"].as_u64().or_else(|| {
        let uri = params["notifications"]["resourceSubscriptions"][0].as_str()?;
        uri.strip_prefix("sim://")?.parse().ok()
    })
}
