//! The driver's end of a client's connection with real processes, a clock of the test's own, and a loop that leaves out what it is not to see.

#![cfg(unix)]

mod support;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_wire::Instant;
use mcp_wire::lifecycle::Escalation;
use mcp_wire_driver::client::{
    Client, ClientEvent, CloseError, Closing, Events, Link, Options, Output, StartFailedKind, Todo, Wrote,
};
use mcp_wire_driver::process::{ServerCommand, Spawned, spawn};
use support::{Watched, misbehaving};

/// A client whose loop is the test, and its clock.
struct World {
    client: Client,
    link: Link,
    events: Events,
    clock: Arc<AtomicU64>,
    command: ServerCommand,
}

impl World {
    fn new(options: Options, steps: &[&str]) -> Self {
        let clock = Arc::new(AtomicU64::new(0));
        let (command, reads) = (misbehaving(steps), Arc::clone(&clock));
        let mut options = options;
        let events = options.events();
        let now = move || Instant::from_epoch(Duration::from_millis(reads.load(Ordering::Relaxed)));
        let (client, link) = options.with_process(&command, now).expect("a good configuration");
        Self { client, link, events, clock, command }
    }

    /// Turns with nobody to read, until there is something to do or nothing at all. What is to be written goes nowhere.
    fn todo(&mut self) -> Option<Todo> {
        let mut wrote = Wrote::default();
        loop {
            let turn = self.link.turn(Waker::noop(), Output::Wanted, std::mem::take(&mut wrote));
            if turn.over || turn.todo.is_some() || turn.output.is_none() {
                return turn.todo;
            }
            wrote.accepted = turn.output.as_ref().map_or(0, Vec::len);
            wrote.spent = turn.output;
        }
    }

    fn spawn(&mut self) -> (Watched, Spawned) {
        assert_eq!(self.todo(), Some(Todo::Spawn));
        let spawned = spawn(&self.command).expect("it can be spawned");
        (Watched::pid(i32::try_from(spawned.child.pid()).expect("a pid")), spawned)
    }

    fn wait(&mut self, ms: u64) {
        self.clock.fetch_add(ms, Ordering::Relaxed);
    }

    fn told(&mut self) -> Vec<ClientEvent> {
        std::iter::from_fn(|| self.events.try_next()).collect()
    }
}

fn now<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn grace(ms: u64) -> Options {
    Options::new("test", "1").grace(Duration::from_millis(ms)).restarts(3)
}

// SHD-01, case 132: a process that does not end though it was killed is given up after the last grace, with an error that names it, and not
// forgotten: should it end after all, it is reaped, while handles of the client live on
#[test]
fn a_process_that_survives_its_kill_is_given_up_loudly() {
    let mut world = World::new(grace(1000), &["deaf", "sleep"]);
    let (watched, spawned) = world.spawn();
    let pid = spawned.child.pid();
    assert!(world.link.spawned(spawned.child, false));
    let mut closing: Closing = world.client.close();
    assert_eq!(world.todo(), Some(Todo::CloseInput));
    // Its exit is never told to the link, as that of a process that hangs in the system would not be.
    for _ in 0..2 {
        world.wait(1000);
        assert_eq!(world.todo(), None);
        assert!(now(&mut closing).is_pending());
    }
    world.wait(1000);
    world.todo();
    let Poll::Ready(Err(error)) = now(&mut closing) else { panic!("it is given up, and that is an error") };
    assert_eq!(error, CloseError::Unkillable { pid });
    assert!(error.to_string().contains(&pid.to_string()), "{error}");
    let told = world.told();
    assert!(
        matches!(
            told.as_slice(),
            [.., ClientEvent::StartFailed { kind: StartFailedKind::Exited, .. }, ClientEvent::Closed { .. }]
                | [.., ClientEvent::Closed { exit: None, escalation: Escalation::Kill, .. }]
        ),
        "{told:?}"
    );
    // The kill did reach it: it is gone, and no zombie is left, though the client is still there.
    watched.ends();
    support::wait_until("it is reaped", || !std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert!(now(world.client.closed()).is_ready());
}

// SHD-04: the last handle is dropped, or all is killed, while a start is on its way: what it brings is killed, and the loop is told to close its ends
#[test]
fn what_is_spawned_for_nobody_is_killed() {
    for kill in [true, false] {
        let World { client, mut link, command, .. } = World::new(grace(600_000), &["deaf", "sleep"]);
        let turn = link.turn(Waker::noop(), Output::Wanted, Wrote::default());
        assert_eq!(turn.todo, Some(Todo::Spawn));
        let spawned = spawn(&command).expect("it can be spawned");
        let watched = Watched::pid(i32::try_from(spawned.child.pid()).expect("a pid"));
        if kill {
            drop(client.kill());
            assert!(link.spawned(spawned.child, false), "it is wanted as long as it takes to see its end");
            assert_eq!(link.turn(Waker::noop(), Output::Wanted, Wrote::default()).todo, None);
        } else {
            drop(client);
            assert!(!link.spawned(spawned.child, false), "nobody wants it");
            assert!(link.turn(Waker::noop(), Output::Wanted, Wrote::default()).over);
        }
        watched.ends();
    }
}
