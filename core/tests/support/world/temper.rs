//! Owns the character of a simulated process: which rules it breaks and when. It must not know how it is run.

use super::random::Random;

/// Drawn anew for each life.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Temper {
    /// It reads its input.
    pub(crate) reads: bool,
    /// It reads only when nothing is left that it has to write.
    pub(crate) writes_first: bool,
    /// It ends when its input has ended.
    pub(crate) ends_at_eof: bool,
    /// SIGTERM ends it.
    pub(crate) obeys_term: bool,
    /// SIGKILL ends it.
    pub(crate) killable: bool,
    /// It exits by itself after that many bytes of output, in the middle of a frame or not.
    pub(crate) exits_after: Option<usize>,
    /// It exits by itself at that time after its start.
    pub(crate) exits_at_us: Option<u64>,
    /// It closes its output after that many bytes and lives on.
    pub(crate) closes_output_after: Option<usize>,
    /// It closes its input at that time after its start and lives on.
    pub(crate) closes_input_at_us: Option<u64>,
    /// Once in that many turns it writes what no server should; zero: never.
    pub(crate) garbage_once_in: u64,
    /// It stops serving at that time after its start.
    pub(crate) stops_at_us: Option<u64>,
    /// It is written without the core.
    pub(crate) scripted: bool,
    /// The program is of the legacy era.
    pub(crate) legacy: Option<Legacy>,
    /// What it leaves behind in its group.
    pub(crate) helper: Option<Helper>,
}

/// A legacy program: the same in all its lives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Legacy {
    pub(crate) version: &'static str,
    pub(crate) on_probe: OnProbe,
}

/// What a legacy program does when it is asked `server/discover`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnProbe {
    Error(i64),
    Silence,
    Exit,
}

impl Legacy {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let on_probe = random.pick(&[OnProbe::Error(-32601), OnProbe::Error(-32602), OnProbe::Silence, OnProbe::Exit]);
        Self { version: random.pick(&["2025-11-25", "2025-03-26", "2025-03-26", "2024-11-05"]), on_probe }
    }
}

/// A process of the same group that holds the output open.
#[derive(Debug, Clone)]
pub(crate) struct Helper {
    pub(crate) obeys_term: bool,
    /// It ends by itself after that time, counted from the start.
    pub(crate) ends_at_us: Option<u64>,
    /// It writes a line that often.
    pub(crate) writes_every_us: Option<u64>,
}

impl Temper {
    /// A server as it should be.
    pub(crate) fn good() -> Self {
        Self {
            reads: true,
            writes_first: false,
            ends_at_eof: true,
            obeys_term: true,
            killable: true,
            exits_after: None,
            exits_at_us: None,
            closes_output_after: None,
            closes_input_at_us: None,
            garbage_once_in: 0,
            stops_at_us: None,
            scripted: false,
            legacy: None,
            helper: None,
        }
    }

    /// What is wrong with it from the start.
    pub(crate) fn faults(&self) -> impl Iterator<Item = &'static str> {
        let silent = self.legacy.is_some_and(|legacy| legacy.on_probe == OnProbe::Silence);
        [
            (!self.reads, "a server that never reads"),
            (self.writes_first, "a server that writes before it reads"),
            (!self.ends_at_eof, "a server that outlives its input"),
            (!self.obeys_term, "a server that ignores SIGTERM"),
            (!self.killable, "a server that cannot be killed"),
            (self.helper.is_some(), "a helper that holds the output open"),
            (silent, "silence on the probe"),
        ]
        .into_iter()
        .filter_map(|(is, kind)| is.then_some(kind))
    }

    pub(crate) fn draw(random: &mut Random) -> Self {
        let mut temper = Self::good();
        temper.scripted = random.once_in(3);
        if random.once_in(3) {
            return temper;
        }
        temper.reads = !random.once_in(16);
        temper.writes_first = random.once_in(8);
        temper.ends_at_eof = !random.once_in(6);
        temper.obeys_term = !random.once_in(6);
        temper.killable = !random.once_in(60);
        temper.exits_after = random.once_in(4).then(|| random.size(6_000));
        temper.exits_at_us = random.once_in(4).then(|| random.below(20_000_000));
        temper.stops_at_us = random.once_in(10).then(|| random.below(20_000_000));
        temper.closes_output_after = random.once_in(16).then(|| random.size(4_000));
        temper.closes_input_at_us = random.once_in(16).then(|| random.below(10_000_000));
        temper.garbage_once_in = if random.once_in(2) { 4 + random.below(60) } else { 0 };
        temper.helper = random.once_in(6).then(|| Helper {
            obeys_term: random.once_in(2),
            ends_at_us: random.once_in(2).then(|| random.below(30_000_000)),
            writes_every_us: random.once_in(2).then(|| 10_000 + random.below(400_000)),
        });
        temper
    }
}
