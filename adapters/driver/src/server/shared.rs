//! Owns the lock around a server connection, the state of each call, and the waker of the serving loop.
//! It must not know who polls the handlers.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant as Clock;

use mcp_wire::server::{Connection, Signal, Ticket};
use mcp_wire::{Instant, JsonBuf, SendError};

use super::RpcError;
use super::call::Parts;

/// What a handler answered.
pub(super) type Answer = Result<JsonBuf, RpcError>;

/// The one lock of a serving connection. It is held for an append or the routing of one frame, never while a handler runs.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    epoch: Clock,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) connection: Connection,
    calls: Vec<Option<CallState>>,
    /// Waiting requests that have got their permit.
    pub(super) startable: Vec<Parts>,
    /// Wakers to be called once the lock is free.
    wakers: Vec<Waker>,
    /// The serving loop, while it sleeps.
    sleeper: Option<Waker>,
}

#[derive(Debug)]
struct CallState {
    ticket: Ticket,
    /// The payload of a request that waits for its permit.
    waiting: Option<Parts>,
    cancelled: bool,
    reason: Option<String>,
    /// Those who wait for the cancellation.
    wakers: Vec<Waker>,
    /// An answer that did not fit yet (LIM-04).
    owed: Option<Answer>,
}

impl Shared {
    pub(super) fn new(connection: Connection) -> Self {
        let state = State { connection, calls: Vec::new(), startable: Vec::new(), wakers: Vec::new(), sleeper: None };
        Self { state: Mutex::new(state), epoch: Clock::now() }
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_epoch(self.epoch.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No user code runs under the lock, so a panic under it cannot have come halfway through a change of ours.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something under the lock, settles what follows from it, and wakes whoever that concerns after the unlock.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State, Instant) -> T) -> T {
        let now = self.now();
        let mut state = self.lock();
        let value = change(&mut state, now);
        state.settle(now);
        let sleeper = state.sleeper.take();
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
        value
    }

    /// Reads something that changes nothing.
    pub(super) fn read<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.lock())
    }

    /// The loop goes to sleep, unless there is something for it to do. The check and the registration are one step.
    pub(super) fn sleep(&self, waker: &Waker, writable: bool) -> bool {
        let now = self.now();
        let mut state = self.lock();
        let due = state.connection.poll_timeout().is_some_and(|at| at <= now);
        if due || !state.startable.is_empty() || (writable && state.connection.pending_output() > 0) {
            return false;
        }
        state.sleeper = Some(waker.clone());
        true
    }

    /// A handler has returned, with an answer or (`None`) without.
    pub(super) fn finish(&self, ticket: Ticket, answer: Option<Answer>) {
        self.with(|state, now| state.finish(ticket, answer, now));
    }
}

impl State {
    /// Notes a request that the core has admitted.
    pub(super) fn admit(&mut self, ticket: Ticket, waiting: Option<Parts>) {
        let slot = ticket.slot();
        if self.calls.len() <= slot {
            self.calls.resize_with(slot + 1, || None);
        }
        let call = CallState { ticket, waiting, cancelled: false, reason: None, wakers: Vec::new(), owed: None };
        if let Some(place) = self.calls.get_mut(slot) {
            *place = Some(call);
        }
    }

    fn call(&mut self, ticket: Ticket) -> Option<&mut CallState> {
        self.calls.get_mut(ticket.slot())?.as_mut().filter(|call| call.ticket == ticket)
    }

    fn forget(&mut self, ticket: Ticket) {
        if self.call(ticket).is_some() {
            if let Some(place) = self.calls.get_mut(ticket.slot()) {
                *place = None;
            }
        }
    }

    /// Whether a call is cancelled, and its reason; registers the waker if it is not. A call that is gone has nothing to wait for.
    pub(super) fn cancellation(&mut self, ticket: Ticket, waker: Option<&Waker>) -> (bool, Option<String>) {
        match self.call(ticket) {
            None => (true, None),
            Some(call) if call.cancelled => (true, call.reason.clone()),
            Some(call) => {
                if let Some(waker) = waker {
                    if !call.wakers.iter().any(|known| known.will_wake(waker)) {
                        call.wakers.push(waker.clone());
                    }
                }
                (false, None)
            }
        }
    }

    fn finish(&mut self, ticket: Ticket, answer: Option<Answer>, now: Instant) {
        if self.call(ticket).is_none() {
            return;
        }
        let sent = match &answer {
            Some(Ok(result)) => self.connection.respond(ticket, result.as_json(), now),
            Some(Err(error)) => {
                let data = error.data.as_ref().map(JsonBuf::as_json);
                self.connection.respond_error(ticket, error.code, &error.message, data, now)
            }
            None => self.connection.abandon(ticket, now),
        };
        if sent == Err(SendError::Full) {
            // It stays with its request, which keeps its permit, until there is room.
            let answer = answer.unwrap_or_else(|| Err(RpcError::internal("Internal error")));
            if let Some(call) = self.call(ticket) {
                call.owed = Some(answer);
            }
        } else {
            self.forget(ticket);
        }
    }

    /// Follows up on the core's signals.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some(signal) = self.connection.poll_signal() {
            match signal {
                Signal::Start(ticket) => {
                    let parts = self.call(ticket).and_then(|call| call.waiting.take());
                    self.startable.extend(parts);
                }
                Signal::Cancelled { ticket, running, reason } => {
                    let Some(call) = self.call(ticket) else { continue };
                    call.cancelled = true;
                    call.reason = reason;
                    let wakers = std::mem::take(&mut call.wakers);
                    let owed = call.owed.take().is_some();
                    self.wakers.extend(wakers);
                    tracing::debug!(target: "mcp_wire::cancel", slot = ticket.slot(), running, "a request is cancelled");
                    if !running {
                        self.forget(ticket);
                    } else if owed {
                        // Its handler has returned; only the answer was waiting for room.
                        let _ = self.connection.abandon(ticket, now);
                        self.forget(ticket);
                    }
                }
                Signal::Writable => self.pay(now),
                _ => {}
            }
        }
    }

    /// Tries the owed answers again, in the order of their slots.
    fn pay(&mut self, now: Instant) {
        for slot in 0..self.calls.len() {
            let Some(Some(call)) = self.calls.get_mut(slot) else { continue };
            let Some(answer) = call.owed.take() else { continue };
            let ticket = call.ticket;
            self.finish(ticket, Some(answer), now);
            if self.call(ticket).is_some() {
                // Still no room: the next `Writable` goes on from here.
                return;
            }
        }
    }
}
