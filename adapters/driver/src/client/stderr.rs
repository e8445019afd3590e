//! Owns where a server's standard error goes: events, a callback, a copy on ours. It must not know how it is read.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};

use super::events::ClientEvent;
use super::shared::Shared;
use super::tape::{ProcessFact, TapeFact};
use super::tee::Tee;
use crate::process::Stderr;

/// Gets lines of standard error.
pub(super) type LineCallback = Box<dyn FnMut(&str) + Send>;

/// Where the bytes of standard error go.
pub(super) struct StderrSink {
    lines: bool,
    callback: Option<LineCallback>,
    tee: Option<Tee>,
}

impl StderrSink {
    pub(super) fn new(policy: Stderr, callback: Option<LineCallback>) -> Self {
        let lines = policy == Stderr::Lines;
        let tee = (policy == Stderr::Tee).then(Tee::default);
        Self { lines, callback: callback.filter(|_| lines), tee }
    }

    /// Takes in bytes, or the end.
    pub(super) fn take(&mut self, shared: &Shared, bytes: Option<&[u8]>, spare: &mut Vec<Waker>) {
        if let (Some(tee), Some(bytes)) = (&mut self.tee, bytes) {
            tee.push(bytes);
        }
        let mut lines = Vec::new();
        let wanted = self.lines;
        let mut keep = |line: &str| {
            if wanted {
                lines.push(line.to_owned());
            }
        };
        let (mut state, now) = shared.lock_now();
        match bytes {
            Some(bytes) => {
                state.tape(TapeFact::Stderr(bytes), now);
                state.engine.stderr(bytes, &mut keep, now);
            }
            None => {
                state.tape(TapeFact::Process(ProcessFact::StderrEof), now);
                state.engine.stderr_ended(&mut keep, now);
            }
        }
        if !state.taps.is_empty() {
            for line in &lines {
                state.tell(ClientEvent::Stderr { line: line.clone() });
            }
        }
        state.pump(now);
        state.release(spare);
        let Some(callback) = &mut self.callback else { return };
        for line in &lines {
            // The drain goes on whatever a callback does (case 113).
            if catch_unwind(AssertUnwindSafe(|| callback(line))).is_err() {
                tracing::warn!(target: "mcp_wire::process", "the callback for standard error panicked");
            }
        }
    }

    pub(super) fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.tee.as_ref().map_or(Poll::Ready(()), |tee| tee.poll_flushed(cx))
    }
}
