//! Owns the handle to a connection that users hold and clone: calls, listens, notifications, the end. It must not know how
//! bytes are moved or processes started.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_wire::client::{InputRequired, ResultKind};
use mcp_wire::lifecycle::Outcome;
use mcp_wire::{Filter, JsonBuf};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call::RequestBuilder;
use super::error::{CallError, CloseError, StartError};
use super::events::Events;
use super::facts::ServerFacts;
use super::listen::ListenRequest;
use super::notes::Notifications;
use super::shared::{Shared, Wait};
use super::tape::{TapeFact, TapeOp};

/// Ends the connection when the last of those that count is dropped.
pub(super) struct Owner {
    pub(super) shared: Arc<Shared>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

/// A connection to a server: cheap to clone, usable from any task and thread.
///
/// When the last clone is dropped (and no call is in flight), the server's process tree is killed, at once and without a runtime (SHD-04); use
/// [`close`](Self::close) to end it in order. Callbacks that the connection holds must not hold a clone, or it never ends by itself.
///
/// ```
/// # async fn example(client: mcp_wire_driver::client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let tools: serde_json::Value = client.call("tools/list", ()).await?;
/// println!("{tools}");
/// let outcome = client.close().await?;
/// println!("{:?}", outcome.exit);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    owner: Arc<Owner>,
}

impl Client {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { owner: Arc::new(Owner { shared }) }
    }

    pub(super) const fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    fn shared(&self) -> &Shared {
        &self.owner.shared
    }

    /// Calls a method and reads its result into `T`. Params are anything that serializes to an object, or `()` for none.
    ///
    /// Nothing is sent before the first poll; dropping the future cancels the request. Connection defaults apply; [`request`](Self::request) has options.
    ///
    /// # Errors
    /// See [`CallError`]. A result of the type `input_required` is [`CallError::InputRequired`].
    pub fn call<'a, T: DeserializeOwned>(
        &'a self,
        method: &'a str,
        params: impl Serialize,
    ) -> impl Future<Output = Result<T, CallError>> + Send {
        let request = self.request(method, params);
        async move {
            let mut call = request.send();
            let (result, kind) = poll_fn(|cx| call.poll_result(cx)).await?;
            if kind == ResultKind::InputRequired {
                return Err(CallError::InputRequired(result));
            }
            serde_json::from_str(result.as_json().get()).map_err(CallError::Decode)
        }
    }

    /// Calls a method and gives its result as it stands on the wire, of whatever type.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call_raw<'a>(
        &'a self,
        method: &'a str,
        params: impl Serialize,
    ) -> impl Future<Output = Result<JsonBuf, CallError>> + Send {
        let request = self.request(method, params);
        async move { request.send().await }
    }

    /// A request with options, and with its notifications at hand.
    pub fn request<'a>(&'a self, method: &'a str, params: impl Serialize) -> RequestBuilder<'a> {
        RequestBuilder::new(self, method, JsonBuf::new(&params))
    }

    /// The same with params that are JSON text already, such as those of a request that is handed on: they are neither read nor copied before
    /// they are queued. [`Json::NULL`](mcp_wire::Json::NULL) stands for none.
    pub fn request_json<'a>(&'a self, method: &'a str, params: JsonBuf) -> RequestBuilder<'a> {
        RequestBuilder::new(self, method, Ok(params))
    }

    /// Opens a subscription: await it.
    pub fn listen(&self, filter: Filter) -> ListenRequest<'_> {
        ListenRequest::new(self, filter)
    }

    /// Sends a notification. It is queued when this returns.
    ///
    /// # Errors
    /// [`CallError::Send`] where it was not taken, [`CallError::Encode`] for params without a JSON form.
    pub fn notify(&self, method: &str, params: impl Serialize) -> Result<(), CallError> {
        let params = JsonBuf::new(&params).map_err(CallError::Encode)?;
        let params = Some(params.as_json()).filter(|params| *params != mcp_wire::Json::NULL);
        let (mut state, now) = self.shared().lock_now();
        state.notify(method, params, now)
    }

    /// Everything that happens from here on, in one order. To miss nothing, ask the builder for it.
    #[must_use]
    pub fn events(&self) -> Events {
        let (events, tap) = Events::new();
        let mut state = self.shared().lock();
        if state.is_over() {
            tap.end(&mut state.wakers);
        } else {
            state.taps.push(tap);
        }
        drop(state);
        events
    }

    /// Notifications that belong to no request and no listen.
    #[must_use]
    pub fn notifications(&self) -> Notifications {
        Notifications::new(Arc::clone(&self.owner.shared))
    }

    /// Resolves when the connection is established for the first time. With a lazy start that needs a request.
    pub fn established(&self) -> Established {
        Established { shared: Arc::clone(&self.owner.shared), key: None }
    }

    /// Closes in order: stdin, then SIGTERM, then SIGKILL, with a grace between (SHD-01). Begins at once; await it for the outcome, which
    /// concurrent closes share. Requests in flight end with `Closed` now (SHD-03).
    pub fn close(&self) -> Closing {
        let (mut state, now) = self.shared().lock_now();
        state.close(now);
        drop(state);
        self.closed()
    }

    /// Kills the process tree (SHD-04). Begins at once; await it for the outcome. Shortens a running close.
    pub fn kill(&self) -> Closing {
        let (mut state, now) = self.shared().lock_now();
        state.kill(now);
        drop(state);
        self.closed()
    }

    /// Waits for the end without asking for it.
    pub fn closed(&self) -> Closing {
        Closing { shared: Arc::clone(&self.owner.shared), key: None }
    }

    /// Whether nothing is taken any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared().lock().refusal().is_some()
    }

    /// Skips the delay of a restart that is being waited for (case 168).
    pub fn retry_now(&self) {
        let (mut state, now) = self.shared().lock_now();
        state.tape(TapeFact::Op(TapeOp::RetryNow), now);
        state.engine.supervisor_mut().retry_now(now);
        state.pump(now);
        state.poke();
    }

    /// The protocol version, once established; kept over restarts.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        self.shared().lock().engine.supervisor().connection().version().map(str::to_owned)
    }

    /// What is known of the server, once established: era, version, capabilities, instructions and the rest.
    #[must_use]
    pub fn server(&self) -> Option<ServerFacts> {
        ServerFacts::of(self.shared().lock().engine.supervisor().connection())
    }

    /// Asks again with what the server wanted to know: the same method and params as before, with the answers to its `inputRequests` (an object
    /// with the same keys) and its `requestState` as it came. It is a new request with a new id (MSG-15).
    ///
    /// ```
    /// # use mcp_wire_driver::client::{CallError, Client};
    /// # async fn example(client: Client) -> Result<(), CallError> {
    /// use serde_json::{Value, json};
    ///
    /// let params = json!({"name": "ask", "arguments": {}});
    /// let result: Value = match client.call("tools/call", &params).await {
    ///     Err(CallError::InputRequired(required)) => {
    ///         let answers = json!({"question": {"action": "accept", "content": {"answer": "yes"}}});
    ///         let result = client.answer_input("tools/call", &params, &required, answers).send().await?;
    ///         serde_json::from_str(result.as_json().get()).map_err(CallError::Decode)?
    ///     }
    ///     other => other?,
    /// };
    /// # Ok(())
    /// # }
    /// ```
    pub fn answer_input<'a>(
        &'a self,
        method: &'a str,
        params: impl Serialize,
        required: &JsonBuf,
        responses: impl Serialize,
    ) -> RequestBuilder<'a> {
        let again = JsonBuf::new(&params).and_then(|params| {
            let responses = JsonBuf::new(&responses)?;
            let params = Some(params.as_json()).filter(|params| *params != mcp_wire::Json::NULL);
            Ok(InputRequired::of(required.as_json()).params(params, responses.as_json()))
        });
        RequestBuilder::new(self, method, again)
    }

    /// Requests and listens that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shared().lock().engine.supervisor().connection().in_flight()
    }

    /// Bytes queued that the writer has not taken (case 097).
    #[must_use]
    pub fn pending_output(&self) -> usize {
        self.shared().lock().engine.supervisor().connection().pending_output()
    }

    /// The id of the server's process, while there is one.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.shared().lock().pid()
    }

    /// Restarts so far.
    #[must_use]
    pub fn restarts(&self) -> u32 {
        self.shared().lock().engine.restarts()
    }

    /// The end of the server's standard error, where it is kept (`Tee`, `Lines`): at most 8 KiB, escaped.
    #[must_use]
    pub fn stderr_tail(&self) -> String {
        self.shared().lock().engine.stderr_tail()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("pid", &self.pid()).finish_non_exhaustive()
    }
}

/// Resolves when the connection is established, or with why it never will be.
///
/// ```
/// # async fn example(client: mcp_wire_driver::client::Client) -> Result<(), mcp_wire_driver::client::StartError> {
/// client.established().await?;
/// println!("{:?}", client.version());
/// # Ok(())
/// # }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Established {
    shared: Arc<Shared>,
    key: Option<usize>,
}

impl Future for Established {
    type Output = Result<(), StartError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut state = this.shared.lock();
        if state.established {
            return Poll::Ready(Ok(()));
        }
        if let Some(error) = state.engine.start_error() {
            return Poll::Ready(Err(error.clone()));
        }
        if state.is_over() {
            return Poll::Ready(Err(StartError::closed()));
        }
        state.waits.wait(&mut this.key, Wait::Established, cx);
        Poll::Pending
    }
}

impl Drop for Established {
    fn drop(&mut self) {
        self.shared.lock().waits.forget(&mut self.key);
    }
}

impl fmt::Debug for Established {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Established").finish_non_exhaustive()
    }
}

/// Resolves with how it all ended. Dropping it changes nothing.
///
/// ```
/// # async fn example(client: mcp_wire_driver::client::Client) -> Result<(), mcp_wire_driver::client::CloseError> {
/// let (first, second) = (client.close(), client.close());
/// assert_eq!(first.await?, second.await?);
/// # Ok(())
/// # }
/// ```
#[must_use = "await it for the outcome"]
pub struct Closing {
    shared: Arc<Shared>,
    key: Option<usize>,
}

impl Future for Closing {
    type Output = Result<Outcome, CloseError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut state = this.shared.lock();
        if let Some(outcome) = &state.outcome {
            return Poll::Ready(outcome.clone());
        }
        state.waits.wait(&mut this.key, Wait::Closed, cx);
        Poll::Pending
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.shared.lock().waits.forget(&mut self.key);
    }
}

impl fmt::Debug for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closing").finish_non_exhaustive()
    }
}
