//! Wraps the standard streams of a server as smol wants them: readiness where it exists, a pump where it does not.
//! It must not know frames, nor decide which kind a stream is; the driver does.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcp_wire_driver::server::ServeError;
use mcp_wire_driver::stdio::{self, ReadPump, StdioGuard, WritePump};
use smol::io::{AsyncRead, AsyncWrite};

use crate::pipe;

/// Claims and opens the standard streams.
pub(crate) fn open(guarded: bool) -> Result<(Input, Output, StdioGuard), ServeError> {
    let guard = stdio::claim(guarded)?;
    let input = stdio::Input::of(guard.input()).and_then(Input::new).map_err(ServeError::Stdio)?;
    let output = stdio::Output::of(guard.output()).and_then(Output::new).map_err(ServeError::Stdio)?;
    Ok((input, output, guard))
}

#[derive(Debug)]
pub(crate) enum Input {
    Ready(pipe::Receiver),
    Pump(ReadPump),
}

#[derive(Debug)]
pub(crate) enum Output {
    Ready(pipe::Sender),
    Pump(WritePump),
}

impl Input {
    fn new(input: stdio::Input) -> io::Result<Self> {
        Ok(match input {
            stdio::Input::Pipe(fd) => Self::Ready(pipe::Receiver::pipe(fd)?),
            stdio::Input::Socket(fd) => Self::Ready(pipe::Receiver::shared_socket(fd)?),
            stdio::Input::Blocking(fd) => Self::Pump(ReadPump::start(fd)?),
            other => return Err(io::Error::other(format!("no way to read {other:?}"))),
        })
    }
}

impl Output {
    fn new(output: stdio::Output) -> io::Result<Self> {
        Ok(match output {
            stdio::Output::Pipe(fd) => Self::Ready(pipe::Sender::pipe(fd)?),
            stdio::Output::Socket(fd) => Self::Ready(pipe::Sender::shared_socket(fd)?),
            stdio::Output::Blocking(fd) => Self::Pump(WritePump::start(fd)?),
            other => return Err(io::Error::other(format!("no way to write {other:?}"))),
        })
    }
}

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Ready(pipe) => Pin::new(pipe).poll_read(cx, buf),
            Self::Pump(pump) => pump.poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Ready(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            Self::Pump(pump) => pump.poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Ready(_) => Poll::Ready(Ok(())),
            Self::Pump(pump) => pump.poll_flush(cx),
        }
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
