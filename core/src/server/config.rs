//! Owns what a server connection can be told to do. It must not know how it is enforced.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use crate::config as defaults;
use crate::{ConfigError, JsonBuf};

/// Versions that begin with a handshake: no list of a modern server names them (META-03).
const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

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
    /// `serverInfo` of each result (META-05): an object with `name` and `version`; `None` leaves it out.
    pub server_info: Option<JsonBuf>,
    /// `capabilities` of the discover result: an object. Decides which kinds of change a listen is granted (SUB-03).
    pub capabilities: JsonBuf,
    /// `instructions` of the discover result.
    pub instructions: Option<String>,
    /// Modern protocol versions served.
    pub versions: Vec<String>,
    /// Handlers that run (LIM-02).
    pub running_limit: usize,
    /// Requests that wait for a permit (LIM-02).
    pub waiting_limit: usize,
    /// Their payload in bytes, together.
    pub waiting_bytes_limit: usize,
    /// Stop reading while the house is full, instead of answering W-09 (LIM-02).
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
    /// The defaults, for a server of this name and version with no capability.
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
        if self.versions.is_empty() {
            return Err(ConfigError::Conflict { what: "versions must name at least one protocol version" });
        }
        if self.versions.iter().any(|version| LEGACY_VERSIONS.contains(&version.as_str())) {
            return Err(ConfigError::Conflict { what: "versions must not name a version of the legacy era" });
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
