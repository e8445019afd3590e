//! Owns the memory of ids that have ended: a record of fixed size that tells a late answer from a second one and from an
//! unknown one. It must not know entries or handles; what is in flight is the table's.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::{DropReason, Instant};

/// Ids that are remembered at least, of a connection that has used so many (LIM-05), and of how many there is memory at first: most connections
/// are idle.
const REMEMBERED: usize = 1024;
const AT_FIRST: usize = 32;
/// Given-up requests that an error without an id may belong to, and for how long (UNR-06). Such an error is about a line that the server could
/// not read, so it comes as soon as the server reads it; a busy server reads late, but hardly later than a request's default time.
const GIVEN_UP: usize = 64;
const A_MOMENT: Duration = Duration::from_secs(60);

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// By its response.
    Answered,
    /// Without one: cancelled, timed out, unreadable, closed.
    GivenUp,
    /// A listen by its result: a cancellation by the server belongs to it (SUB-08).
    ListenResult,
}

/// The last ids that ended. Ids are minted in order, so each has its place by its number.
#[derive(Debug, Default)]
pub(super) struct Recent {
    ring: Vec<(u64, Option<Ending>)>,
    given_up: VecDeque<(u64, Instant)>,
}

impl Recent {
    fn place(&self, id: u64) -> usize {
        // The remainder is below the size of the ring, which is not empty.
        usize::try_from(id % (self.ring.len() as u64).max(1)).unwrap_or(0)
    }

    pub(super) fn record(&mut self, id: u64, ending: Ending) {
        while self.ring.len() < REMEMBERED
            && self.ring.get(self.place(id)).is_none_or(|(old, _)| ![0, id].contains(old))
        {
            self.grow();
        }
        let place = self.place(id);
        if let Some(place) = self.ring.get_mut(place) {
            *place = (id, Some(ending));
        }
    }

    /// Two ids that have different places have them in a larger ring too.
    fn grow(&mut self) {
        let len = if self.ring.is_empty() { AT_FIRST } else { self.ring.len() * 2 };
        let old = core::mem::replace(&mut self.ring, alloc::vec![(0, None); len]);
        for (id, ending) in old {
            let place = self.place(id);
            if let Some(place) = self.ring.get_mut(place).filter(|_| id != 0) {
                *place = (id, ending);
            }
        }
    }

    /// Remembers that an error without an id may belong to this given-up request, for a moment.
    pub(super) fn record_candidate(&mut self, id: u64, now: Instant) {
        if self.given_up.len() == GIVEN_UP {
            self.given_up.pop_front();
        }
        self.given_up.push_back((id, now));
    }

    /// How many given-up requests an error without an id may belong to now.
    pub(super) fn candidates(&mut self, now: Instant) -> usize {
        while self.given_up.front().is_some_and(|&(_, at)| now.saturating_since(at) > A_MOMENT) {
            self.given_up.pop_front();
        }
        self.given_up.len()
    }

    /// No error can belong to a given-up request any more: the only one has had its own, or the stream is another.
    pub(super) fn forget_candidates(&mut self) {
        self.given_up.clear();
    }

    /// Why a response with an id that is not in flight is dropped (RTE-03, CAN-05).
    pub(super) fn judge_response(&mut self, id: u64) -> DropReason {
        match self.ending(id) {
            None => DropReason::UnknownId,
            Some(Ending::Answered | Ending::ListenResult) => DropReason::DuplicateResponse,
            Some(Ending::GivenUp) => {
                self.given_up.retain(|&(given_up, _)| given_up != id);
                DropReason::LateResponse
            }
        }
    }

    /// Whether a cancellation by the server is the second frame of a listen's end (SUB-08); once for each.
    pub(super) fn take_listen_result(&mut self, id: u64) -> bool {
        let ended = self.ending(id) == Some(Ending::ListenResult);
        if ended {
            self.record(id, Ending::Answered);
        }
        ended
    }

    /// Whether an id is known to have ended.
    pub(super) fn is_recorded(&self, id: u64) -> bool {
        self.ending(id).is_some()
    }

    fn ending(&self, id: u64) -> Option<Ending> {
        let &(recorded, ending) = self.ring.get(self.place(id))?;
        ending.filter(|_| recorded == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RTE-03, CAN-05: a second answer, a late one and one that nobody asked for are told apart.
    #[test]
    fn answers_to_ended_ids_are_told_apart() {
        let mut recent = Recent::default();
        assert_eq!(recent.judge_response(1), DropReason::UnknownId);
        recent.record(1, Ending::Answered);
        recent.record(2, Ending::GivenUp);
        assert_eq!(recent.judge_response(1), DropReason::DuplicateResponse);
        assert_eq!(recent.judge_response(2), DropReason::LateResponse);
        assert_eq!(recent.judge_response(1025), DropReason::UnknownId);
        assert_eq!(recent.judge_response(0), DropReason::UnknownId);
    }

    // LIM-05: the record has a fixed size; the oldest ids are forgotten.
    #[test]
    fn the_record_has_a_fixed_size() {
        let mut recent = Recent::default();
        for id in 1..=10_000 {
            recent.record(id, Ending::GivenUp);
            recent.record_candidate(id, Instant::EPOCH);
        }
        assert_eq!((recent.ring.len(), recent.given_up.len()), (REMEMBERED, GIVEN_UP));
        assert_eq!(recent.judge_response(1), DropReason::UnknownId);
        assert_eq!(recent.judge_response(10_000), DropReason::LateResponse);
        assert_eq!(recent.judge_response(10_000 - 1023), DropReason::LateResponse);
    }

    // LIM-05, CAN-05: the record grows with the ids that end, and forgets none while it does.
    #[test]
    fn the_record_forgets_nothing_while_it_grows() {
        let mut recent = Recent::default();
        for id in 1..=1024 {
            recent.record(id, if id % 3 == 0 { Ending::GivenUp } else { Ending::Answered });
            assert!(recent.ring.len() <= (4 * id as usize).max(AT_FIRST), "id {id}");
            for past in 1..=id {
                let expected = if past % 3 == 0 { DropReason::LateResponse } else { DropReason::DuplicateResponse };
                assert_eq!(recent.judge_response(past), expected, "id {past} after {id}");
            }
        }
    }

    // UNR-06: a request given up counts for a moment, and no longer once its late answer is there.
    #[test]
    fn a_given_up_request_is_a_candidate_for_a_moment() {
        let at = |s| Instant::from_epoch(Duration::from_secs(s));
        let mut recent = Recent::default();
        for id in [1, 2] {
            recent.record(id, Ending::GivenUp);
            recent.record_candidate(id, at(id));
        }
        assert_eq!(recent.candidates(at(61)), 2);
        assert_eq!(recent.candidates(at(62)), 1);
        recent.judge_response(2);
        assert_eq!(recent.candidates(at(62)), 0);
    }

    // SUB-08: the cancellation after a listen's result is expected once.
    #[test]
    fn the_second_frame_of_a_listens_end_is_expected_once() {
        let mut recent = Recent::default();
        recent.record(3, Ending::ListenResult);
        assert!(!recent.take_listen_result(4));
        assert!(recent.take_listen_result(3));
        assert!(!recent.take_listen_result(3));
    }
}
