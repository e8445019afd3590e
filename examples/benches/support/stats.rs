//! Owns what the round-trip bench measures with: processor time, resident memory, percentiles, pinning, the texts that are echoed.
//! It must not know who is measured.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;

/// User and system time of this process, in microseconds.
pub(crate) fn cpu_us() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("getrusage of the own process works");
    let us = |t: nix::sys::time::TimeVal| {
        u64::try_from(t.tv_sec()).unwrap_or(0) * 1_000_000 + u64::try_from(t.tv_usec()).unwrap_or(0)
    };
    us(usage.user_time()) + us(usage.system_time())
}

/// A field of `/proc/self/status` in kB, 0 where there is none.
pub(crate) fn memory_kb(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// What every server answers to the tool `stats`.
pub(crate) fn stats_text() -> String {
    format!("{} {}", cpu_us(), memory_kb("VmHWM"))
}

/// Keeps this process and those it starts on one core.
pub(crate) fn pin() {
    let mut set = CpuSet::new();
    set.set(0).expect("core 0 exists");
    sched_setaffinity(Pid::from_raw(0), &set).expect("a process may pin itself");
}

/// The value at fraction `p` of sorted samples.
pub(crate) fn percentile(sorted: &[u64], p: f64) -> u64 {
    sorted[((sorted.len() - 1) as f64 * p).round() as usize]
}

/// Text of `n` bytes and a little more, with quotes, line breaks and non-ASCII.
pub(crate) fn prose(n: usize) -> String {
    let phrase = "The quick \"brown\" fox — naïve café\n";
    phrase.repeat(n.div_ceil(phrase.len()))
}
