//! Owns how a row is measured and judged. It must not know what a row does.

use std::time::Duration;

use mcp_wire::RecvBuffer;
use nix::time::{ClockId, clock_gettime};

use super::MEMORY;

/// The larger size beside the smaller.
pub(crate) const TIMES: u64 = 16;
/// What a read from a pipe gives at most.
pub(crate) const CHUNK: usize = 64 << 10;
/// Memory is flat if sixteen times the input takes no more than this much more of it...
const FLAT: f64 = 1.25;
/// ...and this many bytes, for vectors that double.
const SLACK: usize = 128 << 10;
/// Time is linear if a byte takes no more than so much longer at sixteen times the size: what is quadratic takes sixteen times as long.
const LINEAR: f64 = 3.0;
/// The least of so many runs counts, as others on the machine only add.
const RUNS: usize = 3;

/// Floods so many times.
type Run = Box<dyn Fn(u64, &mut Meter)>;

/// One kind of flood.
pub(crate) struct Row {
    pub(crate) what: &'static str,
    /// How often, at the smaller size.
    pub(crate) small: u64,
    pub(crate) bounded_by: &'static str,
    pub(crate) run: Run,
}

/// Feeds a flood in chunks, as a read gives them, and counts what that costs; what it takes to make up the flood is left out.
#[derive(Default)]
pub(crate) struct Meter {
    bytes: u64,
    busy: Duration,
    chunk: Vec<u8>,
}

/// The time of this thread alone, however busy the machine is.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("each thread has a clock").into()
}

impl Meter {
    /// Does something that is part of the cost, for so many bytes.
    pub(crate) fn cost<T>(&mut self, bytes: usize, work: impl FnOnce() -> T) -> T {
        let begun = processor_time();
        let value = work();
        self.busy += processor_time() - begun;
        self.bytes += bytes as u64;
        value
    }

    /// Feeds so many lines; `work` takes the frames out. It ends early where `work` says that nothing more is read.
    pub(crate) fn lines(
        &mut self,
        n: u64,
        recv: &mut RecvBuffer,
        mut line: impl FnMut(u64, &mut Vec<u8>),
        mut work: impl FnMut(&mut RecvBuffer) -> bool,
    ) {
        let mut chunk = std::mem::take(&mut self.chunk);
        let mut next = 0;
        let mut goes_on = true;
        while next < n && goes_on {
            chunk.clear();
            while next < n && chunk.len() < CHUNK {
                line(next, &mut chunk);
                chunk.push(b'\n');
                next += 1;
            }
            goes_on = self.cost(chunk.len(), || {
                recv.extend(&chunk);
                work(recv)
            });
        }
        self.chunk = chunk;
    }
}

/// What one row took, at both sizes.
pub(crate) struct Measured {
    peak: [usize; 2],
    /// Nanoseconds a byte.
    time: [f64; 2],
}

fn once(row: &Row, n: u64) -> (usize, f64) {
    // The room of the flood itself is not part of the peak.
    let mut meter = Meter { chunk: Vec::with_capacity(4 * CHUNK), ..Meter::default() };
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    (row.run)(n, &mut meter);
    let peak = MEMORY.peak_usage().saturating_sub(before);
    (peak, meter.busy.as_secs_f64() * 1e9 / meter.bytes.max(1) as f64)
}

pub(crate) fn measure(row: &Row) -> Measured {
    let mut measured = Measured { peak: [0; 2], time: [f64::MAX; 2] };
    for run in 0..RUNS {
        for (at, n) in [row.small, row.small * TIMES].into_iter().enumerate() {
            // What takes ten seconds is long enough to be measured once.
            if run > 0 && at == 1 && measured.time[1] * (n as f64) > 10e9 {
                continue;
            }
            let (peak, time) = once(row, n);
            measured.peak[at] = measured.peak[at].max(peak);
            measured.time[at] = measured.time[at].min(time);
        }
    }
    measured
}

/// What a byte of an ordinary answer costs, so that times can be told as ratios.
pub(crate) struct Unit(f64);

impl Unit {
    pub(crate) fn measure(row: &Row) -> Self {
        Self(measure(row).time[1])
    }
}

impl Measured {
    fn is_flat(&self) -> bool {
        (self.peak[1] as f64) <= self.peak[0] as f64 * FLAT + SLACK as f64
    }

    fn is_linear(&self) -> bool {
        self.time[1] <= self.time[0] * LINEAR
    }

    pub(crate) fn holds(&self) -> bool {
        self.is_flat() && self.is_linear()
    }

    pub(crate) fn line(&self, row: &Row, unit: &Unit) -> String {
        let [small, large] = self.peak.map(size);
        let [short, long] = self.time.map(|time| time / unit.0);
        let memory = if self.is_flat() { "flat" } else { "GROWS" };
        let time = if self.is_linear() { "linear" } else { "WORSE" };
        let (what, often, bound) = (row.what, count(row.small), row.bounded_by);
        format!("| {what} | {often} | {small} | {large} | {memory} | {bound} | {short:.2} | {long:.2} | {time} |\n")
    }
}

fn size(bytes: usize) -> String {
    if bytes >= 10 << 20 {
        format!("{} MiB", (bytes + (1 << 19)) >> 20)
    } else if bytes >= 1 << 20 {
        format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
    } else {
        format!("{} KiB", bytes.div_ceil(1 << 10))
    }
}

fn count(n: u64) -> String {
    match n {
        n if n >= 1 << 20 && n % (1 << 20) == 0 => format!("{} Mi", n >> 20),
        n if n >= 1000 && n % 500 == 0 => format!("{} k", n as f64 / 1000.0),
        n => n.to_string(),
    }
}
