//! Serves one connection on smol: moves bytes between the streams and the driver's engine, polls handlers, sleeps.
//! It must not decide anything about requests; the core does, and the driver holds what handlers see.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use mcp_wire::RecvBuffer;
use mcp_wire::server::Ended;
use mcp_wire_driver::server::{Builder, Call, Engine, RpcError, ServeError, Server, Task, TaskSet};
use serde::Serialize;
use smol::Timer;
use smol::io::{AsyncRead, AsyncWrite};

/// Turns of the loop before the other tasks of its thread get theirs.
const TURNS: usize = 8;

type Reader = Box<dyn AsyncRead + Unpin + Send>;
type Writer = Box<dyn AsyncWrite + Unpin + Send>;

/// Streams that can be served: [`stdio()`], a [`stream`](Self::stream) such as a socket, or a pair of any `AsyncRead` and `AsyncWrite`.
///
/// ```
/// use mcp_wire_smol::Transport;
///
/// # #[cfg(unix)] {
/// let (client, server) = smol::net::unix::UnixStream::pair()?;
/// let transport = Transport::stream(server);
/// # }
/// let pair = Transport::from((smol::io::empty(), smol::io::sink()));
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub struct Transport(Streams);

enum Streams {
    Stdio,
    Pair(Reader, Writer),
}

/// The standard streams of this process. They are claimed when serving begins, and put back when it ends (LOG-04).
///
/// ```no_run
/// # use mcp_wire_smol::{Call, RpcError, ServeExt, Server, stdio};
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("demo", "1.0").build()?;
/// server.serve(stdio(), |call: Call| async move { Err::<(), RpcError>(call.method_not_found()) }).await?;
/// # Ok(())
/// # }
/// ```
pub const fn stdio() -> Transport {
    Transport(Streams::Stdio)
}

impl<R: AsyncRead + Unpin + Send + 'static, W: AsyncWrite + Unpin + Send + 'static> From<(R, W)> for Transport {
    fn from((reader, writer): (R, W)) -> Self {
        Self(Streams::Pair(Box::new(reader), Box::new(writer)))
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Streams::Stdio => "Transport(stdio)",
            Streams::Pair(..) => "Transport(streams)",
        })
    }
}

/// What must live as long as the streams do.
type Guard = Option<mcp_wire_driver::stdio::StdioGuard>;

impl Transport {
    /// A stream that is read and written.
    pub fn stream<S: AsyncRead + AsyncWrite + Send + 'static>(stream: S) -> Self {
        Self::from(smol::io::split(Box::pin(stream)))
    }

    fn open(self, guarded: bool) -> Result<(Reader, Writer, Guard), ServeError> {
        match self.0 {
            Streams::Stdio => {
                let (reader, writer, guard) = crate::stdio::open(guarded)?;
                Ok((Box::new(reader), Box::new(writer), Some(guard)))
            }
            Streams::Pair(reader, writer) => Ok((reader, writer, None)),
        }
    }
}

/// Serving on smol.
///
/// ```no_run
/// use mcp_wire_smol::{Call, ServeExt, Server, stdio};
/// use serde_json::json;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let tools = || json!({"tools": [], "ttlMs": 0, "cacheScope": "private"});
/// Server::builder("demo", "1.0")
///     .capabilities(json!({"tools": {}}))
///     .serve(stdio(), move |call: Call| async move {
///         match call.method() {
///             "tools/list" => Ok(tools()),
///             _ => Err(call.method_not_found()),
///         }
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
pub trait ServeExt {
    /// Serves one connection until it ends: the input has ended and everything owed is written, [`StopHandle`](crate::StopHandle) was used, or the
    /// client is gone.
    ///
    /// Each request gets its own call of `handler`. Its future is polled once where it stands; if it is pending the serving polls it on, on
    /// whatever executor that runs; it is dropped if it outlives the serving. Do not block or compute for long in it: give that to
    /// `smol::unblock` or to a task. A panic ends its request with -32603 and nothing else.
    ///
    /// Where the standard streams have no readiness (a terminal, a file), a thread reads them: it may outlive the serving in a read that
    /// nothing ends, but does not keep the process, and what it has read by then is lost.
    ///
    /// Dropping the future ends the serving at once, without the answers that are owed; no handler and no byte of it stays behind.
    ///
    /// # Errors
    /// [`ServeError`]: the configuration contradicts itself, the streams cannot be set up, or the input cannot be read.
    fn serve<H, F, R>(
        self,
        transport: impl Into<Transport> + Send,
        handler: H,
    ) -> impl Future<Output = Result<Ended, ServeError>> + Send
    where
        H: Fn(Call) -> F + Send,
        F: Future<Output = Result<R, RpcError>> + Send + 'static,
        R: Serialize + 'static;
}

impl ServeExt for Server {
    async fn serve<H, F, R>(self, transport: impl Into<Transport> + Send, handler: H) -> Result<Ended, ServeError>
    where
        H: Fn(Call) -> F + Send,
        F: Future<Output = Result<R, RpcError>> + Send + 'static,
        R: Serialize + 'static,
    {
        // The guard outlives the streams: they are copies of what it puts back.
        let (reader, writer, _guard) = transport.into().open(self.wants_stdout_guard())?;
        let engine = Engine::new(self);
        let recv = engine.recv_buffer();
        let mut serving = Serving {
            engine,
            recv,
            reader,
            writer,
            segment: None,
            unflushed: false,
            input_ended: false,
            given_up: false,
            read_error: None,
            tasks: TaskSet::new(),
            sleep: Timer::never(),
            handler,
        };
        poll_fn(|cx| serving.poll(cx)).await
    }
}

impl ServeExt for Builder {
    async fn serve<H, F, R>(self, transport: impl Into<Transport> + Send, handler: H) -> Result<Ended, ServeError>
    where
        H: Fn(Call) -> F + Send,
        F: Future<Output = Result<R, RpcError>> + Send + 'static,
        R: Serialize + 'static,
    {
        self.build()?.serve(transport, handler).await
    }
}

struct Serving<H> {
    engine: Engine,
    recv: RecvBuffer,
    reader: Reader,
    writer: Writer,
    /// What is being written, and how much of it the stream has accepted.
    segment: Option<(Vec<u8>, usize)>,
    unflushed: bool,
    input_ended: bool,
    given_up: bool,
    read_error: Option<io::Error>,
    tasks: TaskSet,
    sleep: Timer,
    handler: H,
}

/// Polls a handler once where it stands; most answer at once. What is pending stays in the set.
fn start<H, F, R>(handler: &H, tasks: &mut TaskSet, call: Call)
where
    H: Fn(Call) -> F,
    F: Future<Output = Result<R, RpcError>> + Send + 'static,
    R: Serialize + 'static,
{
    tasks.start(Task::new(call, handler));
}

impl<H, F, T> Serving<H>
where
    H: Fn(Call) -> F,
    F: Future<Output = Result<T, RpcError>> + Send + 'static,
    T: Serialize + 'static,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Ended, ServeError>> {
        for _ in 0..TURNS {
            self.tasks.poll(cx);
            let turn = self.engine.turn();
            if let Some(ended) = turn.ended {
                if let Poll::Ready(ended) = self.poll_end(ended, cx) {
                    return Poll::Ready(ended);
                }
            } else {
                if turn.timeout.is_some_and(|left| left.is_zero()) {
                    self.engine.handle_timeout();
                    continue;
                }
                let (handler, tasks) = (&self.handler, &mut self.tasks);
                self.engine.start_waiting(|call| start(handler, tasks, call));
                let read = turn.wants_read && self.poll_read(cx);
                let wrote = self.poll_write(cx);
                if read || wrote {
                    continue;
                }
            }
            // An overflow is a time that never comes.
            if let Some(at) = turn.timeout.and_then(|left| Instant::now().checked_add(left)) {
                self.sleep.set_at(at);
                if Pin::new(&mut self.sleep).poll(cx).is_ready() {
                    if turn.ended.is_some() {
                        self.give_up();
                    }
                    continue;
                }
            }
            if self.engine.sleep(cx.waker(), self.segment.is_some()) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads once and hands the frames in. Says whether anything happened.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> bool {
        let (handler, tasks) = (&self.handler, &mut self.tasks);
        // Frames that a pause has left in the buffer come first.
        let goes_on = self.engine.feed(&mut self.recv, |call| start(handler, tasks, call));
        if self.input_ended || !goes_on {
            return false;
        }
        let ended = match Pin::new(&mut self.reader).poll_read(cx, self.recv.spare_mut(1)) {
            Poll::Pending => return false,
            Poll::Ready(Ok(n)) => {
                self.recv.commit(n);
                n == 0
            }
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => return true,
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
        let (handler, tasks) = (&self.handler, &mut self.tasks);
        self.engine.feed(&mut self.recv, |call| start(handler, tasks, call));
        if ended {
            self.engine.end_of_input();
        }
        true
    }

    /// Writes what there is, as far as the stream takes it. Says whether anything happened.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        loop {
            if self.segment.is_none() {
                self.segment = self.engine.take_output().map(|bytes| (bytes, 0));
            }
            let Some((bytes, written)) = &mut self.segment else { break };
            let rest = bytes.get(*written..).unwrap_or_default();
            match Pin::new(&mut self.writer).poll_write(cx, rest) {
                Poll::Pending => return progress,
                Poll::Ready(Ok(n)) if n > 0 => {
                    *written += n;
                    let whole = *written >= bytes.len();
                    let spent = if whole { self.segment.take().map(|(bytes, _)| bytes) } else { None };
                    self.engine.accepted(n, spent);
                    self.unflushed = true;
                    progress = true;
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(_) => return self.gone(),
            }
        }
        while self.unflushed {
            match Pin::new(&mut self.writer).poll_flush(cx) {
                Poll::Pending => break,
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(_)) => return self.gone(),
            }
        }
        progress
    }

    /// The stream takes nothing any more: the client is gone (SHD-07).
    fn gone(&mut self) -> bool {
        self.segment = None;
        self.unflushed = false;
        self.engine.peer_gone();
        true
    }

    /// What the stream has accepted cannot be flushed, and the time for it is over.
    fn give_up(&mut self) {
        self.unflushed = false;
        self.given_up = true;
    }

    /// Everything owed was accepted; it leaves only once it is flushed.
    fn poll_end(&mut self, ended: Ended, cx: &mut Context<'_>) -> Poll<Result<Ended, ServeError>> {
        let mut ended = ended;
        while self.unflushed {
            match Pin::new(&mut self.writer).poll_flush(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => ended = Ended::PeerGone,
            }
            self.unflushed = false;
        }
        if self.given_up {
            ended = Ended::PeerGone;
        }
        Poll::Ready(match self.read_error.take() {
            Some(error) => Err(ServeError::Read(error)),
            None => Ok(ended),
        })
    }
}

/// The client has gone without a proper end of its stream.
fn is_reset(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected)
}
