//! Owns what a handler is given: one request, and what it can say before its answer. It must not know how it is polled.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_wire::server::{LogLevel, Request, Ticket};
use mcp_wire::{Json, JsonBuf, SendError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::legacy_client::Facts;
use super::shared::Shared;
use super::{LegacyClient, RpcError, TaskProgress};

/// One request on its way to its handler.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) ticket: Ticket,
    id: Box<str>,
    method: Box<str>,
    params: JsonBuf,
    log_level: Option<LogLevel>,
    wants_progress: bool,
    /// The client of a legacy request.
    client: Option<Arc<Facts>>,
}

impl Parts {
    pub(super) fn new(ticket: Ticket, request: &Request<'_>, client: Option<Arc<Facts>>) -> Self {
        Self {
            ticket,
            id: request.id.token().into(),
            method: (&*request.method).into(),
            params: request.params.into(),
            log_level: request.log_level,
            wants_progress: request.wants_progress,
            client,
        }
    }
}

/// One request, as its handler sees it.
///
/// Everything it says (progress, logs) leaves before its answer; after a cancellation nothing leaves, whatever the handler does (CAN-06).
///
/// ```
/// use mcp_wire_driver::server::{Call, RpcError};
///
/// async fn handle(call: Call) -> Result<serde_json::Value, RpcError> {
///     match call.method() {
///         "tools/list" => Ok(serde_json::json!({"tools": [], "ttlMs": 0, "cacheScope": "private"})),
///         _ => Err(call.method_not_found()),
///     }
/// }
/// ```
pub struct Call {
    shared: Arc<Shared>,
    parts: Parts,
}

impl Call {
    pub(super) const fn new(shared: Arc<Shared>, parts: Parts) -> Self {
        Self { shared, parts }
    }

    pub(super) fn ticket(&self) -> Ticket {
        self.parts.ticket
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.parts.method
    }

    /// The id's token as it stands on the wire.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.parts.id
    }

    /// The params as they stand on the wire, `_meta` included.
    #[must_use]
    pub fn params_json(&self) -> Json<'_> {
        self.parts.params.as_json()
    }

    /// The params, read into a type.
    ///
    /// # Errors
    /// -32602 with what does not fit.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        self.params_json().deserialize().map_err(|error| RpcError::invalid_params(format!("Invalid params: {error}")))
    }

    /// A member of the request's `_meta`, such as `io.modelcontextprotocol/clientInfo`.
    #[must_use]
    pub fn meta(&self, key: &str) -> Option<Json<'_>> {
        let (_, meta) = self.params_json().members().find(|(name, _)| name == "_meta")?;
        meta.members().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The client, if the request is of the legacy era: then it can be asked something before the answer. A modern client is asked by an
    /// `input_required` result, which a legacy one does not know.
    #[must_use]
    pub fn legacy_client(&self) -> Option<LegacyClient> {
        self.parts.client.as_ref().map(|facts| LegacyClient::new(self.shared.clone(), facts.clone()))
    }

    /// The protocol version of the request.
    #[must_use]
    pub fn protocol_version(&self) -> Cow<'_, str> {
        match &self.parts.client {
            Some(client) => Cow::Borrowed(client.version),
            None => {
                let version = self.meta("io.modelcontextprotocol/protocolVersion");
                version.and_then(Json::as_str).unwrap_or_default()
            }
        }
    }

    /// Whether the client declared a capability, such as `elicitation`: with this request, or (legacy) with its `initialize`.
    #[must_use]
    pub fn has_client_capability(&self, name: &str) -> bool {
        let declared = match &self.parts.client {
            Some(client) => Some(client.capabilities.as_json()),
            None => self.meta("io.modelcontextprotocol/clientCapabilities"),
        };
        declared.is_some_and(|declared| declared.members().any(|(key, _)| key == name))
    }

    /// Refuses the request if the client did not declare a capability that it takes (META-04).
    ///
    /// # Errors
    /// -32021 with the capability; towards a legacy client, whose era has no such code, -32602.
    pub fn require_client_capability(&self, name: &str) -> Result<(), RpcError> {
        if self.has_client_capability(name) {
            return Ok(());
        }
        let mut required = serde_json::Map::new();
        required.insert(name.to_owned(), serde_json::json!({}));
        let code = if self.parts.client.is_some() { -32602 } else { -32021 };
        Err(RpcError::new(code, "Missing required client capability")
            .data(&serde_json::json!({"requiredCapabilities": required})))
    }

    /// -32601: there is no such method.
    #[must_use]
    pub fn method_not_found(&self) -> RpcError {
        RpcError::new(-32601, "Method not found")
    }

    /// Whether the client asked for progress. Without that [`progress`](Self::progress) writes nothing.
    #[must_use]
    pub const fn wants_progress(&self) -> bool {
        self.parts.wants_progress
    }

    /// The log level the client asked for with this request, if it did. Without that [`log`](Self::log) writes nothing to a modern client; a
    /// legacy one has set a level for its session, which is not shown here.
    #[must_use]
    pub const fn log_level(&self) -> Option<LogLevel> {
        self.parts.log_level
    }

    /// Reports progress. A value that does not increase is dropped; the newest replaces one that is still unwritten (PRG-03, PRG-05).
    ///
    /// # Errors
    /// [`SendError::NotJson`] for a value that is not finite; [`SendError::Ended`] if serving has ended.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) -> Result<(), SendError> {
        if !self.parts.wants_progress && progress.is_finite() {
            return Ok(());
        }
        let ticket = self.parts.ticket;
        self.shared.with(|state, now| state.connection.progress(ticket, progress, total, message, now))
    }

    /// Sends a log message, if the client asked for this level (LOG-01). May be shed under load.
    ///
    /// # Errors
    /// [`SendError::NotJson`] for data that cannot be serialized; [`SendError::NotInThisEra`] if the server declares no `logging`.
    pub fn log<T: Serialize + ?Sized>(&self, level: LogLevel, logger: Option<&str>, data: &T) -> Result<(), SendError> {
        if self.parts.client.is_none() && self.parts.log_level.is_none_or(|wanted| level < wanted) {
            return Ok(());
        }
        let data = JsonBuf::new(data).map_err(|_| SendError::NotJson)?;
        let ticket = self.parts.ticket;
        self.shared.with(|state, now| state.connection.log(ticket, level, logger, data.as_json(), now))
    }

    /// The answer to this request begins a task (revision 2025-11-25): its progress goes on after the answer (LEG-11). `None` if the request is
    /// not of that revision, asked for no progress, or too many tasks are under way.
    #[must_use]
    pub fn begin_task(&self) -> Option<TaskProgress> {
        let ticket = self.parts.ticket;
        let begun = self.shared.with(|state, _| state.connection.begin_task(ticket));
        begun.then(|| TaskProgress::new(self.shared.clone(), ticket))
    }

    /// Whether the client has cancelled the request, or the server is ending.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.read(|state| state.cancellation(self.parts.ticket, None)).cancelled
    }

    /// Resolves when the client cancels the request, or the server is ending: with the client's reason, if it gave one (CAN-07).
    /// One that outlives the call resolves when the call is over. Cancel-safe: dropping it loses nothing.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { shared: self.shared.clone(), ticket: self.parts.ticket, watch: None }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("method", &self.parts.method).field("id", &self.parts.id).finish_non_exhaustive()
    }
}

/// Resolves when a call is cancelled; see [`Call::cancelled`].
///
/// ```
/// async fn until_cancelled(call: mcp_wire_driver::server::Call) -> Option<String> {
///     call.cancelled().await
/// }
/// ```
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Cancelled {
    shared: Arc<Shared>,
    ticket: Ticket,
    /// The number under which its waker is kept.
    watch: Option<u64>,
}

impl Future for Cancelled {
    type Output = Option<String>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<String>> {
        let Self { shared, ticket, watch } = self.get_mut();
        // Cloned out here: the code of a waker never runs under the lock.
        let waker = cx.waker().clone();
        let answer = shared.read(|state| state.cancellation(*ticket, Some((watch, waker))));
        if answer.cancelled { Poll::Ready(answer.reason) } else { Poll::Pending }
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(watch) = self.watch {
            self.shared.unwatch(self.ticket, watch);
        }
    }
}
