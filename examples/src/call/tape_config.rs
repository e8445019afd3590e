//! Owns the first line of a tape: everything that a replay must set to give the same events. It must not know the lines that follow.

use std::time::Duration;

use mcp_wire::client::Config;
use mcp_wire::{Json, JsonBuf, lifecycle};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::args::{self, Options};

/// Times in milliseconds, sizes in bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TapeConfig {
    /// Each expiry of a deadline is a line of its own, so a replay lets none expire by itself.
    #[serde(default)]
    ticks: bool,
    client_info: Option<Box<RawValue>>,
    capabilities: Box<RawValue>,
    versions: Vec<String>,
    /// Without it, the tape is from before there was a legacy era.
    #[serde(default)]
    legacy_versions: Vec<String>,
    known_version: Option<String>,
    /// The caller has a handler for the server's requests.
    #[serde(default)]
    answers_requests: bool,
    request_timeout: u64,
    queue_timeout: Option<u64>,
    probe_timeout: u64,
    start_timeout: u64,
    wait_for_restart: bool,
    in_flight_limit: usize,
    listen_limit: usize,
    queue_limit: usize,
    line_limit: usize,
    process: Option<ProcessConfig>,
    /// What this program gives to each request.
    max_timeout: Option<u64>,
    progress: bool,
    /// Lines of standard error become events.
    stderr_events: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessConfig {
    grace: u64,
    terminate_step: bool,
    end_group: bool,
    drain_silence: u64,
    restarts: u32,
    restart_delay: u64,
    restart_delay_max: u64,
    restart_stable: u64,
    seed: u64,
    lazy: bool,
    idle_stop: Option<u64>,
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn raw(json: &JsonBuf) -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(json.as_json().get().to_owned())
}

/// What the options of this program add to the adapter's.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallOptions {
    max_timeout: Option<u64>,
    progress: bool,
    stderr_events: bool,
}

impl From<&Options> for CallOptions {
    fn from(options: &Options) -> Self {
        Self {
            max_timeout: options.max_timeout.map(ms),
            progress: options.progress,
            stderr_events: options.stderr == args::Stderr::Events,
        }
    }
}

impl TapeConfig {
    pub(super) fn new(
        connection: &Config,
        process: Option<&lifecycle::Config>,
        line_limit: usize,
        call: CallOptions,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self {
            ticks: true,
            client_info: connection.client_info.as_ref().map(raw).transpose()?,
            capabilities: raw(&connection.capabilities)?,
            versions: connection.versions.clone(),
            legacy_versions: connection.legacy_versions.clone(),
            known_version: connection.known_version.clone(),
            answers_requests: connection.answers_requests,
            request_timeout: ms(connection.request_timeout),
            queue_timeout: connection.queue_timeout.map(ms),
            probe_timeout: ms(connection.probe_timeout),
            start_timeout: ms(connection.start_timeout),
            wait_for_restart: connection.wait_for_restart,
            in_flight_limit: connection.in_flight_limit,
            listen_limit: connection.listen_limit,
            queue_limit: connection.queue_limit,
            line_limit,
            process: process.map(|process| ProcessConfig {
                grace: ms(process.grace),
                terminate_step: process.terminate_step,
                end_group: process.end_group,
                drain_silence: ms(process.drain_silence),
                restarts: process.restarts,
                restart_delay: ms(process.restart_delay),
                restart_delay_max: ms(process.restart_delay_max),
                restart_stable: ms(process.restart_stable),
                seed: process.seed,
                lazy: process.lazy,
                idle_stop: process.idle_stop.map(ms),
            }),
            max_timeout: call.max_timeout,
            progress: call.progress,
            stderr_events: call.stderr_events,
        })
    }

    pub(super) fn connection(&self) -> Config {
        let mut config = Config::new("", "");
        config.client_info = self.client_info.as_deref().map(|info| JsonBuf::from(Json::from(info)));
        config.capabilities = JsonBuf::from(Json::from(&*self.capabilities));
        config.versions.clone_from(&self.versions);
        config.legacy_versions.clone_from(&self.legacy_versions);
        config.known_version.clone_from(&self.known_version);
        config.answers_requests = self.answers_requests;
        config.request_timeout = Duration::from_millis(self.request_timeout);
        config.queue_timeout = self.queue_timeout.map(Duration::from_millis);
        config.probe_timeout = Duration::from_millis(self.probe_timeout);
        config.start_timeout = Duration::from_millis(self.start_timeout);
        config.wait_for_restart = self.wait_for_restart;
        config.in_flight_limit = self.in_flight_limit;
        config.listen_limit = self.listen_limit;
        config.queue_limit = self.queue_limit;
        config
    }

    pub(super) fn process(&self) -> Option<lifecycle::Config> {
        let process = self.process.as_ref()?;
        let mut config = lifecycle::Config::default();
        config.grace = Duration::from_millis(process.grace);
        config.terminate_step = process.terminate_step;
        config.end_group = process.end_group;
        config.drain_silence = Duration::from_millis(process.drain_silence);
        config.restarts = process.restarts;
        config.restart_delay = Duration::from_millis(process.restart_delay);
        config.restart_delay_max = Duration::from_millis(process.restart_delay_max);
        config.restart_stable = Duration::from_millis(process.restart_stable);
        config.seed = process.seed;
        config.lazy = process.lazy;
        config.idle_stop = process.idle_stop.map(Duration::from_millis);
        Some(config)
    }

    pub(super) const fn has_ticks(&self) -> bool {
        self.ticks
    }

    pub(super) const fn line_limit(&self) -> usize {
        self.line_limit
    }

    pub(super) fn max_timeout(&self) -> Option<Duration> {
        self.max_timeout.map(Duration::from_millis)
    }

    pub(super) const fn progress(&self) -> bool {
        self.progress
    }

    pub(super) const fn stderr_events(&self) -> bool {
        self.stderr_events
    }
}
