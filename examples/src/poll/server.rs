//! Serves one connection over the standard streams: reads, hands frames in, polls handlers, writes. It must not decide anything about
//! requests; the core does, and the driver holds what handlers see.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_wire::server::Ended;
use mcp_wire::{JsonBuf, RecvBuffer};
use mcp_wire_driver::server::{Call, Engine, RpcError, ServeError, Server, Task};
use mcp_wire_driver::stdio;
use rustix::event::PollFlags;

use super::poll_set::{PollSet, SelfPipe};
use super::signals::Signals;
use super::streams::{Input, Output};
use super::tasks::{Tasks, Timers};

/// Least room for a read, in bytes.
const READ_ROOM: usize = 16 << 10;
/// Reads before the others get their turn.
const READS: usize = 8;

/// Serves the standard streams until the input ends, the client is gone or a signal comes, which ends it like the end of the input, without
/// the drain.
pub(crate) fn serve<H, F>(
    server: Server,
    signals: &Signals,
    timers: &Timers,
    pipe: &Arc<SelfPipe>,
    handler: H,
) -> Result<Ended, ServeError>
where
    H: Fn(Call) -> F,
    F: Future<Output = Result<JsonBuf, RpcError>> + Send + 'static,
{
    let stop = server.stop_handle();
    // The guard outlives the streams: they are copies of what it puts back.
    let guard = stdio::claim(server.wants_stdout_guard())?;
    let waker = Waker::from(Arc::clone(pipe));
    let engine = Engine::new(server);
    let mut serving = Serving {
        recv: engine.recv_buffer(),
        engine,
        input: Input::of(guard.input()).map_err(ServeError::Stdio)?,
        output: Output::of(guard.output()).map_err(ServeError::Stdio)?,
        segment: None,
        unflushed: false,
        input_ended: false,
        read_error: None,
        tasks: Tasks::new(waker.clone()),
        handler,
    };
    loop {
        let wait = match serving.turn(&mut Context::from_waker(&waker)) {
            ControlFlow::Break(ended) => return ended,
            ControlFlow::Continue(wait) => wait,
        };
        let timeout = [wait.timeout, timers.timeout()].into_iter().flatten().min();
        let mut set = PollSet::default();
        set.add(Some(pipe.as_fd()), PollFlags::IN);
        let signal = set.add(Some(signals.as_fd()), PollFlags::IN);
        set.add(serving.input.fd().filter(|_| wait.input), PollFlags::IN);
        set.add(serving.output.fd().filter(|_| wait.output), PollFlags::OUT);
        let ready = set.wait(timeout).map_err(ServeError::Stdio)?;
        pipe.clear();
        timers.fire();
        if ready.is(signal) && signals.next().is_some() {
            stop.terminate();
        }
    }
}

struct Serving<H> {
    engine: Engine,
    recv: RecvBuffer,
    input: Input,
    output: Output,
    /// What is being written, and how much of it the stream has accepted.
    segment: Option<(Vec<u8>, usize)>,
    unflushed: bool,
    input_ended: bool,
    read_error: Option<io::Error>,
    tasks: Tasks<Task>,
    handler: H,
}

/// What to wait for, besides wakes and signals.
struct Wait {
    input: bool,
    output: bool,
    timeout: Option<Duration>,
}

/// There is more to do: look around, but do not sleep.
const AGAIN: ControlFlow<Result<Ended, ServeError>, Wait> =
    ControlFlow::Continue(Wait { input: false, output: false, timeout: Some(Duration::ZERO) });

impl<H, F> Serving<H>
where
    H: Fn(Call) -> F,
    F: Future<Output = Result<JsonBuf, RpcError>> + Send + 'static,
{
    fn turn(&mut self, cx: &mut Context<'_>) -> ControlFlow<Result<Ended, ServeError>, Wait> {
        let turn = self.engine.turn();
        let expired = turn.timeout.is_some_and(|left| left.is_zero());
        if let Some(ended) = turn.ended {
            // Everything owed was accepted; it leaves only once it is flushed, or never, when the time for that is over.
            return match self.flush(cx) {
                Poll::Pending if !expired => {
                    ControlFlow::Continue(Wait { input: false, output: false, timeout: turn.timeout })
                }
                Poll::Ready(Ok(())) => ControlFlow::Break(self.end(ended)),
                _ => ControlFlow::Break(self.end(Ended::PeerGone)),
            };
        }
        if expired {
            self.engine.handle_timeout();
            return AGAIN;
        }
        let Self { engine, tasks, handler, .. } = self;
        let ran = tasks.run();
        engine.start_waiting(|call| tasks.start(Task::new(call, &*handler)));
        let read = turn.wants_read && (0..READS).take_while(|_| self.read(cx)).count() > 0;
        let wrote = self.write(cx);
        // The engine agrees to a sleep only if nothing has changed since the turn began.
        if ran || read || wrote || !self.engine.sleep(cx.waker(), self.segment.is_some()) {
            return AGAIN;
        }
        ControlFlow::Continue(Wait {
            input: turn.wants_read && !self.input_ended,
            output: self.segment.is_some(),
            timeout: turn.timeout,
        })
    }

    /// Reads once and hands the frames in. Whether anything happened.
    fn read(&mut self, cx: &mut Context<'_>) -> bool {
        // Frames that a pause has left in the buffer come first.
        if !self.feed() || self.input_ended {
            return false;
        }
        let ended = match self.input.read(cx, self.recv.spare_mut(READ_ROOM)) {
            Poll::Pending => return false,
            Poll::Ready(Ok(n)) => {
                self.recv.commit(n);
                n == 0
            }
            Poll::Ready(Err(error)) if is_reset(&error) => return self.gone(),
            Poll::Ready(Err(error)) => {
                self.read_error = Some(error);
                true
            }
        };
        if ended {
            self.recv.close();
            self.input_ended = true;
        }
        self.feed();
        if ended {
            self.engine.end_of_input();
        }
        true
    }

    /// Hands in the frames that are whole. Each request starts a handler, which is polled once where it stands.
    fn feed(&mut self) -> bool {
        let Self { engine, recv, tasks, handler, .. } = self;
        engine.feed(recv, |call| tasks.start(Task::new(call, &*handler)))
    }

    /// Writes what there is, as far as the stream takes it. Whether anything happened.
    fn write(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        loop {
            if self.segment.is_none() {
                self.segment = self.engine.take_output().map(|bytes| (bytes, 0));
            }
            let Some((bytes, written)) = &mut self.segment else { break };
            match self.output.write(cx, bytes.get(*written..).unwrap_or_default()) {
                Poll::Pending => return progress,
                Poll::Ready(Ok(n @ 1..)) => {
                    *written += n;
                    let whole = *written >= bytes.len();
                    let spent = if whole { self.segment.take().map(|(bytes, _)| bytes) } else { None };
                    self.engine.accepted(n, spent);
                    self.unflushed = true;
                    progress = true;
                }
                Poll::Ready(_) => return self.gone(),
            }
        }
        match self.flush(cx) {
            Poll::Ready(Err(_)) => self.gone(),
            _ => progress,
        }
    }

    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.unflushed {
            return Poll::Ready(Ok(()));
        }
        let flushed = self.output.flush(cx);
        self.unflushed = flushed.is_pending();
        flushed
    }

    /// The stream takes nothing any more: the client is gone (SHD-07).
    fn gone(&mut self) -> bool {
        self.segment = None;
        self.unflushed = false;
        self.engine.peer_gone();
        true
    }

    fn end(&mut self, ended: Ended) -> Result<Ended, ServeError> {
        self.read_error.take().map_or(Ok(ended), |error| Err(ServeError::Read(error)))
    }
}

/// The client has gone without a proper end of its stream.
fn is_reset(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected)
}
