//! Owns subscriptions: opening one, the stream of its events, giving it up by dropping it. It must not know how events
//! are routed to it.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use mcp_wire::client::{Handle, ListenEnd, RequestOptions};
use mcp_wire::{Filter, JsonBuf};

use super::error::CallError;
use super::handle::{Client, Owner};
use super::notes::Notification;
use super::shared::{Entry, Kind, Shared};
use super::tape::{TapeFact, TapeOp};

/// Events of a listen that wait unread; one more ends it as lagged (SUB-09).
pub(super) const CAPACITY: usize = 64;

/// What a listen gives. `Debug` shows no content (SEC-03).
///
/// ```
/// # use mcp_wire_driver::client::ListenEvent;
/// fn must_refresh(event: &ListenEvent) -> bool {
///     matches!(event, ListenEvent::Resubscribed)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenEvent {
    /// Something changed.
    Notification(Notification),
    /// The server was restarted and the listen is open again; what changed in between was missed, so look again (SUB-10).
    Resubscribed,
    /// It has ended; the last event.
    Ended(ListenEnd),
}

/// What is kept of a listen.
pub(super) struct ListenState {
    queue: VecDeque<ListenEvent>,
    capacity: usize,
    /// What was granted and what was not, once acknowledged.
    granted: Option<(JsonBuf, Filter)>,
    ended: bool,
}

impl ListenState {
    const fn new(capacity: usize) -> Self {
        Self { queue: VecDeque::new(), capacity, granted: None, ended: false }
    }

    pub(super) fn opened(&mut self, notifications: JsonBuf, missing: Filter) {
        self.granted = Some((notifications, missing));
    }

    /// Queues an event; one that waits already is not queued twice, as both say the same. `false`: there is no room.
    pub(super) fn push(&mut self, note: Notification) -> bool {
        let event = ListenEvent::Notification(note);
        if self.ended || self.queue.contains(&event) {
            return true;
        }
        if self.queue.len() >= self.capacity {
            return false;
        }
        self.queue.push_back(event);
        true
    }

    /// Queues the news of a gap; one that waits unread covers a further one only if nothing came between.
    pub(super) fn resubscribed(&mut self) {
        if self.queue.back() != Some(&ListenEvent::Resubscribed) {
            self.queue.push_back(ListenEvent::Resubscribed);
        }
    }

    /// It has ended. `false`: it was never open.
    pub(super) fn end(&mut self, how: ListenEnd) -> bool {
        if self.granted.is_none() {
            return false;
        }
        if !self.ended {
            self.ended = true;
            self.queue.push_back(ListenEvent::Ended(how));
        }
        true
    }

    pub(super) const fn is_over(&self) -> bool {
        self.ended
    }
}

/// A listen that is about to be asked for. Await it, or [`send`](Self::send) it.
///
/// ```
/// # async fn example(client: &mcp_wire_driver::client::Client) -> Result<(), mcp_wire_driver::client::CallError> {
/// use mcp_wire::Filter;
///
/// let mut changes = client.listen(Filter::default().tools_list_changed()).capacity(16).await?;
/// assert!(changes.missing().is_empty());
/// while let Some(event) = changes.next().await {
///     println!("{event:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "it is sent by awaiting it or by `send`"]
#[derive(Debug)]
pub struct ListenRequest<'a> {
    client: &'a Client,
    filter: Filter,
    options: RequestOptions,
    capacity: usize,
}

impl<'a> ListenRequest<'a> {
    pub(super) fn new(client: &'a Client, filter: Filter) -> Self {
        Self { client, filter, options: RequestOptions::default(), capacity: CAPACITY }
    }

    /// Time for the acknowledgment (TMO-04); the connection's request timeout otherwise.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Events that may wait unread; one more ends the listen as lagged (SUB-09). 64 otherwise.
    pub fn capacity(mut self, events: usize) -> Self {
        self.capacity = events.max(1);
        self
    }

    /// Asks for it. Dropping what this gives cancels it.
    pub fn send(self) -> Opening {
        let owner = self.client.owner();
        let (mut state, now) = owner.shared.lock_now();
        let taken = match state.refusal() {
            Some(error) => Err(error),
            None => {
                (state.engine.supervisor_mut()).listen(&self.filter, self.options.clone(), now).map_err(CallError::Send)
            }
        };
        let place = match taken {
            Err(error) => Place::Refused(Some(error)),
            Ok(handle) => {
                let op = TapeOp::Listen { handle, filter: &self.filter, options: &self.options };
                state.tape(TapeFact::Op(op), now);
                let key = state.entries.insert(Entry {
                    handle: Some(handle),
                    kind: Kind::Listen(Box::new(ListenState::new(self.capacity))),
                    waker: None,
                    ending: None,
                    orphan: false,
                });
                state.bind(handle, key);
                state.pump(now);
                state.poke();
                Place::Sent { key, handle }
            }
        };
        drop(state);
        Opening { owner: Arc::clone(owner), place }
    }
}

impl IntoFuture for ListenRequest<'_> {
    type Output = Result<Listen, CallError>;
    type IntoFuture = Opening;

    fn into_future(self) -> Opening {
        self.send()
    }
}

/// A listen that was asked for: resolves at its acknowledgment. Dropping it cancels it.
///
/// ```
/// # async fn example(client: &mcp_wire_driver::client::Client) -> Result<(), mcp_wire_driver::client::CallError> {
/// let opening = client.listen(mcp_wire::Filter::default().tools_list_changed()).send();
/// println!("{:?}", opening.handle()); // the name of this listen in `events()`
/// let listen = opening.await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it cancels the listen"]
pub struct Opening {
    owner: Arc<Owner>,
    place: Place,
}

enum Place {
    Refused(Option<CallError>),
    Sent { key: usize, handle: Handle },
    Done,
}

impl Opening {
    /// The name of this listen in [`Events`](super::Events); `None` if it was refused.
    #[must_use]
    pub const fn handle(&self) -> Option<Handle> {
        match self.place {
            Place::Sent { handle, .. } => Some(handle),
            _ => None,
        }
    }

    /// Cancels it; what was said of it until then is not lost. It resolves with [`CallError::ListenEnded`].
    pub fn cancel(&self, reason: &str) {
        if let Place::Sent { handle, .. } = self.place {
            cancel(&self.owner.shared, handle, reason);
        }
    }
}

fn cancel(shared: &Shared, handle: Handle, reason: &str) {
    let (mut state, now) = shared.lock_now();
    state.cancel(handle, Some(reason), now);
}

impl Future for Opening {
    type Output = Result<Listen, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (key, handle) = match &mut this.place {
            Place::Refused(error) => {
                return Poll::Ready(Err(error.take().unwrap_or(CallError::Send(mcp_wire::SendError::Ended))));
            }
            Place::Done => return Poll::Ready(Err(CallError::Send(mcp_wire::SendError::Ended))),
            Place::Sent { key, handle } => (*key, *handle),
        };
        let mut state = this.owner.shared.lock();
        let Some(entry) = state.entries.get_mut(key) else {
            this.place = Place::Done;
            return Poll::Ready(Err(CallError::Send(mcp_wire::SendError::Ended)));
        };
        if let Some(ending) = entry.ending.take() {
            state.remove(key);
            this.place = Place::Done;
            let error = match ending {
                Err(error) => error,
                // A listen has no result of its own before its acknowledgment.
                Ok(_) => CallError::ListenEnded(ListenEnd::Graceful),
            };
            return Poll::Ready(Err(error));
        }
        if let Kind::Listen(listen) = &entry.kind {
            if let Some((granted, missing)) = listen.granted.clone() {
                this.place = Place::Done;
                let shared = Arc::clone(&this.owner.shared);
                return Poll::Ready(Ok(Listen { shared, key, handle, granted, missing, over: false }));
            }
        }
        set_waker(entry, cx);
        Poll::Pending
    }
}

pub(super) fn set_waker(entry: &mut Entry, cx: &Context<'_>) {
    if !entry.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
        entry.waker = Some(cx.waker().clone());
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Place::Sent { key, .. } = self.place {
            let (mut state, now) = self.owner.shared.lock_now();
            state.forsake(key, now);
        }
    }
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").field("handle", &self.handle()).finish_non_exhaustive()
    }
}

/// A subscription that is open: a stream of [`ListenEvent`]s, the last of which is `Ended`.
///
/// It survives restarts of the server. Dropping it cancels it. It does not keep the connection alive: when the last [`Client`] is dropped, it ends.
///
/// ```
/// # async fn example(client: &mcp_wire_driver::client::Client) -> Result<(), mcp_wire_driver::client::CallError> {
/// let mut listen = client.listen(mcp_wire::Filter::default().resource("demo://clock")).await?;
/// while let Some(event) = listen.next().await {
///     println!("{event:?}");
/// }
/// # Ok(())
/// # }
/// ```
pub struct Listen {
    shared: Arc<Shared>,
    key: usize,
    handle: Handle,
    granted: JsonBuf,
    missing: Filter,
    over: bool,
}

impl Listen {
    /// The next event; `None` after the last. Cancel-safe.
    pub async fn next(&mut self) -> Option<ListenEvent> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// What the server granted at first, as it stands on the wire.
    #[must_use]
    pub const fn granted(&self) -> &JsonBuf {
        &self.granted
    }

    /// What the server grants now: after a restart it may be something else.
    #[must_use]
    pub fn filter(&self) -> Filter {
        let state = self.shared.lock();
        match state.engine.supervisor().connection().granted(self.handle) {
            Some(filter) => filter.clone(),
            None => self.granted.as_json().deserialize().unwrap_or_default(),
        }
    }

    /// What was asked for and not granted at first (SUB-11).
    #[must_use]
    pub const fn missing(&self) -> &Filter {
        &self.missing
    }

    /// The name of this listen in [`Events`](super::Events).
    #[must_use]
    pub const fn handle(&self) -> Handle {
        self.handle
    }

    /// Cancels it; its stream ends with `Ended(Cancelled)`.
    pub fn cancel(&self, reason: &str) {
        cancel(&self.shared, self.handle, reason);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<ListenEvent>> {
        if self.over {
            return Poll::Ready(None);
        }
        let mut state = self.shared.lock();
        let Some(entry) = state.entries.get_mut(self.key) else {
            self.over = true;
            return Poll::Ready(None);
        };
        let next = match &mut entry.kind {
            Kind::Listen(listen) => listen.queue.pop_front(),
            Kind::Call { .. } => None,
        };
        let event = match next {
            Some(event) => event,
            // An ending of this kind comes only where the core ends a listen as it ends a request.
            None if entry.ending.is_some() => ListenEvent::Ended(ListenEnd::Server),
            None => {
                set_waker(entry, cx);
                return Poll::Pending;
            }
        };
        if matches!(event, ListenEvent::Ended(_)) {
            self.over = true;
            state.remove(self.key);
        }
        Poll::Ready(Some(event))
    }
}

impl Stream for Listen {
    type Item = ListenEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ListenEvent>> {
        self.poll(cx)
    }
}

impl Drop for Listen {
    fn drop(&mut self) {
        if !self.over {
            let (mut state, now) = self.shared.lock_now();
            state.forsake(self.key, now);
        }
    }
}

impl fmt::Debug for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listen").field("handle", &self.handle).field("missing", &self.missing).finish_non_exhaustive()
    }
}
