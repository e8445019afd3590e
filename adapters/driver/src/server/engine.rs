//! Owns what a serving loop asks of the connection, turn by turn. It must not know streams: the loop moves the bytes.

use std::sync::Arc;
use std::task::Waker;

use mcp_wire::server::{Admission, Ended, Event};
use mcp_wire::{Instant, Message, RecvBuffer};

use super::call::Parts;
use super::shared::{Facts, Shared, State};
use super::{Call, Server};

/// The connection as a serving loop sees it.
///
/// A loop reads into a [`RecvBuffer`], hands it to [`feed`](Self::feed), writes what [`take_output`](Self::take_output) gives, and sleeps only
/// after [`sleep`](Self::sleep) has agreed.
///
/// ```
/// use mcp_wire_driver::server::{Engine, Server};
///
/// let engine = Engine::new(Server::builder("demo", "1.0").build()?);
/// assert!(engine.turn().wants_read);
/// # Ok::<(), mcp_wire::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    line_limit: usize,
}

/// What a loop has to know at the start of a turn.
///
/// ```
/// # use mcp_wire_driver::server::Turn;
/// fn is_over(turn: &Turn) -> bool {
///     turn.ended.is_some()
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Turn {
    /// Read on.
    pub wants_read: bool,
    /// Serving has ended, but for what the stream may still have to flush.
    pub ended: Option<Ended>,
    /// Time until [`Engine::handle_timeout`] wants to be called; after the end, until a flush is to be given up.
    pub timeout: Option<std::time::Duration>,
}

impl Engine {
    /// The engine of one connection.
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self { shared: server.shared, line_limit: server.line_limit }
    }

    /// A receive buffer with the server's line limit.
    #[must_use]
    pub fn recv_buffer(&self) -> RecvBuffer {
        RecvBuffer::new(self.line_limit)
    }

    fn call(&self, parts: Parts) -> Call {
        Call::new(self.shared.clone(), parts)
    }

    /// Hands in the frames that are whole, one by one, and starts a handler for each request that may run. A cancellation reaches
    /// its handler before the next frame is looked at (CAN-07). Says whether to read on; if not, the frames that are left stay in the
    /// buffer (LIM-04).
    pub fn feed(&self, recv: &mut RecvBuffer, mut start: impl FnMut(Call)) -> bool {
        let mut wants = self.shared.read(|state| state.connection.wants_read());
        while wants {
            let Some(frame) = recv.next_frame() else { return true };
            // A line is one message but for the arrays of one revision: its messages are bounded, and go in together.
            let batch =
                frame.batch().filter(|_| self.shared.read(|state| state.connection.open_batch(self.shared.now())));
            wants = match batch {
                None => self.feed_message(frame.message(), &mut start),
                Some(batch) => {
                    batch.for_each(|message| {
                        self.feed_message(message, &mut start);
                    });
                    self.shared.with(|state, now| {
                        state.connection.close_batch(now);
                        state.connection.wants_read()
                    })
                }
            };
        }
        false
    }

    /// Hands in one message. Says whether to read on.
    fn feed_message(&self, message: Message<'_>, start: &mut impl FnMut(Call)) -> bool {
        // One lock a message. The event borrows from the frame alone, so it is told of without the lock: a subscriber is the user's code.
        let (event, run, startable, goes_on) = self.shared.with(|state, now| {
            let event = state.connection.handle(message, now);
            let run = admit(state, &event);
            state.take_answer(&event);
            state.settle(now);
            (event, run, std::mem::take(&mut state.startable), state.connection.wants_read())
        });
        tell(&event);
        for parts in run.into_iter().chain(startable) {
            start(self.call(parts));
        }
        goes_on
    }

    /// Starts the waiting requests that have got their permit.
    pub fn start_waiting(&self, mut start: impl FnMut(Call)) {
        loop {
            let startable = self.shared.read(|state| std::mem::take(&mut state.startable));
            if startable.is_empty() {
                return;
            }
            for parts in startable {
                start(self.call(parts));
            }
        }
    }

    /// The state at the start of a turn. What changes after this without the loop keeps it from [sleeping](Self::sleep).
    #[must_use]
    pub fn turn(&self) -> Turn {
        let now = self.shared.now();
        let Facts { wants_read, ended, timeout } = self.shared.turn();
        Turn { wants_read, ended, timeout: timeout.map(|at| at.saturating_since(now)) }
    }

    /// Time has passed.
    pub fn handle_timeout(&self) {
        self.shared.with(State::handle_timeout);
    }

    /// Bytes to write, whole frames. One vector at a time; report it with [`accepted`](Self::accepted).
    #[must_use]
    pub fn take_output(&self) -> Option<Vec<u8>> {
        self.shared.read(|state| state.connection.take_output(self.shared.now()))
    }

    /// The stream has accepted `n` bytes of the vector; `spent`: it is written to its end.
    pub fn accepted(&self, n: usize, spent: Option<Vec<u8>>) {
        self.shared.with(|state, now| {
            state.connection.accepted(n, now);
            if let Some(spent) = spent {
                state.connection.recycle(spent);
            }
        });
    }

    /// The input has ended, and its frames have been handed in.
    pub fn end_of_input(&self) {
        self.shared.with(|state, now| state.connection.end_of_input(now));
    }

    /// The output cannot be written.
    pub fn peer_gone(&self) {
        self.shared.with(|state, now| state.connection.peer_gone(now));
    }

    /// Registers the loop's waker, unless there is something to do, or something has changed since the last [`turn`](Self::turn): then `false`,
    /// and the loop takes another turn. `writing`: the loop holds a
    /// vector that the stream has not accepted yet, so further output can wait.
    #[must_use]
    pub fn sleep(&self, waker: &Waker, writing: bool) -> bool {
        self.shared.sleep(waker, !writing)
    }

    /// The current time of this connection.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.now()
    }
}

impl Drop for Engine {
    /// Nobody moves bytes any more: what is left (a publisher, a task of a handler) finds an ended connection.
    fn drop(&mut self) {
        self.peer_gone();
    }
}

/// Takes a request in; gives it back if it may run.
fn admit(state: &mut State, event: &Event<'_>) -> Option<Parts> {
    let Event::Request { ticket, admission, request } = event else { return None };
    let client = request.session.and_then(|session| state.client(session));
    let parts = Parts::new(*ticket, request, client);
    if *admission == Admission::Run {
        state.admit(*ticket, None);
        return Some(parts);
    }
    state.admit(*ticket, Some(parts));
    None
}

/// Logs ids and reasons, never content. Both are the peer's text: the core bounds them, `Debug` escapes them (SEC-03).
fn tell(event: &Event<'_>) {
    match event {
        Event::Dropped(dropped) => {
            let id = dropped.id.as_ref().map(|id| id.token());
            tracing::debug!(target: "mcp_wire::router", reason = dropped.reason.as_str(), ?id, len = dropped.len, "dropped a frame");
        }
        Event::Cancellation { id, reason, applied } => {
            let id = id.as_ref().map(|id| id.token());
            tracing::debug!(target: "mcp_wire::cancel", ?id, ?reason, applied, "a cancellation came");
        }
        Event::Initialize { version, .. } => {
            tracing::info!(target: "mcp_wire::era", version, "a legacy client has opened a session");
        }
        Event::Refused { id, code } => {
            tracing::debug!(target: "mcp_wire::router", id = ?id.token(), code, "refused a request");
        }
        _ => {}
    }
}
