//! Owns how a process is started, ended and started again, as far as a caller can set it. It must not know how it is done.

use core::time::Duration;

use crate::ConfigError;
use crate::config as defaults;

/// How the process is started, ended and started again.
///
/// ```
/// use mcp_wire::lifecycle::Config;
///
/// let mut config = Config::default();
/// config.restarts = 0; // a process that ends stays ended
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Wait after each step of the ladder (SHD-01), and the longest draining of the output after the exit (PRC-03).
    /// `Duration::MAX`: for ever, then nothing but `kill` ends a server that does not end by itself.
    pub grace: Duration,
    /// The ladder has a terminate step between closing stdin and killing (not on Windows).
    pub terminate_step: bool,
    /// What is left of the group is ended when the leader has exited by itself (PRC-03).
    pub end_group: bool,
    /// Silence that ends the draining of the output after the exit (PRC-03).
    pub drain_silence: Duration,
    /// Restarts before giving up; 0: never (RST-01).
    pub restarts: u32,
    /// First delay of a restart; it doubles with each. Up to a quarter of a delay is taken off by `seed`, so that many
    /// clients do not start their servers in one moment.
    pub restart_delay: Duration,
    /// Longest delay of a restart.
    pub restart_delay_max: Duration,
    /// Time between the established connection and the end of a life after which the budget is full again and the
    /// delay is back at its first value.
    pub restart_stable: Duration,
    /// Seed of the jitter: the core draws no random numbers, and the same seed gives the same delays.
    pub seed: u64,
    /// Start with the first request, not before (RST-08).
    pub lazy: bool,
    /// Stop after that long without work (RST-09); not zero.
    pub idle_stop: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            grace: defaults::SHUTDOWN_GRACE,
            terminate_step: true,
            end_group: true,
            drain_silence: defaults::DRAIN_SILENCE,
            restarts: defaults::RESTART_BUDGET,
            restart_delay: defaults::RESTART_DELAY,
            restart_delay_max: defaults::RESTART_DELAY_MAX,
            restart_stable: defaults::RESTART_STABLE,
            seed: 0,
            lazy: false,
            idle_stop: None,
        }
    }
}

impl Config {
    /// Checks what the fields say together.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.restart_delay > self.restart_delay_max {
            return Err(ConfigError::Conflict { what: "restart_delay must not be longer than restart_delay_max" });
        }
        if self.idle_stop == Some(Duration::ZERO) {
            // It would stop the process as soon as it is up, before its first request could be written.
            return Err(ConfigError::ZeroLimit { field: "idle_stop" });
        }
        Ok(())
    }
}
