//! Owns what a caller can set on a client connection and on one request. It must not know how it is enforced.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use crate::config as defaults;
use crate::{ConfigError, Era, Eras, IdBuf, JsonBuf};

/// The configuration of a client [`Connection`](super::Connection).
///
/// ```
/// use core::time::Duration;
/// use mcp_wire::client::Config;
///
/// let mut config = Config::new("my-host", "1.0");
/// config.request_timeout = Duration::from_secs(5);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// `clientInfo` of each request (META-01): an object with `name` and `version`; `None` leaves it out.
    pub client_info: Option<JsonBuf>,
    /// `clientCapabilities` of each request (META-01): an object.
    pub capabilities: JsonBuf,
    /// Modern protocol versions this client speaks, the preferred one first; none: it does not probe, and speaks the legacy era only.
    pub versions: Vec<String>,
    /// Legacy protocol versions this client speaks, of [`LEGACY_VERSIONS`](crate::config::LEGACY_VERSIONS), the one for `initialize` first; none: a
    /// legacy server is an error (VER-09).
    pub legacy_versions: Vec<String>,
    /// A version that the server is known to speak, from an earlier connection to the same program (VER-08): no probe then.
    /// Must be one of `versions` or `legacy_versions`. If the server refuses it, it is probed after all.
    pub known_version: Option<String>,
    /// Time for each request, from the moment its first byte is lent to the writer (TMO-01). `Duration::MAX`: none.
    pub request_timeout: Duration,
    /// Time a request may wait before its first byte is lent (CAN-03); stands still while a process starts. `None`: the request's timeout.
    pub queue_timeout: Option<Duration>,
    /// Time for the answer to the probe, from the moment its first byte is lent to the writer (VER-04).
    pub probe_timeout: Duration,
    /// Time from [`opened`](super::Connection::opened) to an established connection. A request's timeout never shortens it.
    pub start_timeout: Duration,
    /// Whether requests made between two lives of the process wait for the next (the default), or get
    /// `SendError::Closed` at once (RST-07).
    pub wait_for_restart: bool,
    /// Requests in flight; one more gets `SendError::Full`.
    pub in_flight_limit: usize,
    /// Listens open.
    pub listen_limit: usize,
    /// Whether the caller answers the requests of a legacy server ([`Event::ServerRequest`](super::Event::ServerRequest)). Otherwise each but `ping` gets
    /// -32601 (LEG-06).
    pub answers_requests: bool,
    /// Requests of a legacy server that are not answered; one more gets -32603.
    pub server_request_limit: usize,
    /// Tasks of a legacy server that report progress after their request was answered (LEG-11).
    pub task_limit: usize,
    /// Answers that the core makes itself to a legacy server, in bytes, before reading pauses (LIM-04).
    pub own_answers_limit: usize,
    /// Outgoing queue in bytes (LIM-04).
    pub queue_limit: usize,
}

impl Config {
    /// The defaults, for a client of this name and version. It speaks both eras.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        #[derive(serde::Serialize)]
        struct Info<'a> {
            name: &'a str,
            version: &'a str,
        }
        Self {
            client_info: JsonBuf::new(&Info { name, version }).ok(),
            capabilities: JsonBuf::from(crate::Json::EMPTY),
            versions: alloc::vec![defaults::PROTOCOL_VERSION.to_string()],
            legacy_versions: defaults::LEGACY_VERSIONS.map(ToString::to_string).to_vec(),
            known_version: None,
            request_timeout: defaults::REQUEST_TIMEOUT,
            queue_timeout: None,
            probe_timeout: defaults::PROBE_TIMEOUT,
            start_timeout: defaults::START_TIMEOUT,
            wait_for_restart: true,
            in_flight_limit: defaults::IN_FLIGHT_LIMIT,
            listen_limit: defaults::LISTEN_LIMIT,
            answers_requests: false,
            server_request_limit: defaults::SERVER_REQUEST_LIMIT,
            task_limit: defaults::TASK_LIMIT,
            own_answers_limit: defaults::OWN_ANSWERS_LIMIT,
            queue_limit: defaults::QUEUE_LIMIT,
        }
    }

    /// Speaks all known versions of these eras.
    pub fn speak(&mut self, eras: Eras) {
        let modern = || alloc::vec![defaults::PROTOCOL_VERSION.to_string()];
        let legacy = || defaults::LEGACY_VERSIONS.map(ToString::to_string).to_vec();
        (self.versions, self.legacy_versions) = match eras {
            Eras::Modern => (modern(), Vec::new()),
            Eras::Dual => (modern(), legacy()),
            Eras::Legacy => (Vec::new(), legacy()),
        };
    }

    /// Whether the fields agree with each other.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.client_info.as_ref().is_some_and(|info| !info.as_json().is_object()) {
            return Err(ConfigError::BadJson { field: "client_info" });
        }
        if !self.capabilities.as_json().is_object() {
            return Err(ConfigError::BadJson { field: "capabilities" });
        }
        let is_legacy = |version: &String| Era::of(version) == Era::Legacy;
        let is_listed = |version: &String| self.versions.contains(version) || self.legacy_versions.contains(version);
        let conflict = if self.versions.is_empty() && self.legacy_versions.is_empty() {
            Some("versions or legacy_versions must name at least one protocol version")
        } else if self.versions.iter().any(is_legacy) {
            Some("versions must not name a version of the legacy era")
        } else if !self.legacy_versions.iter().all(is_legacy) {
            Some("legacy_versions must name versions of the legacy era only")
        } else if !self.known_version.iter().all(is_listed) {
            Some("known_version must be one of versions or legacy_versions")
        } else {
            None
        };
        if let Some(what) = conflict {
            return Err(ConfigError::Conflict { what });
        }
        let limits = [
            ("in_flight_limit", self.in_flight_limit),
            ("own_answers_limit", self.own_answers_limit),
            ("queue_limit", self.queue_limit),
        ];
        match limits.into_iter().find(|(_, limit)| *limit == 0) {
            Some((field, _)) => Err(ConfigError::ZeroLimit { field }),
            None => Ok(()),
        }
    }
}

/// What can be set on one request.
///
/// ```
/// use core::time::Duration;
/// use mcp_wire::client::{ProgressToken, RequestOptions};
///
/// let mut options = RequestOptions::default();
/// options.timeout = Some(Duration::from_secs(1));
/// options.progress = ProgressToken::Minted;
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// Time for the answer; `None`: the connection's; `Duration::MAX`: none.
    pub timeout: Option<Duration>,
    /// Time in the queue; `None`: the connection's (CAN-03).
    pub queue_timeout: Option<Duration>,
    /// Progress that increases restarts the clock, under this ceiling counted from the send (TMO-02, TMO-03).
    /// `None`: progress does not restart it.
    pub max_timeout: Option<Duration>,
    /// Whether to ask for progress, and under which token.
    pub progress: ProgressToken,
    /// The request may be sent again after a restart if nothing came back for it (RST-03).
    pub idempotent: bool,
}

/// The progress token of a request (PRG-01).
///
/// ```
/// use mcp_wire::client::ProgressToken;
/// assert!(matches!(ProgressToken::default(), ProgressToken::None));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum ProgressToken {
    /// No progress is asked for.
    #[default]
    None,
    /// The core mints one: the request's id.
    Minted,
    /// The caller's own. In use by another request in flight: `SendError::TokenInUse`.
    Own(IdBuf),
}
