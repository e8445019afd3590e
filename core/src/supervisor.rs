//! Joins a client connection with the process behind it, over all its lives: what tokio, smol and the bare loop share.
//! It must not know process ids, descriptors, threads or clocks.

use alloc::vec::Vec;

use crate::client::{self, Event, Handle, RequestOptions};
use crate::lifecycle::{self, ExitStatus, Notice, SpawnFailure, Step};
use crate::{ConfigError, Filter, Instant, Json, Message, SendError};

/// What a supervisor tells besides the frame at hand, in the order in which it happened.
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
#[derive(Debug)]
pub struct Supervisor {}

impl Supervisor {
    /// A supervisor whose first [`Step`] is `Spawn` (unless lazy).
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn new(connection: client::Config, process: lifecycle::Config) -> Result<Self, ConfigError> {
        let _ = (connection, process);
        todo!()
    }

    /// A supervisor of a byte stream that is open and belongs to no process. Its only step is `CloseStdin` (close the writing side).
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn without_process(connection: client::Config, now: Instant) -> Result<Self, ConfigError> {
        let _ = (connection, now);
        todo!()
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
        let _ = (method, params, options, now);
        todo!()
    }

    /// See [`client::Connection::listen`]; starts a lazy process.
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn listen(&mut self, filter: &Filter, options: RequestOptions, now: Instant) -> Result<Handle, SendError> {
        let _ = (filter, options, now);
        todo!()
    }

    /// See [`client::Connection::notify`]; starts a lazy process.
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn notify(&mut self, method: &str, params: Option<Json<'_>>, now: Instant) -> Result<(), SendError> {
        let _ = (method, params, now);
        todo!()
    }

    /// See [`client::Connection::cancel`].
    pub fn cancel(&mut self, handle: Handle, reason: Option<&str>, now: Instant) {
        let _ = (handle, reason, now);
        todo!()
    }

    /// See [`client::Connection::overflow`].
    pub fn overflow(&mut self, handle: Handle, now: Instant) {
        let _ = (handle, now);
        todo!()
    }

    /// Takes in one message of the current life.
    pub fn handle<'b>(&mut self, message: Message<'b>, now: Instant) -> Event<'b> {
        let _ = (message, now);
        todo!()
    }

    /// Bytes of output or stderr of the current life were read, whatever they are (PRC-03's silence).
    pub fn output_seen(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// The process's output has ended (and its frames have been handed in).
    pub fn output_ended(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// Its stderr has ended, or is not ours to read. Counts for PRC-03's "both pipes".
    pub fn stderr_ended(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// A write to its input failed: no more bytes can be delivered to this life.
    pub fn input_failed(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// [`Step::Spawn`] succeeded: a new life. The caller starts with an empty receive buffer.
    pub fn spawned(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// [`Step::Spawn`] failed.
    pub fn spawn_failed(&mut self, failure: SpawnFailure, now: Instant) {
        let _ = (failure, now);
        todo!()
    }

    /// The process has exited and is not reaped yet.
    pub fn exited(&mut self, status: ExitStatus, now: Instant) {
        let _ = (status, now);
        todo!()
    }

    /// [`Step::TerminateGroup`] or [`Step::KillGroup`] was performed; `empty`: nobody but the leader was in the group.
    pub fn group_signalled(&mut self, empty: bool, now: Instant) {
        let _ = (empty, now);
        todo!()
    }

    /// [`Step::Reap`] was performed.
    pub fn reaped(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// Closes by the ladder (SHD-01). Idempotent.
    pub fn close(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// Ends the process now (SHD-04). Idempotent; shortens a running close.
    pub fn kill(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// Skips the delay of a restart.
    pub fn retry_now(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// The next step to perform on the process. For `CloseStdin`: first write what [`output`](Self::output) still gives.
    pub fn poll_step(&mut self) -> Option<Step> {
        todo!()
    }

    /// The next signal, in the order of what happened.
    pub fn poll_signal(&mut self) -> Option<SupervisorSignal> {
        todo!()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        todo!()
    }

    /// Time has passed. Early or twice does no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// See [`client::Connection::output`]. Empty while there is no life to write to.
    #[must_use]
    pub fn output(&mut self, now: Instant) -> &[u8] {
        let _ = now;
        todo!()
    }

    /// See [`client::Connection::take_output`].
    #[must_use]
    pub fn take_output(&mut self, now: Instant) -> Option<Vec<u8>> {
        let _ = now;
        todo!()
    }

    /// See [`client::Connection::accepted`].
    pub fn accepted(&mut self, n: usize, now: Instant) {
        let _ = (n, now);
        todo!()
    }

    /// See [`client::Connection::recycle`].
    pub fn recycle(&mut self, spent: Vec<u8>) {
        let _ = spent;
        todo!()
    }

    /// Reads of the connection: in flight, established, the error.
    #[must_use]
    pub fn connection(&self) -> &client::Connection {
        todo!()
    }

    /// How it all ended, once it has. Nothing more happens then.
    #[must_use]
    pub fn outcome(&self) -> Option<&lifecycle::Outcome> {
        todo!()
    }
}
