//! Standard streams of every kind, with our ends of them and a look at the server's.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;
use rustix::pty::OpenptFlags;
use rustix::termios::OptionalActions;

use super::host::{Host, Wire};
use crate::support::HANG;

/// Kinds on which a client and a server can talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Pipes,
    /// One socket for both directions, as some supervisors hand it out.
    OneSocket,
    TwoSockets,
    /// A terminal in raw mode: nothing to wait on but a blocking read.
    Terminal,
    /// The same, with a description that somebody has made non-blocking.
    NonBlockingTerminal,
}

pub(crate) const KINDS: [Kind; 5] =
    [Kind::Pipes, Kind::OneSocket, Kind::TwoSockets, Kind::Terminal, Kind::NonBlockingTerminal];

/// The server's ends: kept by a test that wants to look at their flags.
#[derive(Debug)]
pub(crate) struct Inner(OwnedFd, OwnedFd);

impl Inner {
    pub(crate) fn are_blocking(&self) -> bool {
        [&self.0, &self.1].iter().all(|fd| !flags(fd).contains(OFlags::NONBLOCK))
    }

    /// Waits until the server has taken in all that was sent.
    pub(crate) fn wait_until_read(&self) {
        let begun = Instant::now();
        while rustix::io::ioctl_fionread(&self.0).expect("it tells") > 0 {
            assert!(begun.elapsed() < HANG, "hung: a read");
            std::thread::yield_now();
        }
    }
}

fn flags(fd: &impl AsFd) -> OFlags {
    rustix::fs::fcntl_getfl(fd).expect("it is open")
}

/// Starts a server on streams of this kind.
pub(crate) fn start(command: Command, kind: Kind) -> Host {
    let (mut host, output, _) = start_unread(command, kind);
    host.read(output);
    host
}

/// The same, but nobody reads its output yet, and its ends stay open here too.
pub(crate) fn start_unread(mut command: Command, kind: Kind) -> (Host, Box<dyn Read + Send>, Inner) {
    let (input, output, inner): (Box<dyn Wire>, Box<dyn Read + Send>, Inner) = match kind {
        Kind::Pipes => {
            let (their_input, our_input) = pipe();
            let (our_output, their_output) = pipe();
            (Box::new(our_input), Box::new(our_output), Inner(their_input.into(), their_output.into()))
        }
        Kind::OneSocket => {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            let our_output = ours.try_clone().expect("a copy");
            let their_output = theirs.try_clone().expect("a copy");
            (Box::new(HalfClose(ours)), Box::new(our_output), Inner(theirs.into(), their_output.into()))
        }
        Kind::TwoSockets => {
            let (our_input, their_input) = UnixStream::pair().expect("a pair");
            let (our_output, their_output) = UnixStream::pair().expect("a pair");
            (Box::new(our_input), Box::new(our_output), Inner(their_input.into(), their_output.into()))
        }
        Kind::Terminal | Kind::NonBlockingTerminal => {
            let (ours, theirs) = terminal();
            if kind == Kind::NonBlockingTerminal {
                rustix::fs::fcntl_setfl(&theirs, flags(&theirs) | OFlags::NONBLOCK).expect("can be set");
            }
            let our_output = ours.try_clone().expect("a copy");
            let their_output = theirs.try_clone().expect("a copy");
            (Box::new(ours), Box::new(our_output), Inner(theirs.into(), their_output.into()))
        }
    };
    command.stdin(inner.0.try_clone().expect("a copy")).stdout(inner.1.try_clone().expect("a copy"));
    (Host::start(command, Some(input), None), output, inner)
}

/// The ends of a pipe: to read from, to write to.
pub(crate) fn pipe() -> (File, File) {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    (reader.into(), writer.into())
}

/// A pair of terminal ends that pass bytes through as they are.
fn terminal() -> (File, File) {
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    rustix::pty::grantpt(&ours).and_then(|()| rustix::pty::unlockpt(&ours)).expect("ours");
    let name = rustix::pty::ptsname(&ours, Vec::new()).expect("it has a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).expect("can be opened");
    let mut modes = rustix::termios::tcgetattr(&theirs).expect("a terminal");
    modes.make_raw();
    rustix::termios::tcsetattr(&theirs, OptionalActions::Now, &modes).expect("a terminal");
    (ours.into(), theirs.into())
}

/// Closing it ends the input of the other side though its output is still being read.
#[derive(Debug)]
struct HalfClose(UnixStream);

impl std::io::Write for HalfClose {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Drop for HalfClose {
    fn drop(&mut self) {
        let _ = self.0.shutdown(std::net::Shutdown::Write);
    }
}

/// A file of this test process that is gone afterwards.
#[derive(Debug)]
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("mcp-wire-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
