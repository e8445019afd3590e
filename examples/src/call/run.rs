//! Owns the course of a live run but for its waits: it performs what the session says, hands it what happens, and says what to wait for.
//! It must not know which runtime waits, what a script means, nor how an event is shown.

use std::ffi::OsString;
use std::io;
use std::time::Instant;

use mcp_wire::{Eras, config as defaults};
use mcp_wire_driver::client::{Client, ClientEvent, Events, Options as ClientOptions};
use mcp_wire_driver::process::{Environment, ServerCommand, Stderr};

use super::args::{self, Options, UsageError, Work};
use super::requests::Requests;
use super::script::Reader as ScriptReader;
use super::session::{Next, Session, Shown};
use super::tape::Tape;

/// Why there was nothing to run.
#[derive(Debug)]
pub(super) enum RunError {
    Usage(UsageError),
    /// The system refused something, told in one sentence.
    System(&'static str, io::Error),
}

fn server_command(options: &Options, command: &[OsString]) -> ServerCommand {
    let (program, arguments) =
        command.split_first().map_or_else(|| (OsString::new(), &[][..]), |(p, a)| (p.clone(), a));
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

fn client_options(options: &Options) -> ClientOptions {
    // The preferred version first, then the others of its era that are known. A legacy date is for `initialize` alone.
    let preferred = |known: &[&str], takes: fn(&str) -> bool| {
        let others = known.iter().map(|version| (*version).to_owned()).filter(|version| *version != options.protocol);
        Some(options.protocol.clone()).filter(|version| takes(version)).into_iter().chain(others).collect::<Vec<_>>()
    };
    let mut client = ClientOptions::new("mcp-call", env!("CARGO_PKG_VERSION"));
    if options.eras == Eras::Legacy {
        client = client.versions::<String>([]);
    } else {
        client = client.versions(preferred(&[defaults::PROTOCOL_VERSION], |date| date >= defaults::PROTOCOL_VERSION));
    }
    if options.eras == Eras::Modern {
        client = client.legacy_versions::<String>([]);
    } else {
        let is_legacy = |date: &str| defaults::LEGACY_VERSIONS.contains(&date);
        client = client.legacy_versions(preferred(&defaults::LEGACY_VERSIONS, is_legacy));
    }
    client = client
        .capabilities(&options.capabilities)
        .request_timeout(options.timeout)
        .probe_timeout(options.probe_timeout)
        .start_timeout(options.start_timeout)
        .grace(options.grace)
        .line_limit(options.max_line)
        .restarts(options.restarts)
        .lazy(options.lazy);
    if let Some(time) = options.idle_stop {
        client = client.idle_stop(time);
    }
    client
}

/// A run that can begin: what a runtime starts the client with, and the events that it will tell.
pub(super) struct Plan {
    pub(super) client: ClientOptions,
    pub(super) command: ServerCommand,
    pub(super) events: Events,
    /// The script comes on standard input.
    pub(super) reads_input: bool,
    pub(super) rest: Rest,
}

/// What the run needs besides its client.
pub(super) struct Rest {
    options: Options,
    tape: Option<Tape>,
    session: Session,
}

impl Plan {
    pub(super) fn new(options: Options, work: Work, command: &[OsString]) -> Result<Self, RunError> {
        let mut client = client_options(&options);
        let mut tape = None;
        if let Some(path) = &options.tape {
            let created = Tape::create(path, &options).map_err(|error| {
                RunError::Usage(UsageError(format!("the tape {} cannot be written: {error}", path.display())))
            })?;
            client = client.tape(created.sink());
            tape = Some(created);
        }
        let (ops, reads_input) = match work {
            Work::Script { ops, .. } => (ops, false),
            Work::Input => (Vec::new(), true),
        };
        Ok(Self {
            events: client.events(),
            client,
            command: server_command(&options, command),
            reads_input,
            rest: Rest { options, tape, session: Session::new(ops, reads_input) },
        })
    }
}

/// What a run waits for. All of it at once: the first of them, in this order where several are there, is handed to [`Run::woken`].
#[derive(Debug)]
pub(super) struct Wants {
    /// Room in the output for [`Run::pending`].
    pub(super) room: bool,
    /// The end of whoever reads the output.
    pub(super) reader: bool,
    pub(super) event: bool,
    /// A line of the script.
    pub(super) line: bool,
    pub(super) until: Option<Instant>,
}

/// What the wait was for.
pub(super) enum Woken {
    /// The exit status that a signal stands for.
    Signal(u8),
    /// Nobody takes the output any more.
    OutputGone,
    /// What was pending is shown.
    Shown,
    /// `None`: there will be no more.
    Event(Option<ClientEvent>),
    /// `None`: the script has ended.
    Line(Option<io::Result<String>>),
    Time,
}

/// A run.
pub(super) struct Run {
    session: Session,
    requests: Requests,
    script: ScriptReader,
    tape: Option<Tape>,
    /// What is to be shown next.
    pub(super) pending: Option<Shown>,
    output_gone: bool,
    /// The output is stopped, and somebody is in a hurry: nobody waits for it.
    stuck: bool,
    events_ended: bool,
}

impl Run {
    pub(super) fn new(rest: Rest, client: Client) -> Self {
        let Rest { options, tape, mut session } = rest;
        if !options.lazy {
            session.starting_unasked(Instant::now());
        }
        Self {
            session,
            requests: Requests::new(client, options, tape.clone()),
            script: ScriptReader::default(),
            tape,
            pending: None,
            output_gone: false,
            stuck: false,
            events_ended: false,
        }
    }

    /// Does what there is to do, and says what to wait for; `None` when all is over.
    pub(super) fn next(&mut self) -> Option<Wants> {
        let (mut until, mut line) = (None, false);
        while self.pending.is_none() {
            match self.session.next(Instant::now()) {
                Next::Perform(op) => self.requests.perform(op, &mut self.session),
                Next::Show(_) if self.output_gone => {}
                Next::Show(shown) => self.pending = Some(shown),
                Next::Wait { until: time, input } => {
                    (until, line) = (time, input);
                    break;
                }
                Next::Done => return None,
            }
        }
        let room = self.pending.is_some();
        Some(Wants { room, reader: !self.output_gone, event: !room && !self.events_ended, line, until })
    }

    pub(super) fn woken(&mut self, woken: Woken) {
        match woken {
            Woken::Shown | Woken::Time => {}
            Woken::Signal(status) => self.signal(status),
            Woken::OutputGone => {
                self.output_gone = true;
                self.pending = None;
                self.session.abandon(1);
                self.session.silence();
            }
            Woken::Event(Some(event)) => self.event(event),
            Woken::Event(None) => {
                self.events_ended = true;
                self.session.lost();
            }
            Woken::Line(line) => self.line(line),
        }
    }

    fn event(&mut self, event: ClientEvent) {
        self.requests.settle(&mut self.session);
        let of_listen =
            matches!(event, ClientEvent::Acknowledged { .. } | ClientEvent::Notification { of: Some(_), .. });
        if let ClientEvent::Started { pid, .. } = &event {
            tracing::debug!(pid, "the server runs");
        }
        if let Some(key) = self.session.event(event) {
            self.requests.ended(&key);
        } else if of_listen {
            self.requests.read_listens();
        }
    }

    fn signal(&mut self, status: u8) {
        let again = self.session.is_interrupted();
        if !again {
            self.session.interrupt(status);
        }
        self.requests.close(again);
        // Who is in such a hurry does not wait for a terminal that is stopped either.
        if again && self.pending.take().is_some() {
            (self.output_gone, self.stuck) = (true, true);
            self.session.silence();
        }
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

    /// Lets go of the connection. What is queued is still to be shown, unless nobody waits for that.
    pub(super) fn end(self) -> Finish {
        Finish { status: self.session.status(), tape: self.tape, stuck: self.stuck }
    }
}

/// The end of a run, but for the last of its output.
pub(super) struct Finish {
    status: u8,
    tape: Option<Tape>,
    /// Do not wait for the output.
    pub(super) stuck: bool,
}

impl Finish {
    /// The exit status. `shown` tells what became of the output.
    pub(super) fn status(self, shown: io::Result<()>) -> Result<u8, RunError> {
        if let Some(Err(error)) = self.tape.map(Tape::finish) {
            return Err(RunError::System("the tape could not be written to its end", error));
        }
        Ok(match shown {
            Ok(()) => self.status,
            Err(_) => self.status.max(1),
        })
    }
}
