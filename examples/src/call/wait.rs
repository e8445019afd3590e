//! Waits on an async runtime for what a run wants. It must not know which runtime that is, nor what comes of it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Instant;

use mcp_wire_driver::client::{Client, Events, Options, StartError};
use mcp_wire_driver::process::ServerCommand;

use super::args::UsageError;
use super::input::Lines;
use super::output::{Output, Printer};
use super::reader::Reader;
use super::run::{Plan, Run, RunError, Wants, Woken};

/// What a run takes from a runtime. Each wait of it may be given up and begun again.
pub(super) trait Runtime {
    /// Starts the client, which is driven from then on.
    fn start(&mut self, options: Options, command: ServerCommand) -> Result<Client, StartError>;

    /// The number of the next signal that asks for the end.
    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<u8>;

    /// Ready at that time.
    fn poll_time(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()>;
}

/// Runs the work to its end and gives the exit status.
pub(super) async fn live(plan: Plan, printer: impl Printer, mut runtime: impl Runtime) -> Result<u8, RunError> {
    let Plan { client, command, events, reads_input, rest } = plan;
    let reader = Reader::watch();
    let output =
        Output::start(printer).map_err(|error| RunError::System("the output thread cannot be started", error))?;
    let read = || Lines::read().map_err(|error| RunError::System("the script cannot be read", error));
    let lines = if reads_input { Some(read()?) } else { None };
    let client = runtime.start(client, command).map_err(|error| RunError::Usage(UsageError(error.to_string())))?;
    let mut run = Run::new(rest, client);
    let mut sources = Sources { runtime, reader, output, events, lines };
    while let Some(wants) = run.next() {
        let woken = poll_fn(|cx| sources.poll(&wants, &mut run, cx)).await;
        run.woken(woken);
    }
    let finish = run.end();
    // What is queued is shown, unless nobody reads it and a signal says that nobody will.
    let shown = poll_fn(|cx| {
        if finish.stuck || sources.runtime.poll_signal(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        sources.output.poll_finish(cx)
    });
    let shown = shown.await;
    finish.status(shown)
}

/// What a run may be woken by.
struct Sources<R> {
    runtime: R,
    reader: Reader,
    output: Output,
    events: Events,
    lines: Option<Lines>,
}

impl<R: Runtime> Sources<R> {
    /// The first of all that is wanted.
    fn poll(&mut self, wants: &Wants, run: &mut Run, cx: &mut Context<'_>) -> Poll<Woken> {
        if let Poll::Ready(signal) = self.runtime.poll_signal(cx) {
            return Poll::Ready(Woken::Signal(signal.saturating_add(128)));
        }
        if wants.room {
            if let Poll::Ready(taken) = self.output.poll_take(&mut run.pending, cx) {
                return Poll::Ready(if taken { Woken::Shown } else { Woken::OutputGone });
            }
        }
        let gone = wants.reader
            && (self.reader.poll_gone(cx).is_ready() || (!wants.room && self.output.poll_gone(cx).is_ready()));
        if gone {
            return Poll::Ready(Woken::OutputGone);
        }
        if wants.event {
            if let Poll::Ready(event) = pin!(self.events.next()).poll(cx) {
                return Poll::Ready(Woken::Event(event));
            }
        }
        if wants.line {
            if let Poll::Ready(line) = self.lines.as_ref().map_or(Poll::Ready(None), |lines| lines.poll_next(cx)) {
                return Poll::Ready(Woken::Line(line));
            }
        }
        match wants.until {
            Some(until) => self.runtime.poll_time(until, cx).map(|()| Woken::Time),
            None => Poll::Pending,
        }
    }
}
