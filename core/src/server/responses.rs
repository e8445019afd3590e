//! Owns the answers of handlers: encoded at once into the outgoing queue, or owed until there is room (LIM-04), and the permit that
//! comes back with each. It must not know why a handler answers what it does.

use alloc::vec::Vec;

use super::admission::State;
use super::answers::{self, ErrorId, INTERNAL_ERROR};
use super::refusals::Refusal;
use super::results::{Bare, Plan, Unfit};
use super::{Connection, Signal, Ticket};
use crate::{Instant, Json, SendError};

/// Answers smaller than this are simply encoded to see whether they fit.
const WORTH_A_LOOK: usize = 4 << 10;
/// About what an answer takes besides its payload and its id.
const ENVELOPE: usize = 64;
/// Least and greatest code that JSON-RPC reserves.
const RESERVED: core::ops::RangeInclusive<i64> = -32768..=-32000;

/// Whether a server may send this code (MSG-11). The legacy era has two of its own: a resource that is not there, and a URL to visit.
const fn is_allowed(code: i64, legacy: bool) -> bool {
    match code {
        -32002 | -32042 => legacy,
        answers::PARSE_ERROR | -32603..=-32600 | -32022..=-32020 => true,
        code => code < *RESERVED.start() || code > *RESERVED.end(),
    }
}

impl Connection {
    /// Answers a request with a result and gives its permit back: its handler has returned. On a cancelled request nothing is written
    /// (CAN-06). The result is an object; `resultType` and the server's name are added where they are missing (MSG-12, META-05), and taken
    /// out of an answer to a legacy client (META-08).
    ///
    /// # Errors
    /// [`SendError::Full`]: the answer stays owed and the permit taken; try again at [`Signal::Writable`] (LIM-04).
    /// [`SendError::TooLarge`], [`SendError::InvalidResult`], and [`SendError::NotInThisEra`] for a `resultType` other than `complete` towards a
    /// legacy client: answered with -32603 in its place, the permit is back.
    /// [`SendError::Ended`]: it was answered before (RTE-09).
    pub fn respond(&mut self, ticket: Ticket, result: Json<'_>, now: Instant) -> Result<(), SendError> {
        self.tick(now);
        if !self.may_answer(ticket)? {
            return Ok(());
        }
        if self.is_legacy(ticket) {
            return self.respond_bare(ticket, result);
        }
        let named = self.texts.server_info.is_some();
        let Ok(plan) = Plan::new(result, &self.finders, named, self.config.require_result_type) else {
            self.answer_itself(ticket, &Refusal::InvalidResult);
            return Err(SendError::InvalidResult);
        };
        let size = plan.size(self.texts.server_info.as_deref().unwrap_or_default());
        self.answer(ticket, size, |out, token, info| {
            answers::open_result(out, token);
            plan.write(out, info);
            out.push(b'}');
        })
    }

    /// Answers a legacy request.
    fn respond_bare(&mut self, ticket: Ticket, result: Json<'_>) -> Result<(), SendError> {
        let (refusal, error) = match Bare::new(result, &self.finders) {
            Ok(bare) => {
                return self.answer(ticket, bare.size(), |out, token, _| {
                    answers::open_result(out, token);
                    bare.write(out);
                    out.push(b'}');
                });
            }
            Err(Unfit::NoObject) => (Refusal::InvalidResult, SendError::InvalidResult),
            Err(Unfit::Modern) => (Refusal::ModernResult, SendError::NotInThisEra),
        };
        self.answer_itself(ticket, &refusal);
        Err(error)
    }

    fn is_legacy(&self, ticket: Ticket) -> bool {
        self.table.get(ticket).is_some_and(|entry| entry.terms.session.is_some())
    }

    /// Answers a request with an error and gives its permit back. A code that the protocol forbids leaves as -32603, and
    /// [`Signal::CodeReplaced`] warns of it (MSG-11).
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    pub fn respond_error(
        &mut self,
        ticket: Ticket,
        code: i64,
        message: &str,
        data: Option<Json<'_>>,
        now: Instant,
    ) -> Result<(), SendError> {
        self.tick(now);
        if !self.may_answer(ticket)? {
            return Ok(());
        }
        let sent = if is_allowed(code, self.is_legacy(ticket)) { code } else { INTERNAL_ERROR };
        let size = message.len().saturating_add(data.map_or(0, |data| data.get().len()));
        self.answer(ticket, size, |out, token, _| answers::error(out, ErrorId::Token(token), sent, message, data))?;
        if sent != code {
            self.signals.push_back(Signal::CodeReplaced { ticket, code });
        }
        Ok(())
    }

    /// Answers a request whose handler needs capabilities that its client did not declare, and gives its permit back: W-08, with the
    /// missing capabilities as an object (META-04); towards a legacy client the same with -32602.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    pub fn respond_missing_capability(
        &mut self,
        ticket: Ticket,
        required: Json<'_>,
        now: Instant,
    ) -> Result<(), SendError> {
        self.tick(now);
        if !self.may_answer(ticket)? {
            return Ok(());
        }
        let (size, legacy) = (required.get().len(), self.is_legacy(ticket));
        self.answer(ticket, size, |out, token, _| answers::missing_capability(out, token, required, legacy))
    }

    /// The handler is gone without an answer (it panicked, or could not be started): -32603, and the permit comes back. Nothing for a
    /// cancelled request. It always finds room.
    ///
    /// # Errors
    /// [`SendError::Ended`]: it was answered before.
    pub fn abandon(&mut self, ticket: Ticket, now: Instant) -> Result<(), SendError> {
        self.tick(now);
        if self.may_answer(ticket)? {
            self.answer_itself(ticket, &Refusal::Internal);
        }
        Ok(())
    }

    /// Whether an answer to this request is written. If not, its handler has returned all the same.
    fn may_answer(&mut self, ticket: Ticket) -> Result<bool, SendError> {
        match self.table.get(ticket).map(|entry| entry.state) {
            None | Some(State::Task) => Err(SendError::Ended),
            Some(State::Silent) => {
                self.table.release(ticket);
                self.start_waiting();
                Ok(false)
            }
            Some(State::Running | State::Waiting(_)) => Ok(true),
        }
    }

    /// Writes an answer of about `size` bytes, or leaves it owed.
    fn answer(
        &mut self,
        ticket: Ticket,
        size: usize,
        write: impl FnOnce(&mut Vec<u8>, &str, &[u8]),
    ) -> Result<(), SendError> {
        // In turn: a large answer is not overtaken for ever by small ones.
        if self.blocked.is_some() {
            return Err(SendError::Full);
        }
        if let Some(batch) = self.table.get(ticket).and_then(|entry| entry.terms.batch) {
            return self.answer_in_batch(ticket, batch, write);
        }
        // An answer that will not fit is not encoded in vain. With an empty queue it is, to tell what never fits.
        if size > WORTH_A_LOOK && size > self.out.room() && self.out.len() > 0 {
            self.blocked = Some(size);
            return Err(SendError::Full);
        }
        // The newest progress precedes the answer (PRG-05).
        if self.flush_report(ticket).is_err() {
            self.blocked = Some(size);
            return Err(SendError::Full);
        }
        let entry = self.table.get(ticket).ok_or(SendError::Ended)?;
        let token = entry.id.as_id().token();
        let info = self.texts.server_info.as_deref().unwrap_or_default();
        let mut written = 0;
        let pushed = self.out.push(false, |out| {
            let start = out.len();
            // At once: growing step by step would copy a large answer.
            out.reserve(size + token.len() + ENVELOPE);
            write(out, token, info);
            written = out.len() - start + 1;
        });
        match pushed {
            Ok(frame) => {
                self.table.answered(ticket, frame);
                self.start_waiting();
                self.check_drained();
                Ok(())
            }
            Err(SendError::Full) => {
                self.blocked = Some(written);
                Err(SendError::Full)
            }
            Err(error) => {
                self.answer_itself(ticket, &Refusal::AnswerTooLarge);
                Err(error)
            }
        }
    }

    /// Has an answer collected by the batch of its request.
    fn answer_in_batch(
        &mut self,
        ticket: Ticket,
        batch: u64,
        write: impl FnOnce(&mut Vec<u8>, &str, &[u8]),
    ) -> Result<(), SendError> {
        let entry = self.table.get(ticket).ok_or(SendError::Ended)?;
        let mut frame = Vec::new();
        write(&mut frame, entry.id.as_id().token(), &[]);
        if !self.batches.has_room(frame.len()) {
            if self.batches.is_stuck() {
                self.blocked = Some(frame.len());
                return Err(SendError::Full);
            }
            // What else is collected waits for other handlers, perhaps for ever: no room can be waited for.
            let error = SendError::TooLarge { size: frame.len(), limit: self.config.queue_limit };
            self.answer_itself(ticket, &Refusal::AnswerTooLarge);
            return Err(error);
        }
        // Without room the report is lost: nothing may follow the answer.
        if self.flush_report(ticket).is_err() {
            self.forget_report(ticket);
        }
        let key = self.table.collected(ticket);
        self.batches.add(batch, key, frame, false);
        self.settle_in_batch(batch);
        self.start_waiting();
        self.check_drained();
        Ok(())
    }

    /// Answers in the handler's place, on the core's own budget.
    fn answer_itself(&mut self, ticket: Ticket, refusal: &Refusal<'_>) {
        // Without room the report is lost: nothing may follow the answer.
        let _ = self.flush_report(ticket);
        self.forget_report(ticket);
        if let Some(entry) = self.table.release(ticket) {
            self.own_error(entry.terms.batch, entry.id.as_id(), refusal);
            if let Some(batch) = entry.terms.batch {
                self.settle_in_batch(batch);
            }
        }
        self.start_waiting();
        self.check_drained();
    }

    /// Gives free permits to those who wait.
    fn start_waiting(&mut self) {
        while let Some(ticket) = self.table.start_next() {
            self.signals.push_back(Signal::Start(ticket));
        }
    }

    /// Tells that answers which are owed can be tried again, once there is room for the first of them.
    pub(super) fn check_writable(&mut self) {
        if let Some(size) = self.blocked {
            if size <= self.out.room() || self.out.len() == 0 {
                self.blocked = None;
                self.signals.push_back(Signal::Writable);
            }
        }
    }
}
