//! Waits with poll(2) for what a run wants, and drives the connection in between: one thread, no runtime. It must not know what comes
//! of it.

use std::io;
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use mcp_wire_driver::client::Events;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::stdio::{stdin, stdout};

use super::args::UsageError;
use super::output::{Output, Printer};
use super::run::{Plan, Run, RunError, Wants, Woken};
use crate::poll::{Connection, PollSet, SelfPipe, Signal, Signals};

/// Runs the work to its end and gives the exit status.
pub(super) fn run(plan: Plan, printer: impl Printer) -> Result<u8, RunError> {
    let Plan { client, command, events, reads_input, rest } = plan;
    // Before there is any other thread.
    let signals = Signals::new(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])
        .map_err(|error| RunError::System("signals cannot be caught", error))?;
    let output =
        Output::start(printer).map_err(|error| RunError::System("the output thread cannot be started", error))?;
    let pipe = SelfPipe::new().map_err(|error| RunError::System("the loop cannot be woken", error))?;
    let waker = Waker::from(Arc::clone(&pipe));
    let start = Instant::now();
    let clock = move || mcp_wire::Instant::from_epoch(start.elapsed());
    let (client, link) =
        client.with_process(&command, clock).map_err(|error| RunError::Usage(UsageError(error.to_string())))?;
    let mut connection = Connection::new(link, command, waker.clone());
    let mut run = Run::new(rest, client);
    let mut sources =
        Sources { output, events, lines: reads_input.then(Lines::default), signal: None, reader: Reader::Reads };
    let mut cx = Context::from_waker(&waker);
    while let Some(wants) = run.next() {
        if let Some(woken) = sources.next(&wants, &mut run, &mut cx) {
            run.woken(woken);
            continue;
        }
        let mut set = PollSet::default();
        set.add(Some(pipe.as_fd()), PollFlags::IN);
        let signal = set.add(Some(signals.as_fd()), PollFlags::IN);
        // Nothing is asked of standard output but what is told unasked: that nobody reads it any more.
        let reader =
            set.add(Some(stdout()).filter(|_| wants.reader && sources.reader != Reader::Unseen), PollFlags::empty());
        let line = set.add(Some(stdin()).filter(|_| wants.line), PollFlags::IN);
        let ends = connection.watch(&mut set);
        let until = wants.until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = [connection.timeout(), until].into_iter().flatten().min();
        let ready = set.wait(timeout).map_err(|error| RunError::System("poll failed", error))?;
        pipe.clear();
        connection.turn(&ready, &ends);
        if ready.is(signal) {
            sources.signal = signals.next();
        }
        if ready.has(reader, PollFlags::ERR | PollFlags::HUP) {
            sources.reader = Reader::Gone;
        } else if ready.is(reader) {
            sources.reader = Reader::Unseen;
        }
        if ready.is(line) {
            sources.lines.iter_mut().for_each(Lines::read);
        }
    }
    let finish = run.end();
    // What is queued is shown, unless nobody reads it and a signal says that nobody will.
    let shown = loop {
        if finish.stuck {
            break Ok(());
        }
        if let Poll::Ready(shown) = sources.output.poll_finish(&cx) {
            break shown;
        }
        let mut set = PollSet::default();
        set.add(Some(pipe.as_fd()), PollFlags::IN);
        let signal = set.add(Some(signals.as_fd()), PollFlags::IN);
        let ready = set.wait(None).map_err(|error| RunError::System("poll failed", error))?;
        pipe.clear();
        if ready.is(signal) {
            break Ok(());
        }
    };
    finish.status(shown)
}

/// Whoever reads standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Reads,
    Gone,
    /// It is of a kind that cannot be looked at without writing.
    Unseen,
}

/// What a run may be woken by.
struct Sources {
    output: Output,
    events: Events,
    lines: Option<Lines>,
    /// One that has come.
    signal: Option<u8>,
    reader: Reader,
}

impl Sources {
    /// What is there already of all that is wanted. If nothing is, whoever brings it wakes the loop.
    fn next(&mut self, wants: &Wants, run: &mut Run, cx: &mut Context<'_>) -> Option<Woken> {
        if let Some(signal) = self.signal.take() {
            return Some(Woken::Signal(128 + signal));
        }
        if wants.room {
            if let Poll::Ready(taken) = self.output.poll_take(&mut run.pending, cx) {
                return Some(if taken { Woken::Shown } else { Woken::OutputGone });
            }
        }
        if wants.reader && (self.reader == Reader::Gone || (!wants.room && self.output.poll_gone(cx).is_ready())) {
            return Some(Woken::OutputGone);
        }
        if wants.event {
            if let Poll::Ready(event) = pin!(self.events.next()).poll(cx) {
                return Some(Woken::Event(event));
            }
        }
        if wants.line {
            if let Some(line) = self.lines.as_mut().map_or(Some(None), Lines::next) {
                return Some(Woken::Line(line));
            }
        }
        wants.until.filter(|until| *until <= Instant::now()).map(|_| Woken::Time)
    }
}

/// Lines of standard input, read when there is something to read: the descriptor is shared with others and stays as it is.
#[derive(Debug, Default)]
struct Lines {
    bytes: Vec<u8>,
    /// So many of them are known to hold no end of a line.
    searched: usize,
    ended: bool,
    failed: Option<io::Error>,
}

impl Lines {
    fn read(&mut self) {
        let mut bytes = [0; 8 << 10];
        match rustix::io::read(stdin(), &mut bytes) {
            Ok(n @ 1..) => self.bytes.extend_from_slice(bytes.get(..n).unwrap_or_default()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // A standard input that is closed is one that has ended.
            Ok(_) | Err(Errno::BADF) => self.ended = true,
            Err(error) => self.failed = Some(error.into()),
        }
    }

    /// The next line, if it is there; `Some(None)` at the end.
    fn next(&mut self) -> Option<Option<io::Result<String>>> {
        let rest = self.bytes.get(self.searched..).unwrap_or_default();
        let Some(at) = rest.iter().position(|byte| *byte == b'\n').map(|at| self.searched + at) else {
            self.searched = self.bytes.len();
            if let Some(error) = self.failed.take() {
                return Some(Some(Err(error)));
            }
            if !self.ended {
                return None;
            }
            let last = std::mem::take(&mut self.bytes);
            return Some((!last.is_empty()).then(|| text(last)));
        };
        self.searched = 0;
        let rest = self.bytes.split_off(at + 1);
        let mut line = std::mem::replace(&mut self.bytes, rest);
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Some(Some(text(line)))
    }
}

fn text(line: Vec<u8>) -> io::Result<String> {
    String::from_utf8(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
