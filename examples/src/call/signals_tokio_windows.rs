//! Ctrl-C, as tokio has it: on Windows nothing else asks for the end. It must not know what comes of it.

use std::io;
use std::task::{Context, Poll};

use tokio::signal::windows::{CtrlC, ctrl_c};

/// What other systems have as SIGINT.
const INTERRUPT: u8 = 2;

/// It does nothing by itself any more.
pub(super) struct Signals(CtrlC);

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(ctrl_c()?))
    }

    /// The number of the next one.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<u8> {
        self.0.poll_recv(cx).map(|_| INTERRUPT)
    }
}
