//! Owns what each message from the client leads to: the order of the checks (META-07), cancellations (CAN-06 to CAN-09), answers to
//! lines that are no message (UNR-03). It must not know how handlers run or how answers are encoded.

use alloc::borrow::Cow;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::admission::{Key, Owner, State, Terms};
use super::answers::{self, ErrorId, Texts};
use super::checks::{self, Verdict};
use super::progress::Progress;
use super::refusals::Refusal;
use super::{Connection, Event, Request, Signal};
use crate::client::Dropped;
use crate::config::REASON_LIMIT;
use crate::send_buffer::FrameNumber;
use crate::{DropReason, Id, Instant, Json, Message, Shape, Unreadable, UnreadableReason};

impl Connection {
    /// Takes in one message; for a line that may be several, see [`open_batch`](Self::open_batch). Take the signals after each, so that wire order is kept. While [`wants_read`](Self::wants_read) is false,
    /// hand in no further message: that pause is what bounds memory.
    pub fn handle<'b>(&mut self, message: Message<'b>, now: Instant) -> Event<'b> {
        self.tick(now);
        if !self.takes_input() {
            return Event::Handled;
        }
        match message {
            Message::Request { id, method, params } => self.request(id, method, params),
            Message::Notification { method, params } => self.notification(method, params),
            Message::Response { id, result } => self.client_response(Some(id), Ok(result)),
            Message::Error { id, error } => self.client_response(id, Err(error)),
            Message::Unreadable(line) => self.unreadable(line),
        }
    }

    fn notification<'b>(&mut self, method: Cow<'b, str>, params: Option<Json<'b>>) -> Event<'b> {
        match &*method {
            "notifications/cancelled" => return self.cancellation(params),
            "notifications/progress" if self.sessions.is_open() => return self.client_progress(params),
            "notifications/initialized" => self.initialized(),
            _ => {}
        }
        Event::Notification { method, params }
    }

    fn request<'b>(&mut self, id: Id<'b>, method: Cow<'b, str>, params: Option<Json<'b>>) -> Event<'b> {
        if self.table.is_taken(id) {
            self.own_null_error(&Refusal::Invalid);
            return Event::Refused { id, code: answers::INVALID_REQUEST };
        }
        match checks::check(self.served(), id, method, params) {
            Verdict::Call(request, token) => self.admit(request, token),
            Verdict::Refuse(refusal) => self.refuse(id, &refusal),
            Verdict::Pong => self.reply_empty(id),
            Verdict::Discover => {
                self.own(|out, texts| answers::discovered(out, id.token(), texts));
                Event::Handled
            }
            Verdict::Listen(asked) => self.open_listen(id, asked),
            Verdict::Initialize(opening) => self.initialize(id, &opening),
            Verdict::SetLevel(level) => self.set_level(id, level),
            Verdict::Subscribe(uri, subscribe) => self.subscribe(id, uri, subscribe),
        }
    }

    fn admit<'b>(&mut self, request: Request<'b>, token: Option<Id<'b>>) -> Event<'b> {
        if self.is_draining() {
            return self.refuse(request.id, &Refusal::ShuttingDown);
        }
        let progress = token.map(|token| Progress::new(token.into()));
        let payload = request.params.get().len();
        let terms = Terms { log_level: request.log_level, session: request.session, batch: self.batches.current() };
        let admitted =
            if self.batches.is_crowded() { None } else { self.table.admit(request.id, payload, terms, progress) };
        match admitted {
            Some((ticket, admission)) => {
                self.batches.owe();
                Event::Request { ticket, admission, request }
            }
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
            Some(Owner::Collected) => {
                let key = Key::from(id);
                self.table.free_id(&key);
                self.batches.withdraw(&key)
            }
            Some(&Owner::Request(slot)) => {
                let Some(ticket) = self.table.ticket(slot) else { return false };
                let Some(entry) = self.table.get(ticket) else { return false };
                let batch = entry.terms.batch;
                let running = match entry.state {
                    State::Silent | State::Task => return false,
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
                if let Some(batch) = batch {
                    self.settle_in_batch(batch);
                }
                self.made_room();
                self.check_drained();
                true
            }
        }
    }

    /// Answers a line that is no message at most once, and never one that may be an answer itself: else two ends could feed each other.
    fn unreadable<'b>(&mut self, line: Unreadable<'b>) -> Event<'b> {
        if let (Shape::Response, Some(id)) = (line.shape, line.id) {
            self.unreadable_client_response(id, line.code, line.reason);
        }
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
            (Some(refusal), Some(id)) => self.own_error(self.batches.current(), id, &refusal),
            (Some(refusal), None) => self.own_null_error(&refusal),
        }
        let reason = DropReason::Unreadable(line.reason);
        Event::Dropped(Dropped { reason, id: line.id, code: line.code, len: line.len })
    }

    /// Answers a request with an error of the core's own.
    pub(super) fn refuse<'b>(&mut self, id: Id<'b>, refusal: &Refusal<'_>) -> Event<'b> {
        self.own_error(self.batches.current(), id, refusal);
        Event::Refused { id, code: refusal.code() }
    }

    pub(super) fn own_error(&mut self, batch: Option<u64>, id: Id<'_>, refusal: &Refusal<'_>) {
        let limit = self.config.line_limit;
        self.reply(batch, |out, texts| refusal.write(out, ErrorId::Token(id.token()), texts, limit));
    }

    /// Answers a request that has nothing to be told.
    pub(super) fn reply_empty<'b>(&mut self, id: Id<'b>) -> Event<'b> {
        self.reply(self.batches.current(), |out, _| answers::empty_result(out, id.token()));
        Event::Handled
    }

    /// An error response that names no id, at a limited rate (UNR-03).
    fn own_null_error(&mut self, refusal: &Refusal<'_>) {
        if !self.null_ids.allow(self.now) {
            return;
        }
        let id = if self.config.omit_null_id { ErrorId::Omitted } else { ErrorId::Null };
        let limit = self.config.line_limit;
        self.reply(self.batches.current(), |out, texts| refusal.write(out, id, texts, limit));
    }

    /// Queues an answer that the core makes itself, or has it collected by the batch it belongs to.
    fn reply(&mut self, batch: Option<u64>, write: impl FnOnce(&mut Vec<u8>, &Texts)) {
        let Some(batch) = batch else {
            self.own(write);
            return;
        };
        let mut frame = Vec::new();
        write(&mut frame, &self.texts);
        self.own.hold(frame.len());
        self.batches.add(batch, None, frame, true);
    }

    /// A request of a batch is owed nothing any more.
    pub(super) fn settle_in_batch(&mut self, batch: u64) {
        self.batches.settle(batch);
        self.check_batch(batch);
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
        self.null_ids.suppressed()
    }
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
