//! Owns notifications on their way to a caller: what one is, the hooks that see it, the queue of the connection's own.
//! It must not know how a notification is routed.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use mcp_wire::{Json, JsonBuf};

use super::shared::Shared;

/// What an inline hook may return: anything that is an error. It cancels the request (RTE-12).
pub type HookError = Box<dyn Error + Send + Sync>;

/// The inline hook of one request.
pub(super) type Hook = Box<dyn FnMut(&str, Option<Json<'_>>) -> Result<(), HookError> + Send>;
/// The callback of the connection's own notifications.
pub(super) type Sink = Box<dyn FnMut(Notification) + Send>;

/// Unread notifications of a request or listen, in bytes.
pub(super) const UNREAD_BYTES: usize = 4 << 20;
/// Unread notifications of the connection.
pub(super) const CONNECTION_UNREAD: usize = 1024;

/// A notification from the server. `Debug` shows no content (SEC-03).
///
/// ```
/// # use mcp_wire_driver::client::Notification;
/// fn is_progress(note: &Notification) -> bool {
///     note.method == "notifications/progress"
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notification {
    /// The method.
    pub method: String,
    /// The params, unchanged.
    pub params: Option<JsonBuf>,
}

impl Notification {
    pub(super) fn new(method: &str, params: Option<Json<'_>>) -> Self {
        Self { method: method.to_owned(), params: params.map(JsonBuf::from) }
    }

    /// Bytes that it counts for in a bounded queue.
    pub(super) fn cost(&self) -> usize {
        self.method.len() + self.params.as_ref().map_or(0, |params| params.as_json().get().len())
    }

    pub(super) fn is_progress(&self) -> bool {
        self.method == "notifications/progress"
    }
}

/// Notifications that belong to no request and no listen, logs above all (RTE-06).
///
/// Kept from the first byte on, so nothing that arrives early is lost (RTE-07); 1024 wait, then the oldest is dropped, counted. There is one queue: of several streams
/// each notification goes to one. Not fed where the client has a callback for them.
///
/// ```
/// # async fn example(client: &mcp_wire_driver::client::Client) {
/// let mut logs = client.notifications();
/// while let Some(note) = logs.next().await {
///     println!("{}", note.method);
/// }
/// # }
/// ```
pub struct Notifications {
    shared: Arc<Shared>,
    key: Option<usize>,
}

impl Notifications {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared, key: None }
    }

    /// The next one; `None` once the connection has ended and all are read. Cancel-safe.
    pub async fn next(&mut self) -> Option<Notification> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// How many were dropped unread so far.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.shared.lock().unread.missed()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Notification>> {
        let mut state = self.shared.lock();
        if let Some(note) = state.unread.pop() {
            return Poll::Ready(Some(note));
        }
        if state.is_over() {
            return Poll::Ready(None);
        }
        state.waits.wait(&mut self.key, super::shared::Wait::Notification, cx);
        Poll::Pending
    }
}

impl Stream for Notifications {
    type Item = Notification;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notification>> {
        self.poll(cx)
    }
}

impl Drop for Notifications {
    fn drop(&mut self) {
        self.shared.lock().waits.forget(&mut self.key);
    }
}

impl fmt::Debug for Notifications {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifications").finish_non_exhaustive()
    }
}
