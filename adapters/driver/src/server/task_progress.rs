//! Owns the progress of a task (revision 2025-11-25) after the answer that began it. It must not know what a task is about.

use std::fmt;
use std::sync::Arc;

use mcp_wire::SendError;
use mcp_wire::server::Ticket;

use super::shared::Shared;

/// Reports progress of a task under the token of the request that began it, also after that request was answered (LEG-11). Dropping it is the
/// task's end.
///
/// ```
/// use mcp_wire_driver::server::{Call, RpcError};
/// use serde_json::{Value, json};
///
/// async fn begin(call: Call) -> Result<Value, RpcError> {
///     let progress = call.begin_task(); // handed to what performs the task
///     std::thread::spawn(move || progress.map(|progress| progress.progress(1.0, Some(1.0), None)));
///     Ok(json!({"task": {"taskId": "t-1", "status": "working"}}))
/// }
/// ```
#[must_use = "dropping it ends the task's progress"]
pub struct TaskProgress {
    shared: Arc<Shared>,
    ticket: Ticket,
}

impl TaskProgress {
    pub(super) const fn new(shared: Arc<Shared>, ticket: Ticket) -> Self {
        Self { shared, ticket }
    }

    /// Reports progress, as [`Call::progress`](super::Call::progress) does.
    ///
    /// # Errors
    /// [`SendError::NotJson`] for a value that is not finite; [`SendError::Ended`] if serving has ended.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) -> Result<(), SendError> {
        let ticket = self.ticket;
        self.shared.with(|state, now| state.connection.progress(ticket, progress, total, message, now))
    }
}

impl Drop for TaskProgress {
    fn drop(&mut self) {
        self.shared.with(|state, now| state.connection.end_task(self.ticket, now));
    }
}

impl fmt::Debug for TaskProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskProgress").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}
