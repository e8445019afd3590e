//! Owns the state that handles and driver share, its lock, and who is woken when it is released. It must not know what
//! a frame means to whom.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use mcp_wire::client::{Handle, RequestOptions, ResultKind};
use mcp_wire::lifecycle::{Escalation, Outcome};
use mcp_wire::{Cause, Delivery, Instant, Json, JsonBuf, SendError, Unread};

use super::engine::Engine;
use super::error::{CallError, CloseError};
use super::events::{ClientEvent, Tap};
use super::listen::ListenState;
use super::notes::{Hook, Notification, Sink};
use super::slab::Slab;
use super::tape::{TapeEntry, TapeFact, TapeOp, TapeSink};
#[cfg(unix)]
use crate::process::ChildTree;

/// Reads the driver's clock.
pub(super) type Clock = Box<dyn Fn() -> Instant + Send + Sync>;

/// Calls that wait for room, for each that may be in flight: a caller that never waits for its answers is refused at last.
const WAITING_FACTOR: usize = 16;

/// What handles and driver share.
pub(super) struct Shared {
    state: Mutex<State>,
    clock: Clock,
}

pub(super) struct State {
    pub(super) engine: Engine,
    pub(super) entries: Slab<Entry>,
    /// The entry of each of the core's slots.
    by_slot: Vec<Option<usize>>,
    /// Calls that wait for room, by entry.
    pub(super) waiting: VecDeque<usize>,
    waiting_bytes: usize,
    in_flight_limit: usize,
    queue_limit: usize,
    /// Unread notifications of the connection.
    pub(super) unread: Unread<Notification>,
    /// The callback for them, unless it is running.
    pub(super) sink: Option<Sink>,
    /// There is a callback for them.
    pub(super) has_sink: bool,
    pub(super) taps: Vec<Arc<Tap>>,
    tape: Option<TapeSink>,
    pub(super) waits: Waits,
    /// To be called once the lock is released.
    pub(super) wakers: Vec<Waker>,
    /// To be dropped once the lock is released: it is the caller's and may hold handles.
    trash: Vec<Hook>,
    driver: Option<Waker>,
    /// The driver is running or was woken: it will look again before it sleeps.
    awake: bool,
    poked: bool,
    /// The driver writes just now, so what is known of deliveries is about to change.
    writing: bool,
    deferred: Vec<Deferred>,
    /// Close or kill was asked for, or nobody is left to ask.
    pub(super) closing: bool,
    /// No handle is left.
    pub(super) abandoned: bool,
    /// The driver was dropped before the end.
    driverless: bool,
    pub(super) outcome: Option<Result<Outcome, CloseError>>,
    /// The connection was established once.
    pub(super) established: bool,
    #[cfg(unix)]
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
    fn cost(&self) -> usize {
        self.method.len() + self.params.as_ref().map_or(0, |params| params.as_json().get().len())
    }

    fn into_owned(self) -> Waiting<'static> {
        Waiting { method: Cow::Owned(self.method.into_owned()), params: self.params, options: self.options }
    }
}

/// What must not happen during a write, because it tells a caller about deliveries.
enum Deferred {
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
            #[cfg(unix)]
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

    /// The last handle is gone: the tree is killed here and now, with or without a driver that runs (SHD-04).
    pub(super) fn abandon(&self) {
        let now = self.now();
        let mut state = self.lock();
        state.abandoned = true;
        let child = state.end_without_outcome(now);
        state.poke();
        drop(state);
        drop(child);
    }

    /// The driver is gone: nobody moves bytes any more, so everything ends (case 159).
    pub(super) fn driver_gone(&self) {
        let now = self.now();
        let mut state = self.lock();
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
        let wakers = std::mem::take(&mut state.wakers);
        let trash = std::mem::take(&mut state.trash);
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
        #[cfg(unix)]
        return self.child.as_ref().map(|child| child.pid());
        #[cfg(not(unix))]
        return None;
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

    /// Takes a request, or refuses it. `Ok` is the key of its entry.
    pub(super) fn submit(
        &mut self,
        waiting: Waiting<'_>,
        hook: Option<Hook>,
        may_wait: bool,
        now: Instant,
    ) -> Result<usize, CallError> {
        if let Some(error) = self.refusal() {
            self.trash.extend(hook);
            return Err(error);
        }
        let mut entry = Entry {
            handle: None,
            kind: Kind::Call { unread: None, hook, waiting: None },
            waker: None,
            ending: None,
            orphan: false,
        };
        // Who waits already goes first.
        let taken = if self.waiting.is_empty() { self.request(&waiting, now) } else { Err(SendError::Full) };
        match taken {
            Ok(handle) => {
                entry.handle = Some(handle);
                let key = self.entries.insert(entry);
                self.bind(handle, key);
                self.pump(now);
                Ok(key)
            }
            Err(SendError::Full) if may_wait && self.may_wait(&waiting) => {
                self.waiting_bytes += waiting.cost();
                entry.kind = match entry.kind {
                    Kind::Call { unread, hook, .. } => {
                        Kind::Call { unread, hook, waiting: Some(Box::new(waiting.into_owned())) }
                    }
                    listen @ Kind::Listen(_) => listen,
                };
                let key = self.entries.insert(entry);
                self.waiting.push_back(key);
                Ok(key)
            }
            Err(error) => {
                if let Kind::Call { hook, .. } = entry.kind {
                    self.trash.extend(hook);
                }
                Err(CallError::Send(error))
            }
        }
    }

    /// Why nothing is taken any more, if so.
    pub(super) fn refusal(&self) -> Option<CallError> {
        if let Some(error) = self.engine.start_error() {
            return Some(CallError::Start(error.clone()));
        }
        (self.closing || self.is_over()).then_some(CallError::Send(SendError::Closed))
    }

    fn may_wait(&self, waiting: &Waiting<'_>) -> bool {
        self.waiting.len() < self.in_flight_limit.saturating_mul(WAITING_FACTOR)
            && self.waiting_bytes.saturating_add(waiting.cost()) <= self.queue_limit
    }

    fn request(&mut self, waiting: &Waiting<'_>, now: Instant) -> Result<Handle, SendError> {
        let params = waiting.params.as_ref().map(JsonBuf::as_json);
        let options = waiting.options.clone();
        let handle = self.engine.supervisor_mut().request(&waiting.method, params, options, now)?;
        if self.has_tape() {
            let op = TapeOp::Request { handle, method: &waiting.method, params, options: &waiting.options };
            self.tape(TapeFact::Op(op), now);
        }
        self.poke();
        Ok(handle)
    }

    /// There is room again: calls that wait are taken, in their order.
    pub(super) fn submit_waiting(&mut self, now: Instant) {
        while let Some(key) = self.waiting.front().copied() {
            let waiting = self.entries.get_mut(key).and_then(|entry| match &mut entry.kind {
                Kind::Call { waiting, .. } => waiting.take(),
                Kind::Listen(_) => None,
            });
            let Some(waiting) = waiting else {
                self.waiting.pop_front();
                continue;
            };
            let taken = self.request(&waiting, now);
            if taken == Err(SendError::Full) {
                if let Some(Entry { kind: Kind::Call { waiting: place, .. }, .. }) = self.entries.get_mut(key) {
                    *place = Some(waiting);
                }
                return;
            }
            self.waiting.pop_front();
            self.waiting_bytes = self.waiting_bytes.saturating_sub(waiting.cost());
            match taken {
                Ok(handle) => {
                    if let Some(entry) = self.entries.get_mut(key) {
                        entry.handle = Some(handle);
                    }
                    self.bind(handle, key);
                }
                Err(error) => self.end(key, Err(CallError::Send(error))),
            }
        }
    }

    /// Calls that wait for room end now: there will be none.
    fn end_waiting(&mut self) {
        self.waiting_bytes = 0;
        for key in std::mem::take(&mut self.waiting) {
            if let Some(Entry { kind: Kind::Call { waiting, .. }, .. }) = self.entries.get_mut(key) {
                *waiting = None;
            }
            let error = match self.engine.start_error() {
                Some(error) => CallError::Start(error.clone()),
                None => CallError::Failed { cause: Cause::Closed, delivery: Delivery::NotSent, hint: None },
            };
            self.end(key, Err(error));
        }
    }

    pub(super) fn bind(&mut self, handle: Handle, key: usize) {
        let slot = handle.slot();
        if slot >= self.by_slot.len() {
            self.by_slot.resize(slot + 1, None);
        }
        if let Some(place) = self.by_slot.get_mut(slot) {
            *place = Some(key);
        }
    }

    /// The entry of a handle that has not ended.
    pub(super) fn key_of(&self, handle: Handle) -> Option<usize> {
        let key = (*self.by_slot.get(handle.slot())?)?;
        (self.entries.get(key)?.handle == Some(handle)).then_some(key)
    }

    /// The core is done with a handle: its slot may be used again. Gives its entry.
    pub(super) fn unbind(&mut self, handle: Handle) -> Option<usize> {
        let key = self.key_of(handle)?;
        if let Some(place) = self.by_slot.get_mut(handle.slot()) {
            *place = None;
        }
        Some(key)
    }

    /// A request has ended: its caller is told, or it goes if there is none.
    pub(super) fn end(&mut self, key: usize, ending: Result<(JsonBuf, ResultKind), CallError>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.orphan {
            self.remove(key);
            return;
        }
        if let Kind::Call { hook, .. } = &mut entry.kind {
            self.trash.extend(hook.take());
        }
        entry.ending = Some(ending);
        self.wakers.extend(entry.waker.take());
    }

    pub(super) fn remove(&mut self, key: usize) {
        if let Some(Entry { kind: Kind::Call { hook, .. }, .. }) = self.entries.remove(key) {
            self.trash.extend(hook);
        }
    }

    /// The caller dropped its handle (CAN-04).
    pub(super) fn forsake(&mut self, key: usize, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let over = match &mut entry.kind {
            Kind::Call { waiting, hook, .. } => {
                self.trash.extend(hook.take());
                if let Some(waiting) = waiting.take() {
                    // Its place in the queue is passed over when its turn comes.
                    self.waiting_bytes = self.waiting_bytes.saturating_sub(waiting.cost());
                    self.waiting.retain(|waiting| *waiting != key);
                    true
                } else {
                    entry.ending.is_some()
                }
            }
            Kind::Listen(listen) => entry.ending.is_some() || listen.is_over(),
        };
        if over {
            self.remove(key);
            return;
        }
        entry.orphan = true;
        if let Some(handle) = entry.handle {
            self.cancel(handle, None, now);
        }
    }

    /// Gives a call up that still waits for room.
    pub(super) fn cancel_waiting(&mut self, key: usize) {
        let Some(Entry { kind: Kind::Call { waiting, .. }, .. }) = self.entries.get_mut(key) else { return };
        let Some(waiting) = waiting.take() else { return };
        self.waiting_bytes = self.waiting_bytes.saturating_sub(waiting.cost());
        self.waiting.retain(|waiting| *waiting != key);
        self.end(key, Err(CallError::Failed { cause: Cause::Cancelled, delivery: Delivery::NotSent, hint: None }));
    }

    /// Gives a request or listen up.
    pub(super) fn cancel(&mut self, handle: Handle, reason: Option<&str>, now: Instant) {
        if self.writing {
            self.deferred.push(Deferred::Cancel(handle, reason.map(str::to_owned)));
            return;
        }
        tracing::debug!(target: "mcp_wire::cancel", ?handle, "a caller gave a request up");
        self.tape(TapeFact::Op(TapeOp::Cancel { handle, reason }), now);
        self.engine.supervisor_mut().cancel(handle, reason, now);
        self.pump(now);
        self.poke();
    }

    /// Gives a request or listen up because its hook failed or its consumer did not keep up.
    pub(super) fn overflow(&mut self, handle: Handle, now: Instant) {
        tracing::debug!(target: "mcp_wire::cancel", ?handle, "a hook failed or a consumer lagged");
        self.tape(TapeFact::Op(TapeOp::Overflow { handle }), now);
        self.engine.supervisor_mut().overflow(handle, now);
        self.poke();
    }

    /// Closes by the ladder. Idempotent.
    pub(super) fn close(&mut self, now: Instant) {
        self.closing = true;
        self.end_waiting();
        if self.writing {
            self.deferred.push(Deferred::Close);
            return;
        }
        if !self.is_over() {
            self.tape(TapeFact::Op(TapeOp::Close), now);
        }
        self.engine.supervisor_mut().close(now);
        self.pump(now);
        self.poke();
    }

    /// Kills the tree. Idempotent.
    pub(super) fn kill(&mut self, now: Instant) {
        self.closing = true;
        self.end_waiting();
        if self.writing {
            self.deferred.push(Deferred::Kill);
            return;
        }
        if !self.is_over() {
            self.tape(TapeFact::Op(TapeOp::Kill), now);
        }
        self.engine.supervisor_mut().kill(now);
        self.pump(now);
        self.poke();
    }

    /// The driver begins to write: what is known of deliveries is about to change.
    pub(super) const fn begin_write(&mut self) {
        self.writing = true;
    }

    /// What was written is reported: what had to wait for that is done.
    pub(super) fn end_write(&mut self, now: Instant) {
        self.writing = false;
        for deferred in std::mem::take(&mut self.deferred) {
            match deferred {
                Deferred::Cancel(handle, reason) => self.cancel(handle, reason.as_deref(), now),
                Deferred::Close => self.close(now),
                Deferred::Kill => self.kill(now),
            }
        }
    }

    /// Ends everything although nobody knows how the process ends. Gives the child, to be dropped (killed) after the lock is released.
    #[must_use]
    fn end_without_outcome(&mut self, now: Instant) -> ChildToKill {
        if !self.is_over() {
            self.writing = false;
            self.kill(now);
        }
        if !self.is_over() {
            let (escalation, restarts) = (Escalation::Kill, self.engine.restarts());
            self.tell(ClientEvent::Closed { exit: None, escalation, restarts });
            self.finish(Err(CloseError::DriverStopped));
        }
        #[cfg(unix)]
        return self.child.take();
        #[cfg(not(unix))]
        return None;
    }

    /// It is over: everybody who still waits is told.
    pub(super) fn finish(&mut self, outcome: Result<Outcome, CloseError>) {
        self.outcome = Some(if self.driverless { Err(CloseError::DriverStopped) } else { outcome });
        self.end_waiting();
        let Self { taps, wakers, waits, .. } = self;
        taps.drain(..).for_each(|tap| tap.end(wakers));
        for wait in [Wait::Established, Wait::Closed, Wait::Notification] {
            waits.wake(wait, wakers);
        }
        // The core has ended every request by now; an entry without an ending would be a fault of ours, and still must not hang.
        let left: Vec<usize> = (self.entries.iter_mut())
            .filter(|(_, entry)| match &entry.kind {
                Kind::Call { .. } => entry.ending.is_none(),
                Kind::Listen(listen) => entry.ending.is_none() && !listen.is_over(),
            })
            .map(|(key, _)| key)
            .collect();
        for key in left {
            let error = CallError::Failed { cause: Cause::Closed, delivery: Delivery::Sent, hint: None };
            self.end(key, Err(error));
        }
    }

    /// Queues a notification of the caller's.
    pub(super) fn notify(&mut self, method: &str, params: Option<Json<'_>>, now: Instant) -> Result<(), CallError> {
        if let Some(error) = self.refusal() {
            return Err(error);
        }
        self.engine.supervisor_mut().notify(method, params, now)?;
        if self.has_tape() {
            self.tape(TapeFact::Op(TapeOp::Notify { method, params }), now);
        }
        self.pump(now);
        self.poke();
        Ok(())
    }
}

#[cfg(unix)]
type ChildToKill = Option<Arc<ChildTree>>;
#[cfg(not(unix))]
type ChildToKill = Option<()>;
