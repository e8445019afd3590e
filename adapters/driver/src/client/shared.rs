//! Owns the state that handles and driver share, its lock, and who is woken when it is released. It must not know what
//! a frame means to whom.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Waker};

use mcp_wire::client::{Handle, RequestOptions, ResultKind};
use mcp_wire::lifecycle::Outcome;
use mcp_wire::{Instant, JsonBuf, Unread};

use super::engine::Engine;
use super::error::{CallError, CloseError};
use super::events::{ClientEvent, Tap};
use super::listen::ListenState;
use super::notes::{Hook, Notification, Sink};
use super::server_requests::{Handler, ServerRequests};
use super::slab::Slab;
use super::tape::{TapeEntry, TapeFact, TapeSink};
use crate::process::ChildTree;
use crate::sync::{Mutex, MutexGuard};

/// Reads the driver's clock.
pub(super) type Clock = Box<dyn Fn() -> Instant + Send + Sync>;

/// What handles and driver share.
pub(super) struct Shared {
    state: Mutex<State>,
    clock: Clock,
}

pub(super) struct State {
    pub(super) engine: Engine,
    pub(super) entries: Slab<Entry>,
    /// The entry of each of the core's slots.
    pub(super) by_slot: Vec<Option<usize>>,
    /// Calls that wait for room, by entry.
    pub(super) waiting: VecDeque<usize>,
    pub(super) waiting_bytes: usize,
    pub(super) in_flight_limit: usize,
    pub(super) queue_limit: usize,
    /// Unread notifications of the connection.
    pub(super) unread: Unread<Notification>,
    /// The callback for them, unless it is running.
    pub(super) sink: Option<Sink>,
    /// There is a callback for them.
    pub(super) has_sink: bool,
    pub(super) taps: Vec<Arc<Tap>>,
    pub(super) server_requests: ServerRequests,
    tape: Option<TapeSink>,
    pub(super) waits: Waits,
    /// To be called once the lock is released.
    pub(super) wakers: Vec<Waker>,
    /// To be dropped once the lock is released: it is the caller's and may hold handles.
    pub(super) trash: Vec<Hook>,
    driver: Option<Waker>,
    /// The driver is running or was woken: it will look again before it sleeps.
    awake: bool,
    poked: bool,
    /// The driver writes just now, so what is known of deliveries is about to change.
    pub(super) writing: bool,
    pub(super) deferred: Vec<Deferred>,
    /// Close or kill was asked for, or nobody is left to ask.
    pub(super) closing: bool,
    /// No handle is left.
    pub(super) abandoned: bool,
    /// The driver was dropped before the end.
    pub(super) driverless: bool,
    pub(super) outcome: Option<Result<Outcome, CloseError>>,
    /// The connection was established once.
    pub(super) established: bool,
    pub(super) child: Option<Arc<ChildTree>>,
    /// Frames dropped so far, for the log.
    pub(super) dropped_frames: u64,
    /// The connection's notifications go unread: told once until somebody reads.
    pub(super) unread_told: bool,
}

/// A request or listen of a caller's.
pub(super) struct Entry {
    pub(super) handle: Option<Handle>,
    pub(super) kind: Kind,
    pub(super) waker: Option<Waker>,
    /// How it ended; taken by its handle.
    pub(super) ending: Option<Result<(JsonBuf, ResultKind), CallError>>,
    /// Its handle was dropped: it goes when it has ended.
    pub(super) orphan: bool,
}

pub(super) enum Kind {
    Call { unread: Option<Box<Unread<Notification>>>, hook: Option<Hook>, waiting: Option<Box<Waiting<'static>>> },
    Listen(Box<ListenState>),
}

/// A call that waits for room.
pub(super) struct Waiting<'a> {
    pub(super) method: Cow<'a, str>,
    pub(super) params: Option<JsonBuf>,
    pub(super) options: RequestOptions,
}

impl Waiting<'_> {
    pub(super) fn cost(&self) -> usize {
        self.method.len() + self.params.as_ref().map_or(0, |params| params.as_json().get().len())
    }

    pub(super) fn into_owned(self) -> Waiting<'static> {
        Waiting { method: Cow::Owned(self.method.into_owned()), params: self.params, options: self.options }
    }
}

/// What must not happen during a write, because it tells a caller about deliveries.
pub(super) enum Deferred {
    Cancel(Handle, Option<String>),
    Close,
    Kill,
}

/// What somebody waits for besides an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Established,
    Closed,
    Notification,
}

/// Who waits for what.
pub(super) struct Waits(Slab<(Wait, Option<Waker>)>);

impl Waits {
    /// Registers the task; `key` is the place it keeps.
    pub(super) fn wait(&mut self, key: &mut Option<usize>, what: Wait, cx: &Context<'_>) {
        match key.and_then(|key| self.0.get_mut(key)) {
            Some((_, Some(waker))) if waker.will_wake(cx.waker()) => {}
            Some((_, waker)) => *waker = Some(cx.waker().clone()),
            None => *key = Some(self.0.insert((what, Some(cx.waker().clone())))),
        }
    }

    pub(super) fn forget(&mut self, key: &mut Option<usize>) {
        if let Some(key) = key.take() {
            self.0.remove(key);
        }
    }

    pub(super) fn wake(&mut self, what: Wait, wakers: &mut Vec<Waker>) {
        for (_, (waits_for, waker)) in self.0.iter_mut() {
            if *waits_for == what {
                wakers.extend(waker.take());
            }
        }
    }
}

/// What a connection is made of, for [`Shared::new`].
pub(super) struct Parts {
    pub(super) engine: Engine,
    pub(super) sink: Option<Sink>,
    pub(super) taps: Vec<Arc<Tap>>,
    pub(super) handler: Option<Handler>,
    pub(super) tape: Option<TapeSink>,
    pub(super) in_flight_limit: usize,
    pub(super) queue_limit: usize,
    pub(super) clock: Clock,
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Self {
        let state = State {
            engine: parts.engine,
            entries: Slab::new(),
            by_slot: Vec::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            in_flight_limit: parts.in_flight_limit,
            queue_limit: parts.queue_limit,
            unread: Unread::new(super::notes::CONNECTION_UNREAD, super::notes::UNREAD_BYTES),
            has_sink: parts.sink.is_some(),
            sink: parts.sink,
            taps: parts.taps,
            server_requests: ServerRequests::new(parts.handler),
            tape: parts.tape,
            waits: Waits(Slab::new()),
            wakers: Vec::new(),
            trash: Vec::new(),
            driver: None,
            awake: true,
            poked: false,
            writing: false,
            deferred: Vec::new(),
            closing: false,
            abandoned: false,
            driverless: false,
            outcome: None,
            established: false,
            child: None,
            dropped_frames: 0,
            unread_told: false,
        };
        Self { state: Mutex::new(state), clock: parts.clock }
    }

    pub(super) fn now(&self) -> Instant {
        (self.clock)()
    }

    /// Locks the state. No callback of a caller's ever runs under the lock, and wakers are called after it.
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked { guard: Some(self.state.lock().unwrap_or_else(PoisonError::into_inner)) }
    }

    /// The same, and the time. It is read under the lock, so that the core is never told an earlier one than before, by whichever thread.
    pub(super) fn lock_now(&self) -> (Locked<'_>, Instant) {
        let state = self.lock();
        let now = self.now();
        (state, now)
    }

    /// The last handle is gone: the tree is killed here and now, with or without a driver that runs (SHD-04).
    pub(super) fn abandon(&self) {
        let (mut state, now) = self.lock_now();
        state.abandoned = true;
        let child = state.end_without_outcome(now);
        state.poke();
        drop(state);
        drop(child);
    }

    /// The driver is gone: nobody moves bytes any more, so everything ends (case 159).
    pub(super) fn driver_gone(&self) {
        let (mut state, now) = self.lock_now();
        state.driverless = true;
        let child = state.end_without_outcome(now);
        drop(state);
        drop(child);
    }
}

/// The state, locked. On release the driver is woken if there is something to do, and whoever waited for what came.
pub(super) struct Locked<'a> {
    /// `None` only while it is dropped.
    guard: Option<MutexGuard<'a, State>>,
}

impl Locked<'_> {
    /// Releases the lock like a drop, with a vector that is used again.
    pub(super) fn release(mut self, spare: &mut Vec<Waker>) {
        if let Some(state) = self.guard.as_mut() {
            std::mem::swap(&mut state.wakers, spare);
        }
        drop(self);
        for waker in spare.drain(..) {
            waker.wake();
        }
    }
}

impl std::ops::Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.guard.as_ref().expect("the guard is there until the drop")
    }
}

impl std::ops::DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.guard.as_mut().expect("the guard is there until the drop")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let Some(mut state) = self.guard.take() else { return };
        let driver = if std::mem::take(&mut state.poked) && !state.awake {
            state.awake = true;
            state.driver.take()
        } else {
            None
        };
        // The vectors keep their room where there is nothing to take.
        let wakers = if state.wakers.is_empty() { Vec::new() } else { std::mem::take(&mut state.wakers) };
        let trash = if state.trash.is_empty() { Vec::new() } else { std::mem::take(&mut state.trash) };
        drop(state);
        driver.into_iter().chain(wakers).for_each(Waker::wake);
        drop(trash);
    }
}

impl State {
    /// Whether nothing more happens.
    pub(super) const fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// The id of the process, while there is one.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(|child| child.pid())
    }

    /// There is something for the driver to do.
    pub(super) const fn poke(&mut self) {
        self.poked = true;
    }

    /// The driver goes to sleep, to be woken by the next poke.
    pub(super) fn sleep(&mut self, waker: &Waker) {
        self.awake = false;
        if !self.driver.as_ref().is_some_and(|driver| driver.will_wake(waker)) {
            self.driver = Some(waker.clone());
        }
    }

    /// The driver looks around by itself.
    pub(super) const fn stay_awake(&mut self) {
        self.awake = true;
    }

    /// Records an entry of the tape, if there is one. A sink that panics is given no more.
    pub(super) fn tape(&mut self, fact: TapeFact<'_>, now: Instant) {
        let Some(sink) = &mut self.tape else { return };
        let t_us = u64::try_from(now.since_epoch().as_micros()).unwrap_or(u64::MAX);
        let call = std::panic::AssertUnwindSafe(|| sink(TapeEntry::new(t_us, fact)));
        if std::panic::catch_unwind(call).is_err() {
            tracing::warn!(target: "mcp_wire::router", "the tape's sink panicked; the tape ends here");
            self.tape = None;
        }
    }

    pub(super) const fn has_tape(&self) -> bool {
        self.tape.is_some()
    }

    /// Tells everybody who listens to everything.
    pub(super) fn tell(&mut self, event: ClientEvent) {
        let Self { taps, wakers, .. } = self;
        if let [tap] = taps.as_slice() {
            if !tap.push(event, wakers) {
                taps.clear();
            }
            return;
        }
        taps.retain(|tap| tap.push(event.clone(), wakers));
    }
}
