//! Tests of the lock around signals and the reap, and of the ways without a pidfd, which need the inside of a tree.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Barrier, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use mcp_wire::lifecycle::ExitStatus;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::super::{ServerCommand, spawn};
use super::ChildTree;

type Acts = Arc<Mutex<Vec<bool>>>;

fn tree(program: &str, args: &[&str]) -> ChildTree {
    spawn(&ServerCommand::new(program).args(args)).expect("it can be spawned").child
}

/// The tree as it is on a system without pidfds.
fn without_pidfd(mut tree: ChildTree) -> ChildTree {
    tree.pidfd = None;
    tree
}

fn wait_readable(fd: &OwnedFd) {
    let deadline = Timespec::try_from(Duration::from_secs(20)).expect("it fits");
    assert_eq!(poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&deadline)), Ok(1), "the exit was noticed in time");
}

/// The reap is recorded, once, and nothing follows it.
fn nothing_follows_the_reap(acts: &Acts) -> bool {
    let acts = acts.lock().expect("no test panics under it");
    acts.iter().position(|reap| *reap) == Some(acts.len().saturating_sub(1))
}

fn wait_reaped(acts: &Acts) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !acts.lock().expect("no test panics under it").contains(&true) {
        assert!(Instant::now() < deadline, "it was reaped in time");
        std::thread::yield_now();
    }
}

// PRC-04: 10,000 races of an exit, a close and a reap, each at a moment of its own: no signal goes to an id after its reap
#[test]
fn no_signal_goes_to_an_id_after_its_reap() {
    const RACES: usize = 10_000;
    let shared: RwLock<Option<ChildTree>> = RwLock::new(None);
    let (start, end) = (Barrier::new(2), Barrier::new(2));
    let mut broken = 0;
    let current = || shared.read().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..RACES {
                start.wait();
                let tree = current();
                let tree = tree.as_ref().expect("it was put there before the start");
                // Some children end by themselves, some by these signals, each a little later than the one before.
                (0..round % 64).for_each(|_| std::hint::spin_loop());
                match round % 5 {
                    0 => tree.terminate(),
                    1 => tree.kill(),
                    2 => _ = tree.terminate_group(),
                    3 => _ = tree.kill_group(),
                    _ => {}
                }
                while tree.try_exit().is_none() {
                    std::thread::yield_now();
                }
                // The reap may be a moment ago, at this moment, or to come.
                tree.terminate();
                tree.kill();
                end.wait();
            }
        });
        for _ in 0..RACES {
            let tree = tree("true", &[]);
            let acts = Arc::clone(&tree.seam.acts);
            *shared.write().unwrap_or_else(PoisonError::into_inner) = Some(tree);
            start.wait();
            while current().as_ref().is_some_and(|tree| tree.reap().is_none()) {
                std::thread::yield_now();
            }
            end.wait();
            drop(shared.write().unwrap_or_else(PoisonError::into_inner).take());
            broken += u32::from(!nothing_follows_the_reap(&acts));
        }
    });
    assert_eq!(broken, 0, "of {RACES} races");
}

// PRC-04, SHD-04: a drop, and the thread that reaps after it, signal nothing after the reap either
#[test]
fn a_dropped_tree_is_reaped_once_and_not_signalled_after_that() {
    let acts: Vec<Acts> = (0..50)
        .map(|round| {
            let tree = if round % 2 == 0 { tree("sleep", &["1000"]) } else { tree("true", &[]) };
            let tree = if round % 3 == 0 { without_pidfd(tree) } else { tree };
            Arc::clone(&tree.seam.acts)
        })
        .collect();
    for acts in &acts {
        wait_reaped(acts);
        assert!(nothing_follows_the_reap(acts), "{acts:?}");
    }
}

// Where there is no pidfd, a thread tells of the exit; it does not reap
#[test]
fn the_exit_is_noticed_without_a_pidfd() {
    let tree = without_pidfd(tree("sleep", &["1000"]));
    let (first, second) = (tree.exit_notice().expect("a thread"), tree.exit_notice().expect("the same thread"));
    let none = Timespec::default();
    assert_eq!(poll(&mut [PollFd::new(&first, PollFlags::IN)], Some(&none)), Ok(0), "it lives");
    tree.kill();
    wait_readable(&first);
    wait_readable(&second);
    assert_eq!(tree.try_exit(), Some(ExitStatus::Signal(9)));
    assert_eq!(tree.reap(), Some(ExitStatus::Signal(9)));
}

// A foreign wait takes the status, as an ignored SIGCHLD does: exited, status unknown, and no signal after that
#[test]
fn a_status_that_somebody_else_took_is_unknown_and_ends_all_signals() {
    let tree = tree("sleep", &["1000"]);
    let notice = tree.exit_notice().expect("a notice");
    rustix::process::kill_process(tree.pid, rustix::process::Signal::KILL).expect("it lives");
    wait_readable(&notice);
    let taken = rustix::process::waitpid(Some(tree.pid), rustix::process::WaitOptions::empty());
    assert!(taken.is_ok(), "the foreign wait has it");
    tree.terminate();
    tree.kill();
    assert!(tree.terminate_group() && tree.kill_group());
    assert_eq!(tree.try_exit(), Some(ExitStatus::Unknown));
    assert_eq!(tree.reap(), Some(ExitStatus::Unknown));
    assert_eq!(*tree.seam.acts.lock().expect("no test panics under it"), [true], "no signal at all");
}
