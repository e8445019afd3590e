//! Owns the way of a caller's request into the core, and of its entry from there to its end: room, waiting for it, slots. It must not
//! know what ends a request.

use mcp_wire::client::{Handle, ResultKind};
use mcp_wire::{Cause, Delivery, Instant, Json, JsonBuf, SendError};

use super::error::CallError;
use super::notes::Hook;
use super::shared::{Entry, Kind, State, Waiting};
use super::tape::{TapeFact, TapeOp};

/// Calls that wait for room, for each that may be in flight: a caller that never waits for its answers is refused at last.
const WAITING_FACTOR: usize = 16;

impl State {
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
    pub(super) fn end_waiting(&mut self) {
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
