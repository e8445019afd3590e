//! Owns the simulated world: a client with its supervisor, the process it talks to, the pipes between them, a seeded scheduler and a
//! virtual clock. One seed is one history; after each step the invariants are checked. It must not know sockets, threads or time.

mod brain;
mod child;
mod client_oracle;
mod driver;
mod garbage;
mod honest;
mod pipe;
mod random;
mod script;
mod server_oracle;
mod temper;
mod trace;
mod user;
mod wire;

use core::time::Duration;

use mcp_wire::lifecycle;
use mcp_wire::{Era, Eras};
use mcp_wire::{JsonBuf, RecvBuffer, SendError, Supervisor};

use brain::{instant, time_us};
use child::Child;
use client_oracle::{Budget, ClientOracle};
use random::Random;
use temper::Legacy;
pub(crate) use trace::{Faults, Record, Trace};
use wire::Wire;

/// Acts in one history: more is a livelock.
const ACTS: u64 = 3_000_000;
/// Acts in a row without time passing: more is a livelock.
const ACTS_AT_ONCE: u64 = 400_000;

/// What a history came to, so that a run can tell that it saw something.
#[derive(Debug, Clone, Default)]
pub(crate) struct Summary {
    pub(crate) acts: u64,
    pub(crate) ended: u64,
    pub(crate) results: u64,
    pub(crate) lives: u64,
    pub(crate) restarts: u64,
    pub(crate) legacy: u64,
    pub(crate) answered: u64,
    pub(crate) faults: Faults,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Faults and intentions.
    Storm,
    /// No more faults; what is open ends in its time, and a server that behaves answers.
    Calm { since_us: u64, tries: u32, results: u64, next_us: u64 },
    /// Closed: all must be over soon.
    Ending { since_us: u64 },
}

pub(crate) struct World {
    random: Random,
    trace: Trace,
    now_us: u64,
    phase: Phase,
    supervisor: Supervisor,
    /// No process as far as the client knows: a socket, on whose other side the child lives.
    stream: bool,
    oracle: ClientOracle,
    recv: RecvBuffer,
    child: Option<Child>,
    /// One for each life.
    wires: Vec<Wire>,
    last_id: u64,
    /// A vector lent by the connection and how much of it is written.
    out: Option<(Vec<u8>, usize)>,
    stdin_closed: bool,
    output_ended: bool,
    exit_told: bool,
    stderr_told: bool,
    reap_due: bool,
    /// Spawned, and the supervisor is not told yet.
    spawning: bool,
    stderr_piped: bool,
    intents: u32,
    next_intent_us: u64,
    pace_us: u64,
    next_marker: u64,
    asked: bool,
    grace_us: u64,
    server: mcp_wire::server::Config,
    /// What the client speaks.
    eras: Eras,
    /// The program is a legacy one.
    program: Option<Legacy>,
    memory_limit: usize,
}

impl World {
    pub(crate) fn new(seed: u64, trace: &Trace) -> Self {
        trace.say("world", format_args!("seed {seed}"));
        Self::decided_by(Random::new(seed), seed, trace)
    }

    /// The same with decisions that are given, as far as they go.
    #[allow(dead_code, reason = "the fuzz targets use it")]
    pub(crate) fn given(bytes: &[u8], trace: &Trace) -> Self {
        Self::decided_by(Random::given(bytes), 0, trace)
    }

    fn decided_by(mut random: Random, seed: u64, trace: &Trace) -> Self {
        let mut client = mcp_wire::client::Config::new("world", "1");
        client.request_timeout = Duration::from_millis(random.pick(&[200, 2_000, 20_000]));
        client.queue_timeout = random.once_in(2).then(|| Duration::from_secs(1 + random.below(60)));
        client.probe_timeout = Duration::from_millis(random.pick(&[500, 10_000]));
        client.start_timeout = Duration::from_secs(random.pick(&[2, 120]));
        client.in_flight_limit = random.pick(&[1, 4, 64]);
        client.listen_limit = random.pick(&[1, 8]);
        client.queue_limit = random.pick(&[4_000, 16_000, 100_000]);
        let eras = random.pick(&[Eras::Dual, Eras::Dual, Eras::Dual, Eras::Modern, Eras::Legacy]);
        client.speak(eras);
        client.answers_requests = !random.once_in(4);
        client.server_request_limit = random.pick(&[1, 64]);
        client.own_answers_limit = random.pick(&[200, 4_000]);
        let memory_limit = client.queue_limit + client.own_answers_limit + client.in_flight_limit * 1_400 + 65_536;

        let mut process = lifecycle::Config::default();
        let mut grace_us = random.pick(&[100_000, 2_000_000]);
        process.grace = Duration::from_micros(grace_us);
        process.terminate_step = !random.once_in(8);
        process.end_group = !random.once_in(4);
        process.restarts = random.pick(&[0, 1, 5, 20]);
        process.restart_delay = Duration::from_millis(random.pick(&[1, 500]));
        process.restart_stable = Duration::from_secs(random.pick(&[5, 60]));
        process.seed = seed;
        process.lazy = random.once_in(3);
        process.idle_stop = random.once_in(3).then(|| Duration::from_millis(random.pick(&[5, 1_000, 20_000])));

        if client.versions.is_empty() {
            process.idle_stop = None; // RST-09
        }

        let program = random.once_in(3).then(|| Legacy::draw(&mut random));
        let mut server = mcp_wire::server::Config::new("child", "1");
        server.serve(match program {
            Some(_) => Eras::Legacy,
            None => random.pick(&[Eras::Modern, Eras::Dual]),
        });
        let capabilities = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}}"#;
        server.capabilities = JsonBuf::from(mcp_wire::Json::parse(capabilities).expect("plain JSON"));
        server.running_limit = random.pick(&[1, 2, 256]);
        server.waiting_limit = random.pick(&[1, 3, 256]);
        server.pause_when_full = random.once_in(4);
        server.listen_limit = random.pick(&[1, 64]);
        server.queue_limit = random.pick(&[4_000, 64_000]);
        server.own_answers_limit = random.pick(&[1_000, 100_000]);
        server.line_limit = 65_536;
        server.drain = Duration::from_millis(random.pick(&[1, 10_000]));

        let stream = random.once_in(8);
        let supervisor = if stream {
            grace_us = 2_000_000;
            Supervisor::without_process(client.clone(), instant(0))
        } else {
            Supervisor::new(client.clone(), process.clone())
        };
        let pace_us = random.pick(&[1, 10_000, 1_000_000]);
        trace.say("world", format_args!("{client:?} {process:?} {server:?}"));
        let mut world = Self {
            trace: trace.clone(),
            now_us: 0,
            phase: Phase::Storm,
            recv: RecvBuffer::new(random.pick(&[2_048, 16_384, 65_536])),
            supervisor: supervisor.expect("a good configuration"),
            oracle: ClientOracle::default(),
            stream,
            child: None,
            wires: Vec::new(),
            last_id: 0,
            out: None,
            stdin_closed: true,
            output_ended: true,
            exit_told: true,
            stderr_told: true,
            reap_due: false,
            spawning: false,
            stderr_piped: random.once_in(2),
            intents: random.pick(&[5, 40, 120]),
            next_intent_us: 0,
            pace_us,
            next_marker: 1,
            asked: false,
            grace_us,
            server,
            eras,
            program,
            memory_limit,
            random,
        };
        let stable_us = u64::try_from(process.restart_stable.as_micros()).expect("a minute at most");
        world.oracle.budget = Budget { restarts: process.restarts, stable_us, spent: 0 };
        if stream {
            world.oracle.stream();
            world.open_stream();
        }
        world
    }

    /// One history from its start to its end. Panics where an invariant breaks.
    pub(crate) fn run(mut self) -> Summary {
        let (mut acts, mut at_once) = (0, 0);
        while !self.is_over() {
            acts += 1;
            at_once += 1;
            assert!(acts < ACTS && at_once < ACTS_AT_ONCE, "a livelock: {acts} acts, {at_once} of them at once");
            if self.random.once_in(16) {
                self.trace.fault("everybody is late");
                let late = self.random.pick(&[1, 100, 5_000]);
                self.advance_to(self.now_us + late);
                at_once = 0;
            }
            if !self.act() && !self.next_phase() {
                let next = self.next_us().unwrap_or_else(|| panic!("a deadlock in {:?}", self.phase));
                self.advance_to(next.max(self.now_us + 1));
                at_once = 0;
            }
            self.check();
        }
        self.finish();
        Summary {
            acts,
            ended: self.oracle.ended,
            results: self.oracle.results,
            lives: self.oracle.lives.into(),
            restarts: self.oracle.restarts.into(),
            legacy: u64::from(self.oracle.era == Some(Era::Legacy)),
            answered: self.oracle.answered,
            faults: self.trace.take_faults(),
        }
    }

    fn is_over(&self) -> bool {
        self.supervisor.outcome().is_some() && self.oracle.closed
    }

    fn advance_to(&mut self, us: u64) {
        self.now_us = us;
        self.trace.set_now(us);
    }

    fn next_us(&self) -> Option<u64> {
        let client = self.supervisor.poll_timeout().and_then(time_us);
        let child = self.child.as_ref().and_then(Child::next_us);
        let intent = (self.phase == Phase::Storm && self.intents > 0).then_some(self.next_intent_us);
        let again = match self.phase {
            Phase::Calm { next_us, .. } if next_us > self.now_us => Some(next_us),
            _ => None,
        };
        client.into_iter().chain(child).chain(intent).chain(again).min()
    }

    /// The first of all acts, in an order that starts anywhere, that does something.
    fn act(&mut self) -> bool {
        let first = self.random.below(7);
        (0..7).any(|n| match (first + n) % 7 {
            0 => self.write(),
            1 => self.read(),
            2 => self.perform_step(),
            3 => self.tell_facts(),
            4 => self.timers(),
            5 => self.intend(),
            _ => match &mut self.child {
                Some(child) => child.turn(self.now_us, &mut self.random),
                None => false,
            },
        })
    }

    /// Nothing can be done at this moment: goes on to the next phase, if it is time for it.
    fn next_phase(&mut self) -> bool {
        match self.phase {
            Phase::Storm if self.asked => self.phase = Phase::Ending { since_us: self.now_us },
            Phase::Storm if self.intents == 0 => {
                self.trace.say("world", "the faults stop");
                if let Some(child) = &mut self.child {
                    child.calm_down();
                }
                self.phase = Phase::Calm { since_us: self.now_us, tries: 0, results: 0, next_us: 0 };
            }
            Phase::Calm { since_us, tries, results, next_us } => {
                assert!(self.now_us - since_us < 3_000_000_000, "a request that does not end: {:?}", self.oracle.open);
                if self.oracle.open.values().any(|tracked| !tracked.listen) {
                    return false;
                }
                if tries > 0 && self.oracle.results > results {
                    self.end();
                    self.phase = Phase::Ending { since_us: self.now_us };
                } else if next_us > self.now_us {
                    return false;
                } else if tries == 10 && self.is_at_a_standstill() {
                    self.trace.fault("both sides wait until the other reads");
                    self.end();
                    self.phase = Phase::Ending { since_us: self.now_us };
                } else {
                    assert!(tries < 10, "a server that behaves is asked and does not answer");
                    let results = self.oracle.results;
                    match self.ask_promptly() {
                        Ok(()) => {
                            // A server that was busy is asked again when the last of its handlers is through.
                            let next_us = self.now_us + 40_000_000;
                            self.phase = Phase::Calm { since_us, tries: tries + 1, results, next_us };
                        }
                        Err(SendError::Full) => return false,
                        Err(_) => self.phase = Phase::Ending { since_us: self.now_us },
                    }
                }
            }
            Phase::Ending { since_us } => {
                let limit = 6 * self.grace_us + 1_000_000;
                assert!(self.now_us - since_us < limit, "SHD-01: it does not end");
                return false;
            }
            Phase::Storm => return false,
        }
        true
    }

    /// Each side has so much to answer by itself that it reads nothing before some of it is read (LIM-04). With budgets of a few hundred
    /// bytes two honest sides can meet like that, and nothing but the end of the stream helps; requests still end by their clocks.
    fn is_at_a_standstill(&self) -> bool {
        !self.supervisor.connection().wants_read() && self.child.as_ref().is_some_and(|child| !child.wants_read())
    }

    /// What must hold between any two acts.
    fn check(&self) {
        let connection = self.supervisor.connection();
        assert_eq!(connection.in_flight(), self.oracle.open.len(), "in flight against open");
        assert!(connection.pending_output() <= self.memory_limit, "LIM-04: {} bytes", connection.pending_output());
        let due = self.supervisor.poll_timeout();
        assert!(due.is_none_or(|at| at.since_epoch() < Duration::MAX));
    }

    fn finish(&mut self) {
        let now = instant(self.now_us);
        assert!(self.oracle.open.is_empty(), "every request ends: {:?}", self.oracle.open);
        assert!(self.supervisor.output(now).is_empty(), "SHD-03: bytes after the end");
        assert_eq!(self.supervisor.poll_timeout(), None, "a timer after the end");
        assert_eq!(self.supervisor.connection().pending_output(), 0);
        let refused = self.supervisor.request("late", None, mcp_wire::client::RequestOptions::default(), now);
        assert!(refused.is_err(), "SHD-03: a request after the end is taken");
        while self.perform_step() {}
        assert!(self.stream || self.child.is_none(), "PRC-05: a child is left");
        self.supervisor.handle_timeout(now);
        assert_eq!(self.supervisor.poll_signal(), None);
    }
}
