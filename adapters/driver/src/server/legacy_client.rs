//! Owns what a handler may ask of a legacy client: requests whose answers it awaits, and notifications. There is no way to one from a
//! modern call (RTE-02). It must not know who polls, or how requests are told apart; the core does.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_wire::server::{ClientFacts, ClientRequest, ClientRequestOptions, Session};
use mcp_wire::{Cause, Delivery, Json, JsonBuf, SendError};
use serde::Serialize;

use super::RpcError;
use super::shared::Shared;

/// What a legacy client told of itself, for all its calls.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) session: Session,
    pub(super) version: &'static str,
    pub(super) capabilities: JsonBuf,
    pub(super) info: Option<JsonBuf>,
}

impl Facts {
    pub(super) fn new(session: Session, facts: &ClientFacts<'_>) -> Self {
        Self {
            session,
            version: facts.version,
            capabilities: facts.capabilities.into(),
            info: facts.info.map(JsonBuf::from),
        }
    }
}

/// The legacy client of a call. It can be asked for input, roots and samples while its session is open; a modern client cannot, and so has
/// none of these ([`Call::legacy_client`](super::Call::legacy_client)). Cheap to clone, and may outlive the call.
///
/// ```
/// use mcp_wire_driver::server::{Call, RpcError};
/// use serde_json::{Value, json};
///
/// async fn roots(call: Call) -> Result<Value, RpcError> {
///     let Some(client) = call.legacy_client().filter(|client| client.has_capability("roots")) else {
///         return Err(RpcError::invalid_params("this client has no roots"));
///     };
///     let answer = client.request("roots/list", &json!({})).await.map_err(|error| RpcError::internal(error.to_string()))?;
///     Ok(answer.as_json().deserialize()?)
/// }
/// ```
#[derive(Clone)]
pub struct LegacyClient {
    shared: Arc<Shared>,
    facts: Arc<Facts>,
}

impl LegacyClient {
    pub(super) const fn new(shared: Arc<Shared>, facts: Arc<Facts>) -> Self {
        Self { shared, facts }
    }

    /// The protocol version of its session.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.facts.version
    }

    /// The capabilities that it declared: an object.
    #[must_use]
    pub fn capabilities(&self) -> Json<'_> {
        self.facts.capabilities.as_json()
    }

    /// Its `clientInfo`: its own word.
    #[must_use]
    pub fn info(&self) -> Option<Json<'_>> {
        self.facts.info.as_ref().map(JsonBuf::as_json)
    }

    /// Whether it declared a capability, such as `elicitation`.
    #[must_use]
    pub fn has_capability(&self, name: &str) -> bool {
        self.capabilities().members().any(|(key, _)| key == name)
    }

    /// A request to it, with params that serialize to an object. It is sent when it is first polled; dropping it then cancels it on the wire.
    pub fn request<T: Serialize + ?Sized>(&self, method: impl Into<String>, params: &T) -> LegacyRequest {
        let state = match JsonBuf::new(params) {
            Ok(params) => Progress::Unsent { method: method.into(), params },
            Err(_) => Progress::Refused(SendError::NotJson),
        };
        LegacyRequest {
            shared: self.shared.clone(),
            session: self.facts.session,
            options: ClientRequestOptions::default(),
            state,
        }
    }

    /// A notification to it, with params that serialize to an object. Returns at once.
    ///
    /// # Errors
    /// As for [`LegacyRequest`]; [`SendError::ReservedMethod`] for what the core sends itself.
    pub fn notify<T: Serialize + ?Sized>(&self, method: &str, params: &T) -> Result<(), SendError> {
        let params = JsonBuf::new(params).map_err(|_| SendError::NotJson)?;
        let session = self.facts.session;
        self.shared.with(|state, now| state.connection.notify_client(session, method, Some(params.as_json()), now))
    }
}

impl fmt::Debug for LegacyClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LegacyClient").field("version", &self.facts.version).finish_non_exhaustive()
    }
}

/// A request to a legacy client: resolves with its result.
///
/// It is sent when it is first polled. Not cancel-safe: dropped after that and before its end, it is cancelled on the wire, as by
/// [`cancel`](Self::cancel) (CAN-04).
///
/// ```
/// use std::time::Duration;
/// use mcp_wire_driver::server::{LegacyClient, LegacyRequestError};
///
/// async fn ask(client: LegacyClient) -> Result<bool, LegacyRequestError> {
///     let params = serde_json::json!({"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}});
///     let answer = client.request("elicitation/create", &params).timeout(Duration::MAX).await?;
///     Ok(answer.as_json().members().any(|(name, value)| name == "action" && value.get() == "\"accept\""))
/// }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct LegacyRequest {
    shared: Arc<Shared>,
    session: Session,
    options: ClientRequestOptions,
    state: Progress,
}

enum Progress {
    Unsent { method: String, params: JsonBuf },
    Refused(SendError),
    Sent(ClientRequest),
    Over,
}

impl LegacyRequest {
    /// Time for the answer, and before that in the queue; `Duration::MAX`: none (TMO-01; default 60 s).
    pub fn timeout(mut self, time: Duration) -> Self {
        self.options.timeout = Some(time);
        self
    }

    /// Asks for progress, and lets progress restart the clock, under this ceiling counted from the first byte (TMO-02, TMO-03).
    pub fn max_timeout(mut self, time: Duration) -> Self {
        self.options.max_timeout = Some(time);
        self.options.progress = true;
        self
    }

    /// Gives it up, with a reason for the client's logs.
    pub fn cancel(mut self, reason: &str) {
        self.give_up(Some(reason));
    }

    fn give_up(&mut self, reason: Option<&str>) {
        if let Progress::Sent(request) = std::mem::replace(&mut self.state, Progress::Over) {
            // A waker may own what it wakes, so none is dropped under the lock.
            drop(self.shared.with(|state, now| state.give_up(request, reason, now)));
        }
    }
}

impl Future for LegacyRequest {
    type Output = Result<JsonBuf, LegacyRequestError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        // Cloned and dropped out here: the code of a waker never runs under the lock.
        let mut waker = cx.waker().clone();
        let answer = match std::mem::replace(&mut this.state, Progress::Over) {
            Progress::Unsent { method, params } => {
                let (session, options) = (this.session, this.options);
                let sent = this.shared.with(|state, now| {
                    let params = Some(params.as_json());
                    let request = state.connection.request_client(session, &method, params, options, now)?;
                    state.ask(request, std::mem::replace(&mut waker, Waker::noop().clone()));
                    Ok(request)
                });
                match sent {
                    Ok(request) => {
                        this.state = Progress::Sent(request);
                        return Poll::Pending;
                    }
                    Err(error) => Err(LegacyRequestError::NotSent(error)),
                }
            }
            Progress::Refused(error) => Err(LegacyRequestError::NotSent(error)),
            Progress::Sent(request) => match this.shared.read(|state| state.answer_to(request, &mut waker)) {
                Some(answer) => answer,
                None => {
                    this.state = Progress::Sent(request);
                    return Poll::Pending;
                }
            },
            // Polled after its end, as no caller should.
            Progress::Over => Err(LegacyRequestError::NotSent(SendError::Ended)),
        };
        Poll::Ready(answer)
    }
}

impl Drop for LegacyRequest {
    fn drop(&mut self) {
        self.give_up(None);
    }
}

impl fmt::Debug for LegacyRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sent = matches!(self.state, Progress::Sent(_));
        f.debug_struct("LegacyRequest").field("sent", &sent).finish_non_exhaustive()
    }
}

/// Why a request to a legacy client has no result.
///
/// ```
/// use mcp_wire::SendError;
/// use mcp_wire_driver::server::LegacyRequestError;
///
/// let error = LegacyRequestError::NotSent(SendError::NotInitialized);
/// assert!(error.to_string().contains("initialized"));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LegacyRequestError {
    /// It could not be sent.
    NotSent(SendError),
    /// The client answered with an error.
    Client(RpcError),
    /// It ended without an answer.
    Failed {
        /// Why.
        cause: Cause,
        /// What is known of its delivery.
        delivery: Delivery,
    },
}

impl fmt::Display for LegacyRequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(error) => write!(f, "the request to the client was not sent: {error}"),
            // The message is the client's: bounded and escaped (SEC-03).
            Self::Client(error) => {
                write!(f, "the client answered with error {}: ", error.code)?;
                error.message.chars().take(256).try_for_each(|c| write!(f, "{}", c.escape_debug()))
            }
            Self::Failed { cause, delivery } => {
                write!(f, "the client did not answer ({}, {})", cause.as_str(), delivery.as_str())
            }
        }
    }
}

impl std::error::Error for LegacyRequestError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotSent(error) => Some(error),
            Self::Client(error) => Some(error),
            Self::Failed { .. } => None,
        }
    }
}
