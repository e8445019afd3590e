//! The client's side of one connection: requests, listens, notifications and what the server makes of them.
//! It must not know processes, threads or clocks.

mod alarms;
mod config;
mod endings;
mod event;
mod in_flight;
mod input;
mod listens;
mod lives;
mod opening;
mod outgoing;
mod peek;
mod probe;
mod recent;
mod routing;
mod sending;
mod server_requests;
mod tasks;

pub use config::{Config, ProgressToken, RequestOptions};
pub use event::{Dropped, Event, Handle, Hint, ListenEnd, ResultKind, Signal};
pub use input::InputRequired;
pub use opening::Facts;
pub use server_requests::ServerTicket;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use self::in_flight::Table;
use self::opening::Opening;
use self::outgoing::{Envelope, Payload};
use self::peek::Finders;
use self::probe::Probe;
use self::server_requests::ServerRequests;
use self::tasks::Tasks;
use crate::own::Own;
use crate::send_buffer::SendBuffer;
use crate::{Cause, ConfigError, ConnectionError, Era, Filter, Instant, Json, JsonBuf, Message, SendError};

/// The client's side of a connection, over the lives of the process or stream behind it.
///
/// It says what to write ([`output`](Self::output)), takes in what was read ([`handle`](Self::handle)), tells what became of it (the
/// [`Event`] of the frame at hand, then each [`Signal`]) and when it wants to be woken ([`poll_timeout`](Self::poll_timeout)). It reads no clock
/// and starts nothing: the same calls give the same answers. Any call may follow any other, asking twice does no harm, and a time
/// before an earlier one counts as that one.
///
/// Each request and listen ends exactly once: with an [`Event`] that carries its answer, or with a [`Signal`].
///
/// ```
/// use mcp_wire::client::{Config, Connection, Event, RequestOptions, Signal};
/// use mcp_wire::{Instant, RecvBuffer};
///
/// let now = Instant::EPOCH;
/// let mut client = Connection::new(Config::new("host", "1.0"))?;
/// let mut recv = RecvBuffer::default();
/// let request = client.request("tools/list", None, RequestOptions::default(), now)?; // waits
/// client.opened(now);
///
/// let probe = client.output(now).to_vec(); // written to the server
/// assert!(probe.starts_with(br#"{"jsonrpc":"2.0","id":1,"method":"server/discover""#));
/// client.accepted(probe.len(), now);
///
/// recv.extend(br#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#); // read from it
/// recv.extend(b"\n");
/// let frame = recv.next_frame().expect("a whole line");
/// assert!(matches!(client.handle(frame.message(), now), Event::Handled));
/// assert!(matches!(client.poll_signal(), Some(Signal::Established { .. })));
///
/// let n = client.output(now).len(); // now the request leaves
/// client.accepted(n, now);
/// recv.extend(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[]}}\n");
/// let frame = recv.next_frame().expect("a whole line");
/// match client.handle(frame.message(), now) {
///     Event::Result { request: of, result, .. } => {
///         assert_eq!((of, result.get()), (request, r#"{"tools":[]}"#));
///     }
///     other => panic!("{other:?}"),
/// }
/// assert!(client.is_idle());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Connection {
    config: Config,
    /// The latest time that was handed in.
    now: Instant,
    stage: Stage,
    /// A life was lost and the next has not begun.
    between_lives: bool,
    /// Bytes that are lent may still leave: from `opened` to `lost`, also while closing.
    stream_open: bool,
    error: Option<ConnectionError>,
    /// The version that the server is known to speak, kept over restarts (VER-08).
    verdict: Option<String>,
    /// The verdict has been borne out in this life.
    confirmed: bool,
    /// The result of `server/discover` or `initialize`.
    told: Option<JsonBuf>,
    /// Handshakes that were begun in this life.
    handshakes: u8,
    /// The server has ended on a probe: it gets no other, but where it says itself that it is modern (VER-05).
    ends_on_probe: bool,
    /// The id of an `initialize` whose answer is of no interest any more.
    ignored: Option<u64>,
    server_requests: ServerRequests,
    own: Own,
    tasks: Tasks,
    table: Table,
    /// What is not encoded yet, by its turn.
    waiting: BTreeMap<u64, Waiting>,
    next_turn: u64,
    out: SendBuffer,
    envelope: Envelope,
    finders: Finders,
    signals: VecDeque<Signal>,
    blocked: Blocked,
    /// The last thing seen that may explain a missing answer.
    hint: Option<(Instant, Hint)>,
    /// The server has written something in this life.
    output_seen: bool,
}

/// How far the connection is.
#[derive(Debug)]
enum Stage {
    /// There is no byte stream: not yet, or not again.
    Idle,
    /// The probe is out; everything else waits.
    Probing(Probe),
    /// `initialize` is out; everything else waits.
    Opening(Opening),
    Established,
    /// Nothing more is taken or begun.
    Closed,
}

/// Something that waits for the connection to be established.
#[derive(Debug)]
enum Waiting {
    /// A request or listen, by its slot.
    Request(u32),
    Notification(Payload),
}

/// What was refused with `SendError::Full`, so that [`Signal::Writable`] is owed.
#[derive(Debug, Default)]
struct Blocked {
    /// For lack of this many bytes; of several the least.
    bytes: Option<usize>,
    request: bool,
    listen: bool,
}

impl Connection {
    /// A connection that is not open yet: requests wait.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let listed = config.versions.first().or_else(|| config.legacy_versions.first());
        let version = config.known_version.as_ref().or(listed).map(String::as_str);
        Ok(Self {
            now: Instant::EPOCH,
            stage: Stage::Idle,
            between_lives: false,
            stream_open: false,
            error: None,
            verdict: config.known_version.clone(),
            confirmed: false,
            told: None,
            handshakes: 0,
            ends_on_probe: false,
            ignored: None,
            server_requests: ServerRequests::default(),
            own: Own::new(config.own_answers_limit),
            tasks: Tasks::default(),
            table: Table::default(),
            waiting: BTreeMap::new(),
            next_turn: 0,
            out: SendBuffer::new(config.queue_limit),
            envelope: Envelope::new(&config, version.unwrap_or_default()),
            finders: Finders::new(),
            signals: VecDeque::new(),
            blocked: Blocked::default(),
            hint: None,
            output_seen: false,
            config,
        })
    }

    /// The byte stream of the first life, or of a next one after [`lost`](Self::lost), can be used. Queues the probe, or with a
    /// kept verdict what waits (VER-02, VER-08). Does nothing while a stream is open, or after the end.
    pub fn opened(&mut self, now: Instant) {
        self.tick(now);
        self.begin_life();
    }

    /// The byte stream has ended. With `restarting`, listens and idempotent requests without a frame wait for the
    /// next life (RST-03, SUB-10), so do requests that were never lent; everything else ends with `Closed` and its delivery (RST-02).
    /// Without, everything ends and the connection is closed.
    pub fn lost(&mut self, restarting: bool, now: Instant) {
        self.tick(now);
        self.end_life(restarting);
    }

    /// Closes: every request ends with `Closed` now, requests not begun are withdrawn, nothing new is taken; what is
    /// queued besides may still leave (SHD-03). Idempotent.
    pub fn close(&mut self, now: Instant) {
        self.tick(now);
        self.shut();
    }

    /// Queues a request. `params` must be an object; `_meta` members of it are kept, the core's own keys win (META-06).
    /// A `progressToken` among them counts as [`ProgressToken::Own`], unless the options ask for progress themselves.
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
        self.tick(now);
        outgoing::check_request(method)?;
        if params.is_some_and(|params| !params.is_object()) {
            return Err(SendError::ParamsNotAnObject);
        }
        self.enqueue(method, params, options, None)
    }

    /// Queues a `subscriptions/listen`. Its clock stops at the acknowledgment (TMO-04).
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn listen(&mut self, filter: &Filter, options: RequestOptions, now: Instant) -> Result<Handle, SendError> {
        self.tick(now);
        self.enqueue_listen(filter, options)
    }

    /// Queues a notification of the caller's. Waits with the requests until the connection is established.
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn notify(&mut self, method: &str, params: Option<Json<'_>>, now: Instant) -> Result<(), SendError> {
        self.tick(now);
        outgoing::check_notification(method)?;
        if params.is_some_and(|params| !params.is_object()) {
            return Err(SendError::ParamsNotAnObject);
        }
        self.enqueue_notification(method, params)
    }

    /// Gives a request or listen up: withdrawn if no byte of it was lent, else cancelled on the wire (CAN-01, CAN-03).
    /// Its end follows as a signal: [`Signal::Ended`] for a request, [`Signal::ListenEnded`] for a listen. Does nothing for a handle that
    /// has ended. A reason is cut at 1 KiB; a drop gives none.
    pub fn cancel(&mut self, handle: Handle, reason: Option<&str>, now: Instant) {
        self.tick(now);
        if let Some(slot) = self.table.slot_of(handle) {
            self.give_up(slot, Cause::Cancelled, Some(reason));
        }
    }

    /// As [`cancel`](Self::cancel), because something of the caller's overflowed: a request ends with `Overflow`, a listen as `Lagged`
    /// (SUB-09, RTE-12).
    pub fn overflow(&mut self, handle: Handle, now: Instant) {
        self.tick(now);
        if let Some(slot) = self.table.slot_of(handle) {
            self.give_up(slot, Cause::Overflow, Some(Some("lagged")));
        }
    }

    /// Takes in one message. Take the signals after each, so that wire order is kept.
    pub fn handle<'b>(&mut self, message: Message<'b>, now: Instant) -> Event<'b> {
        self.tick(now);
        self.route(message)
    }

    /// The next signal, if any.
    pub fn poll_signal(&mut self) -> Option<Signal> {
        let Some(signal) = self.signals.pop_front() else {
            return self.take_writable().then_some(Signal::Writable);
        };
        match &signal {
            Signal::Ended { request: handle, .. } | Signal::ListenEnded { listen: handle, .. } => {
                self.table.free(handle.slot);
            }
            _ => {}
        }
        Some(signal)
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let start = match &self.stage {
            Stage::Probing(probe) => probe.next_deadline(),
            Stage::Opening(opening) => opening.start_deadline,
            _ => None,
        };
        self.table.next_deadline().into_iter().chain(start).min()
    }

    /// Time has passed. Early or twice does no harm. Hand in the input that is there first: it wins over a deadline of the same moment.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tick(now);
        self.expire();
    }

    /// Bytes to write: lent from here on (the clocks of their requests start). The same until [`accepted`](Self::accepted).
    #[must_use]
    pub fn output(&mut self, now: Instant) -> &[u8] {
        self.tick(now);
        self.lend();
        self.out.output()
    }

    /// The same by ownership, for a writer that must not borrow the connection while it writes. Report each
    /// partial write with [`accepted`](Self::accepted), then [`recycle`](Self::recycle) the vector. `None` if there is nothing or one is out.
    #[must_use]
    pub fn take_output(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.tick(now);
        self.lend();
        self.out.take()
    }

    /// The writer has accepted `n` more of the bytes lent.
    pub fn accepted(&mut self, n: usize, now: Instant) {
        self.tick(now);
        self.out.accepted(n);
        self.own.settle(&self.out);
    }

    /// Gives the vector of [`take_output`](Self::take_output) back once it is written, for reuse.
    pub fn recycle(&mut self, spent: Vec<u8>) {
        self.out.recycle(spent);
    }

    /// Whether to read on. False only while a legacy server asks and does not read what the core answers by itself, such as pings: what was read
    /// is not handed in then either, until half of that budget is free (LIM-04). The one case in which reading waits for writing (RTE-11).
    #[must_use]
    pub const fn wants_read(&self) -> bool {
        !self.own.paused()
    }

    /// Bytes queued and not accepted by the writer.
    #[must_use]
    pub fn pending_output(&self) -> usize {
        self.out.len()
    }

    /// Whether the connection is established: era and version are known.
    #[must_use]
    pub fn is_established(&self) -> bool {
        matches!(self.stage, Stage::Established)
    }

    /// Whether nothing is in flight, queued or listened for (RST-09).
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let starting = matches!(self.stage, Stage::Probing(_) | Stage::Opening(_));
        let waiting = !self.waiting.is_empty() || !self.server_requests.is_empty();
        self.table.live() == 0 && !waiting && self.out.len() == 0 && !starting
    }

    /// Requests and listens that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.table.live()
    }

    /// Why the connection cannot be used, if so. Sticky.
    #[must_use]
    pub fn error(&self) -> Option<&ConnectionError> {
        self.error.as_ref()
    }

    /// The protocol version, once established; kept over restarts.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.verdict.as_deref()
    }

    /// The era, once established; kept over restarts.
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        self.version().map(Era::of)
    }

    /// Whether a server that ends now, instead of answering the probe, may be one that ends on anything but `initialize` (VER-05).
    pub(crate) fn may_have_ended_on_probe(&self) -> bool {
        let probed = matches!(&self.stage, Stage::Probing(probe) if probe.is_lent());
        probed && !self.config.legacy_versions.is_empty()
    }

    /// The next life begins with `initialize` (VER-05).
    pub(crate) fn skip_probe(&mut self) {
        self.verdict = self.config.legacy_versions.first().cloned();
        self.ends_on_probe = true;
    }

    /// What the server granted a listen last: [`Event::Acknowledged`] at first, after a restart this tells what may have changed.
    #[must_use]
    pub fn granted(&self, listen: Handle) -> Option<&Filter> {
        let entry = self.table.entry(self.table.slot_of(listen)?)?;
        entry.listen.as_ref()?.granted.as_ref()
    }

    /// Time never goes back.
    fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }
}
