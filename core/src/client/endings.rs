//! Owns how requests end without an answer: given up, timed out, unreadable, closed; what is known of their delivery, and
//! the cancellation on the wire. It must not know the frames that cause it.

use super::in_flight::{Entry, Place};
use super::opening::Opening;
use super::outgoing;
use super::probe::{Due, Probe, Verdict};
use super::recent::Ending;
use super::{Connection, Hint, ListenEnd, Signal, Stage, Waiting};
use crate::send_buffer::Progress;
use crate::{Cause, ConnectionError, Delivery};

impl Connection {
    /// Ends a request or listen without an answer: takes it back, or cancels it on the wire with `cancellation`'s reason (none of it: nothing is
    /// written), and tells the caller (CAN-01 to CAN-04, TMO-01, UNR-04).
    pub(super) fn give_up(&mut self, slot: u32, cause: Cause, cancellation: Option<Option<&str>>) {
        let Some(entry) = self.table.entry(slot) else { return };
        let (id, place, seen) = (entry.id, entry.place, entry.seen);
        let delivery = self.delivery(entry);
        let hint = self.hint_for(entry, &cause);
        let listen_end = match cause {
            _ if entry.listen.is_none() => None,
            Cause::Cancelled => Some(ListenEnd::Cancelled),
            Cause::Overflow => Some(ListenEnd::Lagged),
            Cause::Closed => Some(ListenEnd::Closed),
            // It was open once: the caller holds a stream, which the server has failed to keep up.
            Cause::TimedOut | Cause::InvalidResponse { .. } => entry.was_acknowledged().then_some(ListenEnd::Server),
        };
        match place {
            Place::Waiting(turn) => {
                self.waiting.remove(&turn);
            }
            Place::Queued(frame) => {
                self.out.withdraw(frame);
            }
            Place::Lent(_) => {
                if let Some(reason) = cancellation {
                    // Reserved room: at most one for each request in flight, so it is bounded, and it is never refused.
                    let _ = self.out.push(true, |out| outgoing::cancellation(out, id, reason));
                }
                let given_up = matches!(cause, Cause::Cancelled | Cause::TimedOut | Cause::Overflow);
                if given_up && !seen {
                    self.table.recent.record_candidate(id, self.now);
                }
            }
            Place::Free | Place::Ended => return,
        }
        if let Some(payload) = self.table.end(slot, Ending::GivenUp) {
            self.out.unhold(payload.cost());
        }
        let handle = self.table.handle_of(slot);
        self.signals.push_back(match listen_end {
            Some(how) => Signal::ListenEnded { listen: handle, how },
            None => Signal::Ended { request: handle, cause, delivery, hint },
        });
    }

    /// Ends a request that has its answer: the event of the frame tells it, so the slot is free at once.
    pub(super) fn finish(&mut self, slot: u32, ending: Ending) {
        if let Some(payload) = self.table.end(slot, ending) {
            self.out.unhold(payload.cost());
        }
        self.table.free(slot);
    }

    /// What is known of a request's delivery, in this life or an earlier one.
    pub(super) fn delivery(&self, entry: &Entry) -> Delivery {
        let now = match entry.place {
            Place::Lent(_) if entry.seen => Delivery::Started,
            Place::Lent(frame) => match self.out.progress(frame) {
                // Not to be taken back, and its bytes leave as long as the stream takes any: nobody may rely on it not being sent.
                Progress::Lent if self.stream_open => Delivery::PartlySent,
                Progress::Queued | Progress::Lent => Delivery::NotSent,
                Progress::Partly => Delivery::PartlySent,
                Progress::Accepted => Delivery::Sent,
            },
            _ => Delivery::NotSent,
        };
        now.max(entry.delivery)
    }

    /// What was seen since the request left that may explain why no answer came (cases 035, 041, 085).
    fn hint_for(&self, entry: &Entry, cause: &Cause) -> Option<Hint> {
        if !matches!(cause, Cause::TimedOut | Cause::Closed) || !matches!(entry.place, Place::Lent(_)) {
            return None;
        }
        let (_, hint) = self.hint.as_ref().filter(|(at, _)| *at >= entry.lent_at())?;
        Some(hint.clone())
    }

    /// Deadlines that have passed.
    pub(super) fn expire(&mut self) {
        let start_timeout = ConnectionError::StartTimeout { output_seen: self.output_seen };
        let due = match &self.stage {
            Stage::Probing(probe) => probe.due(self.now),
            _ => None,
        };
        match due {
            None => {}
            // It is not cancelled (CAN-12).
            Some(Due::Silent) => self.settle(Verdict::Legacy { version: None, code: None }, None),
            Some(Due::Start) => self.fail(start_timeout.clone()),
        }
        // The handshake that a silent server gets may come too late at once.
        if let Stage::Opening(opening) = &self.stage {
            if opening.start_deadline.is_some_and(|at| at <= self.now) {
                self.fail(start_timeout);
            }
        }
        while let Some(slot) = self.table.pop_due(self.now) {
            self.give_up(slot, Cause::TimedOut, Some(Some("timeout")));
        }
    }

    /// The connection can never be used: that is told, then everything ends.
    pub(super) fn fail(&mut self, error: ConnectionError) {
        self.signals.push_back(Signal::Failed(error.clone()));
        self.error = Some(error);
        self.shut();
    }

    /// Everything ends with `Closed`; nothing is cancelled on the wire, as the end of the stream says it all.
    pub(super) fn shut(&mut self) {
        let stage = core::mem::replace(&mut self.stage, Stage::Closed);
        match stage {
            Stage::Probing(Probe { frame, .. }) | Stage::Opening(Opening { frame, .. }) => {
                self.out.withdraw(frame);
            }
            _ => {}
        }
        self.forget_server_requests();
        for slot in self.table.live_slots() {
            self.give_up(slot, Cause::Closed, None);
        }
        while let Some((_, waiting)) = self.waiting.pop_first() {
            if let Waiting::Notification(payload) = waiting {
                self.out.unhold(payload.cost());
            }
        }
    }
}
