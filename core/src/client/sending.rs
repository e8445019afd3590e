//! Owns the way of a request, listen or notification into the queue: admission, budgets, the wait for an established
//! connection, and the moment its first byte is lent. It must not know what the server answers.

use alloc::boxed::Box;
use alloc::format;

use super::in_flight::{Listen, Times};
use super::outgoing::{self, Params, Payload, Token};
use super::{Connection, Handle, ProgressToken, RequestOptions, Stage, Waiting};
use crate::{Era, Filter, Json, SendError};

impl Connection {
    /// Whether anything new is taken at all.
    fn admit(&self) -> Result<(), SendError> {
        match self.stage {
            Stage::Closed => Err(SendError::Closed),
            Stage::Idle if self.between_lives && !self.config.wait_for_restart => Err(SendError::Closed),
            _ => Ok(()),
        }
    }

    pub(super) fn enqueue_listen(&mut self, filter: &Filter, options: RequestOptions) -> Result<Handle, SendError> {
        let filter_text = serde_json::to_string(filter).map_err(|_| SendError::NotJson)?;
        let params = format!(r#"{{"notifications":{filter_text}}}"#);
        let listen = Listen { asked: filter.clone(), granted: None, open: false };
        self.enqueue("subscriptions/listen", Some(Json::trusted(&params)), options, Some(Box::new(listen)))
    }

    /// Registers a request and queues it, or lets it wait: one step, so that no answer can come before its entry (case 046).
    pub(super) fn enqueue(
        &mut self,
        method: &str,
        params: Option<Json<'_>>,
        options: RequestOptions,
        listen: Option<Box<Listen>>,
    ) -> Result<Handle, SendError> {
        self.admit()?;
        if listen.is_some()
            && (self.config.versions.is_empty() || (self.is_established() && self.era() == Some(Era::Legacy)))
        {
            return Err(SendError::NotInThisEra);
        }
        self.check_room(listen.is_some())?;
        let text = Params::new(params, &self.finders);
        let token = match &options.progress {
            ProgressToken::None if text.may_have_meta => outgoing::token_in(text.text)?,
            ProgressToken::None => Token::None,
            ProgressToken::Minted => Token::Minted,
            ProgressToken::Own(own) => Token::Own(own.clone()),
        };
        if let Token::Own(own) = &token {
            if self.table.token_in_use(own.as_id()) {
                return Err(SendError::TokenInUse);
            }
        }
        let timeout = options.timeout.unwrap_or(self.config.request_timeout);
        let queue_timeout = options.queue_timeout.or(self.config.queue_timeout).unwrap_or(timeout);
        let times = Times { timeout, queue_timeout, max_timeout: options.max_timeout };

        let established = self.is_established();
        let keep = !established || options.idempotent || listen.is_some();
        let cost = if keep { Payload::cost_of(method, params) } else { 0 };
        self.out.hold(cost).map_err(|error| self.blocked_by(error, cost))?;
        if !established {
            let slot = self.table.insert(&options, times, token, listen, Some(Payload::new(method, params)));
            self.wait(slot);
            return Ok(self.table.handle_of(slot));
        }

        let id = self.table.next_id(&token);
        let pushed = {
            let envelope = &self.envelope;
            self.out.push(false, |out| envelope.request(out, id, method, text, &token))
        };
        let frame = match pushed {
            Ok(frame) => frame,
            Err(error) => {
                self.out.unhold(cost);
                return Err(self.refused(error, method, params, cost));
            }
        };
        let payload = keep.then(|| Payload::new(method, params));
        let slot = self.table.insert(&options, times, token, listen, payload);
        self.table.queue(slot, id, frame, self.now);
        Ok(self.table.handle_of(slot))
    }

    pub(super) fn enqueue_notification(&mut self, method: &str, params: Option<Json<'_>>) -> Result<(), SendError> {
        self.admit()?;
        if self.is_established() {
            let pushed = self.out.push(false, |out| outgoing::notification(out, method, params));
            return match pushed {
                Ok(_) => Ok(()),
                Err(error) => Err(self.refused(error, method, params, 0)),
            };
        }
        let payload = Payload::new(method, params);
        let cost = payload.cost();
        self.out.hold(cost).map_err(|error| self.blocked_by(error, cost))?;
        let turn = self.take_turn();
        self.waiting.insert(turn, Waiting::Notification(payload));
        Ok(())
    }

    pub(super) fn take_turn(&mut self) -> u64 {
        self.next_turn += 1;
        self.next_turn
    }

    /// Lines a request up behind what waits already.
    pub(super) fn wait(&mut self, slot: u32) {
        let turn = self.take_turn();
        self.table.wait(slot, turn, self.now);
        self.waiting.insert(turn, Waiting::Request(slot));
    }

    /// Encodes and queues what waits, in its order. It was let in already, so it is not measured again.
    pub(super) fn release(&mut self) {
        while let Some((_, next)) = self.waiting.pop_first() {
            match next {
                Waiting::Notification(payload) => {
                    self.out.unhold(payload.cost());
                    let text = |out: &mut _| outgoing::notification(out, &payload.method, payload.params());
                    // With the reserve a push does not fail.
                    let _ = self.out.push(true, text);
                }
                Waiting::Request(slot) => self.release_request(slot),
            }
        }
    }

    fn release_request(&mut self, slot: u32) {
        let Some(entry) = self.table.entry(slot) else { return };
        let Some(payload) = &entry.payload else { return };
        let id = self.table.next_id(&entry.token);
        let envelope = &self.envelope;
        let params = Params::new(payload.params(), &self.finders);
        let text = |out: &mut _| envelope.request(out, id, &payload.method, params, &entry.token);
        let Ok(frame) = self.out.push(true, text) else { return };
        self.table.queue(slot, id, frame, self.now);
        let Some(entry) = self.table.entry_mut(slot) else { return };
        if !entry.idempotent && entry.listen.is_none() {
            if let Some(payload) = entry.payload.take() {
                self.out.unhold(payload.cost());
            }
        }
    }

    /// Lends what is queued: the clocks of all that is in it start.
    pub(super) fn lend(&mut self) {
        self.out.lend();
        let up_to = self.out.lent_up_to();
        self.table.lent(up_to, self.now);
        if let Stage::Probing(probe) = &mut self.stage {
            probe.lent(up_to, self.now, self.config.probe_timeout);
        }
    }

    fn check_room(&mut self, listen: bool) -> Result<(), SendError> {
        if listen && !self.listen_room() {
            self.blocked.listen = true;
            return Err(SendError::Full);
        }
        if !listen && !self.request_room() {
            self.blocked.request = true;
            return Err(SendError::Full);
        }
        Ok(())
    }

    fn request_room(&self) -> bool {
        self.table.requests() < self.config.in_flight_limit
    }

    fn listen_room(&self) -> bool {
        self.table.listens() < self.config.listen_limit
    }

    /// Remembers what was refused for lack of room, so that its end is told.
    pub(super) fn blocked_by(&mut self, error: SendError, wanted: usize) -> SendError {
        if error == SendError::Full {
            let least = self.blocked.bytes.map_or(wanted, |bytes| bytes.min(wanted));
            self.blocked.bytes = Some(least);
        }
        error
    }

    /// A frame did not fit. One that could not even with an empty queue, because a copy of it is kept as well, is too large.
    fn refused(&mut self, error: SendError, method: &str, params: Option<Json<'_>>, kept: usize) -> SendError {
        let limit = self.config.queue_limit;
        let wanted = Payload::cost_of(method, params).saturating_add(self.envelope.overhead()).saturating_add(kept);
        if error == SendError::Full && wanted > limit {
            return SendError::TooLarge { size: wanted, limit };
        }
        self.blocked_by(error, wanted)
    }

    /// Whether a refusal is due to be taken back; once. After the end too: whoever waits for room has to learn that it will never come.
    pub(super) fn take_writable(&mut self) -> bool {
        let room = if matches!(self.stage, Stage::Closed) { usize::MAX } else { self.out.room() };
        let writable = self.blocked.bytes.is_some_and(|bytes| bytes <= room)
            || (self.blocked.request && self.request_room())
            || (self.blocked.listen && self.listen_room());
        if writable {
            self.blocked = super::Blocked::default();
        }
        writable
    }
}
