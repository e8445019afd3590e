//! Owns the tap: everything that happens on a connection, in one order, as owned events for whoever listens.
//! It must not know how events come about.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use mcp_wire::client::{Handle, ListenEnd};
use mcp_wire::lifecycle::{Escalation, ExitStatus};
use mcp_wire::{Cause, Delivery, DropReason, IdBuf, JsonBuf};

use super::error::StartFailedKind;
use crate::sync::{Mutex, MutexGuard};

/// What happened on a connection, in wire order (RTE-08). `Debug` shows no content (SEC-03).
///
/// ```
/// use mcp_wire_driver::client::ClientEvent;
///
/// fn is_last(event: &ClientEvent) -> bool {
///     matches!(event, ClientEvent::Closed { .. })
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The process was spawned.
    Started {
        /// Its id.
        pid: u32,
        /// Restarts before this start.
        restarts: u32,
    },
    /// The server could not be started or never came up; `Closed` follows.
    StartFailed {
        /// What kind of failure.
        kind: StartFailedKind,
        /// For people.
        detail: String,
    },
    /// The connection is established.
    Era {
        /// `modern` or `legacy`.
        era: &'static str,
        /// The protocol version.
        version: String,
    },
    /// A request has its result.
    Result {
        /// Which request.
        request: Handle,
        /// The result, unchanged.
        result: JsonBuf,
    },
    /// A request, or a listen before its acknowledgment, has an error response.
    Error {
        /// Which request.
        request: Handle,
        /// The error, unchanged.
        error: JsonBuf,
    },
    /// A request ended without an answer.
    Failed {
        /// Which request.
        request: Handle,
        /// Why.
        cause: Cause,
        /// What is known of its delivery.
        delivery: Delivery,
        /// For people.
        detail: String,
    },
    /// A listen is open.
    Acknowledged {
        /// Which listen.
        listen: Handle,
        /// What was granted, as it stands on the wire.
        notifications: JsonBuf,
    },
    /// A listen has ended.
    ListenEnded {
        /// Which listen.
        listen: Handle,
        /// How.
        how: ListenEnd,
    },
    /// A listen is open again after a restart; changes in between were missed.
    Resubscribed {
        /// Which listen.
        listen: Handle,
    },
    /// A notification.
    Notification {
        /// The request or listen it belongs to.
        of: Option<Handle>,
        /// The method.
        method: String,
        /// The params, unchanged.
        params: Option<JsonBuf>,
    },
    /// A request of a legacy server's was answered.
    ServerRequest {
        /// The method.
        method: String,
        /// `result` or `error`.
        answered: &'static str,
    },
    /// A frame was dropped.
    Dropped {
        /// Why.
        reason: DropReason,
        /// Its id, if one is known.
        id: Option<IdBuf>,
        /// Its error code, if it has one.
        code: Option<i64>,
    },
    /// A line of the server's standard error (with `Stderr::Lines`).
    Stderr {
        /// The line, ready to be shown.
        line: String,
    },
    /// The process had ended by itself and is started again.
    Restarted {
        /// Restarts, this one included.
        restarts: u32,
        /// How the last life ended.
        exit: ExitStatus,
    },
    /// The process was stopped because nobody used it.
    IdleStopped {
        /// How it ended.
        exit: ExitStatus,
    },
    /// The reader of these events did not keep up: so many were dropped here.
    Missed {
        /// How many.
        events: u64,
    },
    /// It has ended for good; the last event.
    Closed {
        /// How the process ended; `None` if there was none, or it is not known.
        exit: Option<ExitStatus>,
        /// How far the shutdown had to go.
        escalation: Escalation,
        /// Restarts in all.
        restarts: u32,
    },
}

impl ClientEvent {
    /// Bytes that it counts for in the bounded queue.
    fn cost(&self) -> usize {
        let json = |json: &JsonBuf| json.as_json().get().len();
        size_of::<Self>()
            + match self {
                Self::Result { result, .. } => json(result),
                Self::Error { error, .. } => json(error),
                Self::Acknowledged { notifications, .. } => json(notifications),
                Self::Notification { method, params, .. } => method.len() + params.as_ref().map_or(0, json),
                Self::Stderr { line } => line.len(),
                Self::Failed { detail, .. } | Self::StartFailed { detail, .. } => detail.len(),
                _ => 0,
            }
    }

    /// Whether it may be dropped before others: many can come of it, and none ends anything.
    const fn is_sheddable(&self) -> bool {
        matches!(self, Self::Notification { .. } | Self::Dropped { .. } | Self::Stderr { .. })
    }
}

/// Events that wait for one reader.
const EVENT_LIMIT: usize = 16 << 10;
/// The same in bytes.
const EVENT_BYTES: usize = 64 << 20;

/// The queue of one reader. It has a lock of its own, so that reading does not disturb the connection.
#[derive(Default)]
pub(super) struct Tap {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<ClientEvent>,
    bytes: usize,
    /// Events dropped since the last one that was read.
    missed: u64,
    waker: Option<Waker>,
    /// Nothing more comes.
    ended: bool,
    /// Nobody reads.
    abandoned: bool,
}

impl Tap {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event. Whether somebody still reads; the waker is to be called after all locks are released.
    pub(super) fn push(&self, event: ClientEvent, wakers: &mut Vec<Waker>) -> bool {
        let mut queue = self.lock();
        if queue.abandoned {
            return false;
        }
        let last = matches!(event, ClientEvent::Closed { .. });
        queue.bytes += event.cost();
        queue.events.push_back(event);
        while queue.events.len() > 1 && (queue.events.len() > EVENT_LIMIT || queue.bytes > EVENT_BYTES) {
            let at = queue.events.iter().position(ClientEvent::is_sheddable).unwrap_or(0);
            if let Some(shed) = queue.events.remove(at) {
                queue.bytes = queue.bytes.saturating_sub(shed.cost());
                queue.missed += 1;
            }
        }
        queue.ended |= last;
        wakers.extend(queue.waker.take());
        true
    }

    /// Nothing more comes.
    pub(super) fn end(&self, wakers: &mut Vec<Waker>) {
        let mut queue = self.lock();
        queue.ended = true;
        wakers.extend(queue.waker.take());
    }
}

/// Everything that happens on a connection, in one order. Ends after [`ClientEvent::Closed`].
///
/// It is for observers: programs that print what happens, recorders, tests. A reader that does not keep up loses notifications first, is told of it
/// ([`ClientEvent::Missed`]), and costs nobody else anything. Dropping it stops it; it does not keep the connection alive.
///
/// ```
/// # async fn example(mut events: mcp_wire_driver::client::Events) {
/// while let Some(event) = events.next().await {
///     println!("{event:?}");
/// }
/// # }
/// ```
pub struct Events {
    tap: Arc<Tap>,
}

impl Events {
    pub(super) fn new() -> (Self, Arc<Tap>) {
        let tap = Arc::new(Tap::default());
        (Self { tap: Arc::clone(&tap) }, tap)
    }

    /// The next event; `None` after the last. Cancel-safe.
    pub async fn next(&mut self) -> Option<ClientEvent> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// An event that is there already. `None` may mean that there is none yet.
    pub fn try_next(&mut self) -> Option<ClientEvent> {
        Self::take(&mut self.tap.lock())
    }

    fn take(queue: &mut Queue) -> Option<ClientEvent> {
        if queue.missed > 0 {
            let events = std::mem::take(&mut queue.missed);
            return Some(ClientEvent::Missed { events });
        }
        let event = queue.events.pop_front()?;
        queue.bytes = queue.bytes.saturating_sub(event.cost());
        Some(event)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<ClientEvent>> {
        let mut queue = self.tap.lock();
        if let Some(event) = Self::take(&mut queue) {
            return Poll::Ready(Some(event));
        }
        if queue.ended {
            return Poll::Ready(None);
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Stream for Events {
    type Item = ClientEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ClientEvent>> {
        self.poll(cx)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let mut queue = self.tap.lock();
        queue.abandoned = true;
        queue.events = VecDeque::new();
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(n: usize) -> ClientEvent {
        ClientEvent::Notification { of: None, method: n.to_string(), params: None }
    }

    // case 090, RTE-08: a reader that does not keep up loses notifications, is told, and keeps what ends things
    #[test]
    fn an_unread_tap_sheds_notifications_and_says_so() {
        let (mut events, tap) = Events::new();
        let mut wakers = Vec::new();
        let important = ClientEvent::Resubscribed { listen: handle() };
        assert!(tap.push(important.clone(), &mut wakers));
        for n in 0..EVENT_LIMIT + 10 {
            assert!(tap.push(note(n), &mut wakers));
        }
        assert_eq!(events.try_next(), Some(ClientEvent::Missed { events: 11 }));
        assert_eq!(events.try_next(), Some(important));
        assert_eq!(events.try_next(), Some(note(11)));
    }

    // LIM-04: a tap that nobody holds any more costs nothing
    #[test]
    fn a_dropped_reader_is_noticed() {
        let (events, tap) = Events::new();
        drop(events);
        assert!(!tap.push(note(1), &mut Vec::new()));
    }

    fn handle() -> Handle {
        let config = mcp_wire::client::Config::new("t", "1");
        let mut connection = mcp_wire::client::Connection::new(config).expect("a valid configuration");
        connection
            .request("x", None, mcp_wire::client::RequestOptions::default(), mcp_wire::Instant::EPOCH)
            .expect("there is room")
    }
}
