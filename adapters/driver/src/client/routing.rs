//! Owns what an event or signal of the core does to the entries of callers: who gets it, who is woken. It must not know
//! where frames come from.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mcp_wire::client::{Dropped, Event, Handle, ListenEnd, Signal};
use mcp_wire::config::UNREAD_LIMIT;
use mcp_wire::lifecycle::{EndReason, Notice};
use mcp_wire::{Instant, Json, JsonBuf, SupervisorSignal, Unread};

use super::engine::Engine;
use super::error::{CallError, CloseError};
use super::notes::{Hook, Notification, Sink, UNREAD_BYTES};
use super::shared::{Entry, Kind, Shared, State, Wait};

/// A callback of the caller's that is to run now, before the next frame, with the lock released.
pub(super) enum Callback<'b> {
    Hook { key: usize, request: Handle, hook: Hook, method: Cow<'b, str>, params: Option<Json<'b>> },
    Sink { sink: Sink, note: Notification },
}

impl Callback<'_> {
    /// Runs it, and puts it back. An error or a panic in a hook cancels its request and nothing else (RTE-12).
    pub(super) fn run(self, shared: &Shared) {
        match self {
            Self::Hook { key, request, mut hook, method, params } => {
                let ran = catch_unwind(AssertUnwindSafe(|| hook(&method, params)));
                let (mut state, now) = shared.lock_now();
                if matches!(ran, Ok(Ok(()))) {
                    if let Some(Entry { handle, kind: Kind::Call { hook: place, .. }, orphan: false, .. }) =
                        state.entries.get_mut(key)
                    {
                        if *handle == Some(request) {
                            *place = Some(hook);
                            return;
                        }
                    }
                } else {
                    state.overflow(request, now);
                    state.pump(now);
                }
                // What the hook holds may be a handle: its drop needs the lock.
                drop(state);
                drop(hook);
            }
            Self::Sink { mut sink, note } => {
                if catch_unwind(AssertUnwindSafe(|| sink(note))).is_err() {
                    tracing::warn!(target: "mcp_wire::router", "the callback for notifications panicked");
                }
                shared.lock().sink = Some(sink);
            }
        }
    }
}

impl State {
    /// Gives the event of one frame to whom it belongs. What has to run before the next frame is given back.
    pub(super) fn route<'b>(&mut self, event: Event<'b>, now: Instant) -> Option<Callback<'b>> {
        if !self.taps.is_empty() {
            if let Some(event) = Engine::frame_event(&event) {
                self.tell(event);
            }
        }
        match event {
            Event::Result { request, result, kind } => {
                let key = self.unbind(request)?;
                self.end(key, Ok((JsonBuf::from(result), kind)));
            }
            Event::Error { request, error } => {
                let key = self.unbind(request)?;
                let (code, message) = (error.code, error.message.into_owned());
                self.end(key, Err(CallError::Rpc { code, message, data: error.data.map(JsonBuf::from) }));
            }
            Event::RequestNotification { request, method, params } => {
                return self.on_request_notification(request, method, params);
            }
            Event::Acknowledged { listen, notifications, missing } => {
                if let Some((listen, entry_waker)) = self.listen_mut(listen) {
                    listen.opened(JsonBuf::from(notifications), missing);
                    let waker = entry_waker.take();
                    self.wakers.extend(waker);
                }
            }
            Event::ListenNotification { listen: handle, method, params } => {
                if let Some((listen, entry_waker)) = self.listen_mut(handle) {
                    let fits = listen.push(Notification::new(&method, params));
                    let waker = entry_waker.take();
                    self.wakers.extend(waker);
                    if !fits {
                        self.overflow(handle, now);
                    }
                }
            }
            Event::ListenEnded { listen, how } => self.end_listen(listen, how),
            Event::Notification { method, params } => return self.on_notification(&method, params),
            Event::ServerRequest { ticket, method, params } => self.asked(ticket, &method, params),
            Event::Dropped(dropped) => self.on_dropped(&dropped),
            _ => {}
        }
        None
    }

    fn on_request_notification<'b>(
        &mut self,
        request: Handle,
        method: Cow<'b, str>,
        params: Option<Json<'b>>,
    ) -> Option<Callback<'b>> {
        let key = self.key_of(request)?;
        let entry = self.entries.get_mut(key)?;
        if entry.orphan {
            return None;
        }
        let Kind::Call { unread, hook, .. } = &mut entry.kind else { return None };
        if let Some(hook) = hook.take() {
            return Some(Callback::Hook { key, request, hook, method, params });
        }
        let note = Notification::new(&method, params);
        let (progress, cost) = (note.is_progress(), note.cost());
        let unread = unread.get_or_insert_with(|| Box::new(Unread::new(UNREAD_LIMIT, UNREAD_BYTES)));
        if unread.push(note, progress, cost) > 0 && unread.missed() == 1 {
            tracing::debug!(target: "mcp_wire::router", ?request, "notifications go unread; the oldest are dropped");
        }
        self.wakers.extend(entry.waker.take());
        None
    }

    fn on_notification<'b>(&mut self, method: &str, params: Option<Json<'b>>) -> Option<Callback<'b>> {
        let note = Notification::new(method, params);
        if self.has_sink {
            // It is away only while it runs, and then no frame is routed.
            let sink = self.sink.take()?;
            return Some(Callback::Sink { sink, note });
        }
        let (progress, cost) = (note.is_progress(), note.cost());
        let dropped = self.unread.push(note, progress, cost);
        if dropped == 0 {
            self.unread_told = false;
        } else if !self.unread_told {
            self.unread_told = true;
            tracing::debug!(target: "mcp_wire::router", "the connection's notifications go unread; the oldest are dropped");
        }
        let Self { waits, wakers, .. } = self;
        waits.wake(Wait::Notification, wakers);
        None
    }

    /// One event for an episode, not one for each frame: the first, and then each time the count has grown tenfold (case 091).
    fn on_dropped(&mut self, dropped: &Dropped<'_>) {
        self.dropped_frames += 1;
        let count = self.dropped_frames;
        let decade = std::iter::successors(Some(1_u64), |n| n.checked_mul(10)).take_while(|n| *n <= count).last();
        if decade == Some(count) {
            let (reason, len) = (dropped.reason.as_str(), dropped.len);
            tracing::warn!(target: "mcp_wire::router", reason, len, code = dropped.code, count, "dropped a frame");
        } else {
            tracing::trace!(target: "mcp_wire::router", reason = dropped.reason.as_str(), "dropped a frame");
        }
    }

    fn listen_mut(
        &mut self,
        handle: Handle,
    ) -> Option<(&mut super::listen::ListenState, &mut Option<std::task::Waker>)> {
        let key = self.key_of(handle)?;
        let entry = self.entries.get_mut(key)?;
        match &mut entry.kind {
            Kind::Listen(listen) if !entry.orphan => Some((listen, &mut entry.waker)),
            _ => None,
        }
    }

    fn end_listen(&mut self, handle: Handle, how: ListenEnd) {
        let Some(key) = self.unbind(handle) else { return };
        let start_error = self.engine.start_error().cloned();
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let (Kind::Listen(listen), false) = (&mut entry.kind, entry.orphan) {
            if listen.end(how) {
                self.wakers.extend(entry.waker.take());
                return;
            }
        }
        // It was never open: what waits for its acknowledgment fails.
        let error = match start_error {
            Some(error) if how == ListenEnd::Closed => CallError::Start(error),
            _ => CallError::ListenEnded(how),
        };
        self.end(key, Err(error));
    }

    /// Takes what the core has to say besides the frame at hand.
    pub(super) fn pump(&mut self, now: Instant) {
        while let Some(signal) = self.engine.poll_signal() {
            if !self.taps.is_empty() {
                if let Some(event) = self.engine.signal_event(&signal) {
                    self.tell(event);
                }
            }
            match signal {
                SupervisorSignal::Connection(signal) => self.on_signal(signal, now),
                SupervisorSignal::Process(notice) => self.on_notice(notice),
                _ => {}
            }
        }
    }

    fn on_signal(&mut self, signal: Signal, now: Instant) {
        match signal {
            Signal::Established { era, version } => {
                tracing::info!(target: "mcp_wire::era", era = era.as_str(), version, "the connection is established");
                self.established = true;
                let Self { waits, wakers, .. } = self;
                waits.wake(Wait::Established, wakers);
            }
            Signal::Failed(error) => {
                tracing::warn!(target: "mcp_wire::era", %error, "the connection cannot be established");
            }
            Signal::Ended { request, ref cause, delivery, .. } => {
                let (cause, delivery) = (cause.as_str(), delivery.as_str());
                tracing::debug!(target: "mcp_wire::router", ?request, cause, delivery, "a request ended without an answer");
                let error = self.engine.ending(&signal);
                if let (Some(key), Some(error)) = (self.unbind(request), error) {
                    self.end(key, Err(error));
                }
            }
            Signal::ListenEnded { listen, how } => self.end_listen(listen, how),
            Signal::Resubscribed { listen } => {
                if let Some((listen, entry_waker)) = self.listen_mut(listen) {
                    listen.resubscribed();
                    let waker = entry_waker.take();
                    self.wakers.extend(waker);
                }
            }
            Signal::ServerRequestCancelled { ticket, .. } => self.unasked(ticket),
            Signal::Writable => {
                self.pay_server(now);
                self.submit_waiting(now);
            }
            _ => {}
        }
    }

    fn on_notice(&mut self, notice: Notice) {
        match notice {
            Notice::Started { restarts } => {
                tracing::info!(target: "mcp_wire::process", pid = self.engine.pid(), restarts, "the server was started");
            }
            Notice::StartFailed(_) => {
                let kind = self.engine.start_error().map(|error| error.kind().as_str());
                tracing::warn!(target: "mcp_wire::process", kind, "the server could not be started or never came up");
                self.closing = true;
                let Self { waits, wakers, .. } = self;
                waits.wake(Wait::Established, wakers);
            }
            Notice::Restarting { restarts, exit } => {
                tracing::warn!(target: "mcp_wire::process", restarts, %exit, "the server ended by itself and is started again");
            }
            Notice::IdleStopped { exit } => {
                tracing::info!(target: "mcp_wire::process", %exit, "the idle server was stopped");
            }
            Notice::Closed(outcome) => {
                let (escalation, restarts) = (outcome.escalation.as_str(), outcome.restarts);
                let exit = outcome.exit.map(tracing::field::display);
                tracing::info!(target: "mcp_wire::process", exit, escalation, restarts, "the connection is closed");
                if outcome.reason == EndReason::Unkillable {
                    let pid = self.engine.pid();
                    tracing::error!(target: "mcp_wire::process", pid, "the server does not end though it was killed, and is given up");
                    self.finish(Err(CloseError::Unkillable { pid }));
                } else {
                    self.finish(Ok(outcome));
                }
            }
            _ => {}
        }
    }
}
