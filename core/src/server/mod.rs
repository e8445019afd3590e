//! The server's side of one connection: admission of requests, answers, listen streams, the ordered end.
//! It must not know processes, handlers, threads or clocks.

mod config;
mod event;

pub use config::Config;
pub use event::{Admission, Change, Ended, Event, LogLevel, Request, Signal, Ticket};

use alloc::vec::Vec;

use crate::{ConfigError, Instant, Json, Message, SendError};

/// The server's side of a connection.
#[derive(Debug)]
pub struct Connection {}

impl Connection {
    /// A connection that is ready for its first frame.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let _ = config;
        todo!()
    }

    /// Takes in one message. Take the signals after each, so that wire order is kept. While [`wants_read`](Self::wants_read) is false, read no more first.
    pub fn handle<'b>(&mut self, message: Message<'b>, now: Instant) -> Event<'b> {
        let _ = (message, now);
        todo!()
    }

    /// Answers a request with a result and gives its permit back: its handler has returned. On a cancelled request nothing is written (CAN-06).
    ///
    /// # Errors
    /// [`SendError::Full`]: the answer stays owed and the permit taken; try again at [`Signal::Writable`] (LIM-04).
    /// [`SendError::TooLarge`]: answered with -32603 in its place. [`SendError::Ended`]: it was answered before (RTE-09).
    pub fn respond(&mut self, ticket: Ticket, result: Json<'_>, now: Instant) -> Result<(), SendError> {
        let _ = (ticket, result, now);
        todo!()
    }

    /// Answers a request with an error and gives its permit back. A code that the protocol forbids leaves as -32603 (MSG-11).
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    pub fn respond_error(
        &mut self,
        ticket: Ticket,
        code: i64,
        message: &str,
        data: Option<Json<'_>>,
        now: Instant,
    ) -> Result<(), SendError> {
        let _ = (ticket, code, message, data, now);
        todo!()
    }

    /// The handler is gone without an answer (it panicked, or could not be started): -32603, and the permit comes back. Nothing for a cancelled request.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    pub fn abandon(&mut self, ticket: Ticket, now: Instant) -> Result<(), SendError> {
        let _ = (ticket, now);
        todo!()
    }

    /// Reports progress of a running request. Nothing is written without a token, after a cancellation or for a value that does not
    /// increase; the newest value replaces one that is still unwritten (PRG-02 to PRG-05).
    ///
    /// # Errors
    /// [`SendError::Ended`] after the answer; [`SendError::NotJson`] for a value that is not finite.
    pub fn progress(
        &mut self,
        ticket: Ticket,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
        now: Instant,
    ) -> Result<(), SendError> {
        let _ = (ticket, progress, total, message, now);
        todo!()
    }

    /// Sends a log message of a running request, if it asked for this level (LOG-01). May be shed under load.
    ///
    /// # Errors
    /// [`SendError::Ended`] after the answer; [`SendError::NotInThisEra`] if the server declares no `logging`.
    pub fn log(
        &mut self,
        ticket: Ticket,
        level: LogLevel,
        logger: Option<&str>,
        data: Json<'_>,
        now: Instant,
    ) -> Result<(), SendError> {
        let _ = (ticket, level, logger, data, now);
        todo!()
    }

    /// Tells each listen that asked for it of a change (SUB-03, SUB-05). Returns how many were told.
    pub fn publish(&mut self, change: Change<'_>, now: Instant) -> usize {
        let _ = (change, now);
        todo!()
    }

    /// The input has ended: listens are closed (SUB-07), handlers may finish within the drain time (SHD-05). Idempotent.
    pub fn end_of_input(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// The server stops by itself: as the end of input (SHD-06). Idempotent.
    pub fn stop(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// Ends the drain now: whoever has not finished gets W-20.
    pub fn end_drain(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// The writer has failed: the client is gone (SHD-07). Handlers are cancelled, nothing more is written.
    pub fn peer_gone(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// The next signal, if any.
    pub fn poll_signal(&mut self) -> Option<Signal> {
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

    /// Bytes to write: lent from here on. The same until [`accepted`](Self::accepted).
    #[must_use]
    pub fn output(&mut self, now: Instant) -> &[u8] {
        let _ = now;
        todo!()
    }

    /// The same by ownership, for a writer that must not borrow the connection while it writes. Report each partial write
    /// with [`accepted`](Self::accepted), then [`recycle`](Self::recycle) the vector. `None` if there is nothing or one is out.
    #[must_use]
    pub fn take_output(&mut self, now: Instant) -> Option<Vec<u8>> {
        let _ = now;
        todo!()
    }

    /// The writer has accepted `n` more of the bytes lent.
    pub fn accepted(&mut self, n: usize, now: Instant) {
        let _ = (n, now);
        todo!()
    }

    /// Gives the vector of [`take_output`](Self::take_output) back once it is written, for reuse.
    pub fn recycle(&mut self, spent: Vec<u8>) {
        let _ = spent;
        todo!()
    }

    /// Bytes queued and not accepted by the writer.
    #[must_use]
    pub fn pending_output(&self) -> usize {
        todo!()
    }

    /// Whether to read on. False only while the core's own answers have used up their budget (LIM-04), with the option to pause
    /// instead of refusing (LIM-02), and after the end.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        todo!()
    }

    /// How serving ended, once it has: every request has ended and every byte was accepted (or the peer is gone).
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        todo!()
    }
}
