//! Owns the requests and listens that have not ended: their slots, wire ids, progress tokens, deadlines and their order in the queue.
//! It must not know frames or what ends a request; it keeps its indexes in step with each other.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use super::alarms::{Alarm, Alarms};
use super::outgoing::{Payload, Token};
use super::recent::{Ending, Recent};
use super::{Handle, RequestOptions};
use crate::rising::Rising;
use crate::send_buffer::FrameNumber;
use crate::{Delivery, Filter, Id, Instant};

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The slot is free.
    Free,
    /// Not encoded: the connection is not established. The number is its turn.
    Waiting(u64),
    /// Encoded, no byte of it lent.
    Queued(FrameNumber),
    /// At least one byte was lent: the server may see it.
    Lent(FrameNumber),
    /// It has ended, and the signal that says so was not taken yet.
    Ended,
}

/// What a listen is besides a request.
#[derive(Debug)]
pub(super) struct Listen {
    pub(super) asked: Filter,
    /// What was granted last, also in an earlier life.
    pub(super) granted: Option<Filter>,
    /// Acknowledged in this life.
    pub(super) open: bool,
}

/// One request or listen.
#[derive(Debug)]
pub(super) struct Entry {
    generation: u32,
    pub(super) place: Place,
    /// The id on the wire; 0 while it has none.
    pub(super) id: u64,
    /// A frame came for it in this life.
    pub(super) seen: bool,
    pub(super) idempotent: bool,
    pub(super) token: Token,
    pub(super) listen: Option<Box<Listen>>,
    /// Kept to be encoded later or again.
    pub(super) payload: Option<Payload>,
    /// What was known of its delivery at the end of an earlier life.
    pub(super) delivery: Delivery,
    timeout: Duration,
    max_timeout: Option<Duration>,
    /// What is left of its time in the queue.
    queue_left: Duration,
    /// When the clock that runs was started.
    clock_start: Instant,
    /// The ceiling of its clock.
    ceiling: Option<Instant>,
    alarm: Option<Alarm>,
    progress: Option<f64>,
}

impl Entry {
    /// A listen that was acknowledged, in this life or an earlier one.
    pub(super) fn was_acknowledged(&self) -> bool {
        self.listen.as_ref().is_some_and(|listen| listen.granted.is_some())
    }

    /// When its first byte was lent, for one that was.
    pub(super) fn lent_at(&self) -> Instant {
        self.clock_start
    }

    /// Ends up in the next life of the connection, if this one is lost: sent again or sent at last.
    pub(super) fn survives(&self) -> bool {
        match self.place {
            Place::Waiting(_) | Place::Queued(_) => true,
            Place::Lent(_) => self.listen.is_some() || (self.idempotent && !self.seen),
            Place::Free | Place::Ended => false,
        }
    }
}

/// Times of a request, defaults filled in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) timeout: Duration,
    pub(super) queue_timeout: Duration,
    pub(super) max_timeout: Option<Duration>,
}

/// All requests and listens that have not ended, or whose end was not told yet.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: Vec<Entry>,
    free: Vec<u32>,
    ids: Rising<u32>,
    /// The callers' own tokens, in order.
    tokens: Vec<(crate::IdBuf, u32)>,
    alarms: Alarms,
    /// What is queued and not lent, by the numbers of the frames.
    queued: Rising<u32>,
    last_id: u64,
    requests: usize,
    listens: usize,
    live: usize,
    pub(super) recent: Recent,
}

impl Table {
    /// Slots taken by requests, those included whose end was not told yet.
    pub(super) fn requests(&self) -> usize {
        self.requests
    }

    /// Slots taken by listens, in the same way.
    pub(super) fn listens(&self) -> usize {
        self.listens
    }

    /// Requests and listens that have not ended.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn entry(&self, slot: u32) -> Option<&Entry> {
        self.entries.get(slot as usize)
    }

    pub(super) fn entry_mut(&mut self, slot: u32) -> Option<&mut Entry> {
        self.entries.get_mut(slot as usize)
    }

    /// The slot of a handle whose request has not ended.
    pub(super) fn slot_of(&self, handle: Handle) -> Option<u32> {
        let entry = self.entry(handle.slot)?;
        let live = entry.generation == handle.generation && !matches!(entry.place, Place::Free | Place::Ended);
        live.then_some(handle.slot)
    }

    pub(super) fn handle_of(&self, slot: u32) -> Handle {
        Handle { slot, generation: self.entry(slot).map_or(0, |entry| entry.generation) }
    }

    /// The request with this id on the wire, if the server may have seen it.
    pub(super) fn find(&self, id: Id<'_>) -> Option<u32> {
        let slot = *self.ids.get(id.as_u64()?)?;
        matches!(self.entry(slot)?.place, Place::Lent(_)).then_some(slot)
    }

    /// The request with this progress token, if the server may have seen it (RTE-05). A token that equals an id means nothing
    /// unless that request asked for progress under it.
    pub(super) fn find_token(&self, token: Id<'_>) -> Option<u32> {
        let own = self.token_place(token).ok().and_then(|at| self.tokens.get(at)).map(|&(_, slot)| slot);
        let minted = || {
            let slot = *self.ids.get(token.as_u64()?)?;
            matches!(self.entry(slot)?.token, Token::Minted).then_some(slot)
        };
        let slot = own.or_else(minted)?;
        matches!(self.entry(slot)?.place, Place::Lent(_)).then_some(slot)
    }

    fn token_place(&self, token: Id<'_>) -> Result<usize, usize> {
        self.tokens.binary_search_by(|(own, _)| own.as_id().cmp(&token))
    }

    /// Whether a caller's token is that of another request already (PRG-01).
    pub(super) fn token_in_use(&self, token: Id<'_>) -> bool {
        let minted = || {
            let slot = token.as_u64().and_then(|id| self.ids.get(id));
            slot.and_then(|&slot| self.entry(slot)).is_some_and(|entry| matches!(entry.token, Token::Minted))
        };
        self.token_place(token).is_ok() || minted()
    }

    /// The next id. It is used up only by [`queue`](Self::queue) (MSG-06). One that would be a second use of a caller's token is left out.
    pub(super) fn next_id(&self, token: &Token) -> u64 {
        let mut id = self.last_id + 1;
        if matches!(token, Token::Minted) {
            while self.tokens.iter().any(|(own, _)| own.as_id().as_u64() == Some(id)) {
                id += 1;
            }
        }
        id
    }

    /// Uses up an id for a frame that is in no slot: the probe.
    pub(super) fn mint(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Takes a slot. The token must not be in use.
    pub(super) fn insert(
        &mut self,
        options: &RequestOptions,
        times: Times,
        token: Token,
        listen: Option<Box<Listen>>,
        payload: Option<Payload>,
    ) -> u32 {
        let generation = self.free.last().and_then(|&slot| self.entry(slot)).map_or(0, |entry| entry.generation);
        let entry = Entry {
            generation,
            place: Place::Waiting(0),
            id: 0,
            seen: false,
            idempotent: options.idempotent,
            token,
            listen,
            payload,
            delivery: Delivery::NotSent,
            timeout: times.timeout,
            max_timeout: times.max_timeout,
            queue_left: times.queue_timeout,
            clock_start: Instant::EPOCH,
            ceiling: None,
            alarm: None,
            progress: None,
        };
        self.live += 1;
        if entry.listen.is_some() {
            self.listens += 1;
        } else {
            self.requests += 1;
        }
        let own = if let Token::Own(own) = &entry.token { Some(own.clone()) } else { None };
        let slot = match self.free.pop() {
            Some(slot) => {
                if let Some(place) = self.entries.get_mut(slot as usize) {
                    *place = entry;
                }
                slot
            }
            None => {
                self.entries.push(entry);
                // Slots are bounded by the limits of requests and listens, far below.
                u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
            }
        };
        if let Some(own) = own {
            let at = self.token_place(own.as_id()).unwrap_or_else(|at| at);
            self.tokens.insert(at, (own, slot));
        }
        slot
    }

    /// Its frame is in the queue under this id: its time in the queue runs.
    pub(super) fn queue(&mut self, slot: u32, id: u64, frame: FrameNumber, now: Instant) {
        self.last_id = self.last_id.max(id);
        let Some(entry) = self.entries.get_mut(slot as usize) else { return };
        entry.id = id;
        entry.place = Place::Queued(frame);
        entry.clock_start = now;
        let deadline = now.checked_add(entry.queue_left);
        self.ids.push(id, slot);
        self.queued.push(frame.0, slot);
        self.arm(slot, deadline);
    }

    /// It waits for the next life (or the first), with this turn: no clock runs, and it has no id.
    pub(super) fn wait(&mut self, slot: u32, turn: u64, now: Instant) {
        self.arm(slot, None);
        self.forget_frame(slot);
        let Some(entry) = self.entries.get_mut(slot as usize) else { return };
        match entry.place {
            Place::Queued(_) => {
                entry.queue_left = entry.queue_left.saturating_sub(now.saturating_since(entry.clock_start));
            }
            Place::Lent(_) => self.recent.record(entry.id, Ending::GivenUp),
            _ => {}
        }
        entry.id = 0;
        entry.progress = None;
        if let Some(listen) = &mut entry.listen {
            listen.open = false;
        }
        entry.place = Place::Waiting(turn);
        entry.ceiling = None;
        entry.seen = false;
    }

    /// All frames below this number have been lent: the clocks of their requests start (CAN-03, TMO-01).
    pub(super) fn lent(&mut self, up_to: FrameNumber, now: Instant) {
        while let Some((frame, &slot)) = self.queued.first() {
            if frame >= up_to.0 {
                break;
            }
            self.queued.remove(frame);
            let Some(entry) = self.entries.get_mut(slot as usize) else { continue };
            entry.place = Place::Lent(FrameNumber(frame));
            entry.clock_start = now;
            entry.ceiling = entry.max_timeout.and_then(|max| now.checked_add(max));
            let deadline = earlier(now.checked_add(entry.timeout), entry.ceiling);
            self.arm(slot, deadline);
        }
    }

    /// Progress came for it. One that increases restarts the clock, if that is asked for (TMO-02); any other does not (case 057).
    pub(super) fn progressed(&mut self, slot: u32, progress: f64, now: Instant) {
        let Some(entry) = self.entries.get_mut(slot as usize) else { return };
        entry.seen = true;
        if entry.progress.is_some_and(|last| progress <= last) {
            return;
        }
        entry.progress = Some(progress);
        if entry.max_timeout.is_some() && entry.alarm.is_some() {
            let deadline = earlier(now.checked_add(entry.timeout), entry.ceiling);
            self.arm(slot, deadline);
        }
    }

    /// Its clock stops: a listen is acknowledged (TMO-04).
    pub(super) fn stop_clock(&mut self, slot: u32) {
        self.arm(slot, None);
    }

    fn arm(&mut self, slot: u32, deadline: Option<Instant>) {
        let Some(entry) = self.entries.get_mut(slot as usize) else { return };
        if let Some(old) = entry.alarm.take() {
            self.alarms.unset(old, slot);
        }
        entry.alarm = deadline.map(|at| self.alarms.set(at, slot));
    }

    /// The earliest deadline.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.alarms.first().map(|(at, _)| at)
    }

    /// A request whose deadline has come; its clock is stopped first, so that it comes once.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let (at, slot) = self.alarms.first()?;
        if at > now {
            return None;
        }
        self.arm(slot, None);
        Some(slot)
    }

    /// Takes a request out of every index; its slot stays taken until [`free`](Self::free). Gives its payload back.
    pub(super) fn end(&mut self, slot: u32, ending: Ending) -> Option<Payload> {
        self.arm(slot, None);
        self.forget_frame(slot);
        let entry = self.entries.get_mut(slot as usize)?;
        if entry.id != 0 {
            self.recent.record(entry.id, ending);
        }
        entry.place = Place::Ended;
        self.live -= 1;
        if let Token::Own(_) = core::mem::take(&mut entry.token) {
            self.tokens.retain(|&(_, owner)| owner != slot);
        }
        self.entries.get_mut(slot as usize)?.payload.take()
    }

    /// Forgets id and place in the queue.
    fn forget_frame(&mut self, slot: u32) {
        let Some(entry) = self.entries.get(slot as usize) else { return };
        if entry.id != 0 {
            self.ids.remove(entry.id);
        }
        if let Place::Queued(frame) = entry.place {
            self.queued.remove(frame.0);
        }
    }

    /// The slot of a request that has ended can be used again. A slot whose generations are used up is left alone, so that a handle
    /// never names another request.
    pub(super) fn free(&mut self, slot: u32) {
        let Some(entry) = self.entries.get_mut(slot as usize) else { return };
        if entry.place != Place::Ended {
            return;
        }
        entry.place = Place::Free;
        if entry.listen.take().is_some() {
            self.listens -= 1;
        } else {
            self.requests -= 1;
        }
        if let Some(next) = entry.generation.checked_add(1) {
            entry.generation = next;
            self.free.push(slot);
        }
    }

    /// The request that is queued under this id, not lent.
    pub(super) fn find_queued(&self, id: u64) -> Option<u32> {
        let slot = *self.ids.get(id)?;
        matches!(self.entry(slot)?.place, Place::Queued(_)).then_some(slot)
    }

    /// The slots of all requests that have not ended: those with an id in the order of their ids, then those that wait by their turn.
    pub(super) fn live_slots(&self) -> Vec<u32> {
        let mut waiting = BTreeMap::new();
        for (slot, entry) in (0..).zip(&self.entries) {
            if let Place::Waiting(turn) = entry.place {
                waiting.insert(turn, slot);
            }
        }
        self.ids.iter().map(|(_, &slot)| slot).chain(waiting.into_values()).collect()
    }

    /// Requests that the server may have seen, and listens, with their ids.
    pub(super) fn by_id(&self) -> impl Iterator<Item = (u32, &Entry)> {
        self.ids.iter().filter_map(|(_, &slot)| Some((slot, self.entry(slot)?)))
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

#[cfg(test)]
mod tests;
