//! Owns what a user sets on a server before it serves. It must not know how the settings are enforced; the core does.

use std::sync::Arc;
use std::time::Duration;

use mcp_wire::Eras;
use mcp_wire::server::{Config, Connection};
use mcp_wire::{ConfigError, JsonBuf};
use serde::Serialize;

use super::shared::Shared;
use super::{Publisher, StopHandle};

/// Settings of a server, on their way to a [`Server`].
///
/// ```
/// use mcp_wire_driver::server::Server;
///
/// let server = Server::builder("demo", "1.0")
///     .capabilities(serde_json::json!({"tools": {"listChanged": true}}))
///     .max_in_flight(16)
///     .build()?;
/// # Ok::<(), mcp_wire::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    config: Config,
    stdout_guard: bool,
    bad_json: Option<&'static str>,
}

impl Builder {
    /// Which eras are served (default both: each request is judged by itself, VER-10).
    pub fn eras(mut self, eras: Eras) -> Self {
        self.config.serve(eras);
        self
    }

    /// What `server/discover` and `initialize` say the server can do; an object. It decides which changes a listen is granted (SUB-03).
    pub fn capabilities(mut self, capabilities: impl Serialize) -> Self {
        match JsonBuf::new(&capabilities) {
            Ok(json) if json.as_json().is_object() => self.config.capabilities = json,
            _ => self.bad_json = Some("capabilities"),
        }
        self
    }

    /// Instructions for the model, in the results of `server/discover` and `initialize`.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.config.instructions = Some(text.into());
        self
    }

    /// Handlers that run at the same time; as many requests wait, further ones are refused (LIM-02; default 256).
    pub fn max_in_flight(mut self, n: usize) -> Self {
        self.config.running_limit = n;
        self.config.waiting_limit = n;
        self
    }

    /// Longest line accepted, in bytes (default 16 MiB).
    pub fn line_limit(mut self, bytes: usize) -> Self {
        self.config.line_limit = bytes;
        self
    }

    /// Time for handlers after the end of the input (SHD-05; default 10 s).
    pub fn drain(mut self, time: Duration) -> Self {
        self.config.drain = time;
        self
    }

    /// Whether serving the standard streams moves the real stdout out of the reach of `println!` and of child processes (LOG-04; on by default).
    pub fn stdout_guard(mut self, on: bool) -> Self {
        self.stdout_guard = on;
        self
    }

    /// Everything else: the core's configuration.
    pub fn configure(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// The server.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn build(self) -> Result<Server, ConfigError> {
        if let Some(field) = self.bad_json {
            return Err(ConfigError::BadJson { field });
        }
        let line_limit = self.config.line_limit;
        let drain = self.config.drain;
        let shared = Arc::new(Shared::new(Connection::new(self.config)?, drain));
        Ok(Server { shared, line_limit, stdout_guard: self.stdout_guard })
    }
}

/// A server that is ready to serve one connection. The adapters' `serve` takes it.
///
/// ```
/// use mcp_wire_driver::server::Server;
///
/// let server = Server::builder("demo", "1.0").build()?;
/// let stop = server.stop_handle(); // usable from anywhere, before and while it serves
/// stop.stop();
/// # Ok::<(), mcp_wire::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Server {
    pub(super) shared: Arc<Shared>,
    pub(super) line_limit: usize,
    stdout_guard: bool,
}

impl Server {
    /// A server of this name and version.
    pub fn builder(name: &str, version: &str) -> Builder {
        Builder { config: Config::new(name, version), stdout_guard: true, bad_json: None }
    }

    /// Tells listens of changes.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        Publisher::new(self.shared.clone())
    }

    /// Stops it.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle::new(self.shared.clone())
    }

    /// Whether the stdout guard is wanted.
    #[must_use]
    pub const fn wants_stdout_guard(&self) -> bool {
        self.stdout_guard
    }
}
