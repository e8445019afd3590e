//! Owns the handshake with a legacy server: `initialize`, what its answer means, and what the server told of itself in either era. It must
//! not know what led to it, nor what waits for it.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::peek::member;
use super::probe::{self, Verdict};
use super::recent::Ending;
use super::{Config, Connection, Event, Stage};
use crate::send_buffer::FrameNumber;
use crate::{ConnectionError, Era, ErrorObject, Id, Instant, Json, JsonBuf, encode};

/// Handshakes that are tried in one life of the server: one, and one more after it was taken for modern in between.
const TRIES: u8 = 2;
/// Bound of what is kept of a server's words, in characters.
const KEPT: usize = 200;

/// An `initialize` that is queued or waits for its answer. It is never cancelled (LEG-04).
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) id: u64,
    pub(super) frame: FrameNumber,
    /// The probe that was not answered in time: its answer may still come (VER-06).
    late_probe: Option<u64>,
    /// The server was probed in this life, so it is not probed again for an error.
    probed: bool,
    pub(super) start_deadline: Option<Instant>,
}

/// The facts that a server tells when a connection is established. It is the server's word, and no ground for decisions (META-08).
///
/// ```
/// # use mcp_wire::client::Facts;
/// fn has_tools(facts: &Facts<'_>) -> bool {
///     facts.capabilities().is_some_and(|capabilities| capabilities.members().any(|(name, _)| name == "tools"))
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The era of the connection.
    era: Era,
    result: Json<'a>,
}

impl<'a> Facts<'a> {
    /// The `result` of `server/discover` or, of a legacy server, of `initialize`, unchanged.
    #[must_use]
    pub const fn result(self) -> Json<'a> {
        self.result
    }

    /// `capabilities`.
    #[must_use]
    pub fn capabilities(self) -> Option<Json<'a>> {
        member(self.result, "capabilities")
    }

    /// `serverInfo`, which a modern server tells in `_meta`.
    #[must_use]
    pub fn server_info(self) -> Option<Json<'a>> {
        match self.era {
            Era::Modern => member(member(self.result, "_meta")?, "io.modelcontextprotocol/serverInfo"),
            Era::Legacy => member(self.result, "serverInfo"),
        }
    }

    /// `instructions`, unescaped.
    #[must_use]
    pub fn instructions(self) -> Option<Cow<'a, str>> {
        member(self.result, "instructions")?.as_str()
    }
}

impl Connection {
    /// What the server told of itself, once established. `None` where a known version made the question needless.
    #[must_use]
    pub fn facts(&self) -> Option<Facts<'_>> {
        let era = Era::of(self.verdict.as_deref()?);
        self.told.as_ref().map(|told| Facts { era, result: told.as_json() })
    }

    /// Opens a legacy session in this version, or gives up if that was tried often enough (LEG-01).
    pub(super) fn initialize(&mut self, version: &str, code: Option<i64>) {
        if self.handshakes == TRIES {
            self.fail(ConnectionError::LegacyServer { code });
            return;
        }
        self.handshakes += 1;
        let (probed, late_probe, start_deadline) = match &self.stage {
            Stage::Probing(probe) => {
                // An answered one is on record.
                let late = (!self.table.recent.is_recorded(probe.id)).then_some(probe.id);
                (true, late, probe.start_deadline())
            }
            _ => (false, None, self.now.checked_add(self.config.start_timeout)),
        };
        let id = self.table.mint();
        let config = &self.config;
        // With the reserve a push does not fail.
        let Ok(frame) = self.out.push(true, |out| write(out, id, config, version)) else { return };
        self.stage = Stage::Opening(Opening { id, frame, late_probe, probed, start_deadline });
    }

    /// Whether this id is that of the handshake, or, for an error without one, whether it can be about nothing else.
    pub(super) fn is_opening(&self, id: Option<Id<'_>>) -> bool {
        let Stage::Opening(opening) = &self.stage else { return false };
        let lent = opening.frame < self.out.lent_up_to();
        lent && match id {
            Some(id) => id.as_u64() == Some(opening.id),
            None => self.table.by_id().next().is_none(),
        }
    }

    /// The answer to a probe that was not waited for any more; nothing else has its id. A result of a modern server settles the question after
    /// all, and the answer to `initialize` is of no interest then (VER-06).
    pub(super) fn on_late_probe(&mut self, id: Id<'_>, result: Option<Json<'_>>) -> bool {
        let Stage::Opening(opening) = &self.stage else { return false };
        if opening.late_probe.is_none() || opening.late_probe != id.as_u64() {
            return false;
        }
        let opening_id = opening.id;
        self.forget_late_probe();
        let verdict = result.map(|result| probe::judge_result(result, &self.finders, &self.config));
        if let Some(verdict @ Verdict::Modern(_)) = verdict {
            self.ignored = Some(opening_id);
            self.settle(verdict, result);
        }
        true
    }

    /// No further answer is expected to a probe that was not waited for. Whether there was one.
    pub(super) fn forget_late_probe(&mut self) -> bool {
        let Stage::Opening(Opening { late_probe, .. }) = &mut self.stage else { return false };
        let Some(probe) = late_probe.take() else { return false };
        self.table.recent.record(probe, Ending::Answered);
        true
    }

    /// The result of `initialize` (LEG-01, LEG-02).
    pub(super) fn on_initialized<'b>(&mut self, result: Json<'_>) -> Event<'b> {
        let version = member(result, "protocolVersion").and_then(Json::as_str);
        match version {
            Some(version) if self.config.legacy_versions.iter().any(|ours| *ours == version) => {
                self.told = Some(JsonBuf::from(result));
                self.confirmed = true;
                // Before anything else that waits.
                let _ = self.out.push(true, |out| encode::raw(out, INITIALIZED));
                self.establish(version.into_owned());
            }
            Some(version) => self.fail(ConnectionError::NoCommonVersion {
                client: self.config.legacy_versions.clone(),
                server: alloc::vec![bounded(&version)],
            }),
            None => self.refused_handshake(None, "its result names no protocolVersion"),
        }
        Event::Handled
    }

    /// An error in answer to `initialize`. A modern server says so with its own code; any other may be that of a server of which it was only
    /// assumed that it is a legacy one (VER-06, VER-08).
    pub(super) fn on_initialize_error<'b>(&mut self, error: &ErrorObject<'_>) -> Event<'b> {
        let Stage::Opening(opening) = &self.stage else { return Event::Handled };
        self.table.recent.record(opening.id, Ending::Answered);
        let modern = error.code == probe::UNSUPPORTED_VERSION && self.handshakes < TRIES;
        let assumed = !opening.probed && !self.ends_on_probe;
        if (modern || assumed) && !self.config.versions.is_empty() {
            let start_deadline = opening.start_deadline;
            self.verdict = None;
            self.begin_probe(start_deadline);
        } else if error.code == probe::UNSUPPORTED_VERSION {
            let ours = &self.config.legacy_versions;
            self.fail(probe::no_common(ours.iter(), probe::supported(error.data)));
        } else {
            self.refused_handshake(Some(error.code), &error.message);
        }
        Event::Handled
    }

    pub(super) fn refused_handshake(&mut self, code: Option<i64>, message: &str) {
        self.fail(ConnectionError::InitializeRefused { code, message: bounded(message) });
    }
}

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// W-15. The handshake needs a name, so a client that keeps its own to itself has none that tells anything.
fn write(out: &mut Vec<u8>, id: u64, config: &Config, version: &str) {
    let info = config.client_info.as_ref().map_or(r#"{"name":"","version":""}"#, |info| info.as_json().get());
    encode::raw(out, r#"{"jsonrpc":"2.0","id":"#);
    encode::uint(out, id);
    encode::raw(out, r#","method":"initialize","params":{"protocolVersion":"#);
    encode::string(out, version);
    encode::raw(out, r#","capabilities":"#);
    encode::raw(out, config.capabilities.as_json().get());
    encode::raw(out, r#","clientInfo":"#);
    encode::raw(out, info);
    encode::raw(out, "}}");
}

fn bounded(text: &str) -> String {
    text.chars().take(KEPT).collect()
}
