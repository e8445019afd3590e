//! Owns what can be set on a client before anything is started, and puts a connection together from it. It must not know
//! which runtime drives it.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use mcp_wire::client::Config;
use mcp_wire::{Eras, Instant, Json, JsonBuf, config, lifecycle};
use serde::Serialize;

use super::engine::Engine;
use super::error::StartError;
use super::events::{Events, Tap};
use super::handle::Client;
use super::link::Link;
use super::notes::{Notification, Sink};
use super::server_requests::{Handler, ServerRequest};
use super::shared::{Parts, Shared};
use super::stderr::{LineCallback, StderrSink};
use super::tape::{TapeEntry, TapeFact, TapeSink};
use crate::process::{ServerCommand, Stderr};
use crate::server::RpcError;

/// What can be set on a client. The runtime crates wrap it in a builder of their own, with the same words.
///
/// ```
/// use std::time::Duration;
/// use mcp_wire_driver::client::Options;
///
/// let mut options = Options::new("my-host", "1.0").lazy(true).grace(Duration::from_secs(5));
/// let events = options.events();
/// ```
pub struct Options {
    connection: Config,
    process: lifecycle::Config,
    line_limit: usize,
    seed: Option<u64>,
    sink: Option<Sink>,
    handler: Option<Handler>,
    on_stderr: Option<LineCallback>,
    taps: Vec<Arc<Tap>>,
    tape: Option<TapeSink>,
}

impl Options {
    /// The defaults, for a client of this name and version.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            connection: Config::new(name, version),
            process: lifecycle::Config::default(),
            line_limit: config::LINE_LIMIT,
            seed: None,
            sink: None,
            handler: None,
            on_stderr: None,
            taps: Vec::new(),
            tape: None,
        }
    }

    /// The client's capabilities, an object (META-01). Anything else is refused when the client is started.
    #[must_use]
    pub fn capabilities(mut self, capabilities: impl Serialize) -> Self {
        self.connection.capabilities = JsonBuf::new(&capabilities).unwrap_or_else(|_| JsonBuf::from(Json::NULL));
        self
    }

    /// Leaves name and version out of the requests (META-01).
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.connection.client_info = None;
        self
    }

    /// Which eras to speak: both otherwise. With both, a server is probed, and asked for the legacy handshake if it knows no probe (VER-04).
    #[must_use]
    pub fn eras(mut self, eras: Eras) -> Self {
        self.connection.speak(eras);
        self
    }

    /// Legacy protocol versions to speak, the one to ask for first; none: a legacy server is an error.
    #[must_use]
    pub fn legacy_versions<V: Into<String>>(mut self, versions: impl IntoIterator<Item = V>) -> Self {
        self.connection.legacy_versions = versions.into_iter().map(Into::into).collect();
        self
    }

    /// Modern protocol versions to speak, the preferred one first; none: the legacy era only.
    #[must_use]
    pub fn versions<V: Into<String>>(mut self, versions: impl IntoIterator<Item = V>) -> Self {
        self.connection.versions = versions.into_iter().map(Into::into).collect();
        self
    }

    /// A version that the server is known to speak: no probe then (VER-08).
    #[must_use]
    pub fn known_version(mut self, version: impl Into<String>) -> Self {
        self.connection.known_version = Some(version.into());
        self
    }

    /// Time for each request, unless it has its own (TMO-01). 60 s otherwise; `Duration::MAX`: none.
    #[must_use]
    pub const fn request_timeout(mut self, timeout: Duration) -> Self {
        self.connection.request_timeout = timeout;
        self
    }

    /// Time a request may wait before its first byte leaves (CAN-03). The request's timeout otherwise.
    #[must_use]
    pub const fn queue_timeout(mut self, timeout: Duration) -> Self {
        self.connection.queue_timeout = Some(timeout);
        self
    }

    /// Time for the answer to the probe (VER-04). 10 s otherwise.
    #[must_use]
    pub const fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.connection.probe_timeout = timeout;
        self
    }

    /// Time from a start to an established connection. 120 s otherwise.
    #[must_use]
    pub const fn start_timeout(mut self, timeout: Duration) -> Self {
        self.connection.start_timeout = timeout;
        self
    }

    /// Whether requests made while the server restarts wait for it (they do otherwise) or are refused (RST-07).
    #[must_use]
    pub const fn wait_for_restart(mut self, wait: bool) -> Self {
        self.connection.wait_for_restart = wait;
        self
    }

    /// Requests in flight at once. 1024 otherwise.
    #[must_use]
    pub const fn in_flight_limit(mut self, requests: usize) -> Self {
        self.connection.in_flight_limit = requests;
        self
    }

    /// Listens open at once. 64 otherwise.
    #[must_use]
    pub const fn listen_limit(mut self, listens: usize) -> Self {
        self.connection.listen_limit = listens;
        self
    }

    /// Bytes that may wait to be written. 16 MiB otherwise.
    #[must_use]
    pub const fn queue_limit(mut self, bytes: usize) -> Self {
        self.connection.queue_limit = bytes;
        self
    }

    /// Longest line accepted from the server, in bytes (LIM-01). 16 MiB otherwise.
    #[must_use]
    pub const fn line_limit(mut self, bytes: usize) -> Self {
        self.line_limit = bytes;
        self
    }

    /// Wait after each step of the shutdown (SHD-01). 2 s otherwise.
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.process.grace = grace;
        self
    }

    /// Restarts before giving up (RST-01). 5 otherwise; 0: none.
    #[must_use]
    pub const fn restarts(mut self, restarts: u32) -> Self {
        self.process.restarts = restarts;
        self
    }

    /// Delay before the first restart, and the longest; it doubles from one to the other. 0.5 s and 30 s otherwise.
    #[must_use]
    pub const fn restart_delay(mut self, first: Duration, longest: Duration) -> Self {
        self.process.restart_delay = first;
        self.process.restart_delay_max = longest;
        self
    }

    /// Stable time after which the restarts are full again. 60 s otherwise.
    #[must_use]
    pub const fn restart_stable(mut self, stable: Duration) -> Self {
        self.process.restart_stable = stable;
        self
    }

    /// Seed of the jitter in the delays; a random one otherwise.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Starts the server with the first request, not before (RST-08).
    #[must_use]
    pub const fn lazy(mut self, lazy: bool) -> Self {
        self.process.lazy = lazy;
        self
    }

    /// Stops the server after that long without a request or listen; the next one starts it again (RST-09).
    #[must_use]
    pub const fn idle_stop(mut self, after: Duration) -> Self {
        self.process.idle_stop = Some(after);
        self
    }

    /// A function that gets the notifications that belong to no request and no listen (RTE-06), from the first byte on. It runs on the driver: it must not block, but it may
    /// send requests. It must not hold a [`Client`]. Without it they wait in [`Client::notifications`].
    #[must_use]
    pub fn on_notification(mut self, callback: impl FnMut(Notification) + Send + 'static) -> Self {
        self.sink = Some(Box::new(callback));
        self
    }

    /// Answers the requests of a legacy server, such as `roots/list` and `elicitation/create` (LEG-06); without it each gets -32601. Declare what it can do with
    /// [`capabilities`](Self::capabilities). The future is polled by the driver, many at a time: it must not block, and is dropped when the server
    /// cancels its request. It may call the server, through a handle that is not held for longer. A panic ends its request with -32603.
    #[must_use]
    pub fn on_request<F, T>(mut self, handler: impl Fn(ServerRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<T, RpcError>> + Send + 'static,
        T: Serialize + 'static,
    {
        self.connection.answers_requests = true;
        self.handler = Some(Arc::new(move |request| {
            let answer = handler(request);
            Box::pin(async move { answer.await.and_then(|result| JsonBuf::new(&result).map_err(RpcError::from)) })
        }));
        self
    }

    /// A function that gets each line of the server's standard error, with [`Stderr::Lines`]. It runs on the driver and must not block.
    #[must_use]
    pub fn on_stderr(mut self, callback: impl FnMut(&str) + Send + 'static) -> Self {
        self.on_stderr = Some(Box::new(callback));
        self
    }

    /// Records a tape: everything that is needed to play the session again. The function runs while the connection is locked: it must
    /// not call the client, and should be quick.
    #[must_use]
    pub fn tape(mut self, sink: impl FnMut(TapeEntry<'_>) + Send + 'static) -> Self {
        self.tape = Some(Box::new(sink));
        self
    }

    /// Everything that will happen on the connection, from the start on.
    pub fn events(&mut self) -> Events {
        let (events, tap) = Events::new();
        self.taps.push(tap);
        events
    }

    /// Whether the server is started with the first request.
    #[must_use]
    pub const fn is_lazy(&self) -> bool {
        self.process.lazy
    }

    /// The client of a process and the driver's end of it. `clock` reads the driver's clock, from any thread; it runs
    /// under the connection's lock, so it must not use the client.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn with_process(
        mut self,
        command: &ServerCommand,
        clock: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Result<(Client, Link), StartError> {
        self.process.end_group = command.has_process_group();
        self.process.terminate_step = cfg!(unix);
        self.process.seed = self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        let stderr = StderrSink::new(command.stderr_policy(), self.on_stderr.take());
        self.build(true, stderr, clock)
    }

    /// The client of a stream that is open, and the driver's end of it.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn with_stream(
        self,
        clock: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Result<(Client, Link), StartError> {
        self.build(false, StderrSink::new(Stderr::Null, None), clock)
    }

    fn build(
        self,
        process: bool,
        stderr: StderrSink,
        clock: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Result<(Client, Link), StartError> {
        if self.line_limit == 0 {
            return Err(StartError::from(mcp_wire::ConfigError::ZeroLimit { field: "line_limit" }));
        }
        let mut tape = self.tape;
        let process = process.then_some(self.process);
        let now = clock();
        if let Some(sink) = &mut tape {
            let fact = TapeFact::Config {
                connection: &self.connection,
                process: process.as_ref(),
                line_limit: self.line_limit,
            };
            let t_us = u64::try_from(now.since_epoch().as_micros()).unwrap_or(u64::MAX);
            sink(TapeEntry::new(t_us, fact));
        }
        let (in_flight_limit, queue_limit) = (self.connection.in_flight_limit, self.connection.queue_limit);
        let engine = Engine::new(self.connection, process, now)?;
        let shared = Arc::new(Shared::new(Parts {
            engine,
            sink: self.sink,
            handler: self.handler,
            taps: self.taps,
            tape,
            in_flight_limit,
            queue_limit,
            clock: Box::new(clock),
        }));
        let link = Link::new(Arc::clone(&shared), self.line_limit, stderr);
        Ok((Client::new(shared), link))
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("connection", &self.connection)
            .field("process", &self.process)
            .field("line_limit", &self.line_limit)
            .finish_non_exhaustive()
    }
}
