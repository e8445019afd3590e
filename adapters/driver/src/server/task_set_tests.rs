//! What a set of handlers owes whoever polls it: no wake is lost, none is polled without one, and a drop ends all.

use super::*;
use std::future::{pending, poll_fn};
use std::sync::atomic::AtomicUsize;
use std::task::Poll;

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Counts wakes.
#[derive(Debug, Default)]
struct Owner(AtomicUsize);

impl Owner {
    fn wakes(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Owner {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A future that is ready after so many polls, counts them, and hands out its waker.
fn after(polls: usize, seen: &Arc<AtomicUsize>, waker: &Arc<Mutex<Option<Waker>>>) -> Boxed {
    let (seen, slot) = (Arc::clone(seen), Arc::clone(waker));
    Box::pin(poll_fn(move |cx| {
        *slot.lock().expect("no panic") = Some(cx.waker().clone());
        if seen.fetch_add(1, Ordering::SeqCst) + 1 < polls { Poll::Pending } else { Poll::Ready(()) }
    }))
}

fn taken(waker: &Arc<Mutex<Option<Waker>>>) -> Waker {
    waker.lock().expect("no panic").clone().expect("it was polled")
}

#[test]
fn a_future_that_is_done_at_once_is_not_kept() {
    let mut set = TaskSet::new();
    for _ in 0..3 {
        set.start(Box::pin(async {}) as Boxed);
    }
    assert!(set.is_empty());
    assert_eq!(set.places.len(), 1, "the place is used again");
}

#[test]
fn a_future_is_polled_once_for_its_wakes_and_not_without() {
    let (owner, seen, slot) = (Arc::new(Owner::default()), Arc::default(), Arc::default());
    let waker = Waker::from(Arc::clone(&owner));
    let cx = Context::from_waker(&waker);
    let mut set = TaskSet::new();
    set.poll(&cx);
    set.start(after(3, &seen, &slot));
    set.poll(&cx);
    assert_eq!((seen.load(Ordering::SeqCst), owner.wakes()), (1, 0));
    taken(&slot).wake();
    taken(&slot).wake();
    assert_eq!(owner.wakes(), 1, "the owner knows already");
    set.poll(&cx);
    assert_eq!(seen.load(Ordering::SeqCst), 2, "two wakes are one poll");
    let late = taken(&slot);
    late.wake_by_ref();
    assert_eq!(owner.wakes(), 2, "the next wake is told again");
    set.poll(&cx);
    assert!(set.is_empty());
    late.wake();
    set.poll(&cx);
    assert_eq!(seen.load(Ordering::SeqCst), 3, "a wake of one that is gone polls nobody");
}

// A wake during the poll itself is not swallowed by it, neither in the first poll nor later
#[test]
fn a_future_that_wakes_itself_is_polled_again() {
    let owner = Arc::new(Owner::default());
    let waker = Waker::from(Arc::clone(&owner));
    let cx = Context::from_waker(&waker);
    let mut set = TaskSet::new();
    set.poll(&cx);
    let mut left = 3;
    set.start(Box::pin(poll_fn(move |cx| {
        left -= 1;
        cx.waker().wake_by_ref();
        if left > 0 { Poll::Pending } else { Poll::Ready(()) }
    })) as Boxed);
    for wakes in 1..=2 {
        assert_eq!(owner.wakes(), wakes);
        assert!(!set.is_empty());
        set.poll(&cx);
    }
    assert!(set.is_empty());
}

// The waker of the latest poll is the one that counts: the loop may have moved to another task
#[test]
fn the_latest_owner_is_woken() {
    let (first, second) = (Arc::new(Owner::default()), Arc::new(Owner::default()));
    let (seen, slot) = (Arc::default(), Arc::default());
    let mut set = TaskSet::new();
    set.poll(&Context::from_waker(&Waker::from(Arc::clone(&first))));
    set.start(after(9, &seen, &slot));
    set.poll(&Context::from_waker(&Waker::from(Arc::clone(&second))));
    taken(&slot).wake();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

#[test]
fn many_are_woken_from_other_threads_and_all_end() {
    let owner = Arc::new(Owner::default());
    let waker = Waker::from(Arc::clone(&owner));
    let cx = Context::from_waker(&waker);
    let mut set = TaskSet::new();
    let mut threads = Vec::new();
    for _ in 0..100 {
        let (seen, slot) = (Arc::default(), Arc::default());
        set.start(after(50, &seen, &slot));
        threads.push(std::thread::spawn(move || {
            while seen.load(Ordering::SeqCst) < 50 {
                taken(&slot).wake();
                std::thread::yield_now();
            }
        }));
    }
    let started = std::time::Instant::now();
    while !set.is_empty() {
        assert!(started.elapsed() < std::time::Duration::from_secs(30), "hung");
        set.poll(&cx);
    }
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

#[test]
fn dropping_the_set_drops_what_is_in_it() {
    let alive = Arc::new(());
    let mut set = TaskSet::new();
    for _ in 0..3 {
        let alive = Arc::clone(&alive);
        set.start(Box::pin(async move {
            let _alive = alive;
            pending::<()>().await;
        }) as Boxed);
    }
    assert_eq!(Arc::strong_count(&alive), 4);
    drop(set);
    assert_eq!(Arc::strong_count(&alive), 1);
}
