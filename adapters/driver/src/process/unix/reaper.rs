//! Owns killed children that nobody waits for: one lazy thread that lives while there is one and no longer.
//! It must not know why they were killed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::tree::ChildTree;

/// Children handed over and not yet taken by the thread, and whether the thread is there.
static QUEUE: Mutex<Queue> = Mutex::new(Queue { waiting: Vec::new(), running: false });

struct Queue {
    waiting: Vec<ChildTree>,
    running: bool,
}

/// How often the thread looks for new children, and after those without a pidfd.
const LOOK: Duration = Duration::from_millis(20);

/// Takes a child that was killed and has not exited yet. Never blocks.
pub(super) fn hand_over(tree: ChildTree) {
    let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    queue.waiting.push(tree);
    if !queue.running {
        let thread = std::thread::Builder::new().name("mcp-wire-reaper".to_owned()).stack_size(128 << 10);
        // Without a thread the child stays in the queue, and the next one handed over tries again.
        queue.running = thread.spawn(run).is_ok();
    }
}

fn run() {
    let mut held: Vec<ChildTree> = Vec::new();
    loop {
        {
            let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
            held.append(&mut queue.waiting);
            if held.is_empty() {
                queue.running = false;
                return;
            }
        }
        {
            let mut fds: Vec<PollFd<'_>> =
                held.iter().filter_map(ChildTree::pidfd).map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
            let timeout = Timespec::try_from(LOOK).ok();
            // An error is a reason to look; with no descriptor it is a sleep.
            let _ = poll(&mut fds, timeout.as_ref());
        }
        held.retain(|tree| {
            if tree.try_exit().is_some() {
                // The rest of the group may have been born after the first kill.
                tree.kill_group();
            }
            tree.reap().is_none()
        });
    }
}
