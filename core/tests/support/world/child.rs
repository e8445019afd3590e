//! Owns one simulated process: a server behind two pipes, in a body that may crash, go deaf, close its pipes, leave a helper behind or talk nonsense. It must not know who is at the other end.

use mcp_wire::lifecycle::ExitStatus;
use mcp_wire::server::Config;

use super::brain::Brain;
use super::garbage;
use super::honest::Honest;
use super::pipe::{Pipe, Read};
use super::random::Random;
use super::script::Script;
use super::temper::Temper;
use super::trace::Trace;

/// Of pipes: the small ones cut everything to pieces, but make long histories of it.
const CAPACITIES: &[usize] = &[1, 16, 64, 512, 512, 4_096, 4_096, 65_536];
const TERM: i32 = 15;
const KILL: i32 = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Alive,
    /// Exited, not reaped.
    Exited(ExitStatus),
    Reaped,
}

#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) stdin: Pipe,
    pub(crate) stdout: Pipe,
    pub(crate) body: Body,
    helper_alive: bool,
    helper_next_us: Option<u64>,
    temper: Temper,
    born_us: u64,
    brain: Box<dyn Brain>,
    written: usize,
    stdin_open: bool,
    stdout_open: bool,
    input_ended: bool,
    /// Bytes of a garbage line that are still to be written.
    garbage: Vec<u8>,
    term_due_us: Option<u64>,
    line_limit: usize,
    trace: Trace,
}

impl Child {
    pub(crate) fn new(config: Config, temper: Temper, now_us: u64, random: &mut Random, trace: &Trace) -> Self {
        let capacity = random.pick(CAPACITIES);
        let mut stdout = Pipe::new(capacity);
        if temper.helper.is_some() {
            stdout.share_writer();
        }
        trace.say("child", format_args!("born, pipes of {capacity} bytes, {temper:?}"));
        temper.faults().for_each(|kind| trace.fault(kind));
        let line_limit = config.line_limit;
        // A pipe of one byte gets no large answers, or a history would be nothing but that.
        let answer_limit = capacity * 100;
        let brain: Box<dyn Brain> = if temper.scripted {
            Box::new(Script::new(temper.legacy, answer_limit, trace))
        } else {
            Box::new(Honest::new(config, answer_limit, trace))
        };
        Self {
            stdin: Pipe::new(random.pick(CAPACITIES)),
            stdout,
            body: Body::Alive,
            helper_alive: temper.helper.is_some(),
            helper_next_us: temper.helper.as_ref().and_then(|h| h.writes_every_us).map(|every| now_us + every),
            temper,
            born_us: now_us,
            brain,
            written: 0,
            stdin_open: true,
            stdout_open: true,
            input_ended: false,
            garbage: Vec::new(),
            term_due_us: None,
            line_limit,
            trace: trace.clone(),
        }
    }

    /// The faults stop: what is alive behaves from here on.
    pub(crate) fn calm_down(&mut self) {
        let legacy = self.temper.legacy;
        self.temper = Temper { helper: self.temper.helper.clone(), legacy, ..Temper::good() };
        if !self.stdout_open {
            // A helper that holds it open would hide for ever that the server has closed it.
            self.end_helper();
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.body == Body::Alive
    }

    /// Whether its program would read, were there something to read.
    pub(crate) fn wants_read(&self) -> bool {
        self.brain.wants_read()
    }

    pub(crate) fn helper_alive(&self) -> bool {
        self.helper_alive
    }

    /// One thing that it can do now, in a random order. False: nothing.
    pub(crate) fn turn(&mut self, now_us: u64, random: &mut Random) -> bool {
        if self.helper_alive && self.helper_turn(now_us) {
            return true;
        }
        if !self.is_alive() {
            return false;
        }
        if self.scheduled_end(now_us, random) {
            return true;
        }
        let first = random.below(4);
        (0..4).any(|n| match (first + n) % 4 {
            0 => self.read(now_us, random),
            1 => self.write(now_us, random),
            2 => self.brain.work(now_us, random),
            _ => self.misbehave(random),
        })
    }

    /// When it has something to do by the clock.
    pub(crate) fn next_us(&self) -> Option<u64> {
        let mut times = Vec::new();
        if self.helper_alive {
            times.extend(self.helper_next_us);
            times.extend(self.temper.helper.as_ref().and_then(|h| h.ends_at_us).map(|at| self.born_us + at));
        }
        if self.is_alive() {
            times.extend(self.term_due_us);
            times.extend(self.temper.stops_at_us.map(|at| self.born_us + at));
            times.extend(self.temper.exits_at_us.map(|at| self.born_us + at));
            if self.stdin_open {
                times.extend(self.temper.closes_input_at_us.map(|at| self.born_us + at));
            }
            times.extend(self.brain.next_us());
        }
        times.into_iter().min()
    }

    pub(crate) fn terminate(&mut self, now_us: u64, random: &mut Random) {
        if self.temper.obeys_term && self.is_alive() && self.term_due_us.is_none() {
            self.term_due_us = Some(now_us + random.below(300_000));
        }
        self.terminate_group();
    }

    pub(crate) fn kill(&mut self) {
        if self.is_alive() && self.temper.killable {
            self.exit(ExitStatus::Signal(KILL));
        }
        self.kill_group();
    }

    /// SIGTERM to what is left of the group. Whether it was empty.
    pub(crate) fn terminate_group(&mut self) -> bool {
        let empty = !self.helper_alive;
        if self.temper.helper.as_ref().is_some_and(|helper| helper.obeys_term) {
            self.end_helper();
        }
        empty
    }

    pub(crate) fn kill_group(&mut self) -> bool {
        let empty = !self.helper_alive;
        self.end_helper();
        empty
    }

    fn end_helper(&mut self) {
        if self.helper_alive {
            self.helper_alive = false;
            self.stdout.close_writer();
            self.trace.say("child", "its helper has ended");
        }
    }

    pub(crate) fn exit(&mut self, status: ExitStatus) {
        assert!(self.is_alive());
        self.trace.say("child", format_args!("exits: {status}"));
        self.body = Body::Exited(status);
        if core::mem::take(&mut self.stdin_open) {
            self.stdin.close_reader();
        }
        self.close_output();
    }

    fn close_output(&mut self) {
        if core::mem::take(&mut self.stdout_open) {
            self.stdout.close_writer();
        }
    }

    fn helper_turn(&mut self, now_us: u64) -> bool {
        let Some(helper) = &self.temper.helper else { return false };
        if helper.ends_at_us.is_some_and(|at| self.born_us + at <= now_us) {
            self.end_helper();
            return true;
        }
        // It writes between the server's lines only: what tears lines is another fault.
        if let (Some(next), Some(every)) = (self.helper_next_us, helper.writes_every_us) {
            if next <= now_us {
                self.helper_next_us = Some(now_us + every);
                if self.garbage.is_empty() && self.brain.oracle().at_line_start() && self.stdout.room() >= 5 {
                    self.trace.fault("a line of the helper");
                    let _ = self.stdout.write(b"busy\n");
                }
                return true;
            }
        }
        false
    }

    fn scheduled_end(&mut self, now_us: u64, random: &mut Random) -> bool {
        if self.term_due_us.is_some_and(|at| at <= now_us) {
            self.exit(ExitStatus::Signal(TERM));
            return true;
        }
        if self.temper.exits_at_us.is_some_and(|at| self.born_us + at <= now_us) {
            self.trace.fault("an exit by the clock");
            self.exit(ExitStatus::Code(1));
            return true;
        }
        if self.stdin_open && self.temper.closes_input_at_us.is_some_and(|at| self.born_us + at <= now_us) {
            self.trace.fault("input closed by a live server");
            self.trace.say("child", "closes its input");
            self.stdin_open = false;
            self.stdin.close_reader();
            return true;
        }
        if self.temper.stops_at_us.is_some_and(|at| self.born_us + at <= now_us) {
            self.trace.fault("a server that stops serving");
            self.trace.say("child", "stops serving");
            self.temper.stops_at_us = None;
            self.brain.stop(random.once_in(2), now_us, random);
            return true;
        }
        if self.brain.exits() {
            self.trace.fault("an exit on the probe");
            self.exit(ExitStatus::Code(1));
            return true;
        }
        if self.temper.ends_at_eof && self.brain.has_ended() {
            self.exit(ExitStatus::Code(0));
            return true;
        }
        false
    }

    fn read(&mut self, now_us: u64, random: &mut Random) -> bool {
        if !self.temper.reads || !self.stdin_open || self.input_ended || !self.brain.wants_read() {
            return false;
        }
        if self.temper.writes_first && !self.brain.output(now_us).is_empty() {
            return false;
        }
        let most = 1 + random.short(4_096);
        match self.stdin.read(most) {
            Read::Blocked => false,
            Read::End => {
                self.trace.say("child", "sees the end of its input");
                self.input_ended = true;
                self.brain.end_of_input(now_us, random);
                true
            }
            Read::Bytes(bytes) => {
                self.brain.read(&bytes, now_us, random);
                true
            }
        }
    }

    fn write(&mut self, now_us: u64, random: &mut Random) -> bool {
        if !self.stdout_open {
            return false;
        }
        let lent = if self.garbage.is_empty() { self.brain.output(now_us) } else { &self.garbage };
        let mut most = lent.len();
        for limit in [self.temper.exits_after, self.temper.closes_output_after].into_iter().flatten() {
            most = most.min(limit.saturating_sub(self.written));
        }
        let n = random.short(most).min(self.stdout.room());
        if n > 0 {
            let bytes = lent[..n].to_vec();
            match self.stdout.write(&bytes) {
                Ok(taken) => assert_eq!(taken, n),
                Err(_) => {
                    self.trace.say("child", "its reader is gone");
                    self.close_output();
                    self.brain.peer_gone(now_us, random);
                    return true;
                }
            }
            self.written += n;
            if self.garbage.is_empty() {
                self.brain.accepted(&bytes, now_us, random);
            } else {
                self.garbage.drain(..n);
            }
        }
        if self.temper.exits_after.is_some_and(|limit| self.written >= limit) {
            let inside = !self.brain.oracle().at_line_start() || !self.garbage.is_empty();
            self.trace.fault(if inside { "an exit inside a line" } else { "an exit between lines" });
            self.exit(ExitStatus::Code(3));
        } else if self.temper.closes_output_after.is_some_and(|limit| self.written >= limit) {
            self.trace.fault("output closed by a live server");
            self.trace.say("child", "closes its output");
            self.close_output();
        } else {
            return n > 0;
        }
        true
    }

    fn misbehave(&mut self, random: &mut Random) -> bool {
        let once_in = self.temper.garbage_once_in;
        if once_in == 0 || !random.once_in(once_in) || !self.stdout_open || !self.garbage.is_empty() {
            return false;
        }
        if self.brain.oracle().at_line_start() {
            let id = self.brain.oracle().recent_id(random);
            let (kind, line) = garbage::line(random, self.brain.oracle().lines(), id, self.line_limit.min(20_000));
            self.trace.fault(kind);
            self.garbage = line;
            let shown = &self.garbage[..self.garbage.len().min(120)];
            self.trace.say("child", format_args!("garbage {}", String::from_utf8_lossy(shown).trim_end()));
            return true;
        }
        false
    }
}
