//! Owns the supervisor and the facts around it that the core does not keep (process id, spawn error, stderr tail), and puts what
//! happens into owned events. It must not know locks, wakers, runtimes or who waits: replays and bare loops use it as it is.

use std::sync::Arc;

use mcp_wire::client::{Config, Event, Signal};
use mcp_wire::lifecycle::{self, Notice, SpawnFailure, StartFailure};
use mcp_wire::{
    Batch, Cause, ConfigError, ConnectionError, Frame, IdBuf, Instant, JsonBuf, Message, Supervisor, SupervisorSignal,
};

use super::error::{CallError, StartError, StartFacts, StartFailedKind, StartSource};
use super::events::ClientEvent;
use super::server_requests::answered_as;
use crate::process::{SpawnError, StderrTail};

/// Unreadable lines that a start-up error may carry (RST-01).
const LINES: usize = 3;
/// Bytes of each of them.
const LINE_BYTES: usize = 200;

/// A [`Supervisor`] and what is known of its process, giving [`ClientEvent`]s. Does no I/O and reads no clock.
///
/// Everything but the few operations here goes to [`supervisor_mut`](Self::supervisor_mut). After each call take the signals with
/// [`poll_signal`](Self::poll_signal); each gives at most one event.
///
/// ```
/// use mcp_wire::client::{Config, RequestOptions};
/// use mcp_wire::{Instant, RecvBuffer};
/// use mcp_wire_driver::client::{ClientEvent, Engine};
///
/// let now = Instant::EPOCH;
/// let mut engine = Engine::new(Config::new("host", "1.0"), None, now)?;
/// let probe = engine.supervisor_mut().take_output(now).expect("the probe");
/// engine.supervisor_mut().accepted(probe.len(), now);
///
/// let mut recv = RecvBuffer::default();
/// recv.extend(br#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#);
/// recv.extend(b"\n");
/// while let Some(frame) = recv.next_frame() {
///     let event = engine.handle(frame, now);
///     assert_eq!(Engine::frame_event(&event), None); // the core's own business
/// }
/// let signal = engine.poll_signal().expect("established");
/// let event = engine.signal_event(&signal);
/// assert_eq!(event, Some(ClientEvent::Era { era: "modern", version: "2026-07-28".into() }));
/// # Ok::<(), mcp_wire::ConfigError>(())
/// ```
pub struct Engine {
    supervisor: Supervisor,
    pid: u32,
    restarts: u32,
    established: bool,
    spawn_error: Option<Arc<SpawnError>>,
    connection_error: Option<ConnectionError>,
    stderr: StderrTail,
    unreadable: Vec<String>,
    start_error: Option<StartError>,
}

impl Engine {
    /// An engine for a process, or for a stream that is open at `now`.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn new(connection: Config, process: Option<lifecycle::Config>, now: Instant) -> Result<Self, ConfigError> {
        let supervisor = match process {
            Some(process) => Supervisor::new(connection, process)?,
            None => Supervisor::without_process(connection, now)?,
        };
        Ok(Self {
            supervisor,
            pid: 0,
            restarts: 0,
            established: false,
            spawn_error: None,
            connection_error: None,
            stderr: StderrTail::default(),
            unreadable: Vec::new(),
            start_error: None,
        })
    }

    /// The supervisor, to look at.
    #[must_use]
    pub const fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// The supervisor, to work with.
    pub const fn supervisor_mut(&mut self) -> &mut Supervisor {
        &mut self.supervisor
    }

    /// The messages of a frame that is an array of them, where such a frame is a message (LEG-09): hand each in with
    /// [`handle_message`](Self::handle_message), then call the supervisor's `close_batch`. `None`: the frame is one message.
    pub fn open_batch<'b>(&mut self, frame: &Frame<'b>, now: Instant) -> Option<Batch<'b>> {
        frame.batch().filter(|_| self.supervisor.open_batch(now))
    }

    /// Takes in one message of a batch.
    pub fn handle_message<'b>(&mut self, message: Message<'b>, now: Instant) -> Event<'b> {
        self.supervisor.handle(message, now)
    }

    /// Takes in one frame that is one message.
    pub fn handle<'b>(&mut self, frame: Frame<'b>, now: Instant) -> Event<'b> {
        let bytes = frame.bytes();
        let message = frame.message();
        if !self.established && matches!(message, Message::Unreadable(_)) && self.unreadable.len() < LINES {
            let cut = bytes.get(..bytes.len().min(LINE_BYTES)).unwrap_or_default();
            let text = String::from_utf8_lossy(cut);
            self.unreadable.push(text.chars().flat_map(char::escape_debug).collect());
        }
        self.supervisor.handle(message, now)
    }

    /// The process was spawned.
    pub fn spawned(&mut self, pid: u32, now: Instant) {
        self.pid = pid;
        self.stderr = StderrTail::default();
        self.unreadable.clear();
        self.established = false;
        self.supervisor.spawned(now);
    }

    /// The process could not be spawned. A replay has no error, only its kind.
    pub fn spawn_failed(&mut self, failure: SpawnFailure, error: Option<SpawnError>, now: Instant) {
        self.spawn_error = error.map(Arc::new);
        self.supervisor.spawn_failed(failure, now);
    }

    /// Bytes of standard error were read: gives each line that they complete, ready to be shown.
    pub fn stderr(&mut self, bytes: &[u8], line: impl FnMut(&str), now: Instant) {
        self.stderr.push(bytes, line);
        self.supervisor.output_seen(now);
    }

    /// Standard error has ended, or is not ours to read. Gives the unfinished line, if there is one.
    pub fn stderr_ended(&mut self, line: impl FnMut(&str), now: Instant) {
        self.stderr.finish(line);
        self.supervisor.stderr_ended(now);
    }

    /// The next signal. What it tells is remembered here first.
    pub fn poll_signal(&mut self) -> Option<SupervisorSignal> {
        let signal = self.supervisor.poll_signal()?;
        match &signal {
            SupervisorSignal::Connection(Signal::Established { .. }) => {
                self.established = true;
                self.unreadable = Vec::new();
            }
            SupervisorSignal::Connection(Signal::Failed(error)) => self.connection_error = Some(error.clone()),
            SupervisorSignal::Process(Notice::Started { restarts }) => self.restarts = *restarts,
            SupervisorSignal::Process(Notice::StartFailed(failure)) => {
                self.start_error = Some(self.explain(*failure));
            }
            _ => {}
        }
        Some(signal)
    }

    fn explain(&mut self, failure: StartFailure) -> StartError {
        let (kind, exit, source) = match failure {
            StartFailure::Spawn(failure) => {
                let kind = match failure {
                    SpawnFailure::NotFound => StartFailedKind::NotFound,
                    SpawnFailure::Permission => StartFailedKind::Permission,
                    SpawnFailure::Directory => StartFailedKind::Directory,
                    _ => StartFailedKind::Spawn,
                };
                (kind, None, self.spawn_error.take().map(StartSource::Spawn))
            }
            StartFailure::Exited(exit) => (StartFailedKind::Exited, Some(exit), None),
            StartFailure::Connection => {
                let kind = match self.connection_error {
                    Some(ConnectionError::LegacyServer { .. }) => StartFailedKind::LegacyServer,
                    Some(ConnectionError::NoCommonVersion { .. }) => StartFailedKind::NoCommonVersion,
                    Some(ConnectionError::InitializeRefused { .. }) => StartFailedKind::Refused,
                    Some(ConnectionError::ContentLengthFraming) => StartFailedKind::Framing,
                    _ => StartFailedKind::Timeout,
                };
                (kind, None, self.connection_error.clone().map(StartSource::Connection))
            }
            // The end of a stream without a process, and what may be added.
            _ => (StartFailedKind::Exited, None, None),
        };
        let (stderr, unreadable) = (self.stderr.text(), std::mem::take(&mut self.unreadable));
        StartError::new(StartFacts { kind, exit, source, stderr, unreadable })
    }

    /// The process id of the current or last life; 0 if there was none.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Restarts so far.
    #[must_use]
    pub const fn restarts(&self) -> u32 {
        self.restarts
    }

    /// Why the start failed, if it did.
    #[must_use]
    pub const fn start_error(&self) -> Option<&StartError> {
        self.start_error.as_ref()
    }

    /// The end of the current or last life's standard error, where it is kept.
    #[must_use]
    pub fn stderr_tail(&self) -> String {
        self.stderr.text()
    }

    /// What one frame means, as an event; `None` where it was the core's own business.
    #[must_use]
    pub fn frame_event(event: &Event<'_>) -> Option<ClientEvent> {
        Some(match event {
            Event::Result { request, result, .. } => {
                ClientEvent::Result { request: *request, result: JsonBuf::from(*result) }
            }
            Event::Error { request, error } => {
                ClientEvent::Error { request: *request, error: JsonBuf::from(error.raw) }
            }
            Event::RequestNotification { request, method, params } => ClientEvent::Notification {
                of: Some(*request),
                method: method.to_string(),
                params: params.map(JsonBuf::from),
            },
            Event::Acknowledged { listen, notifications, .. } => {
                ClientEvent::Acknowledged { listen: *listen, notifications: JsonBuf::from(*notifications) }
            }
            Event::ListenNotification { listen, method, params } => ClientEvent::Notification {
                of: Some(*listen),
                method: method.to_string(),
                params: params.map(JsonBuf::from),
            },
            Event::ListenEnded { listen, how } => ClientEvent::ListenEnded { listen: *listen, how: *how },
            Event::Notification { method, params } => {
                ClientEvent::Notification { of: None, method: method.to_string(), params: params.map(JsonBuf::from) }
            }
            Event::Answered { method, code } => {
                ClientEvent::ServerRequest { method: method.to_string(), answered: answered_as(code.is_none()) }
            }
            Event::Dropped(dropped) => {
                ClientEvent::Dropped { reason: dropped.reason, id: dropped.id.map(IdBuf::from), code: dropped.code }
            }
            _ => return None,
        })
    }

    /// What a signal means, as an event; `None` where another signal tells it.
    #[must_use]
    pub fn signal_event(&self, signal: &SupervisorSignal) -> Option<ClientEvent> {
        match signal {
            SupervisorSignal::Connection(signal) => self.connection_event(signal),
            SupervisorSignal::Process(notice) => self.process_event(notice),
            _ => None,
        }
    }

    fn connection_event(&self, signal: &Signal) -> Option<ClientEvent> {
        Some(match signal {
            Signal::Established { era, version } => ClientEvent::Era { era: era.as_str(), version: version.clone() },
            Signal::Ended { request, cause, delivery, .. } => ClientEvent::Failed {
                request: *request,
                cause: cause.clone(),
                delivery: *delivery,
                detail: self.ending(signal).map_or_else(String::new, |error| error.to_string()),
            },
            Signal::ListenEnded { listen, how } => ClientEvent::ListenEnded { listen: *listen, how: *how },
            Signal::Resubscribed { listen } => ClientEvent::Resubscribed { listen: *listen },
            // The notice of the failed start tells it; room for more is no event.
            _ => return None,
        })
    }

    fn process_event(&self, notice: &Notice) -> Option<ClientEvent> {
        Some(match notice {
            Notice::Started { restarts } => ClientEvent::Started { pid: self.pid, restarts: *restarts },
            Notice::StartFailed(_) => {
                let error = self.start_error.as_ref()?;
                ClientEvent::StartFailed { kind: error.kind(), detail: error.to_string() }
            }
            Notice::Restarting { restarts, exit } => ClientEvent::Restarted { restarts: *restarts, exit: *exit },
            Notice::IdleStopped { exit } => ClientEvent::IdleStopped { exit: *exit },
            Notice::Closed(outcome) => {
                ClientEvent::Closed { exit: outcome.exit, escalation: outcome.escalation, restarts: outcome.restarts }
            }
            _ => return None,
        })
    }

    /// The error that a request gets which ended without an answer. One that a failed start ended says so.
    #[must_use]
    pub fn ending(&self, signal: &Signal) -> Option<CallError> {
        let Signal::Ended { cause, delivery, hint, .. } = signal else { return None };
        match (&self.start_error, cause) {
            (Some(error), Cause::Closed) => Some(CallError::Start(error.clone())),
            _ => Some(CallError::Failed { cause: cause.clone(), delivery: *delivery, hint: hint.clone() }),
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("pid", &self.pid).field("restarts", &self.restarts).finish_non_exhaustive()
    }
}
