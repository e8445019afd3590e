//! Owns the one place where the loops wait: poll(2) over what they name, and the pipe through which others wake them. It must not know
//! what a descriptor is for.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// No wait is longer. Waking early does no harm, and some systems count the time in an `int` of milliseconds.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// What one call of poll(2) waits for. It is built anew for each: what a loop is interested in changes with each turn.
#[derive(Debug, Default)]
pub(crate) struct PollSet<'a> {
    fds: Vec<PollFd<'a>>,
}

/// The place of a descriptor in its set; `None` for one that is not there.
pub(crate) type Place = Option<usize>;

impl<'a> PollSet<'a> {
    /// Adds a descriptor, if there is one. Hang-ups and errors are told in any case.
    pub(crate) fn add(&mut self, fd: Option<BorrowedFd<'a>>, events: PollFlags) -> Place {
        let place = self.fds.len();
        self.fds.push(PollFd::from_borrowed_fd(fd?, events));
        Some(place)
    }

    /// Waits until one of them is ready, or for that long.
    pub(crate) fn wait(mut self, timeout: Option<Duration>) -> io::Result<Ready> {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout.min(LONGEST)).ok());
        match poll(&mut self.fds, timeout.as_ref()) {
            Ok(_) => Ok(Ready(self.fds.iter().map(PollFd::revents).collect())),
            Err(Errno::INTR) => Ok(Ready(Vec::new())),
            Err(error) => Err(error.into()),
        }
    }
}

/// What poll(2) said.
#[derive(Debug)]
pub(crate) struct Ready(Vec<PollFlags>);

impl Ready {
    /// Whether something was said of that descriptor. What it was, the next read or write of it tells better.
    pub(crate) fn is(&self, place: Place) -> bool {
        self.has(place, PollFlags::all())
    }

    /// Whether one of these was said of it.
    pub(crate) fn has(&self, place: Place, flags: PollFlags) -> bool {
        place.and_then(|place| self.0.get(place)).is_some_and(|said| said.intersects(flags))
    }
}

/// A pipe to oneself: whoever wakes the loop, from whatever thread, makes one of its descriptors readable.
#[derive(Debug)]
pub(crate) struct SelfPipe {
    /// A byte is in the pipe, or about to be.
    awake: AtomicBool,
    reader: UnixStream,
    writer: UnixStream,
}

impl SelfPipe {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Arc::new(Self { awake: AtomicBool::new(false), reader, writer }))
    }

    /// Empties it. Look for what there is to do after that, never before: a wake in between would be lost.
    pub(crate) fn clear(&self) {
        let mut bytes = [0; 8];
        while matches!((&self.reader).read(&mut bytes), Ok(1..)) {}
        // In this order: whoever wakes from here on writes a byte that nobody has taken.
        self.awake.store(false, Ordering::Release);
    }
}

impl AsFd for SelfPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

impl Wake for SelfPipe {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.awake.swap(true, Ordering::AcqRel) {
            // There is room: it holds one byte at a time.
            let _ = (&self.writer).write(&[1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn is_awake(pipe: &SelfPipe, timeout: Duration) -> bool {
        let mut set = PollSet::default();
        let place = set.add(Some(pipe.as_fd()), PollFlags::IN);
        set.wait(Some(timeout)).expect("it can be waited for").is(place)
    }

    // case 083: whoever wakes the loop, once or many times, from this thread or another, ends its wait once
    #[test]
    fn a_wake_ends_the_wait_and_is_remembered_until_then() {
        let pipe = SelfPipe::new().expect("a pipe");
        let waker = Waker::from(Arc::clone(&pipe));
        assert!(!is_awake(&pipe, Duration::ZERO));
        (0..100_000).for_each(|_| waker.wake_by_ref());
        assert!(is_awake(&pipe, Duration::ZERO));
        pipe.clear();
        assert!(!is_awake(&pipe, Duration::ZERO));
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake_by_ref());
            assert!(is_awake(&pipe, Duration::from_secs(20)));
        });
    }

    // TMO-05, case 077: a time beyond what the platform can say is a long wait, no error
    #[test]
    fn the_longest_wait_is_no_error() {
        let pipe = SelfPipe::new().expect("a pipe");
        Waker::from(Arc::clone(&pipe)).wake();
        assert!(is_awake(&pipe, Duration::MAX));
    }
}
