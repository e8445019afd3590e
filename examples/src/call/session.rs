//! Owns the course of a run: which operation of the script is next, what is waited for, which event belongs to which key, and the
//! exit status. A pure machine, so that every runtime and the replay share it; it must not know how anything is sent or shown.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use mcp_wire::client::Handle;
use mcp_wire::lifecycle::Escalation;
use mcp_wire::{Cause, Delivery};
use mcp_wire_driver::client::ClientEvent;

use super::event::Event;
use super::script::Op;

/// After this long without an answer to the start, a person is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// After the connection is closed for good, a script that comes line by line ends with this much silence: whoever writes it may wait
/// for the last event, which waits for the end of the script.
const SILENCE: Duration = Duration::from_millis(500);

/// What the caller does next.
#[derive(Debug)]
pub(super) enum Next {
    /// Show this.
    Show(Shown),
    /// Do this: a request, a listen, a notification, a cancellation, a close or a kill. A request or listen is answered with
    /// [`Session::sent`] or [`Session::refused`].
    Perform(Op),
    /// Wait for an event, a signal, until `until` at most, and for a line of the script if `input` is set.
    Wait { until: Option<Instant>, input: bool },
    /// All is over.
    Done,
}

/// What is shown.
#[derive(Debug, Clone)]
pub(super) enum Shown {
    Event(Event),
    /// The server has not come up yet.
    StillStarting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Pending,
    /// A listen that is open.
    Open,
    Ended,
}

#[derive(Debug)]
struct Key {
    state: State,
    listen: bool,
    handle: Option<Handle>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Waiting {
    Key(String),
    Event(&'static str),
    Until(Instant),
}

/// How many of one kind came, and how many were consumed by a wait.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    seen: u64,
    consumed: u64,
}

#[derive(Debug)]
pub(super) struct Session {
    ops: VecDeque<Op>,
    /// More lines of the script may come.
    more: bool,
    keys: BTreeMap<String, Key>,
    by_handle: BTreeMap<Handle, String>,
    counts: BTreeMap<&'static str, Count>,
    waiting: Option<Waiting>,
    out: VecDeque<Shown>,
    /// A close or kill was asked for: nothing can be sent any more.
    closing: bool,
    /// The last event, kept back until the script is done.
    closed: Option<Event>,
    closed_shown: bool,
    /// When the script counts as ended.
    quiet: Option<Instant>,
    /// When a person is told that the start takes long.
    patience: Option<Instant>,
    /// It was told.
    told: bool,
    /// There is a connection to a server.
    up: bool,
    /// The server is started whatever the script says, and whether it could be is not known yet. The end waits for that.
    unsettled: bool,
    start_failed: bool,
    errors: bool,
    failures: bool,
    /// Not the script but a signal, a closed output or a bad line ends the run, with this status.
    abandoned: Option<u8>,
    interrupted: bool,
    silent: bool,
}

impl Session {
    /// `more`: lines of the script come one by one through [`line`](Self::line).
    pub(super) fn new(ops: Vec<Op>, more: bool) -> Self {
        Self {
            ops: ops.into(),
            more,
            keys: BTreeMap::new(),
            by_handle: BTreeMap::new(),
            counts: BTreeMap::new(),
            waiting: None,
            out: VecDeque::new(),
            closing: false,
            closed: None,
            closed_shown: false,
            quiet: None,
            patience: None,
            told: false,
            up: false,
            unsettled: false,
            start_failed: false,
            errors: false,
            failures: false,
            abandoned: None,
            interrupted: false,
            silent: false,
        }
    }

    /// A server is being started: from now on patience counts.
    pub(super) fn starting(&mut self, now: Instant) {
        if !self.told {
            self.patience = now.checked_add(PATIENCE);
        }
    }

    /// The same, though nothing may ask for anything: even then the run tells how it went.
    pub(super) fn starting_unasked(&mut self, now: Instant) {
        self.starting(now);
        self.unsettled = true;
    }

    /// The next line of the script; `None` at its end.
    pub(super) fn line(&mut self, op: Option<Op>) {
        self.quiet = None;
        match op {
            Some(op) => self.ops.push_back(op),
            None => self.more = false,
        }
    }

    /// A request or listen is on its way.
    pub(super) fn sent(&mut self, key: String, listen: bool, handle: Handle) {
        self.by_handle.insert(handle, key.clone());
        self.keys.insert(key, Key { state: State::Pending, listen, handle: Some(handle) });
    }

    /// A request waits for room in the queue; it is [`sent`](Self::sent) or [`refused`](Self::refused) later.
    pub(super) fn waits(&mut self, key: String) {
        self.keys.insert(key, Key { state: State::Pending, listen: false, handle: None });
    }

    /// A request or listen could not even be queued.
    pub(super) fn refused(&mut self, key: String, listen: bool, cause: &'static str, detail: String) {
        self.keys.insert(key.clone(), Key { state: State::Ended, listen, handle: None });
        self.failures = true;
        self.show(Event::Failed { key, cause, delivery: Delivery::NotSent.as_str(), detail });
    }

    /// The handle of a key that has not ended.
    pub(super) fn handle(&self, key: &str) -> Option<Handle> {
        self.keys.get(key).filter(|key| key.state != State::Ended)?.handle
    }

    /// The run ends early with this status: what is left of the script is not performed.
    pub(super) fn abandon(&mut self, status: u8) {
        self.abandoned.get_or_insert(status);
        self.ops.clear();
        self.more = false;
        self.waiting = None;
    }

    /// No event is shown from here on.
    pub(super) fn silence(&mut self) {
        self.silent = true;
        self.out.clear();
    }

    /// A signal: the run ends early, and the next one will not be so patient. The caller closes, whatever still waits to be shown.
    pub(super) fn interrupt(&mut self, status: u8) {
        self.interrupted = true;
        self.closing = true;
        self.abandon(status);
    }

    /// Whether a signal came.
    pub(super) const fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Nothing more is told, though the last event has not come. It takes a fault of the adapter's, and still must end.
    pub(super) fn lost(&mut self) {
        if self.closed.is_none() && !self.closed_shown {
            self.event(ClientEvent::Closed { exit: None, escalation: Escalation::Kill, restarts: 0 });
        }
    }

    /// What to do next.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        loop {
            if let Some(shown) = self.out.pop_front() {
                return Next::Show(shown);
            }
            if let Some(waiting) = self.waiting.clone() {
                if !self.is_over(&waiting, now) {
                    return self.wait(now);
                }
                self.waiting = None;
            }
            match self.ops.pop_front() {
                Some(Op::Wait { key }) => self.waiting = Some(Waiting::Key(key)),
                Some(Op::WaitEvent { event }) => self.waiting = Some(Waiting::Event(event)),
                Some(Op::Sleep { time }) => self.waiting = now.checked_add(time).map(Waiting::Until),
                Some(op) => {
                    if let Some(op) = self.admit(op) {
                        let starts = matches!(op, Op::Request { .. } | Op::Listen { .. } | Op::Notify { .. });
                        if starts && !self.up && !self.closing && self.closed.is_none() && self.patience.is_none() {
                            self.starting(now);
                        }
                        return Next::Perform(op);
                    }
                }
                None if self.more && self.quiet.is_some_and(|time| time <= now) => self.more = false,
                None if self.more => return self.wait(now),
                None => {
                    if let Some(closed) = self.closed.take() {
                        self.closed_shown = true;
                        self.show(closed);
                    } else if self.closed_shown {
                        return Next::Done;
                    } else if !self.closing && (self.abandoned.is_some() || (!self.unsettled && self.all_ended())) {
                        self.closing = true;
                        return Next::Perform(Op::Close);
                    } else {
                        return self.wait(now);
                    }
                }
            }
        }
    }

    /// Whether an operation is to be performed. Requests after the end are refused by the adapter, which can say why.
    fn admit(&mut self, op: Op) -> Option<Op> {
        let closed = self.closed.is_some();
        match op {
            Op::Close if closed || self.closing => return None,
            Op::Kill | Op::Cancel { .. } if closed => return None,
            Op::Close | Op::Kill => self.closing = true,
            _ => {}
        }
        Some(op)
    }

    fn is_over(&mut self, waiting: &Waiting, now: Instant) -> bool {
        match waiting {
            Waiting::Until(time) => *time <= now,
            // Every wait ends when the connection is closed for good.
            Waiting::Key(key) => {
                self.closed.is_some()
                    || self
                        .keys
                        .get(key)
                        .is_none_or(|key| key.state != State::Pending && (key.listen || key.state == State::Ended))
            }
            Waiting::Event(kind) => {
                let count = self.counts.entry(kind).or_default();
                let came = count.seen > count.consumed;
                count.consumed += u64::from(came);
                came || self.closed.is_some()
            }
        }
    }

    fn all_ended(&self) -> bool {
        self.keys.values().all(|key| key.listen || key.state == State::Ended)
    }

    fn wait(&mut self, now: Instant) -> Next {
        if self.patience.is_some_and(|time| time <= now) {
            self.patience = None;
            self.told = true;
            return Next::Show(Shown::StillStarting);
        }
        let sleep = match self.waiting {
            Some(Waiting::Until(time)) => Some(time),
            _ => None,
        };
        let input = self.more && self.waiting.is_none() && self.ops.is_empty();
        if input && self.closed.is_some() && self.quiet.is_none() {
            self.quiet = now.checked_add(SILENCE);
        }
        let quiet = self.quiet.filter(|_| input);
        Next::Wait { until: [sleep, self.patience, quiet].into_iter().flatten().min(), input }
    }

    fn show(&mut self, event: Event) {
        if !self.silent {
            self.out.push_back(Shown::Event(event));
        }
    }

    /// Takes in what the adapter tells. Gives the key that it ends.
    pub(super) fn event(&mut self, event: ClientEvent) -> Option<String> {
        let event = self.translate(event)?;
        self.counts.entry(event.kind()).or_default().seen += 1;
        let mut ended = None;
        match &event {
            Event::Result { key, .. } | Event::ListenEnded { key, .. } => ended = Some(key.clone()),
            Event::Error { key, .. } => {
                self.errors = true;
                ended = Some(key.clone());
            }
            Event::Failed { key, .. } => {
                self.failures = true;
                ended = Some(key.clone());
            }
            Event::Acknowledged { key, .. } => {
                if let Some(key) = self.keys.get_mut(key) {
                    key.state = State::Open;
                }
            }
            Event::Started { .. } => self.unsettled = false,
            Event::StartFailed { .. } => {
                self.patience = None;
                self.unsettled = false;
                self.start_failed = true;
            }
            Event::Era { .. } => {
                self.patience = None;
                self.up = true;
            }
            Event::IdleStopped { .. } | Event::Restarted { .. } => self.up = false,
            Event::Closed { .. } => {
                self.patience = None;
                self.unsettled = false;
                self.end_all();
                self.closed = Some(event);
                return None;
            }
            _ => {}
        }
        if let Some(key) = &ended {
            self.end(key);
        }
        self.show(event);
        ended
    }

    /// Nothing ends without a word: what the adapter was never asked, or could not tell of, ends here.
    fn end_all(&mut self) {
        let open: Vec<String> =
            self.keys.iter().filter(|(_, key)| key.state != State::Ended).map(|(key, _)| key.clone()).collect();
        for key in open {
            let listen = self.keys.get(&key).is_some_and(|key| key.listen);
            self.refused(key, listen, Cause::Closed.as_str(), "the connection is closed".to_owned());
        }
        self.by_handle.clear();
    }

    fn end(&mut self, key: &str) {
        if let Some(key) = self.keys.get_mut(key) {
            key.state = State::Ended;
            if let Some(handle) = key.handle.take() {
                self.by_handle.remove(&handle);
            }
        }
    }

    fn key(&self, handle: Handle) -> Option<String> {
        self.by_handle.get(&handle).cloned()
    }

    /// An event in the words of the contract. `None` for one that names a request of nobody's, or one this program does not know.
    fn translate(&self, event: ClientEvent) -> Option<Event> {
        Some(match event {
            ClientEvent::Started { pid, restarts } => Event::Started { pid, restarts },
            ClientEvent::StartFailed { kind, detail } => Event::StartFailed { kind: kind.as_str(), detail },
            ClientEvent::Era { era, version } => Event::Era { era, version },
            ClientEvent::Result { request, result } => Event::Result { key: self.key(request)?, result },
            ClientEvent::Error { request, error } => Event::Error { key: self.key(request)?, error },
            ClientEvent::Failed { request, cause, delivery, detail } => {
                Event::Failed { key: self.key(request)?, cause: cause.as_str(), delivery: delivery.as_str(), detail }
            }
            ClientEvent::Acknowledged { listen, notifications } => {
                Event::Acknowledged { key: self.key(listen)?, notifications }
            }
            ClientEvent::ListenEnded { listen, how } => {
                let key = self.key(listen)?;
                let pending = self.keys.get(&key).is_some_and(|key| key.state == State::Pending);
                if self.start_failed && pending {
                    // A start that fails ends every key in the same way.
                    Event::Failed {
                        key,
                        cause: Cause::Closed.as_str(),
                        delivery: Delivery::NotSent.as_str(),
                        detail: "the server could not be started".to_owned(),
                    }
                } else {
                    Event::ListenEnded { key, how: how.as_str() }
                }
            }
            ClientEvent::Resubscribed { listen } => Event::Resubscribed { key: self.key(listen)? },
            ClientEvent::Notification { of: Some(handle), method, params } => {
                Event::Notification { key: Some(self.key(handle)?), method, params }
            }
            ClientEvent::Notification { of: None, method, params } => Event::Notification { key: None, method, params },
            ClientEvent::Dropped { reason, id, code } => Event::Dropped { reason: reason.as_str(), id, code },
            ClientEvent::ServerRequest { method, answered } => Event::ServerRequest { method, answered },
            ClientEvent::Stderr { line } => Event::Stderr { line },
            ClientEvent::Restarted { restarts, exit } => Event::Restarted { restarts, exit: Some(exit) },
            ClientEvent::IdleStopped { exit } => Event::IdleStopped { exit: Some(exit) },
            ClientEvent::Missed { events } => Event::Missed { events },
            ClientEvent::Closed { exit, escalation, restarts } => Event::Closed { exit, escalation, restarts },
            _ => return None,
        })
    }

    /// The exit status of the contract.
    pub(super) fn status(&self) -> u8 {
        match self.abandoned {
            Some(status) => status,
            None if self.start_failed => 3,
            None if self.failures => 4,
            None => u8::from(self.errors),
        }
    }
}

#[cfg(test)]
mod tests;
