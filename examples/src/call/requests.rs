//! Owns what a run holds of the connection: its calls and listens by their keys, and how an operation of the script becomes one. It must not
//! know in which order operations come, nor who drives the connection.

use std::collections::BTreeMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mcp_wire::client::{ProgressToken, RequestOptions};
use mcp_wire::{Cause, SendError};
use mcp_wire_driver::client::{Call, CallError, Client, Listen, Opening};

use super::args::Options;
use super::script::Op;
use super::session::Session;
use super::tape::Tape;

/// Changes of a listen that may wait for this program.
const LISTEN_CAPACITY: usize = 1024;

/// A listen on its way or open. It is read, so that it never lags behind.
enum Reading {
    Opening(Opening),
    Open(Listen),
    Over,
}

/// What was asked of the connection and has not ended.
pub(super) struct Requests {
    client: Client,
    options: Options,
    tape: Option<Tape>,
    /// Dropped, a call is cancelled.
    calls: BTreeMap<String, Call>,
    /// Calls that wait for room in the queue, so they have no handle yet.
    unplaced: Vec<String>,
    listens: BTreeMap<String, Reading>,
}

impl Requests {
    pub(super) fn new(client: Client, options: Options, tape: Option<Tape>) -> Self {
        Self { client, options, tape, calls: BTreeMap::new(), unplaced: Vec::new(), listens: BTreeMap::new() }
    }

    /// Performs one operation, and tells the session what became of a request or listen.
    pub(super) fn perform(&mut self, op: Op, session: &mut Session) {
        match &op {
            Op::Request { key, method, params, timeout, idempotent } => {
                let mut options = RequestOptions::default();
                options.timeout = *timeout;
                options.max_timeout = self.options.max_timeout;
                options.idempotent = *idempotent;
                if self.options.progress {
                    options.progress = ProgressToken::Minted;
                }
                self.expect_on_tape(key);
                let call = self.client.request(method, params).options(options).send();
                self.called(key.clone(), call, &op, session);
            }
            Op::Listen { key, filter } => {
                self.expect_on_tape(key);
                let opening = self.client.listen(filter.clone()).capacity(LISTEN_CAPACITY).send();
                match opening.handle() {
                    Some(handle) => {
                        session.sent(key.clone(), true, handle);
                        self.listens.insert(key.clone(), Reading::Opening(opening));
                    }
                    None => {
                        let error = match poll_once(opening) {
                            Some(Err(error)) => error,
                            _ => CallError::Send(SendError::Ended),
                        };
                        self.refused(key.clone(), true, &error, &op, session);
                    }
                }
            }
            Op::Notify { method, params } => {
                if let Err(error) = self.client.notify(method, params) {
                    tracing::warn!("the notification {method:?} was not sent: {error}");
                }
            }
            Op::Cancel { key, reason } => self.cancel(key, reason.as_deref(), session),
            Op::Close => self.close(false),
            Op::Kill => self.close(true),
            Op::Wait { .. } | Op::WaitEvent { .. } | Op::Sleep { .. } => {}
        }
    }

    fn called(&mut self, key: String, mut call: Call, op: &Op, session: &mut Session) {
        if let Some(handle) = call.handle() {
            session.sent(key.clone(), false, handle);
            self.calls.insert(key, call);
            return;
        }
        match poll_once(&mut call) {
            Some(Err(error)) => self.refused(key, false, &error, op, session),
            _ => {
                session.waits(key.clone());
                self.unplaced.push(key.clone());
                self.calls.insert(key, call);
            }
        }
    }

    fn refused(&self, key: String, listen: bool, error: &CallError, op: &Op, session: &mut Session) {
        if let Some(tape) = &self.tape {
            tape.refused(op);
        }
        let cause = match error {
            CallError::Send(SendError::Full | SendError::TooLarge { .. }) => Cause::Overflow,
            _ => Cause::Closed,
        };
        session.refused(key, listen, cause.as_str(), error.to_string());
    }

    fn expect_on_tape(&self, key: &str) {
        if let Some(tape) = &self.tape {
            tape.expect(key);
        }
    }

    fn cancel(&mut self, key: &str, reason: Option<&str>, session: &mut Session) {
        if let Some(at) = self.unplaced.iter().position(|waiting| waiting == key) {
            self.place(session);
            if self.unplaced.get(at).is_some_and(|waiting| waiting == key) {
                // It never got a place, so nobody else tells of it.
                self.unplaced.remove(at);
                self.calls.remove(key);
                if let Some(tape) = &self.tape {
                    tape.forget(key);
                }
                session.refused(
                    key.to_owned(),
                    false,
                    Cause::Cancelled.as_str(),
                    "it still waited to be sent".to_owned(),
                );
                return;
            }
        }
        if session.handle(key).is_none() {
            return;
        }
        match (self.calls.get(key), self.listens.get(key), reason) {
            (Some(call), _, Some(reason)) => call.cancel(reason),
            (_, Some(Reading::Opening(opening)), Some(reason)) => opening.cancel(reason),
            (_, Some(Reading::Open(listen)), Some(reason)) => listen.cancel(reason),
            // Without a reason it is a drop.
            _ => {
                self.calls.remove(key);
                self.listens.remove(key);
            }
        }
    }

    /// Calls that waited for room may have been given their handles; that comes before any event about them.
    fn place(&mut self, session: &mut Session) {
        let calls = &self.calls;
        self.unplaced.retain(|key| match calls.get(key).and_then(Call::handle) {
            Some(handle) => {
                session.sent(key.clone(), false, handle);
                false
            }
            None => true,
        });
    }

    /// Before an event is told: keys have their handles by then.
    pub(super) fn settle(&mut self, session: &mut Session) {
        if !self.unplaced.is_empty() {
            self.place(session);
        }
    }

    /// A key has ended.
    pub(super) fn ended(&mut self, key: &str) {
        self.calls.remove(key);
        self.listens.remove(key);
    }

    /// Something came for a listen. It is told as an event, so here it is only taken away.
    pub(super) fn read_listens(&mut self) {
        self.listens.values_mut().for_each(Reading::read);
    }

    /// The connection is closed, or killed; the last event tells when that is done.
    pub(super) fn close(&self, kill: bool) {
        if kill {
            drop(self.client.kill());
        } else {
            drop(self.client.close());
        }
    }
}

impl Reading {
    fn read(&mut self) {
        if let Self::Opening(opening) = self {
            match poll_once(opening) {
                Some(Ok(listen)) => *self = Self::Open(listen),
                Some(Err(_)) => *self = Self::Over,
                None => {}
            }
        }
        if let Self::Open(listen) = self {
            while poll_once(listen.next()).flatten().is_some() {}
        }
    }
}

/// What a future has to say now. The tap wakes this program, so nobody needs to be woken here.
fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
