//! Waits on tokio for what a run wants. It must not know what comes of it.

use std::future::poll_fn;
use std::io;
use std::time::Instant;

use mcp_wire_tokio::ClientBuilder;
use tokio::sync::mpsc;

use super::args::UsageError;
use super::output::{Output, Printer};
use super::run::{Plan, Run, RunError, Woken};
use super::signals::{Reader, Signals};

/// Runs the work to its end and gives the exit status.
pub(super) fn run(plan: Plan, printer: impl Printer) -> Result<u8, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| RunError::System("the runtime cannot be started", error))?;
    let status = runtime.block_on(live(plan, printer));
    // The thread that reads a script may be blocked for ever.
    runtime.shutdown_background();
    status
}

async fn live(plan: Plan, printer: impl Printer) -> Result<u8, RunError> {
    let Plan { client, command, mut events, reads_input, rest } = plan;
    let mut signals = Signals::new().map_err(|error| RunError::System("signals cannot be caught", error))?;
    let mut reader = Reader::new();
    let output =
        Output::start(printer).map_err(|error| RunError::System("the output thread cannot be started", error))?;
    let mut input = if reads_input { Some(lines()?) } else { None };
    let client =
        ClientBuilder::from(client).start(command).map_err(|error| RunError::Usage(UsageError(error.to_string())))?;
    let mut run = Run::new(rest, (*client).clone());
    drop(client);
    while let Some(wants) = run.next() {
        let pending = &mut run.pending;
        let woken = tokio::select! {
            biased;
            status = signals.next() => Woken::Signal(status),
            taken = poll_fn(|cx| output.poll_take(pending, cx)), if wants.room => {
                if taken { Woken::Shown } else { Woken::OutputGone }
            }
            () = poll_fn(|cx| output.poll_gone(cx)), if !wants.room && wants.reader => Woken::OutputGone,
            () = reader.gone(), if wants.reader => Woken::OutputGone,
            event = events.next(), if wants.event => Woken::Event(event),
            line = next_line(input.as_mut()), if wants.line => Woken::Line(line),
            () = sleep_until(wants.until), if wants.until.is_some() => Woken::Time,
        };
        run.woken(woken);
    }
    let finish = run.end();
    // What is queued is shown, unless nobody reads it and a signal says that nobody will.
    let shown = tokio::select! {
        shown = poll_fn(|cx| output.poll_finish(cx)), if !finish.stuck => shown,
        () = std::future::ready(()), if finish.stuck => Ok(()),
        _ = signals.next() => Ok(()),
    };
    finish.status(shown)
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until.into()).await,
        None => std::future::pending().await,
    }
}

async fn next_line(input: Option<&mut mpsc::Receiver<io::Result<String>>>) -> Option<io::Result<String>> {
    match input {
        Some(input) => input.recv().await,
        None => None,
    }
}

/// Lines of standard input. A thread reads them, as a blocked read can be stopped by nobody; it ends with the process.
fn lines() -> Result<mpsc::Receiver<io::Result<String>>, RunError> {
    let (sender, receiver) = mpsc::channel(16);
    let read = move || {
        for line in io::stdin().lines() {
            let failed = line.is_err();
            if sender.blocking_send(line).is_err() || failed {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("script".to_owned()).spawn(read);
    thread.map(|_| receiver).map_err(|error| RunError::System("the script cannot be read", error))
}
