//! Owns what each message from the client leads to: the order of the checks (META-07), cancellations (CAN-06 to CAN-09), answers to
//! lines that are no message (UNR-03). It must not know how handlers run or how answers are encoded.

use alloc::borrow::Cow;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::admission::{Owner, State};
use super::answers::{self, ErrorId, Refusal, Texts};
use super::checks::{self, Verdict};
use super::progress::Progress;
use super::{Connection, Event, Request, Signal};
use crate::client::Dropped;
use crate::config::REASON_LIMIT;
use crate::send_buffer::FrameNumber;
use crate::{DropReason, Id, Instant, Json, Message, Shape, Unreadable, UnreadableReason};

impl Connection {
    /// Takes in one message. Take the signals after each, so that wire order is kept. While [`wants_read`](Self::wants_read) is false,
    /// hand in no further message: that pause is what bounds memory.
    pub fn handle<'b>(&mut self, message: Message<'b>, now: Instant) -> Event<'b> {
        self.tick(now);
        if !self.takes_input() {
            return Event::Handled;
        }
        match message {
            Message::Request { id, method, params } => self.request(id, method, params),
            Message::Notification { method, params } if method == "notifications/cancelled" => {
                self.cancellation(params)
            }
            Message::Notification { method, params } => Event::Notification { method, params },
            Message::Response { id, .. } => unexpected_response(Some(id), None),
            Message::Error { id, error } => unexpected_response(id, Some(error.code)),
            Message::Unreadable(line) => self.unreadable(line),
        }
    }

    fn request<'b>(&mut self, id: Id<'b>, method: Cow<'b, str>, params: Option<Json<'b>>) -> Event<'b> {
        if self.table.is_taken(id) {
            self.own_null_error(&Refusal::Invalid);
            return Event::Refused { id, code: answers::INVALID_REQUEST };
        }
        match checks::check(&self.config.versions, id, method, params) {
            Verdict::Call(request, token) => self.admit(request, token),
            Verdict::Refuse(refusal) => self.refuse(id, &refusal),
            Verdict::Pong => {
                self.own(|out, _| answers::pong(out, id.token()));
                Event::Handled
            }
            Verdict::Discover => {
                self.own(|out, texts| answers::discovered(out, id.token(), texts));
                Event::Handled
            }
            Verdict::Listen(asked) => self.open_listen(id, asked),
        }
    }

    fn admit<'b>(&mut self, request: Request<'b>, token: Option<Id<'b>>) -> Event<'b> {
        if self.is_draining() {
            return self.refuse(request.id, &Refusal::ShuttingDown);
        }
        let progress = token.map(|token| Progress::new(token.into()));
        let payload = request.params.get().len();
        match self.table.admit(request.id, payload, request.log_level, progress) {
            Some((ticket, admission)) => Event::Request { ticket, admission, request },
            None => self.refuse(request.id, &Refusal::Busy),
        }
    }

    fn cancellation<'b>(&mut self, params: Option<Json<'b>>) -> Event<'b> {
        let (mut id, mut reason) = (None, None);
        for (name, value) in params.into_iter().flat_map(Json::members) {
            match &*name {
                "requestId" => id = Id::parse(value.get()),
                "reason" => reason = value.as_str().map(cut_reason),
                _ => {}
            }
        }
        let applied = id.is_some_and(|id| self.cancel(id, reason.as_deref()));
        Event::Cancellation { id, reason, applied }
    }

    /// Whether something was in flight under this id.
    fn cancel(&mut self, id: Id<'_>, reason: Option<&str>) -> bool {
        match self.table.owner(id) {
            None => false,
            Some(&Owner::Listen(number)) => {
                self.cancel_listen(number);
                true
            }
            Some(Owner::Answered { .. }) => {
                let withdrawn = self.table.withdraw_answer(id, &mut self.out);
                if withdrawn {
                    self.made_room();
                }
                withdrawn
            }
            Some(&Owner::Request(slot)) => {
                let Some(ticket) = self.table.ticket(slot) else { return false };
                let Some(state) = self.table.get(ticket).map(|entry| entry.state) else { return false };
                let running = match state {
                    State::Silent => return false,
                    State::Running => {
                        self.withdraw_notes(ticket);
                        self.table.silence(ticket);
                        true
                    }
                    State::Waiting(_) => {
                        self.table.release(ticket);
                        false
                    }
                };
                self.signals.push_back(Signal::Cancelled { ticket, running, reason: reason.map(ToString::to_string) });
                self.made_room();
                self.check_drained();
                true
            }
        }
    }

    /// Answers a line that is no message at most once, and never one that may be an answer itself: else two ends could feed each other.
    fn unreadable<'b>(&mut self, line: Unreadable<'b>) -> Event<'b> {
        // An id that is in flight would answer the request that has it (MSG-07).
        let id = line.id.filter(|&id| line.reason != UnreadableReason::IdTooLong && !self.table.is_taken(id));
        let refusal = match (line.shape, line.reason) {
            (Shape::Response | Shape::Notification, _) => None,
            (_, UnreadableReason::LineTooLong) => id.map(|_| Refusal::TooLong),
            (
                _,
                UnreadableReason::InvalidUtf8
                | UnreadableReason::InvalidJson
                | UnreadableReason::Truncated
                | UnreadableReason::ContentLength,
            ) => Some(Refusal::Parse),
            (
                _,
                UnreadableReason::InvalidMessage
                | UnreadableReason::TooDeep
                | UnreadableReason::IdTooLong
                | UnreadableReason::NameTooLong,
            ) => Some(Refusal::Invalid),
        };
        match (refusal, id) {
            (None, _) => {}
            (Some(refusal), Some(id)) => self.own_error(id, &refusal),
            (Some(refusal), None) => self.own_null_error(&refusal),
        }
        let reason = DropReason::Unreadable(line.reason);
        Event::Dropped(Dropped { reason, id: line.id, code: line.code, len: line.len })
    }

    /// Answers a request with an error of the core's own.
    pub(super) fn refuse<'b>(&mut self, id: Id<'b>, refusal: &Refusal<'_>) -> Event<'b> {
        self.own_error(id, refusal);
        Event::Refused { id, code: refusal.code() }
    }

    pub(super) fn own_error(&mut self, id: Id<'_>, refusal: &Refusal<'_>) {
        let limit = self.config.line_limit;
        self.own(|out, texts| refusal.write(out, ErrorId::Token(id.token()), texts, limit));
    }

    /// An error response that names no id, at a limited rate (UNR-03).
    fn own_null_error(&mut self, refusal: &Refusal<'_>) {
        if !self.own.allow_null_id(self.now) {
            return;
        }
        let id = if self.config.omit_null_id { ErrorId::Omitted } else { ErrorId::Null };
        let limit = self.config.line_limit;
        self.own(|out, texts| refusal.write(out, id, texts, limit));
    }

    /// Queues a frame that the core makes itself. It always finds room: its budget pauses reading instead (LIM-04).
    pub(super) fn own(&mut self, write: impl FnOnce(&mut Vec<u8>, &Texts)) -> Option<FrameNumber> {
        let before = self.out.len();
        let texts = &self.texts;
        let frame = self.out.push(true, |out| write(out, texts)).ok()?;
        self.own.add(frame, self.out.len().saturating_sub(before));
        Some(frame)
    }

    /// Error responses without an id that were not sent, because there were too many of them (UNR-03).
    #[must_use]
    pub const fn suppressed_answers(&self) -> u64 {
        self.own.suppressed()
    }
}

/// A modern server sends no requests, so nothing can be answered to it (RTE-01).
fn unexpected_response<'b>(id: Option<Id<'b>>, code: Option<i64>) -> Event<'b> {
    Event::Dropped(Dropped { reason: DropReason::UnexpectedResponse, id, code, len: 0 })
}

fn cut_reason(reason: Cow<'_, str>) -> Cow<'_, str> {
    match reason {
        Cow::Borrowed(text) => Cow::Borrowed(answers::cut(text, REASON_LIMIT)),
        Cow::Owned(mut text) => {
            let end = answers::cut(&text, REASON_LIMIT).len();
            text.truncate(end);
            text.shrink_to_fit();
            Cow::Owned(text)
        }
    }
}
