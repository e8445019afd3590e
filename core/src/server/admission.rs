//! Owns the table of requests: slots and tickets, the ids that are taken, the permits, and the queue of those that wait (LIM-02).
//! It must not know what a request is about or what is written for it.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::progress::Progress;
use super::{Admission, Config, LogLevel, Session, Ticket};
use crate::send_buffer::{FrameNumber, SendBuffer};
use crate::{Id, IdBuf};

/// An id as the tables compare it (MSG-05). Numbers, the usual case, compare without a look at their text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Number(u64),
    Other(IdBuf),
}

impl From<Id<'_>> for Key {
    fn from(id: Id<'_>) -> Self {
        // Equal ids have equal numbers: the value is read exactly, and only an id that has none stays text.
        id.as_u64().map_or_else(|| Self::Other(id.into()), Self::Number)
    }
}

/// What an id that is taken stands for.
#[derive(Debug)]
pub(super) enum Owner {
    /// The request in this slot.
    Request(u32),
    /// The listen of this number.
    Listen(u64),
    /// A request that has been answered, while no byte of the answer was lent: the client cannot know yet.
    Answered {
        /// The answer.
        answer: FrameNumber,
        /// Notifications before it that wait as well.
        notes: Notes,
    },
    /// A request that has been answered, while its batch is not queued.
    Collected,
}

/// How far a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It waits for a permit, with so many bytes of payload.
    Waiting(usize),
    /// Its handler runs.
    Running,
    /// Its handler runs, but nothing more is written for it: it was cancelled, or the server has ended.
    Silent,
    /// It has been answered, and the task that it began goes on reporting progress (LEG-11).
    Task,
}

/// A request that has not ended, or whose handler has not returned.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: IdBuf,
    pub(super) state: State,
    /// Its place in the order of arrival.
    arrival: u64,
    pub(super) terms: Terms,
    pub(super) progress: Option<Progress>,
    /// Log messages that may still be queued.
    pub(super) logs: Notes,
    /// Its answer begins a task.
    task: bool,
}

/// Under which terms a request came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// The log level it asked for.
    pub(super) log_level: Option<LogLevel>,
    /// Its legacy session.
    pub(super) session: Option<Session>,
    /// The batch it is an element of.
    pub(super) batch: Option<u64>,
}

/// Frames of one request or listen that may still be withdrawn, in order.
#[derive(Debug, Default)]
pub(super) struct Notes(Vec<FrameNumber>);

impl Notes {
    /// Remembers a frame, and forgets those of which a byte was lent.
    pub(super) fn add(&mut self, frame: FrameNumber, out: &SendBuffer) {
        // Amortised: each time half of them are late, or the vector would grow anyway.
        if self.0.len() == self.0.capacity() {
            let lent = out.lent_up_to();
            self.0.retain(|&note| note >= lent);
        }
        self.0.push(frame);
    }

    /// Takes back all that were not lent.
    pub(super) fn withdraw(self, out: &mut SendBuffer) {
        for frame in self.0.into_iter().rev() {
            out.withdraw(frame);
        }
    }
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    entry: Option<Entry>,
}

/// The requests, and the ids that are taken.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    ids: BTreeMap<Key, Owner>,
    /// Ids of answers that may not have been lent, in the order of their frames.
    answered: VecDeque<(FrameNumber, Key)>,
    /// How many of them have been withdrawn.
    withdrawn: usize,
    waiting: BTreeMap<u64, u32>,
    waiting_bytes: usize,
    next_arrival: u64,
    /// Handlers that have not returned.
    running: usize,
    /// Requests that are owed an answer.
    owed: usize,
    tasks: usize,
    running_limit: usize,
    waiting_limit: usize,
    waiting_bytes_limit: usize,
    pause_when_full: bool,
    task_limit: usize,
}

impl Table {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            ids: BTreeMap::new(),
            answered: VecDeque::new(),
            withdrawn: 0,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            next_arrival: 0,
            running: 0,
            owed: 0,
            tasks: 0,
            running_limit: config.running_limit,
            waiting_limit: config.waiting_limit,
            waiting_bytes_limit: config.waiting_bytes_limit,
            pause_when_full: config.pause_when_full,
            task_limit: config.task_limit,
        }
    }

    /// Whether a request with this id would be a duplicate (MSG-07).
    pub(super) fn is_taken(&self, id: Id<'_>) -> bool {
        self.ids.contains_key(&Key::from(id))
    }

    /// Takes a request in, to run or to wait; `None` if there is no place for it. Its id must not be taken.
    pub(super) fn admit(
        &mut self,
        id: Id<'_>,
        payload: usize,
        terms: Terms,
        progress: Option<Progress>,
    ) -> Option<(Ticket, Admission)> {
        let (state, admission) = if self.running < self.running_limit {
            (State::Running, Admission::Run)
        } else {
            // Where reading pauses instead of refusing, what was read is let in, and the pause bounds how much that is.
            let added =
                if self.pause_when_full { self.waiting_bytes } else { self.waiting_bytes.saturating_add(payload) };
            if self.waiting.len() >= self.waiting_limit || added > self.waiting_bytes_limit {
                return None;
            }
            (State::Waiting(payload), Admission::Wait)
        };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(Slot::default());
                slot
            }
        };
        let place = self.slots.get_mut(slot as usize)?;
        let arrival = self.next_arrival;
        self.next_arrival += 1;
        let logs = Notes::default();
        place.entry = Some(Entry { id: id.into(), state, arrival, terms, progress, logs, task: false });
        match state {
            State::Waiting(bytes) => {
                self.waiting.insert(arrival, slot);
                self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
            }
            _ => self.running += 1,
        }
        self.owed += 1;
        self.ids.insert(Key::from(id), Owner::Request(slot));
        Some((Ticket { slot, generation: place.generation }, admission))
    }

    /// Whether no further request would find a place.
    pub(super) fn is_full(&self) -> bool {
        self.running >= self.running_limit
            && (self.waiting.len() >= self.waiting_limit || self.waiting_bytes >= self.waiting_bytes_limit)
    }

    /// Whether some request is owed an answer.
    pub(super) const fn is_owed(&self) -> bool {
        self.owed > 0
    }

    pub(super) fn get(&self, ticket: Ticket) -> Option<&Entry> {
        let slot = self.slots.get(ticket.slot as usize)?;
        slot.entry.as_ref().filter(|_| slot.generation == ticket.generation)
    }

    pub(super) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Entry> {
        let slot = self.slots.get_mut(ticket.slot as usize)?;
        slot.entry.as_mut().filter(|_| slot.generation == ticket.generation)
    }

    /// The ticket of the request in a slot.
    pub(super) fn ticket(&self, slot: u32) -> Option<Ticket> {
        let place = self.slots.get(slot as usize)?;
        place.entry.as_ref().map(|_| Ticket { slot, generation: place.generation })
    }

    /// The handler has returned, or a waiting request is dropped: the slot, the permit and the id are free.
    pub(super) fn release(&mut self, ticket: Ticket) -> Option<Entry> {
        let entry = self.take(ticket)?;
        self.ids.remove(&Key::from(entry.id.as_id()));
        Some(entry)
    }

    /// As [`release`](Self::release), but the id stays taken until the answer is lent, and a task stays.
    pub(super) fn answered(&mut self, ticket: Ticket, answer: FrameNumber) {
        let Some((key, notes)) = self.finish(ticket) else { return };
        if let Some(owner) = self.ids.get_mut(&key) {
            *owner = Owner::Answered { answer, notes };
        }
        self.answered.push_back((answer, key));
    }

    /// As [`release`](Self::release), but the id stays taken until its batch is queued, and a task stays.
    pub(super) fn collected(&mut self, ticket: Ticket) -> Option<Key> {
        let (key, _) = self.finish(ticket)?;
        if let Some(owner) = self.ids.get_mut(&key) {
            *owner = Owner::Collected;
        }
        Some(key)
    }

    /// A batch is queued, or the connection gone.
    pub(super) fn free_id(&mut self, key: &Key) {
        if matches!(self.ids.get(key), Some(Owner::Collected)) {
            self.ids.remove(key);
        }
    }

    /// Takes a request that is answered out of its slot, or leaves it there as a task. Its notifications may still be queued.
    fn finish(&mut self, ticket: Ticket) -> Option<(Key, Notes)> {
        let entry = self.get_mut(ticket)?;
        let key = Key::from(entry.id.as_id());
        let mut notes = core::mem::take(&mut entry.logs);
        if entry.task && entry.state == State::Running {
            entry.state = State::Task;
            self.running -= 1;
            self.owed -= 1;
            return Some((key, notes));
        }
        if let Some(frame) = self.take(ticket)?.progress.and_then(|progress| progress.frame()) {
            notes.0.push(frame);
        }
        Some((key, notes))
    }

    /// Marks a running request as one whose answer begins a task. `false` if there are too many, or it has no progress token.
    pub(super) fn begin_task(&mut self, ticket: Ticket) -> bool {
        let room = self.tasks < self.task_limit;
        let Some(entry) = self.get_mut(ticket).filter(|entry| entry.state == State::Running) else { return false };
        if entry.task || !room || entry.progress.is_none() {
            return entry.task;
        }
        entry.task = true;
        self.tasks += 1;
        true
    }

    /// The task is over, or is none: nothing of it is left.
    pub(super) fn end_task(&mut self, ticket: Ticket) {
        let Some(entry) = self.get_mut(ticket) else { return };
        if entry.state == State::Task {
            self.take(ticket);
        } else if core::mem::take(&mut entry.task) {
            self.tasks -= 1;
        }
    }

    /// The tasks that go on after their requests.
    pub(super) fn tasks(&self) -> Vec<Ticket> {
        self.tickets(|entry| entry.state == State::Task)
    }

    /// Answers below this number have been lent: their ids are free.
    pub(super) fn settle(&mut self, lent_up_to: FrameNumber) {
        while let Some((answer, key)) = self.answered.pop_front() {
            if answer >= lent_up_to {
                self.answered.push_front((answer, key));
                break;
            }
            if is_answer(&self.ids, &key, answer) {
                self.ids.remove(&key);
            } else {
                self.withdrawn = self.withdrawn.saturating_sub(1);
            }
        }
    }

    fn take(&mut self, ticket: Ticket) -> Option<Entry> {
        let slot = self.slots.get_mut(ticket.slot as usize)?;
        if slot.generation != ticket.generation {
            return None;
        }
        let entry = slot.entry.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(ticket.slot);
        self.count_out(entry.state, entry.arrival);
        if !matches!(entry.state, State::Silent | State::Task) {
            self.owed -= 1;
        }
        if entry.task {
            self.tasks -= 1;
        }
        Some(entry)
    }

    fn count_out(&mut self, state: State, arrival: u64) {
        match state {
            State::Waiting(bytes) => {
                self.waiting.remove(&arrival);
                self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
            }
            State::Running | State::Silent => self.running -= 1,
            State::Task => {}
        }
    }

    /// Nothing more is written for a running request; its permit and its id stay taken (CAN-09).
    pub(super) fn silence(&mut self, ticket: Ticket) {
        let Some(entry) = self.get_mut(ticket) else { return };
        if entry.state == State::Running {
            entry.state = State::Silent;
            self.owed -= 1;
        }
    }

    /// Gives a free permit to the request that has waited longest.
    pub(super) fn start_next(&mut self) -> Option<Ticket> {
        if self.running >= self.running_limit {
            return None;
        }
        let (&arrival, &slot) = self.waiting.first_key_value()?;
        let place = self.slots.get_mut(slot as usize)?;
        let entry = place.entry.as_mut()?;
        let state = core::mem::replace(&mut entry.state, State::Running);
        let ticket = Ticket { slot, generation: place.generation };
        self.count_out(state, arrival);
        self.running += 1;
        Some(ticket)
    }

    /// All requests that are owed an answer, in their order of arrival.
    pub(super) fn owed(&self) -> Vec<Ticket> {
        self.tickets(|entry| !matches!(entry.state, State::Silent | State::Task))
    }

    fn tickets(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<Ticket> {
        let mut found: Vec<_> = (0_u32..)
            .zip(&self.slots)
            .filter_map(|(slot, place)| {
                let entry = place.entry.as_ref().filter(|entry| wanted(entry))?;
                Some((entry.arrival, Ticket { slot, generation: place.generation }))
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, ticket)| ticket).collect()
    }

    /// Takes an id for a listen.
    pub(super) fn open_listen(&mut self, id: Id<'_>, listen: u64) {
        self.ids.insert(Key::from(id), Owner::Listen(listen));
    }

    /// Frees the id of a listen.
    pub(super) fn close_listen(&mut self, id: Id<'_>) {
        self.ids.remove(&Key::from(id));
    }

    /// Withdraws an answer of which no byte was lent, with what is queued before it for its request. `false` if it is too late.
    pub(super) fn withdraw_answer(&mut self, id: Id<'_>, out: &mut SendBuffer) -> bool {
        let key = Key::from(id);
        let Some(Owner::Answered { answer, .. }) = self.ids.get(&key) else { return false };
        if !out.withdraw(*answer) {
            return false;
        }
        if let Some(Owner::Answered { notes, .. }) = self.ids.remove(&key) {
            notes.withdraw(out);
        }
        self.withdrawn += 1;
        if self.withdrawn > self.answered.len() / 2 {
            // Answers that come and go while the peer does not read leave nothing behind.
            let ids = &self.ids;
            self.answered.retain(|(answer, key)| is_answer(ids, key, *answer));
            self.withdrawn = 0;
        }
        true
    }

    /// What an id stands for.
    pub(super) fn owner(&self, id: Id<'_>) -> Option<&Owner> {
        self.ids.get(&Key::from(id))
    }

    /// The stream is gone: no answer is on its way.
    pub(super) fn forget_answers(&mut self) {
        self.withdrawn = 0;
        for (answer, key) in self.answered.drain(..) {
            if is_answer(&self.ids, &key, answer) {
                self.ids.remove(&key);
            }
        }
    }
}

/// Whether this answer is still what its id stands for.
fn is_answer(ids: &BTreeMap<Key, Owner>, key: &Key, answer: FrameNumber) -> bool {
    matches!(ids.get(key), Some(Owner::Answered { answer: at, .. }) if *at == answer)
}
