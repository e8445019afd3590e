//! Owns the way from a signal to a readable descriptor. It must not know what a signal means to a program.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use nix::sys::signal::SigSet;
pub(crate) use nix::sys::signal::Signal;

/// Signals that do nothing by themselves any more, but are read here one by one.
///
/// They are blocked, and a thread takes them with `sigwait`: unlike a handler, that needs no unsafe code, and unlike a signalfd, no Linux.
#[derive(Debug)]
pub(crate) struct Signals {
    told: UnixStream,
}

impl Signals {
    /// Call it before any other thread is started: threads inherit the mask, and one that does not block a signal would die of it. The
    /// servers that the driver spawns inherit nothing of it, but other children do. The thread ends with the process.
    pub(crate) fn new(signals: &[Signal]) -> io::Result<Self> {
        let set: SigSet = signals.iter().copied().collect();
        set.thread_block()?;
        let (told, mut tell) = UnixStream::pair()?;
        told.set_nonblocking(true)?;
        let wait = move || {
            while let Ok(signal) = set.wait() {
                // Of no more than 31 signals, so it fits.
                if tell.write_all(&[signal as u8]).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
        Ok(Self { told })
    }

    /// The number of the next one, if one has come.
    pub(crate) fn next(&self) -> Option<u8> {
        let mut number = [0];
        matches!((&self.told).read(&mut number), Ok(1)).then_some(number[0])
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}
