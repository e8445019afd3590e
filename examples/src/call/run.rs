//! Owns a live run on tokio: it performs what the session says, and hands it what happens. It must not know what a script means, nor
//! how an event is shown.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use mcp_wire::client::{ProgressToken, RequestOptions};
use mcp_wire::{Cause, SendError, config as defaults};
use mcp_wire_driver::client::{Call, CallError, ClientEvent, Listen, Opening};
use mcp_wire_tokio::{Client, ClientBuilder as Builder, ServerCommand};
use tokio::sync::mpsc;

use super::args::{self, Options, UsageError, Work};
use super::output::{Output, Printer};
use super::script::{Op, Reader as ScriptReader};
use super::session::{Next, Session};
use super::signals::{Reader, Signals};
use super::tape::Tape;

/// Changes of a listen that may wait for this program.
const LISTEN_CAPACITY: usize = 1024;

/// Why there was nothing to run.
#[derive(Debug)]
pub(super) enum RunError {
    Usage(UsageError),
    /// The system refused something, told in one sentence.
    System(&'static str, io::Error),
}

/// Runs the work to its end and gives the exit status.
pub(super) fn run(options: Options, work: Work, command: &[OsString], printer: impl Printer) -> Result<u8, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| RunError::System("the runtime cannot be started", error))?;
    let status = runtime.block_on(live(options, work, command, printer));
    // The thread that reads a script may be blocked for ever.
    runtime.shutdown_background();
    status
}

fn server_command(options: &Options, command: &[OsString]) -> ServerCommand {
    use mcp_wire_driver::process::{Environment, Stderr};
    let (program, arguments) = command.split_first().map_or((OsString::new(), &[][..]), |(p, a)| (p.clone(), a));
    ServerCommand::new(program)
        .args(arguments)
        .environment(match options.environment {
            args::Environment::Inherit => Environment::Inherit,
            args::Environment::Minimal => Environment::Minimal,
        })
        .stderr(match options.stderr {
            args::Stderr::Inherit => Stderr::Inherit,
            args::Stderr::Null => Stderr::Null,
            args::Stderr::Tee => Stderr::Tee,
            args::Stderr::Events => Stderr::Lines,
        })
        .process_group(options.process_group)
}

fn builder(options: &Options) -> Builder {
    let mut versions = vec![options.protocol.clone()];
    if options.protocol != defaults::PROTOCOL_VERSION {
        versions.push(defaults::PROTOCOL_VERSION.to_owned());
    }
    // A legacy date is for `initialize` alone.
    versions.retain(|version| version.as_str() >= defaults::PROTOCOL_VERSION);
    let mut client = Client::builder("mcp-call", env!("CARGO_PKG_VERSION"))
        .versions(versions)
        .request_timeout(options.timeout)
        .probe_timeout(options.probe_timeout)
        .grace(options.grace)
        .line_limit(options.max_line)
        .restarts(options.restarts)
        .lazy(options.lazy);
    if let Some(time) = options.idle_stop {
        client = client.idle_stop(time);
    }
    client
}

/// What the wait was for.
enum Woken {
    Signal(u8),
    OutputGone,
    Shown,
    Event(Option<ClientEvent>),
    Line(Option<io::Result<String>>),
    Time,
}

async fn live(options: Options, work: Work, command: &[OsString], printer: impl Printer) -> Result<u8, RunError> {
    let mut signals = Signals::new().map_err(|error| RunError::System("signals cannot be caught", error))?;
    let mut reader = Reader::new();
    let mut builder = builder(&options);
    let tape = match &options.tape {
        None => None,
        Some(path) => {
            let tape = Tape::create(path, &options).map_err(|error| {
                RunError::Usage(UsageError(format!("the tape {} cannot be written: {error}", path.display())))
            })?;
            builder = builder.tape(tape.sink());
            Some(tape)
        }
    };
    let mut events = builder.events();
    let output =
        Output::start(printer).map_err(|error| RunError::System("the output thread cannot be started", error))?;
    let (session, mut input) = match work {
        Work::Script { ops, .. } => (Session::new(ops, false), None),
        Work::Input => (Session::new(Vec::new(), true), Some(lines()?)),
    };
    let client = builder
        .start(server_command(&options, command))
        .map_err(|error| RunError::Usage(UsageError(error.to_string())))?;
    let mut run = Run {
        session,
        client,
        options,
        tape,
        calls: BTreeMap::new(),
        unplaced: Vec::new(),
        listens: BTreeMap::new(),
        script: ScriptReader::default(),
    };
    if !run.options.lazy {
        run.session.starting(Instant::now());
    }

    let mut pending = None;
    let (mut output_gone, mut stuck, mut events_ended) = (false, false, false);
    loop {
        let (mut until, mut wants_input) = (None, false);
        if pending.is_none() {
            match run.session.next(Instant::now()) {
                Next::Perform(op) => {
                    run.perform(op);
                    continue;
                }
                Next::Show(_) if output_gone => continue,
                Next::Show(shown) => pending = Some(shown),
                Next::Wait { until: time, input } => (until, wants_input) = (time, input),
                Next::Done => break,
            }
        }
        let shows = pending.is_some();
        let woken = tokio::select! {
            biased;
            status = signals.next() => Woken::Signal(status),
            permit = output.queue().reserve(), if shows => match permit {
                Ok(permit) => {
                    if let Some(shown) = pending.take() {
                        permit.send(shown);
                    }
                    Woken::Shown
                }
                Err(_) => Woken::OutputGone,
            },
            () = output.queue().closed(), if !shows && !output_gone => Woken::OutputGone,
            () = reader.gone(), if !output_gone => Woken::OutputGone,
            event = events.next(), if !shows && !events_ended => Woken::Event(event),
            line = next_line(input.as_mut()), if wants_input => Woken::Line(line),
            () = sleep_until(until), if until.is_some() => Woken::Time,
        };
        match woken {
            Woken::Shown | Woken::Time => {}
            // Who is in such a hurry does not wait for a terminal that is stopped either.
            Woken::Signal(status) if run.signal(status) && pending.take().is_some() => {
                (output_gone, stuck) = (true, true);
                run.session.silence();
            }
            Woken::Signal(_) => {}
            Woken::OutputGone => {
                output_gone = true;
                pending = None;
                run.session.abandon(1);
                run.session.silence();
            }
            Woken::Event(Some(event)) => run.event(event),
            Woken::Event(None) => {
                events_ended = true;
                run.session.lost();
            }
            Woken::Line(line) => run.line(line),
        }
    }
    let status = run.session.status();
    let tape = run.tape.take();
    drop(run);
    // What is queued is shown, unless nobody reads it and a signal says that nobody will.
    let shown = tokio::select! {
        shown = output.finish(), if !stuck => shown,
        () = std::future::ready(()), if stuck => Ok(()),
        _ = signals.next() => Ok(()),
    };
    if let Some(Err(error)) = tape.map(Tape::finish) {
        return Err(RunError::System("the tape could not be written to its end", error));
    }
    Ok(match shown {
        Ok(()) => status,
        Err(_) => status.max(1),
    })
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

/// A listen on its way or open. It is read, so that it never lags behind.
enum Reading {
    Opening(Opening),
    Open(Listen),
    Over,
}

struct Run {
    session: Session,
    client: Client,
    options: Options,
    tape: Option<Tape>,
    /// Dropped, a call is cancelled.
    calls: BTreeMap<String, Call>,
    /// Calls that wait for room in the queue, so they have no handle yet.
    unplaced: Vec<String>,
    listens: BTreeMap<String, Reading>,
    script: ScriptReader,
}

impl Run {
    fn perform(&mut self, op: Op) {
        match &op {
            Op::Request { key, method, params, timeout, idempotent } => {
                let mut options = RequestOptions::default();
                options.timeout = *timeout;
                options.max_timeout = self.options.max_timeout;
                options.idempotent = *idempotent;
                if self.options.progress {
                    options.progress = ProgressToken::Minted;
                }
                self.expect_on_tape(key);
                let call = self.client.request(method, params).options(options).send();
                self.called(key.clone(), call, &op);
            }
            Op::Listen { key, filter } => {
                self.expect_on_tape(key);
                let opening = self.client.listen(filter.clone()).capacity(LISTEN_CAPACITY).send();
                match opening.handle() {
                    Some(handle) => {
                        self.session.sent(key.clone(), true, handle);
                        self.listens.insert(key.clone(), Reading::Opening(opening));
                    }
                    None => {
                        let error = match poll_once(opening) {
                            Some(Err(error)) => error,
                            _ => CallError::Send(SendError::Ended),
                        };
                        self.refused(key.clone(), true, &error, &op);
                    }
                }
            }
            Op::Notify { method, params } => {
                if let Err(error) = self.client.notify(method, params) {
                    tracing::warn!("the notification {method:?} was not sent: {error}");
                }
            }
            Op::Cancel { key, reason } => self.cancel(key, reason.as_deref()),
            // The last event tells when it is done.
            Op::Close => drop(self.client.close()),
            Op::Kill => drop(self.client.kill()),
            Op::Wait { .. } | Op::WaitEvent { .. } | Op::Sleep { .. } => {}
        }
    }

    fn called(&mut self, key: String, mut call: Call, op: &Op) {
        if let Some(handle) = call.handle() {
            self.session.sent(key.clone(), false, handle);
            self.calls.insert(key, call);
            return;
        }
        match poll_once(&mut call) {
            Some(Err(error)) => self.refused(key, false, &error, op),
            _ => {
                self.session.waits(key.clone());
                self.unplaced.push(key.clone());
                self.calls.insert(key, call);
            }
        }
    }

    fn refused(&mut self, key: String, listen: bool, error: &CallError, op: &Op) {
        if let Some(tape) = &self.tape {
            tape.refused(op);
        }
        let cause = match error {
            CallError::Send(SendError::Full | SendError::TooLarge { .. }) => Cause::Overflow,
            _ => Cause::Closed,
        };
        self.session.refused(key, listen, cause.as_str(), error.to_string());
    }

    fn expect_on_tape(&self, key: &str) {
        if let Some(tape) = &self.tape {
            tape.expect(key);
        }
    }

    fn cancel(&mut self, key: &str, reason: Option<&str>) {
        if let Some(at) = self.unplaced.iter().position(|waiting| waiting == key) {
            self.place();
            if self.unplaced.get(at).is_some_and(|waiting| waiting == key) {
                // It never got a place, so nobody else tells of it.
                self.unplaced.remove(at);
                self.calls.remove(key);
                if let Some(tape) = &self.tape {
                    tape.forget(key);
                }
                self.session.refused(
                    key.to_owned(),
                    false,
                    Cause::Cancelled.as_str(),
                    "it still waited to be sent".to_owned(),
                );
                return;
            }
        }
        if self.session.handle(key).is_none() {
            return;
        }
        match (self.calls.get(key), self.listens.get(key), reason) {
            (Some(call), _, Some(reason)) => call.cancel(reason),
            (_, Some(Reading::Opening(opening)), Some(reason)) => opening.cancel(reason),
            (_, Some(Reading::Open(listen)), Some(reason)) => listen.cancel(reason),
            // Without a reason it is a drop.
            _ => {
                self.calls.remove(key);
                self.listens.remove(key);
            }
        }
    }

    /// Calls that waited for room may have been given their handles; that comes before any event about them.
    fn place(&mut self) {
        let (session, calls) = (&mut self.session, &self.calls);
        self.unplaced.retain(|key| match calls.get(key).and_then(Call::handle) {
            Some(handle) => {
                session.sent(key.clone(), false, handle);
                false
            }
            None => true,
        });
    }

    fn event(&mut self, event: ClientEvent) {
        if !self.unplaced.is_empty() {
            self.place();
        }
        let of_listen =
            matches!(event, ClientEvent::Acknowledged { .. } | ClientEvent::Notification { of: Some(_), .. });
        if let ClientEvent::Started { pid, .. } = &event {
            tracing::debug!(pid, "the server runs");
        }
        let ended = self.session.event(event);
        if let Some(key) = ended {
            self.calls.remove(&key);
            self.listens.remove(&key);
        } else if of_listen {
            self.listens.values_mut().for_each(Reading::read);
        }
    }

    /// Whether it is the second.
    fn signal(&mut self, status: u8) -> bool {
        let again = self.session.is_interrupted();
        if again {
            drop(self.client.kill());
        } else {
            self.session.interrupt(status);
            drop(self.client.close());
        }
        again
    }

    fn line(&mut self, line: Option<io::Result<String>>) {
        let op = match line {
            None => return self.session.line(None),
            Some(Ok(line)) => self.script.line(&line),
            Some(Err(error)) => Err(UsageError(format!("the script cannot be read: {error}"))),
        };
        match op {
            Ok(None) => {}
            Ok(op) => self.session.line(op),
            Err(error) => {
                super::complain(&error);
                self.session.abandon(2);
                self.session.silence();
            }
        }
    }
}

impl Reading {
    fn read(&mut self) {
        if let Self::Opening(opening) = self {
            match poll_once(opening) {
                Some(Ok(listen)) => *self = Self::Open(listen),
                Some(Err(_)) => *self = Self::Over,
                None => {}
            }
        }
        if let Self::Open(listen) = self {
            while poll_once(listen.next()).flatten().is_some() {}
        }
    }
}

/// What a future has to say now. The tap wakes this program, so nobody needs to be woken here.
fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
