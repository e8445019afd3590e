//! A set of handlers that one thread polls and others wake.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::thread;

use super::explore_three;
use crate::server::TaskSet;
use crate::sync::Mutex;

/// What a handler waits for: somebody else's thread.
#[derive(Default)]
pub(super) struct Signal(Mutex<(bool, Option<Waker>)>);

impl Signal {
    pub(super) fn set(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = true;
        let waker = state.1.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}

fn waiting(signal: &Arc<Signal>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let signal = Arc::clone(signal);
    Box::pin(poll_fn(move |cx| signal.poll(cx)))
}

// RTE-08: a wake that comes while its handler is being polled is a new one
#[test]
fn no_second_wake_of_a_handler_is_lost() {
    explore_three(|| {
        let signals = [Arc::new(Signal::default()), Arc::new(Signal::default())];
        let wakers = signals.clone().map(|signal| thread::spawn(move || signal.set()));
        let mut set = TaskSet::new();
        let (first, second) = (waiting(&signals[0]), waiting(&signals[1]));
        set.start(Box::pin(async move {
            first.await;
            second.await;
        }) as Pin<Box<dyn Future<Output = ()> + Send>>);
        block_on(poll_fn(|cx| {
            set.poll(cx);
            if set.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        }));
        for waker in wakers {
            waker.join().expect("no panic");
        }
    });
}

// RTE-08: a handler that is woken from elsewhere, while its set is being polled or goes to sleep, is polled again
#[test]
fn no_wake_of_a_handler_is_lost() {
    explore_three(|| {
        let signals = [Arc::new(Signal::default()), Arc::new(Signal::default())];
        let wakers = signals.clone().map(|signal| thread::spawn(move || signal.set()));
        let mut set = TaskSet::new();
        for signal in &signals {
            set.start(waiting(signal));
        }
        block_on(poll_fn(|cx| {
            set.poll(cx);
            if set.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        }));
        for waker in wakers {
            waker.join().expect("no panic");
        }
    });
}
