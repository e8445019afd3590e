//! Owns how callers end things: cancel, close, kill, the last handle gone, the driver gone; and the one moment in which
//! that has to wait, a write. It must not know frames.

use std::sync::Arc;

use mcp_wire::client::Handle;
use mcp_wire::lifecycle::{Escalation, Outcome};
use mcp_wire::{Cause, Delivery, Instant};

use super::error::{CallError, CloseError};
use super::events::ClientEvent;
use super::shared::{Deferred, Kind, State, Wait};
use super::tape::{TapeFact, TapeOp};
use crate::process::ChildTree;

impl State {
    /// Gives a request or listen up.
    pub(super) fn cancel(&mut self, handle: Handle, reason: Option<&str>, now: Instant) {
        if self.writing {
            self.deferred.push(Deferred::Cancel(handle, reason.map(str::to_owned)));
            return;
        }
        tracing::debug!(target: "mcp_wire::cancel", ?handle, "a caller gave a request up");
        self.tape(TapeFact::Op(TapeOp::Cancel { handle, reason }), now);
        self.engine.supervisor_mut().cancel(handle, reason, now);
        self.pump(now);
        self.poke();
    }

    /// Gives a request or listen up because its hook failed or its consumer did not keep up.
    pub(super) fn overflow(&mut self, handle: Handle, now: Instant) {
        tracing::debug!(target: "mcp_wire::cancel", ?handle, "a hook failed or a consumer lagged");
        self.tape(TapeFact::Op(TapeOp::Overflow { handle }), now);
        self.engine.supervisor_mut().overflow(handle, now);
        self.poke();
    }

    /// Closes by the ladder. Idempotent.
    pub(super) fn close(&mut self, now: Instant) {
        self.closing = true;
        self.end_waiting();
        if self.writing {
            self.deferred.push(Deferred::Close);
            return;
        }
        if !self.is_over() {
            self.tape(TapeFact::Op(TapeOp::Close), now);
        }
        self.engine.supervisor_mut().close(now);
        self.pump(now);
        self.poke();
    }

    /// Kills the tree. Idempotent.
    pub(super) fn kill(&mut self, now: Instant) {
        self.closing = true;
        self.end_waiting();
        if self.writing {
            self.deferred.push(Deferred::Kill);
            return;
        }
        if !self.is_over() {
            self.tape(TapeFact::Op(TapeOp::Kill), now);
        }
        self.engine.supervisor_mut().kill(now);
        self.pump(now);
        self.poke();
    }

    /// The driver begins to write: what is known of deliveries is about to change.
    pub(super) const fn begin_write(&mut self) {
        self.writing = true;
    }

    /// What was written is reported: what had to wait for that is done.
    pub(super) fn end_write(&mut self, now: Instant) {
        self.writing = false;
        for deferred in std::mem::take(&mut self.deferred) {
            match deferred {
                Deferred::Cancel(handle, reason) => self.cancel(handle, reason.as_deref(), now),
                Deferred::Close => self.close(now),
                Deferred::Kill => self.kill(now),
            }
        }
    }

    /// Ends everything although nobody knows how the process ends. Gives the child, to be dropped (killed) after the lock is released.
    #[must_use]
    pub(super) fn end_without_outcome(&mut self, now: Instant) -> Option<Arc<ChildTree>> {
        if !self.is_over() {
            self.writing = false;
            self.kill(now);
        }
        if !self.is_over() {
            let (escalation, restarts) = (Escalation::Kill, self.engine.restarts());
            self.tell(ClientEvent::Closed { exit: None, escalation, restarts });
            self.finish(Err(CloseError::DriverStopped));
        }
        self.child.take()
    }

    /// It is over: everybody who still waits is told.
    pub(super) fn finish(&mut self, outcome: Result<Outcome, CloseError>) {
        self.outcome = Some(if self.driverless { Err(CloseError::DriverStopped) } else { outcome });
        self.end_waiting();
        let Self { taps, wakers, waits, .. } = self;
        taps.drain(..).for_each(|tap| tap.end(wakers));
        for wait in [Wait::Established, Wait::Closed, Wait::Notification] {
            waits.wake(wait, wakers);
        }
        // The core has ended every request by now; an entry without an ending would be a fault of ours, and still must not hang.
        let left: Vec<usize> = (self.entries.iter_mut())
            .filter(|(_, entry)| match &entry.kind {
                Kind::Call { .. } => entry.ending.is_none(),
                Kind::Listen(listen) => entry.ending.is_none() && !listen.is_over(),
            })
            .map(|(key, _)| key)
            .collect();
        for key in left {
            let error = CallError::Failed { cause: Cause::Closed, delivery: Delivery::Sent, hint: None };
            self.end(key, Err(error));
        }
    }
}
