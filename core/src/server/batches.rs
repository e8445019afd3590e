//! Owns the batches of revision 2025-03-26: the answers to one array of requests are collected and leave as one array (LEG-09, LEG-10).
//! It must not know what is asked or answered.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::fmt;

use super::Connection;
use super::admission::{Key, Table};
use crate::Instant;
use crate::own::Own;
use crate::send_buffer::SendBuffer;

/// The batches of which not every request is answered, and those for whose answers there is no room yet.
#[derive(Debug)]
pub(super) struct Batches {
    open: BTreeMap<u64, Batch>,
    next: u64,
    /// The one whose elements are being handed in.
    current: Option<u64>,
    /// Complete, the oldest first. They wait for room, so something is queued before them.
    ready: VecDeque<Batch>,
    /// Answers collected and not queued, in bytes.
    bytes: usize,
    limit: usize,
}

#[derive(Debug, Default)]
struct Batch {
    answers: Vec<Answer>,
    /// Requests that are not answered.
    owed: usize,
    /// Its requests are refused, as by a full house.
    crowded: bool,
}

impl Batch {
    /// What of its answers is the core's own, in bytes.
    fn own(&self) -> usize {
        self.answers.iter().filter(|answer| answer.own).map(|answer| answer.frame.len()).sum()
    }
}

struct Answer {
    /// The id that is taken until the array is queued.
    key: Option<Key>,
    frame: Vec<u8>,
    /// The core's own, on its budget.
    own: bool,
}

/// Without the frame (SEC-03).
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("key", &self.key).field("len", &self.frame.len()).finish()
    }
}

impl Batches {
    pub(super) const fn new(limit: usize) -> Self {
        Self { open: BTreeMap::new(), next: 0, current: None, ready: VecDeque::new(), bytes: 0, limit }
    }

    /// Whether elements are being handed in.
    pub(super) const fn is_open(&self) -> bool {
        self.current.is_some()
    }

    /// The batch whose elements are being handed in.
    pub(super) const fn current(&self) -> Option<u64> {
        self.current
    }

    /// Whether the requests at hand are refused.
    pub(super) fn is_crowded(&self) -> bool {
        self.current.and_then(|number| self.open.get(&number)).is_some_and(|batch| batch.crowded)
    }

    /// A request of the batch at hand is owed an answer.
    pub(super) fn owe(&mut self) {
        if let Some(batch) = self.current.and_then(|number| self.open.get_mut(&number)) {
            batch.owed += 1;
        }
    }

    /// A request is owed nothing any more: it was answered, or cancelled.
    pub(super) fn settle(&mut self, number: u64) {
        if let Some(batch) = self.open.get_mut(&number) {
            batch.owed = batch.owed.saturating_sub(1);
        }
    }

    /// Whether an answer of a handler has room.
    pub(super) const fn has_room(&self, size: usize) -> bool {
        size <= self.limit.saturating_sub(self.bytes)
    }

    /// Whether complete batches wait for room in the queue.
    pub(super) fn is_stuck(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Collects an answer.
    pub(super) fn add(&mut self, number: u64, key: Option<Key>, frame: Vec<u8>, own: bool) {
        if let Some(batch) = self.open.get_mut(&number) {
            self.bytes = self.bytes.saturating_add(frame.len());
            batch.answers.push(Answer { key, frame, own });
        }
    }

    /// Takes a collected answer out: its request is cancelled.
    pub(super) fn withdraw(&mut self, key: &Key) -> bool {
        for batch in self.open.values_mut().chain(&mut self.ready) {
            let Some(at) = batch.answers.iter().position(|answer| answer.key.as_ref() == Some(key)) else { continue };
            let answer = batch.answers.remove(at);
            self.bytes = self.bytes.saturating_sub(answer.frame.len());
            return true;
        }
        false
    }

    /// Makes a batch ready whose requests are all answered.
    fn complete(&mut self, number: u64, account: &mut Own) {
        let complete = self.current != Some(number) && self.open.get(&number).is_some_and(|batch| batch.owed == 0);
        if let Some(batch) = if complete { self.open.remove(&number) } else { None } {
            account.complete(batch.own());
            self.ready.push_back(batch);
        }
    }

    /// Queues what is ready, as far as there is room.
    fn flush(&mut self, out: &mut SendBuffer, table: &mut Table, account: &mut Own) {
        while let Some(batch) = self.ready.front() {
            let len = batch.answers.iter().fold(0_usize, |sum, answer| sum.saturating_add(answer.frame.len()));
            // With an empty queue it goes whatever its size: it is bounded, and nothing would ever make more room.
            if !batch.answers.is_empty() && out.len() > 0 && len.saturating_add(batch.answers.len() + 2) > out.room() {
                return;
            }
            if !batch.answers.is_empty() {
                let frame = out.push(true, |out| {
                    for (i, answer) in batch.answers.iter().enumerate() {
                        out.push(if i == 0 { b'[' } else { b',' });
                        out.extend_from_slice(&answer.frame);
                    }
                    out.push(b']');
                });
                if let Ok(frame) = frame {
                    account.queued(frame, batch.own());
                }
            }
            self.bytes = self.bytes.saturating_sub(len);
            for key in batch.answers.iter().filter_map(|answer| answer.key.as_ref()) {
                table.free_id(key);
            }
            self.ready.pop_front();
        }
    }

    /// The stream is gone. Requests that have not ended belong to no batch any more.
    fn clear(&mut self, table: &mut Table) {
        let answers = self.open.values().chain(&self.ready).flat_map(|batch| &batch.answers);
        for key in answers.filter_map(|answer| answer.key.as_ref()) {
            table.free_id(key);
        }
        self.open.clear();
        self.ready.clear();
        (self.current, self.bytes) = (None, 0);
    }
}

impl Connection {
    /// Begins a batch: the messages of one array are handed in one by one, and then [`close_batch`](Self::close_batch) is called. `false` where
    /// no array is a message, because no session of revision 2025-03-26 is open: hand in the line as a whole, which refuses it (LEG-10).
    ///
    /// ```
    /// # use mcp_wire::server::{Config, Connection};
    /// # use mcp_wire::{Instant, RecvBuffer};
    /// fn take_in(server: &mut Connection, recv: &mut RecvBuffer, now: Instant) {
    ///     while let Some(frame) = recv.next_frame() {
    ///         if let Some(batch) = frame.batch().filter(|_| server.open_batch(now)) {
    ///             for message in batch {
    ///                 let _event = server.handle(message, now);
    ///             }
    ///             server.close_batch(now);
    ///         } else {
    ///             let _event = server.handle(frame.message(), now);
    ///         }
    ///     }
    /// }
    /// # take_in(&mut Connection::new(Config::new("demo", "1.0"))?, &mut RecvBuffer::default(), Instant::EPOCH);
    /// # Ok::<(), mcp_wire::ConfigError>(())
    /// ```
    #[must_use]
    pub fn open_batch(&mut self, now: Instant) -> bool {
        self.tick(now);
        if !self.takes_input() || !self.sessions.takes_batches() {
            return false;
        }
        self.close_batch(now);
        let batches = &mut self.batches;
        let number = batches.next;
        batches.next += 1;
        batches.current = Some(number);
        let crowded = self.own.is_crowded();
        batches.open.insert(number, Batch { crowded, ..Batch::default() });
        true
    }

    /// Ends the batch at hand. Its answers leave as one array once there are all of them; without a request in it, nothing leaves (LEG-09).
    pub fn close_batch(&mut self, now: Instant) {
        self.tick(now);
        if let Some(number) = self.batches.current.take() {
            self.check_batch(number);
        }
    }

    /// Lets a batch go if it is complete.
    pub(super) fn check_batch(&mut self, number: u64) {
        self.batches.complete(number, &mut self.own);
        self.flush_batches();
    }

    pub(super) fn flush_batches(&mut self) {
        self.batches.flush(&mut self.out, &mut self.table, &mut self.own);
    }

    pub(super) fn forget_batches(&mut self) {
        self.batches.clear(&mut self.table);
    }
}
