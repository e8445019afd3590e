//! The server's side of one connection: admission of requests, answers, listen streams, the ordered end.
//! It must not know processes, handlers, threads or clocks.

mod admission;
mod answers;
mod batches;
mod checks;
mod client_requests;
mod config;
mod ending;
mod event;
mod inbound;
mod listens;
mod progress;
mod rate;
mod refusals;
mod responses;
mod results;
mod session;

pub use client_requests::ClientRequestOptions;
pub use config::Config;
pub use event::{Admission, Change, ClientRequest, Ended, Event, LogLevel, Request, Session, Signal, Ticket};
pub use session::ClientFacts;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use self::admission::Table;
use self::answers::Texts;
use self::batches::Batches;
use self::client_requests::ClientRequests;
use self::ending::Phase;
use self::listens::{Grants, Listens};
use self::progress::Reports;
use self::rate::{NullIds, Window};
use self::results::Finders;
use self::session::Sessions;
use crate::own::Own;
use crate::send_buffer::SendBuffer;
use crate::{ConfigError, Instant};

/// The server's side of a connection.
///
/// It takes in what was read ([`handle`](Self::handle)), tells what to do about it (the [`Event`] of the frame at hand, then each
/// [`Signal`]), says what to write ([`output`](Self::output)) and when it wants to be woken ([`poll_timeout`](Self::poll_timeout)). It reads
/// no clock and starts nothing: the same calls give the same answers. Any call may follow any other, asking twice does no harm, and
/// a time before an earlier one counts as that one.
///
/// Each request that comes as [`Event::Request`] holds its ticket until its handler has returned ([`respond`](Self::respond),
/// [`respond_error`](Self::respond_error), [`abandon`](Self::abandon)), also after a cancellation: that is what gives the permit back. Only
/// a request that still waits is gone with its [`Signal::Cancelled`].
///
/// `server/discover`, `ping`, `subscriptions/listen`, refusals and all that is wrong with a frame are the connection's own business; so
/// are `initialize`, `logging/setLevel` and the subscriptions of a legacy client. Each request is judged by itself, so that modern and legacy
/// ones may come over one connection (VER-10). What exists for a legacy client only takes its [`Session`].
///
/// ```
/// use mcp_wire::server::{Config, Connection, Event};
/// use mcp_wire::{Instant, Json, RecvBuffer};
///
/// let now = Instant::EPOCH;
/// let mut server = Connection::new(Config::new("demo", "1.0"))?;
/// let mut recv = RecvBuffer::default();
/// recv.extend(br#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"#); // read from the client
/// recv.extend(br#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#);
/// recv.extend(b"\n");
/// let frame = recv.next_frame().expect("a whole line");
/// match server.handle(frame.message(), now) {
///     Event::Request { ticket, request, .. } => {
///         assert_eq!(request.method, "tools/list");
///         server.respond(ticket, Json::parse(r#"{"tools":[]}"#)?, now)?;
///     }
///     other => panic!("{other:?}"),
/// }
/// let answer = server.output(now).to_vec(); // written to the client
/// assert!(answer.starts_with(br#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","tools":[],"_meta":"#));
/// server.accepted(answer.len(), now);
///
/// server.end_of_input(now);
/// assert!(server.ended().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Connection {
    config: Config,
    texts: Texts,
    finders: Finders,
    grants: Grants,
    /// The latest time that was handed in.
    now: Instant,
    phase: Phase,
    input_ended: bool,
    table: Table,
    listens: Listens,
    sessions: Sessions,
    client_requests: ClientRequests,
    batches: Batches,
    reports: Reports,
    out: SendBuffer,
    own: Own,
    null_ids: NullIds,
    /// Some answer was refused for lack of room, the first of about so many bytes: [`Signal::Writable`] is owed.
    blocked: Option<usize>,
    log_window: Window,
    shed_logs: u64,
    signals: VecDeque<Signal>,
}

impl Connection {
    /// A connection that is ready for its first frame.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            texts: Texts::new(&config),
            finders: Finders::new(),
            grants: Grants::new(config.capabilities.as_json()),
            now: Instant::EPOCH,
            phase: Phase::Open,
            input_ended: false,
            table: Table::new(&config),
            listens: Listens::new(&config),
            sessions: Sessions::default(),
            client_requests: ClientRequests::new(config.client_request_limit, config.client_request_timeout),
            batches: Batches::new(config.queue_limit),
            reports: Reports::default(),
            out: SendBuffer::new(config.queue_limit),
            own: Own::new(config.own_answers_limit),
            null_ids: NullIds::new(),
            blocked: None,
            log_window: Window::default(),
            shed_logs: 0,
            signals: VecDeque::new(),
            config,
        })
    }

    /// Time does not go backwards.
    fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// The next signal, if any.
    pub fn poll_signal(&mut self) -> Option<Signal> {
        self.signals.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.drain_ends(), self.reports.next(), self.client_requests.next_deadline()].into_iter().flatten().min()
    }

    /// Time has passed. Early or twice does no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tick(now);
        self.flush_late_reports();
        self.expire_client_requests();
        self.check_drain_time();
    }

    /// Bytes to write: lent from here on. The same until [`accepted`](Self::accepted).
    #[must_use]
    pub fn output(&mut self, now: Instant) -> &[u8] {
        self.lend(now);
        self.out.output()
    }

    /// The same by ownership, for a writer that must not borrow the connection while it writes. Report each partial write
    /// with [`accepted`](Self::accepted), then [`recycle`](Self::recycle) the vector. `None` if there is nothing or one is out.
    #[must_use]
    pub fn take_output(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.lend(now);
        self.out.take()
    }

    /// From here on the client may know the answers in what is lent, and use their ids again.
    fn lend(&mut self, now: Instant) {
        self.tick(now);
        self.out.lend();
        let lent_up_to = self.out.lent_up_to();
        self.table.settle(lent_up_to);
        self.client_requests.lent(lent_up_to, self.now);
    }

    /// The writer has accepted `n` more of the bytes lent.
    pub fn accepted(&mut self, n: usize, now: Instant) {
        self.tick(now);
        self.out.accepted(n);
        self.made_room();
    }

    /// There is room, since something was written or withdrawn: whatever waited for it gets its turn.
    fn made_room(&mut self) {
        self.own.settle(&self.out);
        self.flush_batches();
        self.flush_stuck_reports();
        self.tell_missed();
        self.check_writable();
    }

    /// Gives the vector of [`take_output`](Self::take_output) back once it is written, for reuse.
    pub fn recycle(&mut self, spent: Vec<u8>) {
        self.out.recycle(spent);
    }

    /// Bytes queued and not accepted by the writer.
    #[must_use]
    pub fn pending_output(&self) -> usize {
        self.out.len()
    }

    /// Whether to read on. False only while the core's own answers have used up their budget (LIM-04), with the option to pause
    /// instead of refusing (LIM-02) while no further request would find a place and no handler waits for an answer of the client, and after the
    /// end of the input or of serving.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        // A handler that has asked the client would wait behind its own pause.
        let full = self.config.pause_when_full && self.table.is_full() && self.client_requests() == 0;
        self.takes_input() && !full && !self.own.paused()
    }
}
