//! Owns the lock around a server connection, the state of each call, and the waker of the serving loop.
//! It must not know who polls the handlers.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant as Clock};

use mcp_wire::server::{Connection, Ended, Session, Signal, Ticket};
use mcp_wire::{Instant, JsonBuf, SendError};

use super::asked::Asked;
use super::call::Parts;
use super::legacy_client::Facts as ClientFacts;
use super::{LegacyRequestError, RpcError};
use crate::sync::{Mutex, MutexGuard};

/// What is queued gets so long to leave once handlers have had their time, if the server stops by itself: a client that does not read
/// must not keep it.
const FLUSH: Duration = Duration::from_secs(1);

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
    /// Calls whose answer did not fit yet, the oldest answer first.
    owing: VecDeque<Ticket>,
    /// Waiting requests that have got their permit.
    pub(super) startable: Vec<Parts>,
    /// What a legacy client was asked.
    pub(super) asked: Asked,
    /// What the legacy client of the newest session told of itself.
    client: Option<Arc<ClientFacts>>,
    /// Wakers to be called once the lock is free.
    pub(super) wakers: Vec<Waker>,
    /// Codes of handlers that the protocol forbids, to be warned of once the lock is free.
    replaced_codes: Vec<i64>,
    next_watch: u64,
    /// The serving loop, while it sleeps.
    sleeper: Option<Waker>,
    /// What the loop knew at the start of its turn.
    seen: Option<Facts>,
    drain: Duration,
    /// When a stop gives up on a client that does not read.
    give_up: Option<Instant>,
}

/// What decides whether the loop has something to do, besides output and requests that may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) wants_read: bool,
    pub(super) ended: Option<Ended>,
    pub(super) timeout: Option<Instant>,
}

/// Whether a call is cancelled.
#[derive(Debug)]
pub(super) struct Cancellation {
    pub(super) cancelled: bool,
    pub(super) reason: Option<String>,
    /// A waker that was replaced, to be dropped without the lock.
    _before: Option<Waker>,
}

impl Cancellation {
    const fn of(reason: Option<String>) -> Self {
        Self { cancelled: true, reason, _before: None }
    }

    const fn none(before: Option<Waker>) -> Self {
        Self { cancelled: false, reason: None, _before: before }
    }
}

#[derive(Debug)]
struct CallState {
    ticket: Ticket,
    /// The payload of a request that waits for its permit.
    waiting: Option<Parts>,
    cancelled: bool,
    reason: Option<String>,
    /// Those who wait for the cancellation, each under a number of its own.
    watches: Vec<(u64, Waker)>,
    /// An answer that did not fit yet (LIM-04).
    owed: Option<Answer>,
}

impl Shared {
    pub(super) fn new(connection: Connection, drain: Duration) -> Self {
        let state = State {
            connection,
            calls: Vec::new(),
            owing: VecDeque::new(),
            startable: Vec::new(),
            asked: Asked::default(),
            client: None,
            wakers: Vec::new(),
            replaced_codes: Vec::new(),
            next_watch: 0,
            sleeper: None,
            seen: None,
            drain,
            give_up: None,
        };
        Self { state: Mutex::new(state), epoch: Clock::now() }
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_epoch(self.epoch.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of the user runs under the lock (no handler, waker or log subscriber), so a panic under it cannot have come halfway through a change of ours.
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
        let replaced_codes = std::mem::take(&mut state.replaced_codes);
        drop(state);
        for code in replaced_codes {
            tracing::warn!(target: "mcp_wire::router", code, "the protocol reserves the error code of a handler; -32603 was sent in its place");
        }
        wakers.into_iter().chain(sleeper).for_each(Waker::wake);
        value
    }

    /// Reads something that changes nothing.
    pub(super) fn read<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.lock())
    }

    /// The loop begins a turn: it is awake, and told what there is to know.
    pub(super) fn turn(&self) -> Facts {
        let mut state = self.lock();
        let facts = state.facts();
        state.seen = Some(facts);
        // A waker may own what it wakes, so none is dropped under the lock.
        let sleeper = state.sleeper.take();
        drop(state);
        drop(sleeper);
        facts
    }

    /// The loop goes to sleep, unless there is something for it to do, or something is not as it was at the start of the turn. The check
    /// and the registration are one step.
    pub(super) fn sleep(&self, waker: &Waker, writable: bool) -> bool {
        let now = self.now();
        let waker = waker.clone();
        let mut state = self.lock();
        let facts = state.facts();
        let due = facts.timeout.is_some_and(|at| at <= now);
        let output = writable && state.connection.pending_output() > 0;
        if due || output || !state.startable.is_empty() || state.seen != Some(facts) {
            return false;
        }
        let before = state.sleeper.replace(waker);
        drop(state);
        drop(before);
        true
    }

    /// Nobody waits for the cancellation under this number any more.
    pub(super) fn unwatch(&self, ticket: Ticket, watch: u64) {
        let mut state = self.lock();
        let Some(call) = state.call(ticket) else { return };
        let at = call.watches.iter().position(|(number, _)| *number == watch);
        let waker = at.map(|at| call.watches.swap_remove(at));
        drop(state);
        drop(waker);
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
        let call = CallState { ticket, waiting, cancelled: false, reason: None, watches: Vec::new(), owed: None };
        if let Some(place) = self.calls.get_mut(slot) {
            *place = Some(call);
        }
    }

    /// What the client of a session told of itself: read once for each session.
    pub(super) fn client(&mut self, session: Session) -> Option<Arc<ClientFacts>> {
        if self.client.as_ref().is_none_or(|client| client.session != session) {
            let facts = self.connection.client(session)?;
            self.client = Some(Arc::new(ClientFacts::new(session, &facts)));
        }
        self.client.clone()
    }

    fn call(&mut self, ticket: Ticket) -> Option<&mut CallState> {
        self.calls.get_mut(ticket.slot())?.as_mut().filter(|call| call.ticket == ticket)
    }

    fn forget(&mut self, ticket: Ticket) {
        if self.call(ticket).is_none() {
            return;
        }
        let call = self.calls.get_mut(ticket.slot()).and_then(Option::take);
        // Whoever still waits for its cancellation learns that there is nothing to wait for.
        self.wakers.extend(call.into_iter().flat_map(|call| call.watches).map(|(_, waker)| waker));
    }

    pub(super) fn facts(&self) -> Facts {
        let ended = self.connection.ended();
        let timeout = if ended.is_none() { self.connection.poll_timeout() } else { None };
        let timeout = [timeout, self.give_up].into_iter().flatten().min();
        Facts { wants_read: self.connection.wants_read(), ended, timeout }
    }

    /// Time has passed.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
        if self.give_up.is_some_and(|at| at <= now) {
            // The client has not read what it is owed in all this time.
            self.connection.peer_gone(now);
        }
    }

    /// The server stops by itself (SHD-06); `at_once`: without the time that handlers get.
    pub(super) fn stop(&mut self, at_once: bool, now: Instant) {
        self.connection.stop(now);
        let mut time = self.drain;
        if at_once {
            self.connection.end_drain(now);
            time = Duration::ZERO;
        }
        let give_up = now.checked_add(time.saturating_add(FLUSH));
        self.give_up = [self.give_up, give_up].into_iter().flatten().min();
    }

    /// Whether a call is cancelled, and its reason; if it is not, the waker is kept under the number in `watch`. A call that is gone has
    /// nothing to wait for.
    pub(super) fn cancellation(&mut self, ticket: Ticket, watch: Option<(&mut Option<u64>, Waker)>) -> Cancellation {
        let next = self.next_watch;
        let Some(call) = self.call(ticket) else { return Cancellation::of(None) };
        if call.cancelled {
            return Cancellation::of(call.reason.clone());
        }
        let Some((number, waker)) = watch else { return Cancellation::none(None) };
        if let Some((_, known)) = call.watches.iter_mut().find(|(known, _)| Some(*known) == *number) {
            return Cancellation::none(Some(std::mem::replace(known, waker)));
        }
        call.watches.push((next, waker));
        *number = Some(next);
        self.next_watch = next.wrapping_add(1);
        Cancellation::none(None)
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
                self.owing.push_back(ticket);
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
                    let watches = std::mem::take(&mut call.watches);
                    let owed = call.owed.take().is_some();
                    self.wakers.extend(watches.into_iter().map(|(_, waker)| waker));
                    if !running {
                        self.forget(ticket);
                    } else if owed {
                        self.owing.retain(|owing| *owing != ticket);
                        // Its handler has returned; only the answer was waiting for room.
                        let _ = self.connection.abandon(ticket, now);
                        self.forget(ticket);
                    }
                }
                Signal::Writable => self.pay(now),
                Signal::CodeReplaced { code, .. } => self.replaced_codes.push(code),
                Signal::ClientRequestEnded { request, cause, delivery } => {
                    self.tell_asked(request, Err(LegacyRequestError::Failed { cause, delivery }));
                }
                _ => {}
            }
        }
    }

    /// Tries the owed answers again, the oldest first: the core keeps room for that one.
    fn pay(&mut self, now: Instant) {
        while let Some(ticket) = self.owing.pop_front() {
            let Some(answer) = self.call(ticket).and_then(|call| call.owed.take()) else { continue };
            self.finish(ticket, Some(answer), now);
            if self.call(ticket).is_some() {
                // Still no room, and it is owed again: it keeps its turn, and the next `Writable` goes on from here.
                self.owing.rotate_right(1);
                return;
            }
        }
    }
}
