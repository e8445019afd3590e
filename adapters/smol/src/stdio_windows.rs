//! Wraps the standard streams of a server as smol wants them: by a pump each. It must not know frames, nor decide which kind a stream is;
//! the driver does.

use std::io;

use mcp_wire_driver::server::ServeError;
use mcp_wire_driver::stdio::{self, Input, Output, ReadPump, StdioGuard, WritePump};

use crate::pump::{Receiver, Sender};

/// Claims and opens the standard streams.
pub(crate) fn open(guarded: bool) -> Result<(Receiver, Sender, StdioGuard), ServeError> {
    let guard = stdio::claim(guarded)?;
    let input = Input::of(guard.input()).and_then(receiver).map_err(ServeError::Stdio)?;
    let output = Output::of(guard.output()).and_then(sender).map_err(ServeError::Stdio)?;
    Ok((input, output, guard))
}

fn receiver(input: Input) -> io::Result<Receiver> {
    match input {
        Input::Blocking(handle) => ReadPump::start(handle).map(Receiver),
        other => Err(io::Error::other(format!("no way to read {other:?}"))),
    }
}

fn sender(output: Output) -> io::Result<Sender> {
    match output {
        Output::Blocking(handle) => WritePump::start(handle).map(Sender),
        other => Err(io::Error::other(format!("no way to write {other:?}"))),
    }
}
