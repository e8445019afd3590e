//! Owns one request on its caller's side: building it, waiting for its answer, its notifications, giving it up by dropping it.
//! It must not know how an answer is routed to it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_wire::client::{Handle, ProgressToken, RequestOptions, ResultKind};
use mcp_wire::{IdBuf, Json, JsonBuf, SendError};

use super::error::CallError;
use super::handle::{Client, Owner};
use super::listen::set_waker;
use super::notes::{Hook, HookError, Notification};
use super::shared::{Kind, Waiting};

/// A request that is about to be sent.
///
/// ```
/// # async fn example(client: &mcp_wire_driver::client::Client) -> Result<(), mcp_wire_driver::client::CallError> {
/// use std::time::Duration;
///
/// let params = serde_json::json!({"name": "sleep", "arguments": {"ms": 100, "steps": 5}});
/// let mut call = client.request("tools/call", params).timeout(Duration::from_secs(30)).progress().send();
/// while let Some(note) = call.next_notification().await {
///     println!("{}", note.method);
/// }
/// let result = call.await?; // dropping `call` instead cancels it
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is sent before `send`"]
pub struct RequestBuilder<'a> {
    client: &'a Client,
    method: &'a str,
    params: Result<Option<JsonBuf>, serde_json::Error>,
    options: RequestOptions,
    hook: Option<Hook>,
}

impl<'a> RequestBuilder<'a> {
    pub(super) fn new(client: &'a Client, method: &'a str, params: Result<JsonBuf, serde_json::Error>) -> Self {
        // `()` and `None` mean that there are no params.
        let params = params.map(|json| (json.as_json() != Json::NULL).then_some(json));
        Self { client, method, params, options: RequestOptions::default(), hook: None }
    }

    /// Time for the answer, from the moment the first byte leaves (TMO-01). `Duration::MAX`: none.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Time that it may wait before its first byte leaves (CAN-03).
    pub fn queue_timeout(mut self, timeout: Duration) -> Self {
        self.options.queue_timeout = Some(timeout);
        self
    }

    /// Progress restarts the clock, under this ceiling (TMO-02, TMO-03).
    pub fn max_timeout(mut self, timeout: Duration) -> Self {
        self.options.max_timeout = Some(timeout);
        self
    }

    /// Asks for progress: see [`Call::next_notification`].
    pub fn progress(mut self) -> Self {
        self.options.progress = ProgressToken::Minted;
        self
    }

    /// Asks for progress under a token of the caller's (PRG-01).
    pub fn progress_token(mut self, token: IdBuf) -> Self {
        self.options.progress = ProgressToken::Own(token);
        self
    }

    /// It may be sent again after a restart of the server, if nothing came back for it (RST-03).
    pub fn idempotent(mut self) -> Self {
        self.options.idempotent = true;
        self
    }

    /// Options all at once.
    pub fn options(mut self, options: RequestOptions) -> Self {
        self.options = options;
        self
    }

    /// A function that sees each notification of this request (method and params) on the driver, before the next frame is routed: no notification is ever dropped, and
    /// none is seen after the answer (RTE-12). It must not block. An error or panic in it cancels the request, which ends with `Overflow`.
    /// [`Call::next_notification`] gives none then.
    pub fn on_notification_inline(
        mut self,
        hook: impl FnMut(&str, Option<Json<'_>>) -> Result<(), HookError> + Send + 'static,
    ) -> Self {
        self.hook = Some(Box::new(hook));
        self
    }

    /// Sends it. Where as many requests are in flight as may be, or the outgoing queue is full, it waits for its turn (bounded: at
    /// last it is refused with [`SendError::Full`]).
    pub fn send(self) -> Call {
        let owner = Arc::clone(self.client.owner());
        let place = match self.submit(true) {
            Ok(key) => Place::Live(key),
            Err(error) => Place::Refused(Some(error)),
        };
        Call { owner, place }
    }

    /// Sends it, or says why that is not possible now.
    ///
    /// # Errors
    /// [`CallError::Send`] with [`SendError::Full`] where [`send`](Self::send) would wait; what else it would resolve with.
    pub fn try_send(self) -> Result<Call, CallError> {
        let owner = Arc::clone(self.client.owner());
        let place = Place::Live(self.submit(false)?);
        Ok(Call { owner, place })
    }

    fn submit(self, may_wait: bool) -> Result<usize, CallError> {
        let params = self.params.map_err(CallError::Encode)?;
        let shared = &self.client.owner().shared;
        let waiting = Waiting { method: self.method.into(), params, options: self.options };
        let (mut state, now) = shared.lock_now();
        state.submit(waiting, self.hook, may_wait, now)
    }
}

impl fmt::Debug for RequestBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBuilder")
            .field("method", &self.method)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A request that was sent: resolves with its result, unchanged. Dropping it cancels the request (CAN-04).
///
/// It keeps the connection alive until it has ended.
///
/// ```
/// # async fn example(client: &mcp_wire_driver::client::Client) {
/// let call = client.request("tools/list", ()).send();
/// drop(call); // tells the server that nobody waits for the answer
/// # }
/// ```
#[must_use = "dropping it cancels the request"]
pub struct Call {
    owner: Arc<Owner>,
    place: Place,
}

enum Place {
    Refused(Option<CallError>),
    Live(usize),
    Done,
}

impl Call {
    /// The name of this request in [`Events`](super::Events); `None` while it waits for room, and when it has ended.
    #[must_use]
    pub fn handle(&self) -> Option<Handle> {
        let Place::Live(key) = self.place else { return None };
        self.owner.shared.lock().entries.get(key)?.handle
    }

    /// The next notification of this request that is not read yet; `None` once it has ended and all are read. Cancel-safe.
    ///
    /// 64 wait unread. Then the newest progress takes the place of the oldest progress, anything else that of the oldest of the rest; not reading
    /// them never fails the request (PRG-07).
    pub async fn next_notification(&mut self) -> Option<Notification> {
        poll_fn(|cx| self.poll_notification(cx)).await
    }

    /// How many notifications were dropped unread.
    #[must_use]
    pub fn missed(&self) -> u64 {
        let Place::Live(key) = self.place else { return 0 };
        match self.owner.shared.lock().entries.get(key).map(|entry| &entry.kind) {
            Some(Kind::Call { unread: Some(unread), .. }) => unread.missed(),
            _ => 0,
        }
    }

    /// Cancels it, telling the server why (cut at 1 KiB). It resolves with the cause `Cancelled`, or with its answer if that came first.
    pub fn cancel(&self, reason: &str) {
        let Place::Live(key) = self.place else { return };
        let (mut state, now) = self.owner.shared.lock_now();
        match state.entries.get(key).map(|entry| entry.handle) {
            Some(Some(handle)) => state.cancel(handle, Some(reason), now),
            Some(None) => state.cancel_waiting(key),
            None => {}
        }
    }

    fn poll_notification(&mut self, cx: &mut Context<'_>) -> Poll<Option<Notification>> {
        let Place::Live(key) = self.place else { return Poll::Ready(None) };
        let mut state = self.owner.shared.lock();
        let Some(entry) = state.entries.get_mut(key) else { return Poll::Ready(None) };
        if let Kind::Call { unread: Some(unread), .. } = &mut entry.kind {
            if let Some(note) = unread.pop() {
                return Poll::Ready(Some(note));
            }
        }
        if entry.ending.is_some() {
            return Poll::Ready(None);
        }
        set_waker(entry, cx);
        Poll::Pending
    }

    /// The result and its kind.
    pub(super) fn poll_result(&mut self, cx: &mut Context<'_>) -> Poll<Result<(JsonBuf, ResultKind), CallError>> {
        let ended = || CallError::Send(SendError::Ended);
        let key = match &mut self.place {
            Place::Refused(error) => return Poll::Ready(Err(error.take().unwrap_or_else(ended))),
            Place::Done => return Poll::Ready(Err(ended())),
            Place::Live(key) => *key,
        };
        let mut state = self.owner.shared.lock();
        let ending = match state.entries.get_mut(key) {
            None => Some(Err(ended())),
            Some(entry) => match entry.ending.take() {
                Some(ending) => Some(ending),
                None => {
                    set_waker(entry, cx);
                    None
                }
            },
        };
        let Some(ending) = ending else { return Poll::Pending };
        state.remove(key);
        self.place = Place::Done;
        Poll::Ready(ending)
    }
}

impl Future for Call {
    type Output = Result<JsonBuf, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_result(cx).map_ok(|(result, _)| result)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Place::Live(key) = self.place {
            let (mut state, now) = self.owner.shared.lock_now();
            state.forsake(key, now);
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("handle", &self.handle()).finish_non_exhaustive()
    }
}
