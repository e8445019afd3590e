//! Owns what must hold of what the client tells: every request ends exactly once, with the truth about its delivery; signals come in
//! order; nothing follows the end. It must not know how the client is driven.

use std::collections::{BTreeMap, BTreeSet};

use mcp_wire::client::{Event, Handle, ListenEnd, ServerTicket, Signal};
use mcp_wire::lifecycle::Notice;
use mcp_wire::{Delivery, Era, SupervisorSignal};

use super::wire::{Reach, Wire};

#[derive(Debug)]
pub(crate) struct Tracked {
    pub(crate) marker: u64,
    pub(crate) listen: bool,
    idempotent: bool,
    acknowledged: bool,
    /// A frame came back for it in this life.
    seen: bool,
    /// The same in an earlier one.
    begun: bool,
}

/// How many lives may end soon, one after the other, before the server is given up.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    pub(crate) restarts: u32,
    pub(crate) stable_us: u64,
    pub(crate) spent: u32,
}

#[derive(Debug, Default)]
pub(crate) struct ClientOracle {
    pub(crate) open: BTreeMap<Handle, Tracked>,
    pub(crate) ended: u64,
    pub(crate) results: u64,
    pub(crate) restarts: u32,
    /// Lives that were started.
    pub(crate) lives: u32,
    running: bool,
    pub(crate) established: bool,
    pub(crate) closed: bool,
    start_failed: bool,
    /// It ended on the probe and was started once more (VER-05).
    started_again: bool,
    /// The era of the current life, once it is established.
    pub(crate) era: Option<Era>,
    /// Requests of the server's that are to be answered.
    pub(crate) asked: BTreeSet<ServerTicket>,
    pub(crate) answered: u64,
    /// Sessions that were established.
    ever: u32,
    /// When that of the current life was.
    established_us: Option<u64>,
    pub(crate) budget: Budget,
}

impl ClientOracle {
    pub(crate) fn opened(&mut self, handle: Handle, marker: u64, listen: bool, idempotent: bool) {
        let old = self
            .open
            .insert(handle, Tracked { marker, listen, idempotent, acknowledged: false, seen: false, begun: false });
        assert!(old.is_none(), "a handle that names two requests");
    }

    /// There is one life, and nobody says that it has started.
    pub(crate) fn stream(&mut self) {
        self.running = true;
        self.lives = 1;
    }

    fn end(&mut self, handle: Handle, what: &str) -> Tracked {
        self.ended += 1;
        self.open.remove(&handle).unwrap_or_else(|| panic!("{what}: {handle:?} is not open: it ends twice"))
    }

    fn get(&mut self, handle: Handle, what: &str) -> &mut Tracked {
        self.open.get_mut(&handle).unwrap_or_else(|| panic!("{what}: {handle:?} is not open"))
    }

    /// A request was written whole. What an earlier life was given some of comes again only if it may.
    pub(crate) fn wrote(&self, marker: u64, earlier: Reach) {
        if let Some(tracked) = self.open.values().find(|tracked| tracked.marker == marker) {
            let again = earlier > Reach::Nothing && !tracked.listen;
            assert!(!again || tracked.idempotent, "RST-03: the request {marker} is sent again, and is not idempotent");
            assert!(
                !again || !tracked.begun,
                "RST-03: the request {marker} is sent again, and the server had begun it"
            );
        }
    }

    pub(crate) fn event(&mut self, event: &Event<'_>) {
        assert!(!self.closed, "{event:?} after the end");
        match event {
            Event::Result { request, result, .. } => {
                let tracked = self.end(*request, "result");
                self.results += 1;
                assert!(!tracked.listen, "a listen ends by its own word");
                let result = result.get();
                assert!(
                    result.contains(&format!("\"n\":{},", tracked.marker)) || result.contains("forged"),
                    "RTE-03: request {} got another's result: {result}",
                    tracked.marker
                );
            }
            Event::Error { request, .. } => {
                let tracked = self.end(*request, "error");
                assert!(!tracked.acknowledged, "an error response after the acknowledgment of a listen");
            }
            Event::RequestNotification { request, .. } => {
                let tracked = self.get(*request, "progress");
                assert!(!tracked.listen);
                tracked.seen = true;
            }
            Event::Acknowledged { listen, .. } => {
                let tracked = self.get(*listen, "acknowledgment");
                assert!(tracked.listen);
                tracked.acknowledged = true;
            }
            Event::ListenNotification { listen, .. } => {
                assert!(self.get(*listen, "a listen's notification").acknowledged, "SUB-01");
            }
            Event::ListenEnded { listen, .. } => {
                assert!(self.end(*listen, "end of a listen").listen);
            }
            Event::ServerRequest { ticket: request, .. } => {
                assert_eq!(self.era, Some(Era::Legacy), "RTE-01: a modern server asks");
                assert!(self.asked.insert(*request), "{request:?} is asked twice");
            }
            Event::Answered { .. } => {
                assert!(self.era != Some(Era::Modern), "RTE-01: a modern server is answered");
                self.answered += 1;
            }
            Event::Notification { .. } | Event::Dropped(_) | Event::Handled => {}
            _ => unreachable!("a new event"),
        }
    }

    pub(crate) fn signal(&mut self, signal: &SupervisorSignal, wires: &[Wire], now_us: u64) {
        assert!(!self.closed, "{signal:?} after the last signal");
        match signal {
            SupervisorSignal::Connection(signal) => self.connection(signal, wires, now_us),
            SupervisorSignal::Process(notice) => match notice {
                Notice::Started { restarts } => {
                    assert!(!self.start_failed);
                    if self.running {
                        // It ended on the probe, and was started once more.
                        assert!(!core::mem::replace(&mut self.started_again, true), "VER-05: once");
                        assert!(self.ever == 0, "VER-05: it was up before");
                    }
                    assert_eq!(*restarts, self.restarts);
                    (self.running, self.established, self.era) = (true, false, None);
                    self.established_us = None;
                    self.lives += 1;
                    for tracked in self.open.values_mut() {
                        tracked.begun |= core::mem::take(&mut tracked.seen);
                    }
                }
                Notice::StartFailed(_) => {
                    assert!(!core::mem::replace(&mut self.start_failed, true), "two failed starts");
                }
                Notice::Restarting { restarts, .. } => {
                    self.restarts += 1;
                    assert_eq!(*restarts, self.restarts);
                    self.running = false;
                    self.spend(now_us);
                    self.only_survivors("a restart");
                }
                Notice::IdleStopped { .. } => {
                    assert_eq!(self.era, Some(Era::Modern), "RST-09: a legacy session is stopped");
                    self.running = false;
                }
                Notice::Closed(outcome) => {
                    assert_eq!(outcome.restarts, self.restarts, "RST-05");
                    assert!(self.asked.is_empty(), "requests of the server's outlive it");
                    assert!(self.open.is_empty(), "Closed comes before the end of {:?}", self.open);
                    self.closed = true;
                }
                _ => unreachable!("a new notice"),
            },
            _ => unreachable!("a new signal"),
        }
    }

    /// A life that was stable makes good for those before it. It may have ended a while ago: that makes this check milder, never wrong.
    fn spend(&mut self, now_us: u64) {
        let stable = self.established_us.take().is_some_and(|since| now_us - since >= self.budget.stable_us);
        self.budget.spent = if stable { 1 } else { self.budget.spent + 1 };
        assert!(self.budget.spent <= self.budget.restarts, "RST-05: restarted once more: {:?}", self.budget);
    }

    /// RST-02, SUB-10: what a new life finds are listens, idempotent requests and requests that were never begun; the last
    /// cannot be told from here, so their delivery is checked when they end.
    fn only_survivors(&mut self, _when: &str) {
        for tracked in self.open.values_mut() {
            tracked.acknowledged = false;
        }
    }

    fn connection(&mut self, signal: &Signal, wires: &[Wire], now_us: u64) {
        match signal {
            Signal::Established { era, .. } => {
                self.era = Some(*era);
                self.ever += 1;
                self.established_us = Some(now_us);
                assert!(self.running, "Started comes first");
                assert!(!core::mem::replace(&mut self.established, true), "established twice in one life");
            }
            Signal::Failed(_) => {}
            Signal::Ended { request, cause, delivery, .. } => {
                let tracked = self.end(*request, "signal");
                let reach = wires.iter().map(|wire| wire.reach(tracked.marker)).max().unwrap_or(Reach::Nothing);
                let right = match delivery {
                    Delivery::NotSent => reach == Reach::Nothing,
                    // Bytes that the writer holds may have reached nobody yet.
                    Delivery::PartlySent => reach != Reach::Whole,
                    Delivery::Sent => reach == Reach::Whole,
                    // The server has said something of it, or of an id that it guessed.
                    Delivery::Started => true,
                    _ => unreachable!("a new delivery"),
                };
                assert!(right, "request {} ended ({cause:?}) as {delivery:?} and reached {reach:?}", tracked.marker);
            }
            Signal::ListenEnded { listen, how } => {
                assert!(self.end(*listen, "signal").listen);
                // `Server`: it was open in an earlier life, and this server does not acknowledge it.
                assert_ne!(*how, ListenEnd::Graceful, "that has a frame");
            }
            Signal::Resubscribed { listen } => {
                assert!(self.restarts > 0 || self.lives > 1, "SUB-10: nothing was restarted");
                let tracked = self.get(*listen, "resubscribed");
                assert!(tracked.listen);
                tracked.acknowledged = true;
            }
            Signal::ServerRequestCancelled { ticket: request, .. } => {
                assert!(self.asked.remove(request), "{request:?} is not open: it ends twice");
            }
            Signal::Writable => {}
            _ => unreachable!("a new signal"),
        }
    }
}
