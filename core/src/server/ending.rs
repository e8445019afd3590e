//! Owns the end of serving: the drain after the end of input or a stop (SHD-05, SHD-06), what is said to requests that do not finish,
//! and a peer that is gone (SHD-07). It must not know what requests are about.

use super::admission::State;
use super::refusals::Refusal;
use super::{Connection, Ended, Signal};
use crate::Instant;

/// How far serving is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// Listens are closed, and what is in flight may finish until then; `None`: as long as it takes.
    Draining {
        until: Option<Instant>,
        how: Ended,
    },
    /// Every request has ended; what is queued still leaves.
    Flushing(Ended),
    /// The output cannot be written.
    Gone,
}

impl Connection {
    /// The input has ended: listens are closed (SUB-07), handlers may finish within the drain time (SHD-05), and requests that wait still
    /// start. Hand in the last frames before. Idempotent.
    pub fn end_of_input(&mut self, now: Instant) {
        self.tick(now);
        self.input_ended = true;
        self.close_batch(now);
        self.end_client_requests();
        self.drain(Ended::EndOfInput);
    }

    /// The server stops by itself: as the end of input (SHD-06). Requests that still arrive are refused, cancellations count. Idempotent.
    pub fn stop(&mut self, now: Instant) {
        self.tick(now);
        self.drain(Ended::Stopped);
    }

    fn drain(&mut self, how: Ended) {
        if self.phase != Phase::Open {
            return;
        }
        self.phase = Phase::Draining { until: self.now.checked_add(self.config.drain), how };
        self.end_listens();
        self.check_drained();
    }

    /// Ends the drain now: whoever has not finished is cancelled and gets W-20. Nothing happens before the end of input or a stop.
    pub fn end_drain(&mut self, now: Instant) {
        self.tick(now);
        if !self.is_draining() {
            return;
        }
        for ticket in self.table.owed() {
            // The newest progress still precedes the answer, if there is room for it.
            let _ = self.flush_report(ticket);
            self.forget_report(ticket);
            let Some(entry) = self.table.get(ticket) else { continue };
            let (token, running, batch) = (entry.id.clone(), entry.state == State::Running, entry.terms.batch);
            self.signals.push_back(Signal::Cancelled { ticket, running, reason: None });
            if running {
                self.table.silence(ticket);
            } else {
                self.table.release(ticket);
            }
            self.own_error(batch, token.as_id(), &Refusal::ShuttingDown);
            if let Some(batch) = batch {
                self.settle_in_batch(batch);
            }
        }
        self.check_drained();
    }

    /// Ends the drain if its time is over.
    pub(super) fn check_drain_time(&mut self) {
        if let Phase::Draining { until: Some(until), .. } = self.phase {
            if until <= self.now {
                self.end_drain(self.now);
            }
        }
    }

    /// Ends the drain if no request is owed an answer any more.
    pub(super) fn check_drained(&mut self) {
        if let Phase::Draining { how, .. } = self.phase {
            if !self.table.is_owed() {
                self.phase = Phase::Flushing(how);
                self.blocked = None;
                self.end_client_requests();
                self.end_tasks();
            }
        }
    }

    /// When the drain ends by itself.
    pub(super) const fn drain_ends(&self) -> Option<Instant> {
        match self.phase {
            Phase::Draining { until, .. } => until,
            _ => None,
        }
    }

    pub(super) const fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining { .. })
    }

    /// Whether what comes in still has a meaning.
    pub(super) const fn takes_input(&self) -> bool {
        !self.input_ended && matches!(self.phase, Phase::Open | Phase::Draining { .. })
    }

    /// The writer has failed: the client is gone (SHD-07). Handlers are cancelled, nothing more is written. Idempotent.
    pub fn peer_gone(&mut self, now: Instant) {
        self.tick(now);
        if self.phase == Phase::Gone {
            return;
        }
        // Serving that has ended stays ended as it was.
        if self.ended().is_some() {
            return;
        }
        self.phase = Phase::Gone;
        self.blocked = None;
        self.end_client_requests();
        self.end_tasks();
        self.forget_batches();
        self.out.clear();
        self.own.clear();
        self.table.forget_answers();
        self.forget_listens();
        for ticket in self.table.owed() {
            self.forget_report(ticket);
            let running = self.table.get(ticket).is_some_and(|entry| entry.state == State::Running);
            self.signals.push_back(Signal::Cancelled { ticket, running, reason: None });
            if running {
                self.table.silence(ticket);
            } else {
                self.table.release(ticket);
            }
        }
    }

    /// How serving ended, once it has: every request has ended and every byte was accepted (or the peer is gone). Handlers of requests
    /// that were cancelled may not have returned yet.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        match self.phase {
            Phase::Flushing(how) if self.out.len() == 0 => Some(how),
            Phase::Gone => Some(Ended::PeerGone),
            _ => None,
        }
    }
}
