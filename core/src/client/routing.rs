//! Owns what a frame from the server means: which request, listen or sink it belongs to, or why it is dropped.
//! It must not know how a request ends or what is written then.

use alloc::borrow::Cow;
use alloc::string::String;

use super::in_flight::Place;
use super::outgoing::Token;
use super::probe::{self, UNSUPPORTED_VERSION};
use super::recent::Ending;
use super::tasks::WITH_TASKS;
use super::{Connection, Dropped, Event, Hint, ResultKind, Stage, peek};
use crate::send_buffer::Progress;
use crate::{
    Cause, ConnectionError, DropReason, Era, ErrorObject, Id, Json, Message, Shape, Unreadable, UnreadableReason,
};

/// The reason on the wire for a response that could not be read (UNR-04, UNR-06).
const UNREADABLE: Option<&str> = Some("unreadable response");

pub(super) fn dropped(reason: DropReason, id: Option<Id<'_>>, code: Option<i64>) -> Event<'_> {
    Event::Dropped(Dropped { reason, id, code, len: 0 })
}

const INVALID_MESSAGE: DropReason = DropReason::Unreadable(UnreadableReason::InvalidMessage);

impl Connection {
    pub(super) fn route<'b>(&mut self, message: Message<'b>) -> Event<'b> {
        if matches!(self.stage, Stage::Idle) {
            return self.route_late(message);
        }
        self.output_seen = true;
        let event = self.route_open(message);
        match event {
            // A server that winds up after a close says what belongs to requests that the close has ended: nothing to report (case 165).
            Event::Dropped(Dropped {
                reason:
                    DropReason::LateResponse
                    | DropReason::UnexpectedCancellation
                    | DropReason::UnknownSubscription
                    | DropReason::UnknownProgressToken,
                ..
            }) if matches!(self.stage, Stage::Closed) => Event::Handled,
            event => event,
        }
    }

    fn route_open<'b>(&mut self, message: Message<'b>) -> Event<'b> {
        match message {
            Message::Response { id, result } => self.on_result(id, result),
            Message::Notification { method, params } => self.on_notification(method, params),
            Message::Error { id: Some(id), error } => self.on_error(id, error),
            Message::Error { id: None, error } => self.on_error_without_id(error),
            Message::Request { id, method, params } => self.on_server_request(id, method, params),
            Message::Unreadable(line) => self.on_unreadable(line),
        }
    }

    /// There is no stream: whatever comes is from a life that has ended (RST-06).
    fn route_late<'b>(&mut self, message: Message<'b>) -> Event<'b> {
        match message {
            Message::Response { id, .. } => self.drop_response(id, None),
            Message::Error { id: Some(id), error } => self.drop_response(id, Some(error.code)),
            _ => Event::Handled,
        }
    }

    fn on_result<'b>(&mut self, id: Id<'b>, result: Json<'b>) -> Event<'b> {
        let Some(slot) = self.table.find(id) else {
            if let Some(probe) = self.probe_for(Some(id)) {
                let (id, verdict) = (probe.id, probe::judge_result(result, &self.finders, &self.config));
                self.table.recent.record(id, Ending::Answered);
                self.settle(verdict, Some(result));
                return Event::Handled;
            }
            if self.is_opening(Some(id)) {
                return self.on_initialized(result);
            }
            if self.on_late_probe(id, Some(result)) {
                return Event::Handled;
            }
            return self.drop_response(id, None);
        };
        self.confirmed = true;
        let handle = self.table.handle_of(slot);
        if self.table.entry(slot).is_some_and(|entry| entry.listen.is_some()) {
            self.finish(slot, Ending::ListenResult);
            return Event::ListenEnded { listen: handle, how: super::ListenEnd::Graceful };
        }
        let legacy = self.era() == Some(Era::Legacy);
        if legacy && self.verdict.as_deref() == Some(WITH_TASKS) {
            self.keep_token(slot, id, result);
        }
        // A legacy result is complete; what a member of that name means there, if anything, is the caller's business.
        let kind = if legacy { Some(ResultKind::Complete) } else { self.finders.result_kind(result) };
        match kind {
            Some(kind) => {
                self.finish(slot, Ending::Answered);
                Event::Result { request: handle, result, kind }
            }
            None => {
                // The server is done with it, so there is nothing to cancel (MSG-13).
                self.mark_seen(slot);
                self.give_up(slot, Cause::InvalidResponse { code: None, reason: None }, None);
                dropped(INVALID_MESSAGE, Some(id), None)
            }
        }
    }

    fn on_error<'b>(&mut self, id: Id<'b>, error: ErrorObject<'b>) -> Event<'b> {
        let Some(slot) = self.table.find(id) else {
            if self.probe_for(Some(id)).is_some() {
                self.on_probe_error(&error);
                return Event::Handled;
            }
            if self.is_opening(Some(id)) {
                return self.on_initialize_error(&error);
            }
            if self.on_late_probe(id, None) {
                return Event::Handled;
            }
            return self.drop_response(id, Some(error.code));
        };
        let handle = self.table.handle_of(slot);
        let acknowledged = self.table.entry(slot).is_some_and(super::in_flight::Entry::was_acknowledged);
        self.finish(slot, Ending::Answered);
        let modern = self.era() == Some(Era::Modern) && matches!(self.stage, Stage::Established);
        if error.code == UNSUPPORTED_VERSION && !self.confirmed && modern {
            self.probe_after_all();
        }
        if acknowledged {
            // The caller holds a stream, not an answer.
            return Event::ListenEnded { listen: handle, how: super::ListenEnd::Server };
        }
        Event::Error { request: handle, error }
    }

    /// The probe, if it has been lent and this id is its own; an error without an id is its own too while nothing else is in
    /// flight (case 194).
    fn probe_for(&self, id: Option<Id<'_>>) -> Option<&probe::Probe> {
        let Stage::Probing(probe) = &self.stage else { return None };
        let own = match id {
            Some(id) => id.as_u64() == Some(probe.id),
            None => self.table.by_id().next().is_none(),
        };
        (own && probe.is_lent()).then_some(probe)
    }

    fn on_probe_error(&mut self, error: &ErrorObject<'_>) {
        let Stage::Probing(probe) = &self.stage else { return };
        let verdict = probe::judge_error(error.code, error.data, probe, &self.config);
        self.table.recent.record(probe.id, Ending::Answered);
        self.settle(verdict, None);
    }

    /// An error without an id fails a request only if exactly one can be meant (UNR-06).
    fn on_error_without_id<'b>(&mut self, error: ErrorObject<'b>) -> Event<'b> {
        if self.probe_for(None).is_some() {
            self.on_probe_error(&error);
            return Event::Handled;
        }
        if self.is_opening(None) {
            // The older question is the likelier one to get an answer that names none.
            return if self.forget_late_probe() { Event::Handled } else { self.on_initialize_error(&error) };
        }
        let code = error.code;
        let (first, second) = self.candidates();
        match (first, second, self.table.recent.candidates(self.now)) {
            (Some(slot), None, 0) => {
                let cause = Cause::InvalidResponse { code: Some(code), reason: None };
                self.give_up(slot, cause, Some(UNREADABLE));
            }
            (None, None, 1) => self.table.recent.forget_candidates(),
            _ => self.hint = Some((self.now, Hint::UnattributedError { code })),
        }
        dropped(DropReason::UnattributedError, None, Some(code))
    }

    /// Two of the requests that are fully written and have had no frame, or as many as there are (PRG-06: progress is one).
    fn candidates(&self) -> (Option<u32>, Option<u32>) {
        let mut candidates = self.table.by_id().filter_map(|(slot, entry)| match entry.place {
            Place::Lent(frame) if !entry.seen && self.out.progress(frame) == Progress::Accepted => Some(slot),
            _ => None,
        });
        (candidates.next(), candidates.next())
    }

    fn on_unreadable<'b>(&mut self, line: Unreadable<'b>) -> Event<'b> {
        // A damaged request of the server's has an id of its own making.
        let response = matches!(line.shape, Shape::Response | Shape::Unknown);
        let id = line.id.filter(|_| response);
        let slot = id.and_then(|id| self.table.find(id));
        if let Some(slot) = slot {
            self.mark_seen(slot);
            let cause = Cause::InvalidResponse { code: line.code, reason: Some(line.reason) };
            self.give_up(slot, cause, Some(UNREADABLE));
        } else if matches!(self.stage, Stage::Probing(_) | Stage::Opening(_))
            && line.reason == UnreadableReason::ContentLength
        {
            self.fail(ConnectionError::ContentLengthFraming);
        } else if let Some(probe) = id.and_then(|id| self.probe_for(Some(id))) {
            self.table.recent.record(probe.id, Ending::Answered);
            self.settle(probe::Verdict::Legacy { version: None, code: line.code }, None);
        } else if id.is_some_and(|id| self.is_opening(Some(id))) {
            self.refused_handshake(line.code, "its answer could not be read");
        } else {
            self.hint = Some((self.now, Hint::Unreadable { reason: line.reason }));
        }
        let reason = DropReason::Unreadable(line.reason);
        Event::Dropped(Dropped { reason, id: line.id, code: line.code, len: line.len })
    }

    /// A response that names nothing in flight (RTE-03, CAN-05).
    fn drop_response<'b>(&mut self, id: Id<'b>, code: Option<i64>) -> Event<'b> {
        if self.ignored.is_some() && self.ignored == id.as_u64() {
            self.ignored = None;
            return Event::Handled;
        }
        let reason = id.as_u64().map_or(DropReason::UnknownId, |id| self.table.recent.judge_response(id));
        if reason == DropReason::UnknownId {
            let id = shown(id);
            self.hint = Some((self.now, Hint::UnknownId { id }));
        }
        dropped(reason, Some(id), code)
    }

    fn on_notification<'b>(&mut self, method: Cow<'b, str>, params: Option<Json<'b>>) -> Event<'b> {
        match &*method {
            "notifications/progress" => return self.on_progress(method, params),
            "notifications/cancelled" => return self.on_cancelled(params),
            _ => {}
        }
        if self.is_legacy_session() {
            // Nothing needs a subscription there (LEG-08).
            self.tasks.notified(&method, params);
            return Event::Notification { method, params };
        }
        match self.finders.subscription_id(params) {
            Some(token) => self.on_subscription(token, method, params),
            None if method == super::listens::ACKNOWLEDGED => dropped(INVALID_MESSAGE, None, None),
            None => Event::Notification { method, params },
        }
    }

    fn on_progress<'b>(&mut self, method: Cow<'b, str>, params: Option<Json<'b>>) -> Event<'b> {
        let Some(report) = peek::progress(params) else { return dropped(INVALID_MESSAGE, None, None) };
        let Some(slot) = self.table.find_token(report.token) else {
            if self.tasks.has_token(report.token) {
                return Event::Notification { method, params };
            }
            return dropped(DropReason::UnknownProgressToken, None, None);
        };
        self.table.progressed(slot, report.progress, self.now);
        let handle = self.table.handle_of(slot);
        if self.table.entry(slot).is_some_and(|entry| entry.listen.is_some()) {
            return Event::ListenNotification { listen: handle, method, params };
        }
        Event::RequestNotification { request: handle, method, params }
    }

    /// The server speaks the legacy era, as far as is known.
    fn is_legacy_session(&self) -> bool {
        matches!(self.stage, Stage::Opening(_)) || (self.is_established() && self.era() == Some(Era::Legacy))
    }

    /// Its result may say that a task goes on, which reports progress under the token of the request (LEG-11).
    fn keep_token(&mut self, slot: u32, id: Id<'_>, result: Json<'_>) {
        let limit = self.config.task_limit;
        match self.table.entry(slot).map(|entry| &entry.token) {
            // The token is the id.
            Some(Token::Minted) => self.tasks.answered(id, result, limit),
            Some(Token::Own(own)) => self.tasks.answered(own.as_id(), result, limit),
            _ => {}
        }
    }

    pub(super) fn mark_seen(&mut self, slot: u32) {
        if let Some(entry) = self.table.entry_mut(slot) {
            entry.seen = true;
        }
    }
}

/// An id of the peer's for a message to people: bounded and escaped (SEC-03).
fn shown(id: Id<'_>) -> String {
    const SHOWN: usize = 64;
    let mut text = String::new();
    for c in id.token().chars().take(SHOWN) {
        if c.is_control() {
            text.extend(c.escape_unicode());
        } else {
            text.push(c);
        }
    }
    text
}
