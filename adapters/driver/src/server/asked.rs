//! Owns what those who asked a legacy client something wait for: a waker until the answer is there, then the answer. It must not know what
//! was asked.

use std::collections::BTreeMap;
use std::task::Waker;

use mcp_wire::server::{ClientRequest, Event};
use mcp_wire::{Cause, Delivery, Instant, JsonBuf};

use super::shared::State;
use super::{LegacyRequestError, RpcError};

/// What a client answered.
pub(super) type Answer = Result<JsonBuf, LegacyRequestError>;

/// The requests to the client that somebody waits for, or has not asked about since they ended.
#[derive(Debug, Default)]
pub(super) struct Asked(BTreeMap<ClientRequest, Waiting>);

#[derive(Debug)]
enum Waiting {
    For(Waker),
    Over(Answer),
}

impl Asked {
    /// Keeps an answer for the one who waits, and gives the waker back. An answer nobody waits for is dropped.
    fn answer(&mut self, request: ClientRequest, answer: Answer) -> Option<Waker> {
        let waiting = self.0.get_mut(&request)?;
        match std::mem::replace(waiting, Waiting::Over(answer)) {
            Waiting::For(waker) => Some(waker),
            Waiting::Over(_) => None,
        }
    }
}

impl State {
    /// Somebody waits for the answer to a request.
    pub(super) fn ask(&mut self, request: ClientRequest, waker: Waker) {
        self.asked.0.insert(request, Waiting::For(waker));
    }

    /// The answer to a request, if it is there; else the waker is exchanged for that of before, so that neither is dropped under the lock.
    pub(super) fn answer_to(&mut self, request: ClientRequest, waker: &mut Waker) -> Option<Answer> {
        if let Some(Waiting::For(before)) = self.asked.0.get_mut(&request) {
            std::mem::swap(before, waker);
            return None;
        }
        match self.asked.0.remove(&request) {
            Some(Waiting::Over(answer)) => Some(answer),
            _ => Some(Err(LegacyRequestError::Failed { cause: Cause::Closed, delivery: Delivery::NotSent })),
        }
    }

    /// Nobody waits any more: the request is cancelled, unless it has ended.
    pub(super) fn give_up(&mut self, request: ClientRequest, reason: Option<&str>, now: Instant) -> Option<Waker> {
        let before = self.asked.0.remove(&request);
        self.connection.cancel_client_request(request, reason, now);
        match before {
            Some(Waiting::For(waker)) => Some(waker),
            _ => None,
        }
    }

    /// Takes the answer out of an event, if it is one.
    pub(super) fn take_answer(&mut self, event: &Event<'_>) {
        match event {
            Event::ClientResult { request, result } => self.tell_asked(*request, Ok((*result).into())),
            Event::ClientError { request, error } => {
                let mut rpc = RpcError::new(error.code, &*error.message);
                rpc.data = error.data.map(JsonBuf::from);
                self.tell_asked(*request, Err(LegacyRequestError::Client(rpc)));
            }
            _ => {}
        }
    }

    /// A request has ended.
    pub(super) fn tell_asked(&mut self, request: ClientRequest, answer: Answer) {
        let waker = self.asked.answer(request, answer);
        self.wakers.extend(waker);
    }
}
