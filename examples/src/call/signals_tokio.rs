//! The signals that ask for the end, as tokio has them. It must not know what comes of one.

use std::io;
use std::task::{Context, Poll};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// They do nothing by themselves any more.
pub(super) struct Signals([(SignalKind, Signal); 3]);

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        let caught = |kind| Ok::<_, io::Error>((kind, signal(kind)?));
        Ok(Self([caught(SignalKind::interrupt())?, caught(SignalKind::terminate())?, caught(SignalKind::hangup())?]))
    }

    /// The number of the next one.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<u8> {
        for (kind, signal) in &mut self.0 {
            if signal.poll_recv(cx).is_ready() {
                return Poll::Ready(u8::try_from(kind.as_raw_value()).unwrap_or(u8::MAX));
            }
        }
        Poll::Pending
    }
}
