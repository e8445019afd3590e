//! Owns what a simulated process needs of whoever answers in it. It must not know which kind of server that is.

use core::fmt::Debug;
use core::time::Duration;

use mcp_wire::Instant;

use super::random::Random;
use super::server_oracle::ServerOracle;

/// Requests with this number or a higher one are answered at once and well.
pub(crate) const PROMPT: u64 = 1_000_000;

pub(crate) trait Brain: Debug {
    fn wants_read(&self) -> bool;
    fn read(&mut self, bytes: &[u8], now_us: u64, random: &mut Random);
    fn end_of_input(&mut self, now_us: u64, random: &mut Random);
    /// Runs one of its handlers, or a timer. False: nothing is due.
    fn work(&mut self, now_us: u64, random: &mut Random) -> bool;
    fn next_us(&self) -> Option<u64>;
    fn output(&mut self, now_us: u64) -> &[u8];
    fn accepted(&mut self, bytes: &[u8], now_us: u64, random: &mut Random);
    /// It stops by itself. `at_once`: and does not wait for its handlers.
    fn stop(&mut self, at_once: bool, now_us: u64, random: &mut Random);
    fn peer_gone(&mut self, now_us: u64, random: &mut Random);
    /// Its input has ended and everything owed was written.
    fn has_ended(&self) -> bool;
    /// It exits now, whatever is left to do.
    fn exits(&self) -> bool {
        false
    }
    fn oracle(&self) -> &ServerOracle;
}

pub(crate) fn instant(us: u64) -> Instant {
    Instant::from_epoch(Duration::from_micros(us))
}

/// The first whole microsecond that is not before `at`.
pub(crate) fn time_us(at: Instant) -> Option<u64> {
    u64::try_from(at.since_epoch().as_nanos().div_ceil(1_000)).ok()
}
