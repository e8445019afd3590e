//! Owns what happens where one life of the byte stream ends and the next begins: the probe or the kept verdict, what is sent again, what
//! waits, what ends. It must not know why a stream ended or who opens the next.

use alloc::string::String;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::in_flight::Place;
use super::outgoing::{self, Envelope, Params, Payload, Token};
use super::probe::{self, Probe, Verdict};
use super::recent::Ending;
use super::{Connection, Hint, Signal, Stage, Waiting};
use crate::{Cause, Delivery, Era, Instant, Json, JsonBuf};

impl Connection {
    /// A stream is open: probe, or go on with the verdict that is kept.
    pub(super) fn begin_life(&mut self) {
        if !matches!(self.stage, Stage::Idle) {
            return;
        }
        self.between_lives = false;
        self.stream_open = true;
        self.output_seen = false;
        self.confirmed = false;
        self.handshakes = 0;
        self.ignored = None;
        match self.verdict.clone() {
            Some(version) if Era::of(&version) == Era::Legacy => self.initialize(&version, None),
            Some(version) => self.establish(version),
            None => {
                let start_deadline = self.now.checked_add(self.config.start_timeout);
                self.begin_probe(start_deadline);
            }
        }
    }

    /// Asks the server which versions it speaks, in the one that we prefer (VER-02). One that speaks the legacy era only has no question.
    pub(super) fn begin_probe(&mut self, start_deadline: Option<Instant>) {
        match self.config.versions.first().cloned() {
            Some(version) => self.probe(version, false, start_deadline),
            None => {
                let version = self.config.legacy_versions.first().cloned().unwrap_or_default();
                self.initialize(&version, None);
            }
        }
    }

    fn probe(&mut self, version: String, again: bool, start_deadline: Option<Instant>) {
        self.envelope = Envelope::new(&self.config, &version);
        let id = self.table.mint();
        let envelope = &self.envelope;
        // The queue is empty or holds what was let in before; the probe is not measured, so a push does not fail.
        let text = |out: &mut _| envelope.request(out, id, probe::METHOD, Params::EMPTY, &Token::None);
        let Ok(frame) = self.out.push(true, text) else { return };
        self.stage = Stage::Probing(Probe::new(id, frame, version, again, start_deadline));
    }

    /// The verdict that was kept did not hold: ask again, with what is in flight left alone (VER-08).
    pub(super) fn probe_after_all(&mut self) {
        self.verdict = None;
        let start_deadline = self.now.checked_add(self.config.start_timeout);
        self.begin_probe(start_deadline);
    }

    /// The probe has its answer.
    pub(super) fn settle(&mut self, verdict: Verdict, result: Option<Json<'_>>) {
        match verdict {
            Verdict::Modern(version) => {
                self.told = result.map(JsonBuf::from);
                self.confirmed = true;
                self.establish(version);
            }
            Verdict::Again(version) => {
                let start_deadline = if let Stage::Probing(p) = &self.stage { p.start_deadline() } else { None };
                self.probe(version, true, start_deadline);
            }
            Verdict::Legacy { version, code } => {
                match version.or_else(|| self.config.legacy_versions.first().cloned()) {
                    Some(version) => self.initialize(&version, code),
                    None => self.fail(crate::ConnectionError::LegacyServer { code }),
                }
            }
            Verdict::Failed(error) => self.fail(error),
        }
    }

    pub(super) fn establish(&mut self, version: String) {
        self.envelope = Envelope::new(&self.config, &version);
        self.verdict = Some(version.clone());
        self.stage = Stage::Established;
        let era = Era::of(&version);
        self.signals.push_back(Signal::Established { era, version });
        if era == Era::Legacy {
            self.end_listens();
        }
        self.release();
    }

    /// The legacy era has no listens: those that wait, or were open before the server changed, end here (RTE-02).
    fn end_listens(&mut self) {
        for slot in self.table.live_slots() {
            let Some(entry) = self.table.entry(slot).filter(|entry| entry.listen.is_some()) else { continue };
            if entry.was_acknowledged() {
                self.give_up(slot, Cause::Closed, None);
                continue;
            }
            if let Place::Waiting(turn) = entry.place {
                self.waiting.remove(&turn);
            }
            if let Some(payload) = self.table.end(slot, Ending::GivenUp) {
                self.out.unhold(payload.cost());
            }
            let (request, cause) = (self.table.handle_of(slot), Cause::Closed);
            let (delivery, hint) = (Delivery::NotSent, Some(Hint::NotInThisEra));
            self.signals.push_back(Signal::Ended { request, cause, delivery, hint });
        }
    }

    /// The stream has ended (RST-02, RST-03, RST-06, SUB-10).
    pub(super) fn end_life(&mut self, restarting: bool) {
        self.stream_open = false;
        self.forget_server_requests();
        self.tasks.clear();
        match self.stage {
            Stage::Idle if restarting => return,
            Stage::Idle | Stage::Closed => {}
            _ if restarting => {
                self.stage = Stage::Idle;
                self.between_lives = true;
                self.carry_over();
                self.out.clear();
                // The next server can say nothing about what this one was asked.
                self.hint = None;
                self.table.recent.forget_candidates();
                return;
            }
            _ => {}
        }
        self.shut();
        self.out.clear();
    }

    /// Ends what cannot be sent again and lines up the rest for the next life: what the old server may have seen first, then what was
    /// queued, then what waited anyway.
    fn carry_over(&mut self) {
        let unlent = self.out.drain_unlent();
        let waited = core::mem::take(&mut self.waiting);
        for slot in self.table.live_slots() {
            let Some(entry) = self.table.entry(slot) else { continue };
            if !matches!(entry.place, Place::Lent(_)) {
                continue;
            }
            if !entry.survives() {
                self.give_up(slot, Cause::Closed, None);
                continue;
            }
            let delivery = self.delivery(entry);
            if let Some(entry) = self.table.entry_mut(slot) {
                entry.delivery = delivery;
            }
            self.wait(slot);
        }
        for (_, frame) in unlent {
            self.carry_frame(&frame);
        }
        for (_, waiting) in waited {
            match waiting {
                Waiting::Request(slot) => self.wait(slot),
                Waiting::Notification(payload) => {
                    let turn = self.take_turn();
                    self.waiting.insert(turn, Waiting::Notification(payload));
                }
            }
        }
    }

    /// A frame of which no byte was lent goes back to what waits, since the next life may speak another version. Its text is the
    /// only copy of its payload; the metadata in it are replaced when it is encoded again.
    fn carry_frame(&mut self, frame: &[u8]) {
        #[derive(Deserialize)]
        struct Line<'a> {
            id: Option<u64>,
            method: String,
            #[serde(borrow)]
            params: Option<&'a RawValue>,
        }
        // The core wrote it, so it reads back.
        let Ok(line) = serde_json::from_slice::<Line<'_>>(frame) else { return };
        let payload = || Payload::new(&line.method, line.params.map(Json::from));
        match line.id {
            Some(id) => {
                let Some(slot) = self.table.find_queued(id) else { return };
                if let Some(entry) = self.table.entry_mut(slot).filter(|entry| entry.payload.is_none()) {
                    let payload = payload();
                    self.out.hold_anyway(payload.cost());
                    entry.payload = Some(payload);
                }
                self.wait(slot);
            }
            // A cancellation is about the life that ended.
            None if outgoing::check_notification(&line.method).is_err() => {}
            None => {
                let payload = payload();
                self.out.hold_anyway(payload.cost());
                let turn = self.take_turn();
                self.waiting.insert(turn, Waiting::Notification(payload));
            }
        }
    }
}
