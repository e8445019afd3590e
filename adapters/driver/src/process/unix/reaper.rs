//! Owns killed children that nobody waits for: one lazy thread that lives while there is one and no longer.
//! It must not know why they were killed.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::notice::above_standard;
use super::tree::ChildTree;

/// Children handed over and not yet taken by the thread.
static QUEUE: Mutex<Queue> = Mutex::new(Queue { waiting: Vec::new(), running: false, wake: None });

struct Queue {
    waiting: Vec<ChildTree>,
    running: bool,
    /// Written to when a child is handed over to the running thread.
    wake: Option<UnixStream>,
}

/// How often the thread looks after children, or for new ones, where no descriptor tells it: at first, and at most.
const LOOK: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a child that was killed and has not exited yet. Never blocks.
pub(super) fn hand_over(tree: ChildTree) {
    let mut queue = queue();
    queue.waiting.push(tree);
    if queue.running {
        if let Some(wake) = &mut queue.wake {
            // If it is full, the thread is woken already.
            let _ = wake.write(b"x");
        }
        return;
    }
    let (ours, theirs) = wake_pair().unzip();
    let thread = std::thread::Builder::new().name("mcp-wire-reaper".to_owned()).stack_size(128 << 10);
    // Without a thread the child stays in the queue, and the next one handed over tries again.
    queue.running = thread.spawn(move || run(theirs.as_ref())).is_ok();
    queue.wake = ours.filter(|_| queue.running);
}

/// The two ends of what wakes the thread; `None` if there are no descriptors left: then it looks from time to time.
fn wake_pair() -> Option<(UnixStream, UnixStream)> {
    let (ours, theirs) = UnixStream::pair().ok()?;
    let above = |end: UnixStream| above_standard(OwnedFd::from(end)).map(UnixStream::from).ok();
    let (ours, theirs) = (above(ours)?, above(theirs)?);
    ours.set_nonblocking(true).ok()?;
    theirs.set_nonblocking(true).ok()?;
    Some((ours, theirs))
}

fn run(mut wake: Option<&UnixStream>) {
    let mut held: Vec<ChildTree> = Vec::new();
    let mut look = LOOK.0;
    loop {
        if let Some(wake) = &mut wake {
            while wake.read(&mut [0; 64]).is_ok_and(|n| n > 0) {}
        }
        {
            let mut queue = queue();
            held.append(&mut queue.waiting);
            if held.is_empty() {
                queue.running = false;
                queue.wake = None;
                return;
            }
        }
        wait(&held, wake, &mut look);
        held.retain(|tree| tree.reap().is_none());
    }
}

/// Until a child may have exited or there is a new one.
fn wait(held: &[ChildTree], wake: Option<&UnixStream>, look: &mut Duration) {
    let mut fds: Vec<PollFd<'_>> =
        held.iter().filter_map(ChildTree::notice).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let silent = fds.len() < held.len() || wake.is_none();
    fds.extend(wake.map(|fd| PollFd::new(fd, PollFlags::IN)));
    let timeout = silent.then(|| Timespec::try_from(*look).ok()).flatten();
    *look = (*look * 2).min(LOOK.1);
    // An error is a reason to look; without a descriptor it is a sleep.
    if poll(&mut fds, timeout.as_ref()).is_ok_and(|ready| ready > 0) {
        *look = LOOK.0;
    }
}
