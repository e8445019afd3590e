//! Owns what a server connection can be told to do. It must not know how it is enforced.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::LogLevel;
use crate::config as defaults;
use crate::{ConfigError, Eras, JsonBuf};

/// The configuration of a server [`Connection`](super::Connection).
///
/// ```
/// use mcp_wire::JsonBuf;
/// use mcp_wire::server::Config;
///
/// let mut config = Config::new("demo", "1.0");
/// config.capabilities = JsonBuf::new(&serde_json::json!({"tools": {"listChanged": true}}))?;
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// `serverInfo` of each modern result (META-05) and of the result of `initialize`: an object with `name` and `version`; `None` leaves it
    /// out, which a server that serves the legacy era cannot.
    pub server_info: Option<JsonBuf>,
    /// `capabilities` of the discover result and of the result of `initialize`: an object. Decides which kinds of change a listen is
    /// granted (SUB-03), and which a legacy client is told of (LEG-08).
    pub capabilities: JsonBuf,
    /// `instructions` of the discover result and of the result of `initialize`.
    pub instructions: Option<String>,
    /// Modern protocol versions served; none: the server is legacy only.
    pub versions: Vec<String>,
    /// Legacy protocol versions served, of [`LEGACY_VERSIONS`](crate::config::LEGACY_VERSIONS); none: the server is modern only.
    pub legacy_versions: Vec<String>,
    /// The least level of the log messages that a legacy client gets before its `logging/setLevel`; `None`: none.
    pub legacy_log_level: Option<LogLevel>,
    /// Requests to a legacy client in flight; one more gets `SendError::Full`.
    pub client_request_limit: usize,
    /// Time for a legacy client's answer, from the request's first byte (TMO-01); before that, its time in the queue.
    pub client_request_timeout: Duration,
    /// Tasks that report progress after their request was answered (LEG-11).
    pub task_limit: usize,
    /// Handlers that run (LIM-02).
    pub running_limit: usize,
    /// Requests that wait for a permit (LIM-02).
    pub waiting_limit: usize,
    /// Their payload in bytes, together.
    pub waiting_bytes_limit: usize,
    /// Stop reading while the house is full, instead of answering W-09 (LIM-02). Cancellations wait then as well. While a handler has asked a
    /// legacy client something, reading goes on, and what comes before the answer is refused with W-09 after all.
    pub pause_when_full: bool,
    /// Listens open (SUB-12).
    pub listen_limit: usize,
    /// URIs that all open listens together name, in bytes, with what keeping each costs; a listen over it is refused.
    pub listen_bytes_limit: usize,
    /// Outgoing queue in bytes (LIM-04).
    pub queue_limit: usize,
    /// Answers that the core makes itself, in bytes, before reading pauses (LIM-04).
    pub own_answers_limit: usize,
    /// The line limit, named in W-19. It must be that of the receive buffer.
    pub line_limit: usize,
    /// Time for handlers after the end of input (SHD-05).
    pub drain: Duration,
    /// Leave `id` out of an error where it could not be read, instead of null (MSG-10).
    pub omit_null_id: bool,
    /// Log messages a second, all requests together; more are shed (LOG-01).
    pub log_rate: u32,
    /// Refuse a handler's result without `resultType` with -32603, instead of adding `complete` (MSG-12).
    pub require_result_type: bool,
}

impl Config {
    /// The defaults, for a server of this name and version with no capability. It serves both eras.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        #[derive(serde::Serialize)]
        struct Info<'a> {
            name: &'a str,
            version: &'a str,
        }
        Self {
            server_info: JsonBuf::new(&Info { name, version }).ok(),
            capabilities: JsonBuf::from(crate::Json::EMPTY),
            instructions: None,
            versions: alloc::vec![defaults::PROTOCOL_VERSION.to_string()],
            legacy_versions: defaults::LEGACY_VERSIONS.map(ToString::to_string).to_vec(),
            legacy_log_level: Some(LogLevel::Info),
            client_request_limit: defaults::CLIENT_REQUEST_LIMIT,
            client_request_timeout: defaults::REQUEST_TIMEOUT,
            task_limit: defaults::TASK_LIMIT,
            running_limit: defaults::RUNNING_LIMIT,
            waiting_limit: defaults::WAITING_LIMIT,
            waiting_bytes_limit: defaults::WAITING_BYTES_LIMIT,
            pause_when_full: false,
            listen_limit: defaults::LISTEN_LIMIT,
            listen_bytes_limit: defaults::LISTEN_BYTES_LIMIT,
            queue_limit: defaults::QUEUE_LIMIT,
            own_answers_limit: defaults::OWN_ANSWERS_LIMIT,
            line_limit: defaults::LINE_LIMIT,
            drain: defaults::DRAIN,
            omit_null_id: false,
            log_rate: 1000,
            require_result_type: false,
        }
    }

    /// Serves all known versions of these eras.
    pub fn serve(&mut self, eras: Eras) {
        let modern = || alloc::vec![defaults::PROTOCOL_VERSION.to_string()];
        let legacy = || defaults::LEGACY_VERSIONS.map(ToString::to_string).to_vec();
        (self.versions, self.legacy_versions) = match eras {
            Eras::Modern => (modern(), Vec::new()),
            Eras::Dual => (modern(), legacy()),
            Eras::Legacy => (Vec::new(), legacy()),
        };
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if let Some(info) = &self.server_info {
            let text =
                |key: &str| info.as_json().members().any(|(name, value)| name == key && value.get().starts_with('"'));
            if !text("name") || !text("version") {
                return Err(ConfigError::BadJson { field: "server_info" });
            }
        }
        if !self.capabilities.as_json().is_object() {
            return Err(ConfigError::BadJson { field: "capabilities" });
        }
        let is_legacy = |version: &String| defaults::LEGACY_VERSIONS.contains(&version.as_str());
        let conflict = if self.versions.is_empty() && self.legacy_versions.is_empty() {
            Some("versions or legacy_versions must name at least one protocol version")
        } else if self.versions.iter().any(is_legacy) {
            Some("versions must not name a version of the legacy era")
        } else if !self.legacy_versions.iter().all(is_legacy) {
            Some("legacy_versions must name versions of the legacy era only")
        } else if self.server_info.is_none() && !self.legacy_versions.is_empty() {
            Some("the legacy era needs a server_info; without one, legacy_versions must be empty")
        } else {
            None
        };
        if let Some(what) = conflict {
            return Err(ConfigError::Conflict { what });
        }
        let limits = [
            ("running_limit", self.running_limit),
            ("queue_limit", self.queue_limit),
            ("own_answers_limit", self.own_answers_limit),
            ("line_limit", self.line_limit),
        ];
        match limits.into_iter().find(|(_, limit)| *limit == 0) {
            Some((field, _)) => Err(ConfigError::ZeroLimit { field }),
            None => Ok(()),
        }
    }
}
