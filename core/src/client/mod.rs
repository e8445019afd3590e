//! The client's side of one connection: requests, listens, notifications and what the server makes of them.
//! It must not know processes, threads or clocks.

mod config;
mod event;

pub use config::{Config, ProgressToken, RequestOptions};
pub use event::{Dropped, Event, Handle, Hint, ListenEnd, ResultKind, Signal};

use alloc::vec::Vec;

use crate::{ConfigError, ConnectionError, Filter, Instant, Json, Message, SendError};

/// The client's side of a connection, over the lives of the process or stream behind it.
#[derive(Debug)]
pub struct Connection {}

impl Connection {
    /// A connection that is not open yet: requests wait.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let _ = config;
        todo!()
    }

    /// The byte stream of the first life, or of a next one after [`lost`](Self::lost), can be used. Queues the probe, or with a
    /// kept verdict what waits (VER-02, VER-08).
    pub fn opened(&mut self, now: Instant) {
        let _ = now;
    }

    /// The byte stream has ended. With `restarting`, listens and idempotent requests without a frame wait for the
    /// next life (RST-03, SUB-10), so do requests that were never lent; everything else ends with `Closed` and its delivery (RST-02).
    /// Without, everything ends and the connection is closed.
    pub fn lost(&mut self, restarting: bool, now: Instant) {
        let _ = (restarting, now);
    }

    /// Closes: every request ends with `Closed` now, requests not begun are withdrawn, nothing new is taken; what is
    /// queued besides may still leave (SHD-03). Idempotent.
    pub fn close(&mut self, now: Instant) {
        let _ = now;
    }

    /// Queues a request. `params` must be an object; `_meta` members of it are kept, the core's own keys win (META-06).
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

    /// Queues a `subscriptions/listen`. Its clock stops at the acknowledgment (TMO-04).
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn listen(&mut self, filter: &Filter, options: RequestOptions, now: Instant) -> Result<Handle, SendError> {
        let _ = (filter, options, now);
        todo!()
    }

    /// Queues a notification of the caller's. Waits with the requests until the connection is established.
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn notify(&mut self, method: &str, params: Option<Json<'_>>, now: Instant) -> Result<(), SendError> {
        let _ = (method, params, now);
        todo!()
    }

    /// Gives a request or listen up: withdrawn if no byte of it was lent, else cancelled on the wire (CAN-01, CAN-03).
    /// Its end follows as a signal. Does nothing for a handle that has ended.
    pub fn cancel(&mut self, handle: Handle, reason: Option<&str>, now: Instant) {
        let _ = (handle, reason, now);
        todo!()
    }

    /// As [`cancel`](Self::cancel), because something of the caller's overflowed: a request ends with `Overflow`, a listen as `Lagged`
    /// (SUB-09, RTE-12).
    pub fn overflow(&mut self, handle: Handle, now: Instant) {
        let _ = (handle, now);
        todo!()
    }

    /// Takes in one message. Take the signals after each, so that wire order is kept.
    pub fn handle<'b>(&mut self, message: Message<'b>, now: Instant) -> Event<'b> {
        let _ = (message, now);
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

    /// Time has passed. Early or twice does no harm. Hand in the input that is there first: it wins over a deadline of the same moment.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// Bytes to write: lent from here on (the clocks of their requests start). The same until [`accepted`](Self::accepted).
    #[must_use]
    pub fn output(&mut self, now: Instant) -> &[u8] {
        let _ = now;
        todo!()
    }

    /// The same by ownership, for a writer that must not borrow the connection while it writes. Report each
    /// partial write with [`accepted`](Self::accepted), then [`recycle`](Self::recycle) the vector. `None` if there is nothing or one is out.
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

    /// Whether the connection is established: era and version are known.
    #[must_use]
    pub fn is_established(&self) -> bool {
        todo!()
    }

    /// Whether nothing is in flight, queued or listened for (RST-09).
    #[must_use]
    pub fn is_idle(&self) -> bool {
        todo!()
    }

    /// Requests and listens that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        todo!()
    }

    /// Why the connection cannot be used, if so. Sticky.
    #[must_use]
    pub fn error(&self) -> Option<&ConnectionError> {
        todo!()
    }

    /// The `result` of `server/discover`, once established.
    #[must_use]
    pub fn discovered(&self) -> Option<Json<'_>> {
        todo!()
    }
}
