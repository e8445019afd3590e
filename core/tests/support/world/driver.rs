//! Owns the client's driver as a runtime would be: moves bytes, performs steps, tells facts and time. It must not know what the
//! user wants.

use mcp_wire::lifecycle::{SpawnFailure, Step};

use super::brain::instant;
use super::child::{Body, Child};
use super::pipe::Read;
use super::temper::Temper;
use super::wire::{Reach, Wire};
use super::{Phase, World};

impl World {
    pub(super) fn write(&mut self) -> bool {
        // The contract of a driver: steps come before the next write. What is still written to a life that is over would not
        // be known to the client.
        if self.perform_step() {
            return true;
        }
        if self.stdin_closed {
            return false;
        }
        let now = instant(self.now_us);
        let Some(child) = &self.child else { return false };
        // Lending starts the clocks, room or not; but not over and over while a deaf child leaves none.
        if child.stdin.room() == 0 && !self.random.once_in(20) {
            return false;
        }
        if self.out.is_none() && self.random.once_in(2) {
            self.out = self.supervisor.take_output(now).map(|bytes| (bytes, 0));
        }
        let lent = match &self.out {
            Some((bytes, done)) => bytes[*done..].to_vec(),
            None => self.supervisor.output(now).to_vec(),
        };
        if lent.is_empty() {
            return false;
        }
        self.wires.last_mut().expect("each life has its wire").lent(&lent);
        let Some(child) = &mut self.child else { panic!("bytes for nobody") };
        let most = self.random.short(lent.len());
        match child.stdin.write(&lent[..most]) {
            Ok(0) => {
                self.trace.fault("a write to a full pipe");
                false
            }
            Ok(n) => {
                if n < lent.len() {
                    self.trace.fault("a short write of the client");
                }
                let established = self.oracle.era.filter(|_| self.oracle.established);
                let wire = self.wires.last_mut().expect("each life has its wire");
                wire.wrote(&lent, n, established, &mut self.last_id);
                for marker in wire.take_fresh() {
                    let earlier = &self.wires[..self.wires.len() - 1];
                    let earlier = earlier.iter().map(|wire| wire.reach(marker)).max().unwrap_or(Reach::Nothing);
                    self.oracle.wrote(marker, earlier);
                }
                self.supervisor.accepted(n, now);
                if let Some((bytes, done)) = &mut self.out {
                    *done += n;
                    if *done == bytes.len() {
                        self.give_back();
                    }
                }
                self.take_signals();
                true
            }
            Err(_) => {
                self.trace.fault("a write to a closed pipe");
                self.trace.say("client", "its reader is gone");
                self.close_stdin();
                self.supervisor.input_failed(now);
                self.take_signals();
                true
            }
        }
    }

    fn give_back(&mut self) {
        if let Some((bytes, _)) = self.out.take() {
            self.supervisor.recycle(bytes);
        }
    }

    fn close_stdin(&mut self) {
        self.give_back();
        if !core::mem::replace(&mut self.stdin_closed, true) {
            if let Some(child) = &mut self.child {
                child.stdin.close_writer();
            }
        }
    }

    pub(super) fn read(&mut self) -> bool {
        if self.output_ended || self.spawning {
            return false;
        }
        let Some(child) = &mut self.child else { return false };
        if !self.supervisor.connection().wants_read() {
            return false;
        }
        let now = instant(self.now_us);
        let most = 1 + self.random.short(8_192);
        match child.stdout.read(most) {
            Read::Blocked => return false,
            Read::End => {
                self.trace.say("client", "sees the end of output");
                self.output_ended = true;
                self.recv.close();
                self.take_frames();
                self.supervisor.output_ended(now);
            }
            Read::Bytes(bytes) => {
                if !bytes.ends_with(b"\n") {
                    self.trace.fault("a read that ends inside a line");
                }
                if self.random.once_in(2) {
                    self.recv.extend(&bytes);
                } else {
                    self.recv.spare_mut(bytes.len())[..bytes.len()].copy_from_slice(&bytes);
                    self.recv.commit(bytes.len());
                }
                self.supervisor.output_seen(now);
                self.take_frames();
            }
        }
        self.take_signals();
        true
    }

    fn take_frames(&mut self) {
        let now = instant(self.now_us);
        while let Some(frame) = self.recv.next_frame() {
            let shown = String::from_utf8_lossy(&frame.bytes()[..frame.bytes().len().min(200)]).into_owned();
            let batch = frame.batch();
            if let Some(batch) = batch.filter(|_| self.supervisor.open_batch(now)) {
                for message in batch {
                    let event = self.supervisor.handle(message, now);
                    self.trace.say("client", format_args!("of the batch {shown} => {event:?}"));
                    self.oracle.event(&event);
                }
                self.supervisor.close_batch(now);
            } else {
                let event = self.supervisor.handle(frame.message(), now);
                self.trace.say("client", format_args!("{shown} => {event:?}"));
                self.oracle.event(&event);
            }
            while let Some(signal) = self.supervisor.poll_signal() {
                self.trace.say("client", format_args!("{signal:?}"));
                self.oracle.signal(&signal, &self.wires, self.now_us);
            }
        }
    }

    pub(super) fn take_signals(&mut self) {
        while let Some(signal) = self.supervisor.poll_signal() {
            self.trace.say("client", format_args!("{signal:?}"));
            self.oracle.signal(&signal, &self.wires, self.now_us);
        }
    }

    pub(super) fn timers(&mut self) -> bool {
        let now = instant(self.now_us);
        let due = self.supervisor.poll_timeout().is_some_and(|at| at <= now);
        if due || self.random.once_in(50) {
            self.supervisor.handle_timeout(now);
            self.take_signals();
        }
        if due {
            assert!(
                self.supervisor.poll_timeout().is_none_or(|at| at > now),
                "a timer that is due stays due: {:?}",
                self.supervisor.poll_timeout()
            );
        }
        due
    }

    /// Facts of the process become known some time after they happened, in any order.
    pub(super) fn tell_facts(&mut self) -> bool {
        let now = instant(self.now_us);
        if self.spawning {
            self.spawning = false;
            if self.child.is_some() {
                self.supervisor.spawned(now);
                if !self.stderr_piped {
                    self.supervisor.stderr_ended(now);
                }
            } else {
                self.supervisor.spawn_failed(SpawnFailure::Other, now);
            }
            self.take_signals();
            return true;
        }
        if self.stream {
            return false;
        }
        if core::mem::take(&mut self.reap_due) {
            self.supervisor.reaped(now);
            self.take_signals();
            return true;
        }
        let Some(child) = &self.child else { return false };
        if let Body::Exited(status) = child.body {
            if !self.exit_told {
                self.trace.say("client", "is told of the exit");
                self.exit_told = true;
                self.supervisor.exited(status, now);
                self.take_signals();
                return true;
            }
        }
        if self.stderr_piped && !self.stderr_told && !child.is_alive() && !child.helper_alive() {
            self.stderr_told = true;
            self.supervisor.stderr_ended(now);
            self.take_signals();
            return true;
        }
        false
    }

    pub(super) fn perform_step(&mut self) -> bool {
        let Some(step) = self.supervisor.poll_step() else { return false };
        self.trace.say("client", format_args!("{step:?}"));
        assert!(!self.stream || step == Step::CloseStdin, "a stream has no process: {step:?}");
        let now = instant(self.now_us);
        let now_us = self.now_us;
        match step {
            Step::Spawn => {
                assert!(self.child.is_none(), "RST-04: the old process is not gone");
                self.spawn();
            }
            Step::CloseStdin => self.close_stdin(),
            Step::Terminate => {
                let child = self.child.as_mut().expect("a signal to nobody");
                child.terminate(now_us, &mut self.random);
            }
            Step::Kill => {
                self.close_stdin();
                let child = self.child.as_mut().expect("a signal to nobody");
                child.kill();
            }
            Step::TerminateGroup | Step::KillGroup => {
                let child = self.child.as_mut().expect("a signal to nobody");
                assert!(matches!(child.body, Body::Exited(_)), "PRC-04: {:?}", child.body);
                let empty = if step == Step::KillGroup { child.kill_group() } else { child.terminate_group() };
                self.supervisor.group_signalled(empty, now);
            }
            Step::Reap => {
                let child = self.child.as_mut().expect("a reap of nobody");
                assert!(matches!(child.body, Body::Exited(_)), "PRC-04: {:?}", child.body);
                child.body = Body::Reaped;
                self.end_life();
                self.reap_due = true;
            }
            Step::GiveUp => self.end_life(),
            _ => unreachable!("a new step"),
        }
        self.take_signals();
        true
    }

    fn end_life(&mut self) {
        self.close_stdin();
        self.child = None;
        self.output_ended = true;
    }

    pub(super) fn open_stream(&mut self) {
        let mut temper = Temper::draw(&mut self.random);
        temper.helper = None;
        temper.legacy = self.program;
        self.begin_life(temper);
    }

    fn spawn(&mut self) {
        self.spawning = true;
        self.recv.reset();
        let calm = self.phase != Phase::Storm;
        if !calm && self.random.once_in(24) {
            self.trace.fault("a failed spawn");
            self.trace.say("world", "the spawn fails");
            return;
        }
        let mut temper = if calm { Temper::good() } else { Temper::draw(&mut self.random) };
        // A program does not become another one between two lives.
        temper.legacy = self.program;
        temper.scripted |= calm && self.random.once_in(3);
        self.begin_life(temper);
    }

    fn begin_life(&mut self, temper: Temper) {
        self.child = Some(Child::new(self.server.clone(), temper, self.now_us, &mut self.random, &self.trace));
        let mut wire = Wire::default();
        if self.asked {
            wire.closed();
        }
        self.wires.push(wire);
        self.stdin_closed = false;
        self.output_ended = false;
        self.exit_told = false;
        self.stderr_told = false;
    }
}
