//! Joins a client connection with the process behind it, over all its lives: what tokio, smol and the bare loop share.
//! It must not know process ids, descriptors, threads or clocks.

mod facts;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::client::{self, Event, Handle, RequestOptions, ServerTicket};
use crate::lifecycle::{self, Notice, Process, Step};
use crate::{ConfigError, Era, Filter, Instant, Json, Message, SendError};

/// What a supervisor tells besides the frame at hand, in the order in which it happened.
///
/// A failed start comes before the requests that it ends, requests that a restart ends come before its notice,
/// `Started` before `Established`, and `Closed` last.
///
/// ```
/// # use mcp_wire::SupervisorSignal;
/// fn is_last(signal: &SupervisorSignal) -> bool {
///     matches!(signal, SupervisorSignal::Process(mcp_wire::lifecycle::Notice::Closed(_)))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SupervisorSignal {
    /// Of the connection.
    Connection(client::Signal),
    /// Of the process.
    Process(Notice),
}

/// A client connection and the process it talks to.
///
/// Without a process (a socket, a memory pipe) use [`without_process`](Self::without_process): then the end of output closes the connection.
///
/// ```
/// use core::time::Duration;
/// use mcp_wire::client::{self, RequestOptions};
/// use mcp_wire::lifecycle::{self, Step};
/// use mcp_wire::{Instant, Supervisor};
///
/// let now = Instant::EPOCH;
/// let mut supervisor = Supervisor::new(client::Config::new("host", "1.0"), lifecycle::Config::default())?;
/// assert_eq!(supervisor.poll_step(), Some(Step::Spawn));
/// supervisor.request("tools/list", None, RequestOptions::default(), now)?;
/// assert!(supervisor.output(now).is_empty()); // there is nobody to write to yet
/// supervisor.spawned(now);
/// assert!(supervisor.output(now).ends_with(b"\n")); // the probe comes first
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Supervisor {
    connection: client::Connection,
    process: Process,
    signals: VecDeque<SupervisorSignal>,
    /// The connection's stream is that of the current life, and it counts.
    attached: bool,
    /// A write of this life failed, or `CloseStdin` was given: no more bytes for it.
    input_closed: bool,
    /// The output of this life has ended.
    output_ended: bool,
    /// There is an idle time to keep.
    idle_stop: bool,
}

impl Supervisor {
    /// A supervisor whose first [`Step`] is `Spawn` (unless lazy).
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn new(connection: client::Config, process: lifecycle::Config) -> Result<Self, ConfigError> {
        let idle_stop = process.idle_stop.is_some();
        if idle_stop && connection.versions.is_empty() {
            // A legacy session has state, which a stop would lose (RST-09).
            let what = "idle_stop needs the modern era; name a version in versions, or turn it off";
            return Err(ConfigError::Conflict { what });
        }
        Ok(Self {
            connection: client::Connection::new(connection)?,
            process: Process::new(process)?,
            signals: VecDeque::new(),
            attached: false,
            input_closed: false,
            output_ended: false,
            idle_stop,
        })
    }

    /// A supervisor of a byte stream that is open and belongs to no process. Its only step is `CloseStdin` (close the writing side).
    /// After that it waits for the end of the peer's output, one grace at most.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn without_process(connection: client::Config, now: Instant) -> Result<Self, ConfigError> {
        let mut supervisor = Self {
            connection: client::Connection::new(connection)?,
            process: Process::stream(now),
            signals: VecDeque::new(),
            attached: true,
            input_closed: false,
            output_ended: false,
            idle_stop: false,
        };
        supervisor.connection.opened(now);
        supervisor.settle(now);
        Ok(supervisor)
    }

    /// See [`client::Connection::request`]; starts a lazy process.
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn request(
        &mut self,
        method: &str,
        params: Option<Json<'_>>,
        options: RequestOptions,
        now: Instant,
    ) -> Result<Handle, SendError> {
        let handle = self.connection.request(method, params, options, now)?;
        self.work(now);
        Ok(handle)
    }

    /// See [`client::Connection::listen`]; starts a lazy process.
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn listen(&mut self, filter: &Filter, options: RequestOptions, now: Instant) -> Result<Handle, SendError> {
        let handle = self.connection.listen(filter, options, now)?;
        self.work(now);
        Ok(handle)
    }

    /// See [`client::Connection::notify`]; starts a lazy process.
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn notify(&mut self, method: &str, params: Option<Json<'_>>, now: Instant) -> Result<(), SendError> {
        self.connection.notify(method, params, now)?;
        self.work(now);
        Ok(())
    }

    /// See [`client::Connection::cancel`].
    pub fn cancel(&mut self, handle: Handle, reason: Option<&str>, now: Instant) {
        self.connection.cancel(handle, reason, now);
        self.settle(now);
    }

    /// See [`client::Connection::overflow`].
    pub fn overflow(&mut self, handle: Handle, now: Instant) {
        self.connection.overflow(handle, now);
        self.settle(now);
    }

    /// Takes in one message of the current life. One of a life that counts no more is ignored (RST-06).
    pub fn handle<'b>(&mut self, message: Message<'b>, now: Instant) -> Event<'b> {
        if !self.attached {
            return Event::Handled;
        }
        let event = self.connection.handle(message, now);
        self.settle(now);
        event
    }

    /// See [`client::Connection::open_batch`].
    #[must_use]
    pub fn open_batch(&mut self, now: Instant) -> bool {
        self.attached && self.connection.open_batch(now)
    }

    /// See [`client::Connection::close_batch`].
    pub fn close_batch(&mut self, now: Instant) {
        self.connection.close_batch(now);
        self.settle(now);
    }

    /// See [`client::Connection::respond`].
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn respond(&mut self, ticket: ServerTicket, result: Json<'_>, now: Instant) -> Result<(), SendError> {
        let responded = self.connection.respond(ticket, result, now);
        self.settle(now);
        responded
    }

    /// See [`client::Connection::respond_error`].
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn respond_error(
        &mut self,
        ticket: ServerTicket,
        code: i64,
        message: &str,
        data: Option<Json<'_>>,
        now: Instant,
    ) -> Result<(), SendError> {
        let responded = self.connection.respond_error(ticket, code, message, data, now);
        self.settle(now);
        responded
    }

    /// See [`client::Connection::respond_unknown`].
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn respond_unknown(&mut self, ticket: ServerTicket, now: Instant) -> Result<(), SendError> {
        let responded = self.connection.respond_unknown(ticket, now);
        self.settle(now);
        responded
    }

    /// Closes by the ladder (SHD-01). Every request ends at once (SHD-03). Idempotent.
    pub fn close(&mut self, now: Instant) {
        self.connection.close(now);
        self.process.close(now);
        self.settle(now);
    }

    /// Ends the process now (SHD-04). Idempotent; shortens a running close.
    pub fn kill(&mut self, now: Instant) {
        self.connection.close(now);
        self.process.kill(now);
        self.settle(now);
    }

    /// Skips the delay of a restart.
    pub fn retry_now(&mut self, now: Instant) {
        self.process.retry_now(now);
        self.settle(now);
    }

    /// The next step to perform on the process. `CloseStdin` comes when what could still be written has been accepted,
    /// or after a grace: a server that does not read holds nothing up.
    pub fn poll_step(&mut self) -> Option<Step> {
        if self.process.is_about_to_close_stdin() && self.writes() && self.connection.pending_output() > 0 {
            return None;
        }
        let step = self.process.poll_step();
        if step == Some(Step::CloseStdin) {
            self.input_closed = true;
        }
        step
    }

    /// The next signal, in the order of what happened.
    pub fn poll_signal(&mut self) -> Option<SupervisorSignal> {
        self.signals.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let connection = if self.is_failing_to_start() { None } else { self.connection.poll_timeout() };
        connection.into_iter().chain(self.process.poll_timeout()).min()
    }

    /// Time has passed. Early or twice does no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        if !self.is_failing_to_start() {
            self.connection.handle_timeout(now);
        }
        self.process.handle_timeout(now);
        self.settle(now);
    }

    /// See [`client::Connection::output`]. Empty while there is no life to write to.
    #[must_use]
    pub fn output(&mut self, now: Instant) -> &[u8] {
        if self.writes() { self.connection.output(now) } else { &[] }
    }

    /// See [`client::Connection::take_output`]. Perform the steps of [`poll_step`](Self::poll_step) before each write of
    /// a part of it: a life that is over takes no more bytes, and what is written all the same counts as not sent.
    #[must_use]
    pub fn take_output(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.writes() { self.connection.take_output(now) } else { None }
    }

    /// See [`client::Connection::accepted`].
    pub fn accepted(&mut self, n: usize, now: Instant) {
        // A write of an old life that is reported late must not count for the bytes of the next.
        if self.attached {
            self.connection.accepted(n, now);
            self.settle(now);
        }
    }

    /// See [`client::Connection::recycle`].
    pub fn recycle(&mut self, spent: Vec<u8>) {
        self.connection.recycle(spent);
    }

    /// Reads of the connection: in flight, established, the error.
    #[must_use]
    pub fn connection(&self) -> &client::Connection {
        &self.connection
    }

    /// Reads of the process: when it restarts.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// How it all ended, once it has. Nothing more happens then.
    #[must_use]
    pub fn outcome(&self) -> Option<&lifecycle::Outcome> {
        self.process.outcome()
    }

    /// Whether bytes can be written to the current life.
    fn writes(&self) -> bool {
        self.attached && !self.input_closed && !self.output_ended && self.process.takes_input()
    }

    /// It has ended its output or exited without an answer. Its exit status is the better explanation, so no timer of the
    /// connection may come before it with one of its own.
    fn is_failing_to_start(&self) -> bool {
        let ends = self.output_ended || self.process.has_exited();
        self.attached && ends && !self.connection.is_established()
    }

    fn work(&mut self, now: Instant) {
        self.process.wake(now);
        self.settle(now);
    }

    /// Carries what one of the two machines has to say over to the other, and puts it in order for the caller.
    fn settle(&mut self, now: Instant) {
        if self.idle_stop {
            let modern = self.connection.era() != Some(Era::Legacy);
            if modern && self.connection.is_idle() && self.connection.pending_output() == 0 {
                self.process.idle(now);
            } else {
                self.process.busy();
            }
        }
        loop {
            if self.attached {
                if let Some(restarting) = self.process.stream_over() {
                    self.detach(restarting, now);
                }
            }
            if let Some(signal) = self.connection.poll_signal() {
                match signal {
                    client::Signal::Established { .. } => self.process.established(now),
                    // Its notice must come before the requests that the failure ends.
                    client::Signal::Failed(_) => {
                        self.signals.push_back(SupervisorSignal::Connection(signal));
                        self.process.failed(now);
                        self.take_notices(now);
                        continue;
                    }
                    _ => {}
                }
                self.signals.push_back(SupervisorSignal::Connection(signal));
            } else if !self.take_notices(now) {
                return;
            }
        }
    }

    /// Takes the notices up to the next one that makes the connection say something. Whether there was any.
    fn take_notices(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(notice) = self.process.poll_notice() {
            any = true;
            match notice {
                Notice::Started { .. } => {
                    self.signals.push_back(SupervisorSignal::Process(notice));
                    self.input_closed = false;
                    self.output_ended = false;
                    if !self.process.is_ending() {
                        self.attached = true;
                        self.connection.opened(now);
                    }
                    return true;
                }
                Notice::StartFailed(_) => {
                    self.signals.push_back(SupervisorSignal::Process(notice));
                    self.detach(false, now);
                    return true;
                }
                Notice::Closed(_) => {
                    // Nothing to do after the usual ends; one that could not be killed ends requests that were to wait.
                    self.connection.close(now);
                    self.attached = false;
                    while let Some(signal) = self.connection.poll_signal() {
                        self.signals.push_back(SupervisorSignal::Connection(signal));
                    }
                    self.signals.push_back(SupervisorSignal::Process(notice));
                }
                Notice::Restarting { .. } | Notice::IdleStopped { .. } => {
                    self.signals.push_back(SupervisorSignal::Process(notice));
                }
            }
        }
        any
    }

    fn detach(&mut self, restarting: bool, now: Instant) {
        self.attached = false;
        self.connection.lost(restarting, now);
        if restarting && self.process.is_second_start() {
            self.connection.skip_probe();
        }
    }

    /// Some servers end on anything but `initialize`: one that ends on the probe gets another start, without a probe (VER-05).
    fn look_for_second_start(&mut self) {
        if self.attached && self.connection.may_have_ended_on_probe() {
            self.process.grant_second_start();
        }
    }
}
