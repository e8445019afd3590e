//! Owns the driver's end of a connection: what a loop over pipe ends, of whatever runtime, asks and tells between its reads and
//! writes. It must not know how bytes are read or written, nor how time passes.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use mcp_wire::client::Event;
use mcp_wire::lifecycle::Step;
use mcp_wire::{Instant, Message, RecvBuffer};

use super::server_requests;
use super::shared::{Locked, Shared};
use super::stderr::StderrSink;
use super::tape::{ProcessFact, TapeFact};
use super::turn::{Output, Todo, Turn, Wrote};
use crate::process::{ChildTree, SpawnError};
use crate::server::TaskSet;

/// The driver's end of a connection. Each method takes the lock once, and wakes whoever is concerned after releasing it.
///
/// A loop reads until nothing is there ([`spare_mut`](Self::spare_mut), [`read`](Self::read)), takes a [`turn`](Self::turn), does what it says, and
/// goes to sleep when it says nothing: it is woken for readiness, for the deadline, and through the waker that it gave with the turn. Dropping
/// it before it is [over](Turn::over) ends everything: calls resolve, the process is killed (case 159).
///
/// ```
/// use std::task::{Context, Waker};
/// use mcp_wire::Instant;
/// use mcp_wire_driver::client::{Options, Output, Wrote};
///
/// let (client, mut link) = Options::new("host", "1.0").with_stream(|| Instant::EPOCH)?;
/// let turn = link.turn(Waker::noop(), Output::Wanted, Wrote::default());
/// let probe = turn.output.expect("the probe");
/// link.turn(Waker::noop(), Output::Wanted, Wrote { accepted: probe.len(), spent: Some(probe), failed: false });
///
/// let answer = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2026-07-28\"]}}\n";
/// link.spare_mut()[..answer.len()].copy_from_slice(answer);
/// link.read(answer.len());
/// assert_eq!(client.version().as_deref(), Some("2026-07-28"));
/// # Ok::<(), mcp_wire_driver::client::StartError>(())
/// ```
pub struct Link {
    shared: Arc<Shared>,
    recv: RecvBuffer,
    stderr: StderrSink,
    /// Lines for the tape.
    taped: Vec<u8>,
    /// Used again for each batch of wakers.
    spare: Vec<Waker>,
    /// Frames wait in the receive area until a legacy server reads what it is answered (LIM-04).
    paused: bool,
    /// Bytes of the last output that is on the tape and not reported as accepted.
    out_on_tape: Option<usize>,
    /// The caller answers requests of the server's.
    answers: bool,
    /// The work on those.
    tasks: TaskSet<server_requests::Task>,
}

impl Link {
    pub(super) fn new(shared: Arc<Shared>, line_limit: usize, stderr: StderrSink) -> Self {
        let recv = RecvBuffer::new(line_limit);
        let answers = shared.lock().server_requests.has_handler();
        Self {
            shared,
            recv,
            stderr,
            taped: Vec::new(),
            spare: Vec::new(),
            paused: false,
            out_on_tape: None,
            answers,
            tasks: TaskSet::new(),
        }
    }

    /// The time, by the clock that the client was made with.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Room to read into. A read that is dropped loses nothing.
    pub fn spare_mut(&mut self) -> &mut [u8] {
        self.recv.spare_mut(1)
    }

    /// Whether to read on: not while a legacy server asks and does not read what it is answered (LIM-04). Ask after each turn.
    #[must_use]
    pub const fn wants_read(&self) -> bool {
        !self.paused
    }

    /// So many bytes were read into [`spare_mut`](Self::spare_mut): routes every whole frame, under one lock but for callbacks.
    pub fn read(&mut self, n: usize) {
        self.recv.commit(n);
        self.route(false);
    }

    /// The process's output, or the stream's, has ended or cannot be read.
    pub fn read_ended(&mut self) {
        self.recv.close();
        self.route(true);
    }

    fn route(&mut self, ended: bool) {
        let Self { shared, recv, taped, spare, paused, .. } = self;
        // The first frame is found before the lock is taken.
        let mut held: Option<(Locked<'_>, Instant)> = None;
        // At the end of the input all that is left is bounded.
        while !*paused || ended {
            let Some(frame) = recv.next_frame() else { break };
            let (mut state, mut now) = held.take().unwrap_or_else(|| {
                let (mut state, now) = shared.lock_now();
                state.stay_awake();
                (state, now)
            });
            if state.has_tape() {
                let bytes = frame.bytes();
                match frame.clone().message() {
                    Message::Unreadable(line) if bytes.is_empty() => {
                        let before = std::mem::take(taped);
                        if !before.is_empty() {
                            state.tape(TapeFact::In(&before), now);
                        }
                        let id = line.id.map(mcp_wire::Id::token);
                        state.tape(TapeFact::InCut { bytes: line.len, id }, now);
                    }
                    Message::Unreadable(line) if line.reason == mcp_wire::UnreadableReason::Truncated => {
                        taped.extend_from_slice(bytes);
                    }
                    _ => {
                        taped.extend_from_slice(bytes);
                        taped.push(b'\n');
                    }
                }
            }
            (state, now) = match state.engine.open_batch(&frame, now) {
                None => {
                    let event = state.engine.handle(frame, now);
                    take_in(shared, state, event, taped, now)
                }
                Some(batch) => {
                    for message in batch {
                        let event = state.engine.handle_message(message, now);
                        (state, now) = take_in(shared, state, event, taped, now);
                    }
                    state.engine.supervisor_mut().close_batch(now);
                    state.pump(now);
                    (state, now)
                }
            };
            *paused = !state.engine.supervisor().connection().wants_read();
            held = Some((state, now));
        }
        let (mut state, now) = held.unwrap_or_else(|| shared.lock_now());
        tape_input(&mut state, taped, now);
        state.engine.supervisor_mut().output_seen(now);
        if ended {
            state.tape(TapeFact::Process(ProcessFact::Eof), now);
            state.engine.supervisor_mut().output_ended(now);
        }
        state.pump(now);
        state.release(spare);
        if self.answers {
            for task in server_requests::begin(&self.shared) {
                self.tasks.start(task);
            }
        }
    }

    /// What is to be done next. `wrote` tells what became of the last output.
    pub fn turn(&mut self, waker: &Waker, output: Output, wrote: Wrote) -> Turn {
        let mut turn = Turn::default();
        if !self.tasks.is_empty() {
            self.tasks.poll(&Context::from_waker(waker));
        }
        let (mut state, now) = self.shared.lock_now();
        self.out_on_tape = report(&mut state, &wrote, self.out_on_tape, now);
        if let Some(spent) = wrote.spent {
            state.engine.supervisor_mut().recycle(spent);
        }
        state.end_write(now);
        if self.paused && state.engine.supervisor().connection().wants_read() {
            // What was read before goes first.
            drop(state);
            self.paused = false;
            self.route(false);
            // Nobody waits for more of it yet.
            waker.wake_by_ref();
            state = self.shared.lock();
        }
        if state.engine.supervisor().poll_timeout().is_some_and(|at| at <= now) {
            state.tape(TapeFact::Tick, now);
            state.engine.supervisor_mut().handle_timeout(now);
        }
        state.pump(now);
        loop {
            if state.abandoned || state.is_over() {
                turn.over = true;
                // A child that is still here was given up: its drop hands it to the reaper (PRC-05).
                let child = state.child.take();
                drop(state);
                drop(child);
                state = self.shared.lock();
                break;
            }
            let Some(step) = state.engine.supervisor_mut().poll_step() else { break };
            tracing::debug!(target: "mcp_wire::process", ?step, "performing a step");
            turn.todo = match step {
                Step::Spawn => Some(Todo::Spawn),
                Step::CloseStdin => Some(Todo::CloseInput),
                Step::Reap => Some(Todo::Reap),
                Step::GiveUp => Some(Todo::CloseAll),
                signal => {
                    let child = state.child.clone();
                    drop(state);
                    let empty = child.and_then(|child| send(&child, signal));
                    state = self.shared.lock();
                    if let Some(empty) = empty {
                        state.tape(TapeFact::Process(ProcessFact::GroupSignalled { empty }), now);
                        state.engine.supervisor_mut().group_signalled(empty, now);
                        state.pump(now);
                    }
                    None
                }
            };
            if turn.todo.is_some() {
                break;
            }
        }
        if turn.todo.is_none() && !turn.over {
            match output {
                Output::Wanted => {
                    turn.output = state.engine.supervisor_mut().take_output(now);
                    if let Some(bytes) = &turn.output {
                        state.begin_write();
                        if state.has_tape() {
                            state.tape(TapeFact::Out(bytes), now);
                            self.out_on_tape = Some(bytes.len());
                        }
                    }
                }
                Output::Resuming => state.begin_write(),
                Output::Held => {}
            }
            turn.deadline = state.engine.supervisor().poll_timeout();
        }
        if turn.todo.is_none() && turn.output.is_none() && output != Output::Resuming {
            state.sleep(waker);
        } else {
            state.stay_awake();
        }
        state.release(&mut self.spare);
        turn
    }

    /// [`Todo::Spawn`] succeeded. Whether the process is wanted: if not, close all ends; it is killed already.
    pub fn spawned(&mut self, child: ChildTree, stderr_piped: bool) -> bool {
        self.recv.reset();
        self.paused = false;
        self.out_on_tape = None;
        let (mut state, now) = self.shared.lock_now();
        if state.abandoned || state.is_over() {
            drop(state);
            return false;
        }
        let pid = child.pid();
        state.child = Some(Arc::new(child));
        state.tape(TapeFact::Process(ProcessFact::Started { pid }), now);
        state.engine.spawned(pid, now);
        if !stderr_piped {
            state.tape(TapeFact::Process(ProcessFact::StderrEof), now);
            state.engine.stderr_ended(|_| {}, now);
        }
        state.pump(now);
        state.release(&mut self.spare);
        true
    }

    /// [`Todo::Spawn`] failed.
    pub fn spawn_failed(&mut self, error: SpawnError) {
        let (mut state, now) = self.shared.lock_now();
        let failure = error.failure();
        state.tape(TapeFact::Process(ProcessFact::SpawnFailed(failure)), now);
        state.engine.spawn_failed(failure, Some(error), now);
        state.pump(now);
        state.release(&mut self.spare);
    }

    /// The exit notice is there: looks how the process has exited. `false` if it has not.
    pub fn look_for_exit(&mut self) -> bool {
        let (mut state, now) = self.shared.lock_now();
        let Some(status) = state.child.as_ref().and_then(|child| child.try_exit()) else { return false };
        tracing::info!(target: "mcp_wire::process", pid = state.engine.pid(), %status, "the server has exited");
        state.tape(TapeFact::Process(ProcessFact::Exited(status)), now);
        state.engine.supervisor_mut().exited(status, now);
        state.pump(now);
        state.release(&mut self.spare);
        true
    }

    /// All ends are closed after [`Todo::Reap`]: reaps the process.
    pub fn reap(&mut self) {
        let mut state = self.shared.lock();
        let child = state.child.take();
        drop(state);
        // It has exited, so this returns at once.
        let _ = child.as_ref().and_then(|child| child.reap());
        drop(child);
        let (mut state, now) = self.shared.lock_now();
        state.tape(TapeFact::Process(ProcessFact::Reaped), now);
        state.engine.supervisor_mut().reaped(now);
        state.pump(now);
        state.release(&mut self.spare);
    }

    /// Bytes of standard error were read.
    pub fn stderr(&mut self, bytes: &[u8]) {
        self.stderr.take(&self.shared, Some(bytes), &mut self.spare);
    }

    /// Standard error has ended.
    pub fn stderr_ended(&mut self) {
        self.stderr.take(&self.shared, None, &mut self.spare);
    }

    /// Ready once what was copied to our standard error is written.
    pub fn poll_stderr_flushed(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.stderr.poll_flushed(cx)
    }
}

/// Gives the event of one message to whom it belongs. What is the caller's runs without the lock.
fn take_in<'s>(
    shared: &'s Shared,
    mut state: Locked<'s>,
    event: Event<'_>,
    taped: &mut Vec<u8>,
    mut now: Instant,
) -> (Locked<'s>, Instant) {
    if let Some(callback) = state.route(event, now) {
        tape_input(&mut state, taped, now);
        drop(state);
        callback.run(shared);
        // Others may have told the core a later time meanwhile.
        (state, now) = shared.lock_now();
    }
    state.pump(now);
    (state, now)
}

/// What was read so far goes on the tape.
fn tape_input(state: &mut Locked<'_>, taped: &mut Vec<u8>, now: Instant) {
    if !taped.is_empty() {
        state.tape(TapeFact::In(taped), now);
        taped.clear();
    }
}

/// Reports a write to the core. Gives what is left of the last output on the tape.
fn report(state: &mut Locked<'_>, wrote: &Wrote, on_tape: Option<usize>, now: Instant) -> Option<usize> {
    let mut left = on_tape;
    if wrote.accepted > 0 {
        // An output that was taken whole at once is not mentioned again.
        if let Some(whole) = on_tape {
            left = None;
            if whole != wrote.accepted {
                state.tape(TapeFact::Accepted(wrote.accepted), now);
            }
        } else {
            state.tape(TapeFact::Accepted(wrote.accepted), now);
        }
        state.engine.supervisor_mut().accepted(wrote.accepted, now);
    } else if on_tape.is_some() && (wrote.failed || wrote.spent.is_some()) {
        left = None;
        state.tape(TapeFact::Accepted(0), now);
    }
    if wrote.failed {
        tracing::debug!(target: "mcp_wire::process", "the server's input cannot be written to any more");
        state.tape(TapeFact::Process(ProcessFact::InputFailed), now);
        state.engine.supervisor_mut().input_failed(now);
    }
    left
}

/// Sends a signal. For a group whose leader has exited: whether nobody was left in it.
fn send(child: &ChildTree, step: Step) -> Option<bool> {
    match step {
        Step::Terminate => child.terminate(),
        Step::Kill => child.kill(),
        Step::TerminateGroup => return Some(child.terminate_group()),
        Step::KillGroup => return Some(child.kill_group()),
        _ => {}
    }
    None
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.driver_gone();
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("buffered", &self.recv.capacity()).finish_non_exhaustive()
    }
}
