//! Drives one client connection: moves bytes between the ends of a process or stream and the link, sleeps, spawns. It must
//! not know what bytes mean or decide anything: the link says what to do.

use std::fmt;
use std::future::Future;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_wire_driver::client::{Link, Output, Todo, Turn, Wrote};
use mcp_wire_driver::process::{ServerCommand, SpawnError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinHandle;

use crate::clock::{Clock, Timer};
use crate::process::{ExitNotice, Piped, Receiver, spawn_blocking};

/// Reads of one end before the others get their turn.
const READS: usize = 16;
/// Rounds before other tasks get theirs.
const ROUNDS: usize = 32;
/// Longest wait for our standard error to take the last of the server's.
const FLUSH: Duration = Duration::from_millis(250);

type Reader = Pin<Box<dyn AsyncRead + Send>>;
type Writer = Pin<Box<dyn AsyncWrite + Send>>;

/// The future that drives a connection. It ends when the connection is closed for good; dropping it before ends everything at once: calls
/// resolve, the process tree is killed.
///
/// It wants tokio's time and I/O: poll it in a runtime's context.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (ours, _theirs) = tokio::io::duplex(1024);
/// let (read, write) = tokio::io::split(ours);
/// let (client, driver) = mcp_wire_tokio::Client::connect_parts(read, write)?;
/// let driver = tokio::spawn(driver);
/// drop(client);
/// driver.await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing happens unless it is polled"]
pub struct Driver {
    link: Link,
    input: Option<Writer>,
    /// It is being shut down: a stream, whose drop may not close it for the peer.
    closing: Option<Writer>,
    output: Option<Reader>,
    /// Bytes of which the writer has taken the first so many.
    held: Option<(Vec<u8>, usize)>,
    wrote: Wrote,
    /// The writer takes nothing more in this poll.
    blocked: bool,
    /// The writer may keep back what it has taken.
    unflushed: bool,
    timer: Timer,
    process: Option<Process>,
}

/// What only a process has.
struct Process {
    command: Arc<ServerCommand>,
    spawning: Option<JoinHandle<Result<Piped, SpawnError>>>,
    stderr: Option<Receiver>,
    exit: Option<ExitNotice>,
    /// It is to be reaped once our standard error has the last of its own.
    reaping: Option<Timer>,
    flush_until: Option<mcp_wire::Instant>,
    clock: Clock,
}

impl Driver {
    pub(crate) fn of_stream(
        link: Link,
        clock: Clock,
        read: impl AsyncRead + Send + 'static,
        write: impl AsyncWrite + Send + 'static,
    ) -> Self {
        let mut driver = Self::new(link, clock);
        driver.output = Some(Box::pin(read));
        driver.input = Some(Box::pin(write));
        driver
    }

    pub(crate) fn of_process(link: Link, clock: Clock, command: ServerCommand) -> Self {
        let mut driver = Self::new(link, clock);
        driver.process = Some(Process {
            command: Arc::new(command),
            spawning: None,
            stderr: None,
            exit: None,
            reaping: None,
            flush_until: None,
            clock,
        });
        driver
    }

    fn new(link: Link, clock: Clock) -> Self {
        Self {
            link,
            input: None,
            closing: None,
            output: None,
            held: None,
            wrote: Wrote::default(),
            blocked: false,
            unflushed: false,
            timer: Timer::new(clock),
            process: None,
        }
    }

    /// Reads what is there. The bytes go straight into the link, so a poll that is not repeated loses nothing (case 032).
    fn read(&mut self, cx: &mut Context<'_>) {
        for _ in 0..READS {
            let Some(output) = self.output.as_mut().filter(|_| self.link.wants_read()) else { return };
            let mut room = ReadBuf::new(self.link.spare_mut());
            match output.as_mut().poll_read(cx, &mut room) {
                Poll::Pending => return,
                Poll::Ready(Ok(())) if !room.filled().is_empty() => {
                    let n = room.filled().len();
                    self.link.read(n);
                }
                Poll::Ready(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Poll::Ready(end) => {
                    if let Err(error) = end {
                        tracing::debug!(target: "mcp_wire::process", %error, "reading from the server failed");
                    }
                    self.output = None;
                    self.link.read_ended();
                    return;
                }
            }
        }
        // There may be more: come back after the others.
        cx.waker().wake_by_ref();
    }

    /// Writes what is held, as far as the writer takes it. A frame is never given up in the middle (FRM-10).
    fn write(&mut self, cx: &mut Context<'_>) {
        let (Some(input), Some((bytes, at))) = (&mut self.input, &mut self.held) else { return };
        while let Some(rest) = bytes.get(*at..).filter(|rest| !rest.is_empty()) {
            match input.as_mut().poll_write(cx, rest) {
                Poll::Pending => {
                    self.blocked = true;
                    return;
                }
                Poll::Ready(Ok(n)) if n > 0 => {
                    *at += n;
                    self.wrote.accepted += n;
                    self.unflushed = true;
                }
                Poll::Ready(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Poll::Ready(_) => {
                    self.wrote.failed = true;
                    self.input = None;
                    break;
                }
            }
        }
        self.wrote.spent = self.held.take().map(|(bytes, _)| bytes);
    }

    /// A pipe needs none, and other streams may keep bytes back until they are flushed (case 107). Whether it failed.
    fn flush(&mut self, cx: &mut Context<'_>) -> bool {
        while let Some(input) = self.input.as_mut().filter(|_| self.unflushed) {
            match input.as_mut().poll_flush(cx) {
                Poll::Pending => return false,
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(_)) => {
                    self.wrote.failed = true;
                    self.input = None;
                    return true;
                }
            }
        }
        false
    }

    fn close_input(&mut self) {
        self.wrote.spent = self.held.take().map(|(bytes, _)| bytes);
        let input = self.input.take();
        // Only the drop closes a pipe (case 133), and only a shutdown surely closes a stream.
        if self.process.is_none() {
            self.closing = input;
        }
    }

    fn close_all(&mut self) {
        self.close_input();
        self.closing = None;
        self.output = None;
        if let Some(process) = &mut self.process {
            process.stderr = None;
            process.exit = None;
        }
    }

    fn poll_closing(&mut self, cx: &mut Context<'_>) {
        while let Some(closing) = &mut self.closing {
            match closing.as_mut().poll_shutdown(cx) {
                Poll::Pending => return,
                Poll::Ready(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Poll::Ready(_) => self.closing = None,
            }
        }
    }

    fn turn(&mut self, cx: &Context<'_>) -> Turn {
        let output = match (&self.input, &self.held) {
            (Some(_), None) => Output::Wanted,
            (Some(_), Some(_)) if !self.blocked => Output::Resuming,
            _ => Output::Held,
        };
        self.link.turn(cx.waker(), output, std::mem::take(&mut self.wrote))
    }

    fn perform(&mut self, todo: Todo) {
        match todo {
            Todo::CloseInput => self.close_input(),
            Todo::CloseAll => self.close_all(),
            Todo::Spawn => {
                if let Some(process) = &mut self.process {
                    process.spawning = Some(spawn_blocking(&process.command));
                }
            }
            Todo::Reap => {
                self.close_all();
                if let Some(process) = &mut self.process {
                    process.reaping = Some(Timer::new(process.clock));
                    process.flush_until = self.link.now().checked_add(FLUSH);
                }
            }
            _ => {}
        }
    }

    /// Looks after what only a process has. Whether something happened.
    fn poll_process(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = self.poll_spawning(cx);
        let Self { process: Some(process), link, .. } = self else { return any };
        read_stderr(process, link, cx);
        if let Some(exit) = &process.exit {
            if exit.poll(cx).is_ready() {
                any = true;
                // The notice stays ready; it has said all it can.
                process.exit = None;
                if !link.look_for_exit() {
                    tracing::warn!(target: "mcp_wire::process", "a notice of an exit came without one");
                }
            }
        }
        if let Some(reaping) = &mut process.reaping {
            if link.poll_stderr_flushed(cx).is_ready() || reaping.poll(process.flush_until, cx).is_ready() {
                any = true;
                process.reaping = None;
                link.reap();
            }
        }
        any
    }

    fn poll_spawning(&mut self, cx: &mut Context<'_>) -> bool {
        let Self { process: Some(process), link, .. } = self else { return false };
        let Some(spawning) = &mut process.spawning else { return false };
        let Poll::Ready(spawned) = Pin::new(spawning).poll(cx) else { return false };
        process.spawning = None;
        let lost = |error| {
            let source = std::io::Error::other(error);
            Err(SpawnError::Other { program: process.command.program().to_owned(), source })
        };
        match spawned.unwrap_or_else(lost) {
            Err(error) => link.spawn_failed(error),
            Ok(piped) => {
                if link.spawned(piped.child, piped.stderr.is_some()) {
                    process.stderr = piped.stderr;
                    process.exit = Some(piped.exit);
                    self.input = Some(Box::pin(piped.input));
                    self.output = Some(Box::pin(piped.output));
                }
            }
        }
        true
    }
}

/// Standard error is drained from the first moment to the last, before the handshake too (case 086).
fn read_stderr(process: &mut Process, link: &mut Link, cx: &mut Context<'_>) {
    if process.stderr.is_none() {
        return;
    }
    // Not zeroed: that would cost more than a poll that finds nothing.
    let mut bytes = [MaybeUninit::uninit(); 8 << 10];
    for _ in 0..READS {
        let Some(stderr) = &mut process.stderr else { return };
        let mut room = ReadBuf::uninit(&mut bytes);
        match Pin::new(stderr).poll_read(cx, &mut room) {
            Poll::Pending => return,
            Poll::Ready(Ok(())) if !room.filled().is_empty() => link.stderr(room.filled()),
            Poll::Ready(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Poll::Ready(_) => {
                process.stderr = None;
                link.stderr_ended();
            }
        }
    }
    cx.waker().wake_by_ref();
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.blocked = false;
        let mut wrote = false;
        for _ in 0..ROUNDS {
            // What was written is told first: a peer may answer or end before this loop comes round, and the request was sent all the same.
            let mut happened = std::mem::take(&mut wrote);
            if !happened {
                // Input first: what was answered in time must not be timed out (case 083).
                this.read(cx);
                happened = this.poll_process(cx);
            }
            let turn = this.turn(cx);
            if turn.over {
                this.close_all();
                return Poll::Ready(());
            }
            if let Some(todo) = turn.todo {
                this.perform(todo);
                continue;
            }
            if let Some(bytes) = turn.output {
                this.held = Some((bytes, 0));
            }
            this.poll_closing(cx);
            if this.held.is_some() && this.input.is_some() && !this.blocked {
                this.write(cx);
                wrote = true;
                continue;
            }
            if this.flush(cx) || happened || this.timer.poll(turn.deadline, cx).is_ready() {
                continue;
            }
            return Poll::Pending;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("link", &self.link).finish_non_exhaustive()
    }
}
