//! Owns one handler while it runs: its panic and its answer. It must not know which runtime polls it.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_wire::JsonBuf;
use mcp_wire::server::Ticket;
use serde::Serialize;

use super::shared::Shared;
use super::{Call, RpcError};

/// A handler's future with its answer's way back. A panic ends its request with -32603 and nothing else (case 223); so does dropping it.
///
/// An adapter polls it once where it stands and hands it to the runtime if it is pending.
///
/// ```
/// use mcp_wire_driver::server::{Call, RpcError, Task};
///
/// fn start(call: Call) -> Task {
///     Task::new(call, |call: Call| async move { Ok::<_, RpcError>(call.method().to_owned()) })
/// }
/// ```
#[must_use = "a task does nothing unless polled"]
pub struct Task {
    future: Pin<Box<dyn Future<Output = Result<JsonBuf, RpcError>> + Send>>,
    shared: Arc<Shared>,
    ticket: Ticket,
    finished: bool,
}

impl Task {
    /// Makes the handler's future. A panic while it is made counts as one while it runs.
    pub fn new<H, F, T>(call: Call, handler: H) -> Self
    where
        H: FnOnce(Call) -> F,
        F: Future<Output = Result<T, RpcError>> + Send + 'static,
        T: Serialize + 'static,
    {
        let (shared, ticket) = (call.shared(), call.ticket());
        let made = catch_unwind(AssertUnwindSafe(move || handler(call)));
        let future: Pin<Box<dyn Future<Output = _> + Send>> = match made {
            Ok(future) => Box::pin(async move {
                // Serialized here, in the handler's own time, not under the connection's lock.
                future.await.and_then(into_json)
            }),
            Err(_) => Box::pin(std::future::ready(Err(RpcError::internal("Internal error")))),
        };
        Self { future, shared, ticket, finished: false }
    }
}

/// Writes a result as JSON. One that is JSON already is taken as it is.
fn into_json<T: Serialize + 'static>(result: T) -> Result<JsonBuf, RpcError> {
    let mut result = Some(result);
    let ready = (&mut result as &mut dyn Any).downcast_mut::<Option<JsonBuf>>().and_then(Option::take);
    ready.map_or_else(|| JsonBuf::new(&result).map_err(RpcError::from), Ok)
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.finished {
            return Poll::Ready(());
        }
        let answer = match catch_unwind(AssertUnwindSafe(|| self.future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(answer)) => Some(answer),
            Err(_) => {
                tracing::warn!(target: "mcp_wire::router", slot = self.ticket.slot(), "a handler panicked; its request gets -32603");
                None
            }
        };
        self.finished = true;
        self.shared.finish(self.ticket, answer);
        Poll::Ready(())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if !self.finished {
            self.shared.finish(self.ticket, None);
        }
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}
