//! Owns the caller's answers to the requests of a legacy server: the handler, its futures while they work, and the answers that wait for
//! room. It must not know how either is moved, nor what is asked.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_wire::client::ServerTicket;
use mcp_wire::{Instant, Json, JsonBuf, SendError};
use serde::de::DeserializeOwned;

use super::events::ClientEvent;
use super::shared::{Shared, State};
use super::tape::{TapeFact, TapeOp};
use crate::server::RpcError;
use crate::sync::{AtomicBool, Mutex};

type Answer = Result<JsonBuf, RpcError>;
type Working = Pin<Box<dyn Future<Output = Answer> + Send>>;
/// Answers the requests of a legacy server.
pub(super) type Handler = Arc<dyn Fn(ServerRequest) -> Working + Send + Sync>;

/// A request of a legacy server's, such as `roots/list` or `elicitation/create`. `Debug` shows no params (SEC-03).
///
/// ```
/// # use mcp_wire_driver::client::ServerRequest;
/// fn is_for_roots(request: &ServerRequest) -> bool {
///     request.method == "roots/list"
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerRequest {
    /// The method.
    pub method: String,
    /// The params, unchanged: an object, if there are any.
    pub params: Option<JsonBuf>,
}

impl ServerRequest {
    /// The params as a type of the caller's; those that are not there read as an empty object.
    ///
    /// # Errors
    /// -32602, when they do not fit `T`.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        let params = self.params.as_ref().map_or(Json::EMPTY, JsonBuf::as_json);
        serde_json::from_str(params.get()).map_err(|error| RpcError::invalid_params(format!("Invalid params: {error}")))
    }

    /// The answer to a request of a method that is not known: -32601.
    #[must_use]
    pub fn method_not_found(&self) -> RpcError {
        RpcError::new(-32601, "Method not found")
    }
}

/// The server's requests that are being answered.
#[derive(Default)]
pub(super) struct ServerRequests {
    handler: Option<Handler>,
    /// How many there were.
    count: u64,
    /// Told of, not begun.
    fresh: VecDeque<(ServerTicket, ServerRequest, Arc<Cancelled>)>,
    open: BTreeMap<ServerTicket, Open>,
    /// Answers that wait for room, the oldest first.
    owed: VecDeque<(ServerTicket, Answer)>,
}

impl ServerRequests {
    pub(super) fn new(handler: Option<Handler>) -> Self {
        Self { handler, ..Self::default() }
    }

    /// Whether there may ever be work.
    pub(super) const fn has_handler(&self) -> bool {
        self.handler.is_some()
    }
}

struct Open {
    /// For the tape: the first of the connection is 1.
    number: u64,
    method: String,
    cancelled: Arc<Cancelled>,
}

/// Tells a future that nobody waits for its answer any more.
#[derive(Debug, Default)]
struct Cancelled {
    set: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Cancelled {
    /// Gives back whom to wake.
    fn set(&self) -> Option<Waker> {
        self.set.store(true, Ordering::Release);
        self.waker.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The work on one request, until it is answered or cancelled.
pub(super) struct Task {
    ticket: ServerTicket,
    working: Option<Working>,
    cancelled: Arc<Cancelled>,
    shared: Arc<Shared>,
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Before the look, so that a cancellation from now on wakes it.
        *self.cancelled.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        if self.cancelled.set.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        let Some(working) = &mut self.working else { return Poll::Ready(()) };
        let answer = match catch_unwind(AssertUnwindSafe(|| working.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(answer)) => answer,
            Err(_) => {
                tracing::warn!(target: "mcp_wire::router", "a handler of the server's requests panicked; its request gets -32603");
                Err(RpcError::internal("Internal error"))
            }
        };
        self.working = None;
        let (mut state, now) = self.shared.lock_now();
        state.answer_server(self.ticket, answer, now);
        drop(state);
        Poll::Ready(())
    }
}

impl State {
    /// A request of the server's came.
    pub(super) fn asked(&mut self, ticket: ServerTicket, method: &str, params: Option<Json<'_>>) {
        let cancelled = Arc::new(Cancelled::default());
        self.server_requests.count += 1;
        let number = self.server_requests.count;
        let open = Open { number, method: method.to_owned(), cancelled: Arc::clone(&cancelled) };
        self.server_requests.open.insert(ticket, open);
        let request = ServerRequest { method: method.to_owned(), params: params.map(JsonBuf::from) };
        self.server_requests.fresh.push_back((ticket, request, cancelled));
    }

    /// Nobody waits for the answer any more.
    pub(super) fn unasked(&mut self, ticket: ServerTicket) {
        let requests = &mut self.server_requests;
        requests.fresh.retain(|(fresh, ..)| *fresh != ticket);
        requests.owed.retain(|(owed, _)| *owed != ticket);
        let waker = requests.open.remove(&ticket).and_then(|open| open.cancelled.set());
        self.wakers.extend(waker);
    }

    /// A handler has answered. Without room, the answer waits for it.
    fn answer_server(&mut self, ticket: ServerTicket, answer: Answer, now: Instant) {
        if self.server_requests.open.contains_key(&ticket) {
            self.server_requests.owed.push_back((ticket, answer));
            self.pay_server(now);
            self.poke();
        }
    }

    /// Queues the answers that are owed, as far as there is room.
    pub(super) fn pay_server(&mut self, now: Instant) {
        while let Some((ticket, mut answer)) = self.server_requests.owed.pop_front() {
            let supervisor = self.engine.supervisor_mut();
            let mut answered = match &answer {
                Ok(result) => supervisor.respond(ticket, result.as_json(), now),
                Err(error) => {
                    let data = error.data.as_ref().map(JsonBuf::as_json);
                    supervisor.respond_error(ticket, error.code, &error.message, data, now)
                }
            };
            if answered == Err(SendError::Full) {
                self.server_requests.owed.push_front((ticket, answer));
                return;
            }
            if let Err(SendError::InvalidResult | SendError::TooLarge { .. }) = answered {
                tracing::warn!(target: "mcp_wire::router", "the answer to a request of the server's is no object, or too large; it gets -32603");
                let error = RpcError::internal("Internal error");
                answered = supervisor.respond_error(ticket, error.code, &error.message, None, now);
                answer = Err(error);
            }
            let open = self.server_requests.open.remove(&ticket);
            if let (Some(Open { number, method, .. }), Ok(())) = (open, answered) {
                if self.has_tape() {
                    let answer = answer.as_ref().map(JsonBuf::as_json);
                    self.tape(TapeFact::Op(TapeOp::Answer { request: number, method: &method, answer }), now);
                }
                self.tell(ClientEvent::ServerRequest { method, answered: answered_as(answer.is_ok()) });
            }
        }
    }
}

/// The word for how a request of the server's was answered.
pub(super) const fn answered_as(result: bool) -> &'static str {
    if result { "result" } else { "error" }
}

/// The work on requests that have come since the last look. The handler is the caller's: it must not run under the lock.
pub(super) fn begin(shared: &Arc<Shared>) -> Vec<Task> {
    let mut state = shared.lock();
    let Some(handler) = state.server_requests.handler.clone().filter(|_| !state.server_requests.fresh.is_empty())
    else {
        return Vec::new();
    };
    let fresh = std::mem::take(&mut state.server_requests.fresh);
    drop(state);
    let task = |(ticket, request, cancelled): (ServerTicket, ServerRequest, Arc<Cancelled>)| {
        let working = catch_unwind(AssertUnwindSafe(|| handler(request)));
        let working =
            working.unwrap_or_else(|_| Box::pin(std::future::ready(Err(RpcError::internal("Internal error")))));
        Task { ticket, working: Some(working), cancelled, shared: Arc::clone(shared) }
    };
    fresh.into_iter().map(task).collect()
}

impl fmt::Debug for ServerRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRequests").field("open", &self.open.len()).finish_non_exhaustive()
    }
}
