//! Owns the progress tokens of tasks, which revision 2025-11-25 lets live on when their request has been answered (LEG-11). It must not
//! know how a task is asked for or cancelled.

use alloc::borrow::Cow;
use alloc::collections::VecDeque;
use alloc::string::String;

use super::peek::member;
use crate::{Id, IdBuf, Json};

/// The version that knows tasks.
pub(super) const WITH_TASKS: &str = "2025-11-25";
const STATUS: &str = "notifications/tasks/status";

/// Tasks whose end was not told. Of too many, the oldest is forgotten.
#[derive(Debug, Default)]
pub(super) struct Tasks(VecDeque<(IdBuf, String)>);

impl Tasks {
    /// The answer to a request with this token may say that a task goes on.
    pub(super) fn answered(&mut self, token: Id<'_>, result: Json<'_>, limit: usize) {
        let id = member(result, "task").and_then(|task| member(task, "taskId")).and_then(Json::as_str);
        let Some(id) = id.filter(|id| id.len() <= crate::config::NAME_LIMIT) else { return };
        if self.0.len() >= limit {
            self.0.pop_front();
        }
        if limit > 0 {
            self.0.push_back((IdBuf::from(token), id.into_owned()));
        }
    }

    /// Whether progress under this token is that of a task.
    pub(super) fn has_token(&self, token: Id<'_>) -> bool {
        self.0.iter().any(|(of, _)| of.as_id() == token)
    }

    /// A notification may tell that a task is over.
    pub(super) fn notified(&mut self, method: &str, params: Option<Json<'_>>) {
        if method != STATUS || self.0.is_empty() {
            return;
        }
        let text = |name| params.and_then(|params| member(params, name)).and_then(Json::as_str);
        if matches!(text("status").as_deref(), Some("completed" | "failed" | "cancelled")) {
            let id: Option<Cow<'_, str>> = text("taskId");
            self.0.retain(|(_, task)| Some(task.as_str()) != id.as_deref());
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
