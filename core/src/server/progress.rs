//! Owns what a handler tells while it runs: progress, coalesced to the newest value (PRG-02 to PRG-05), and log messages (LOG-01).
//! It must not know how a request was admitted or how it is answered.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::admission::State;
use super::rate::Window;
use super::{Connection, LogLevel, Ticket, answers};
use crate::send_buffer::FrameNumber;
use crate::{IdBuf, Instant, Json, SendError};

/// Progress of one request: 1000 a second, in windows short enough that a bar still moves.
const WINDOW: Duration = Duration::from_millis(100);
const MOST: u32 = 100;
/// The rate of log messages is counted over a second.
const SECOND: Duration = Duration::from_secs(1);
/// A report that is kept back is at most so long; from a longer one the text goes and the value stays.
const KEPT: usize = 4 << 10;

/// What is known of the progress of one request.
#[derive(Debug)]
pub(super) struct Progress {
    token: IdBuf,
    last: f64,
    /// The newest report, as long as it may be queued.
    frame: Option<FrameNumber>,
    window: Window,
    /// A newer one that is not queued yet.
    pending: Option<Pending>,
}

struct Pending {
    frame: Vec<u8>,
    /// When it may leave; `None` if it waits for room.
    due: Option<Instant>,
}

/// Without the frame, which is the handler's (SEC-03).
impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("len", &self.frame.len()).field("due", &self.due).finish()
    }
}

impl Progress {
    pub(super) fn new(token: IdBuf) -> Self {
        Self { token, last: f64::NEG_INFINITY, frame: None, window: Window::default(), pending: None }
    }

    /// The newest report, as long as it may be queued.
    pub(super) const fn frame(&self) -> Option<FrameNumber> {
        self.frame
    }
}

/// Which requests have a report that is not queued yet.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// Over the rate: by the time they may leave, and slot.
    late: BTreeSet<(Instant, u32)>,
    /// For lack of room: by slot.
    stuck: BTreeSet<u32>,
}

impl Reports {
    pub(super) fn next(&self) -> Option<Instant> {
        self.late.first().map(|(due, _)| *due)
    }

    fn add(&mut self, slot: u32, due: Option<Instant>) {
        match due {
            Some(due) => self.late.insert((due, slot)),
            None => self.stuck.insert(slot),
        };
    }

    fn remove(&mut self, slot: u32, due: Option<Instant>) {
        match due {
            Some(due) => self.late.remove(&(due, slot)),
            None => self.stuck.remove(&slot),
        };
    }
}

impl Connection {
    /// Reports progress of a running request, or of the task that it began ([`begin_task`](Self::begin_task)). Nothing is written without a token, after a cancellation or for a value that does not
    /// increase; the newest value replaces one that is still unwritten (PRG-02 to PRG-05). Over 1000 a second, or without room in
    /// the queue, the newest is kept and follows later; it precedes the answer at the latest.
    ///
    /// # Errors
    /// [`SendError::Ended`] after the answer; [`SendError::NotJson`] for a value that is not finite; [`SendError::TooLarge`] for a
    /// message that no queue could hold.
    pub fn progress(
        &mut self,
        ticket: Ticket,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
        now: Instant,
    ) -> Result<(), SendError> {
        self.tick(now);
        let Some(entry) = self.table.get_mut(ticket) else { return Err(SendError::Ended) };
        if !progress.is_finite() || total.is_some_and(|total| !total.is_finite()) {
            return Err(SendError::NotJson);
        }
        let reports = matches!(entry.state, State::Running | State::Task);
        let Some(state) = entry.progress.as_mut().filter(|_| reports) else { return Ok(()) };
        if progress <= state.last {
            return Ok(());
        }
        state.last = progress;
        let replaces = state.frame.take().is_some_and(|frame| self.out.withdraw(frame));
        let late = state.pending.as_ref().is_some_and(|pending| pending.due.is_some());
        let token = state.token.as_id().token();
        let mut due = None;
        if replaces || (!late && state.window.allow(self.now, WINDOW, MOST)) {
            let pushed = self.out.push(false, |out| answers::progress(out, token, progress, total, message));
            match pushed {
                Ok(frame) => {
                    state.frame = Some(frame);
                    if let Some(pending) = state.pending.take() {
                        self.reports.remove(ticket.slot, pending.due);
                    }
                    return Ok(());
                }
                Err(SendError::Full) => {}
                Err(error) => {
                    // What it would have replaced is gone.
                    self.made_room();
                    return Err(error);
                }
            }
        } else {
            due = state.window.end(WINDOW);
        }
        let mut frame = Vec::new();
        answers::progress(&mut frame, token, progress, total, message);
        if frame.len() > KEPT {
            frame = Vec::new();
            answers::progress(&mut frame, token, progress, total, None);
        }
        if let Some(old) = state.pending.replace(Pending { frame, due }) {
            self.reports.remove(ticket.slot, old.due);
        }
        self.reports.add(ticket.slot, due);
        Ok(())
    }

    /// The answer to this running request will begin a task (revision 2025-11-25): its progress goes on after the answer, under the same
    /// ticket, until [`end_task`](Self::end_task) (LEG-11). The permit comes back with the answer all the same. `false`, and nothing changes, if the
    /// request is not of that revision, gave no progress token, or there are too many tasks.
    #[must_use]
    pub fn begin_task(&mut self, ticket: Ticket) -> bool {
        let session = self.table.get(ticket).and_then(|entry| entry.terms.session);
        session.is_some_and(|session| self.sessions.knows_tasks(session)) && self.table.begin_task(ticket)
    }

    /// The task that this request began is over: there is no more progress. Without a task nothing happens.
    pub fn end_task(&mut self, ticket: Ticket, now: Instant) {
        self.tick(now);
        // The last value still leaves, if there is room for it.
        if self.table.get(ticket).is_some_and(|entry| entry.state == State::Task) {
            let _ = self.flush_report(ticket);
            self.forget_report(ticket);
        }
        self.table.end_task(ticket);
    }

    /// Serving has ended.
    pub(super) fn end_tasks(&mut self) {
        for ticket in self.table.tasks() {
            self.forget_report(ticket);
            self.table.end_task(ticket);
        }
    }

    /// Sends a log message of a running request, if it asked for this level (LOG-01) or its legacy session did. It is shed, and counted, over the rate of the
    /// configuration and while half of the outgoing queue is taken.
    ///
    /// # Errors
    /// [`SendError::Ended`] after the answer; [`SendError::NotInThisEra`] if the server declares no `logging`;
    /// [`SendError::TooLarge`] for a message that no queue could hold.
    pub fn log(
        &mut self,
        ticket: Ticket,
        level: LogLevel,
        logger: Option<&str>,
        data: Json<'_>,
        now: Instant,
    ) -> Result<(), SendError> {
        self.tick(now);
        let entry = self.table.get_mut(ticket).filter(|entry| entry.state != State::Task);
        let Some(entry) = entry else { return Err(SendError::Ended) };
        if !self.grants.logging {
            return Err(SendError::NotInThisEra);
        }
        let least = match entry.terms.session {
            Some(session) => self.sessions.level(session),
            None => entry.terms.log_level,
        };
        let asked = least.is_some_and(|least| level >= least);
        if entry.state != State::Running || !asked {
            return Ok(());
        }
        let half_taken = self.out.len() > self.config.queue_limit / 2;
        if half_taken || !self.log_window.allow(self.now, SECOND, self.config.log_rate) {
            self.shed_logs = self.shed_logs.saturating_add(1);
            return Ok(());
        }
        match self.out.push(false, |out| answers::log(out, level, logger, data)) {
            Ok(frame) => entry.logs.add(frame, &self.out),
            Err(SendError::Full) => self.shed_logs = self.shed_logs.saturating_add(1),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Log messages that were shed (LOG-01, LIM-04).
    #[must_use]
    pub const fn shed_logs(&self) -> u64 {
        self.shed_logs
    }

    /// Queues the report of a request that is kept back, if there is one. `Full` if there is no room.
    pub(super) fn flush_report(&mut self, ticket: Ticket) -> Result<(), SendError> {
        let Some(state) = self.table.get_mut(ticket).and_then(|entry| entry.progress.as_mut()) else { return Ok(()) };
        let Some(pending) = state.pending.take() else { return Ok(()) };
        self.reports.remove(ticket.slot, pending.due);
        match self.out.push(false, |out| out.extend_from_slice(&pending.frame)) {
            Ok(frame) => state.frame = Some(frame),
            Err(SendError::Full) => {
                state.pending = Some(Pending { due: None, ..pending });
                self.reports.add(ticket.slot, None);
                return Err(SendError::Full);
            }
            // It was let in as one that fits; there is nobody to tell.
            Err(_) => {}
        }
        Ok(())
    }

    /// Queues the reports whose time has come.
    pub(super) fn flush_late_reports(&mut self) {
        while let Some(&(due, slot)) = self.reports.late.first() {
            if due > self.now {
                return;
            }
            self.reports.late.remove(&(due, slot));
            let Some(ticket) = self.table.ticket(slot) else { continue };
            if let Some(state) = self.table.get_mut(ticket).and_then(|entry| entry.progress.as_mut()) {
                state.window.allow(self.now, WINDOW, MOST);
            }
            // Without room it is among the stuck from here on.
            let _ = self.flush_report(ticket);
        }
    }

    /// Queues the reports that waited for room, as far as there is some.
    pub(super) fn flush_stuck_reports(&mut self) {
        while let Some(&slot) = self.reports.stuck.first() {
            self.reports.stuck.remove(&slot);
            if self.table.ticket(slot).is_some_and(|ticket| self.flush_report(ticket).is_err()) {
                return;
            }
        }
    }

    /// Takes back what is queued for a request and was not lent, and forgets what was kept back (CAN-06, case 066).
    pub(super) fn withdraw_notes(&mut self, ticket: Ticket) {
        self.forget_report(ticket);
        let Some(entry) = self.table.get_mut(ticket) else { return };
        core::mem::take(&mut entry.logs).withdraw(&mut self.out);
        if let Some(frame) = entry.progress.as_mut().and_then(|state| state.frame.take()) {
            self.out.withdraw(frame);
        }
    }

    /// Forgets the report that is kept back for a request.
    pub(super) fn forget_report(&mut self, ticket: Ticket) {
        let state = self.table.get_mut(ticket).and_then(|entry| entry.progress.as_mut());
        if let Some(pending) = state.and_then(|state| state.pending.take()) {
            self.reports.remove(ticket.slot, pending.due);
        }
    }
}
