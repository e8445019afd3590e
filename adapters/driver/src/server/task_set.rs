//! Owns the handlers that a serving loop polls by itself, where no runtime takes them as tasks. It must not know what they do, nor how
//! the loop waits.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Wake, Waker};

use super::Task;
use crate::sync::{AtomicBool, Mutex, MutexGuard};

/// Futures that whoever owns the set polls, each only after it was woken. Dropping the set drops them.
///
/// ```
/// use std::task::{Context, Waker};
/// use mcp_wire_driver::server::{Engine, Server, TaskSet};
///
/// let engine = Engine::new(Server::builder("demo", "1.0").build()?);
/// let mut tasks: TaskSet = TaskSet::new();
/// // A loop that has read: `engine.feed(&mut recv, |call| tasks.start(Task::new(call, &handler)))`, and at the start of each turn:
/// tasks.poll(&Context::from_waker(Waker::noop()));
/// assert!(tasks.is_empty());
/// # Ok::<(), mcp_wire::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct TaskSet<F = Task> {
    places: Vec<Place<F>>,
    free: Vec<usize>,
    woken: Arc<Woken>,
    /// Used again for each batch.
    batch: Vec<usize>,
}

/// A place outlives its future: the next one takes over place and waker, so that most futures cost neither.
#[derive(Debug)]
struct Place<F> {
    future: Option<F>,
    flag: Arc<Flag>,
    waker: Waker,
}

#[derive(Debug)]
struct Woken {
    state: Mutex<WokenState>,
}

#[derive(Debug)]
struct WokenState {
    /// Each place at most once.
    places: Vec<usize>,
    /// Of whoever polls the set.
    owner: Waker,
}

#[derive(Debug)]
struct Flag {
    place: usize,
    /// It is among the woken.
    set: AtomicBool,
    woken: Arc<Woken>,
}

impl Woken {
    fn lock(&self) -> MutexGuard<'_, WokenState> {
        // Nothing under the lock can panic halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.set.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut state = self.woken.lock();
        state.places.push(self.place);
        // Who was told of the first looks for all.
        let owner = (state.places.len() == 1).then(|| state.owner.clone());
        drop(state);
        owner.into_iter().for_each(Waker::wake);
    }
}

impl<F> TaskSet<F> {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        let state = WokenState { places: Vec::new(), owner: Waker::noop().clone() };
        let woken = Arc::new(Woken { state: Mutex::new(state) });
        Self { places: Vec::new(), free: Vec::new(), woken, batch: Vec::new() }
    }

    /// Whether no future is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }
}

impl<F> Default for TaskSet<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: Future<Output = ()> + Unpin> TaskSet<F> {
    /// Polls a future once where it stands, as most are done at once, and keeps it if it is not.
    ///
    /// Whoever [polls](Self::poll) the set has done so with the waker that is current, or does it before it sleeps: a future may wake itself at
    /// once.
    pub fn start(&mut self, future: F) {
        let index = self.free.pop().unwrap_or_else(|| self.add_place());
        if let Some(place) = self.places.get_mut(index) {
            place.future = Some(future);
        }
        self.poll_place(index);
    }

    /// Polls those that were woken, each once. From then on the task of `cx` is woken when one is.
    pub fn poll(&mut self, cx: &Context<'_>) {
        let mut batch = std::mem::take(&mut self.batch);
        let mut state = self.woken.lock();
        std::mem::swap(&mut state.places, &mut batch);
        // A waker may own what it wakes, so none is dropped under the lock.
        let before =
            (!state.owner.will_wake(cx.waker())).then(|| std::mem::replace(&mut state.owner, cx.waker().clone()));
        drop(state);
        drop(before);
        for index in batch.drain(..) {
            // A wake from now on is a new one.
            if let Some(place) = self.places.get(index) {
                place.flag.set.store(false, Ordering::Release);
            }
            self.poll_place(index);
        }
        self.batch = batch;
    }

    fn add_place(&mut self) -> usize {
        let place = self.places.len();
        let flag = Arc::new(Flag { place, set: AtomicBool::new(false), woken: Arc::clone(&self.woken) });
        self.places.push(Place { future: None, waker: Waker::from(Arc::clone(&flag)), flag });
        place
    }

    /// A place may have been woken for a future that is gone, on behalf of which its successor is polled once too often: no harm.
    fn poll_place(&mut self, index: usize) {
        let Some(place) = self.places.get_mut(index) else { return };
        let Some(future) = &mut place.future else { return };
        if Pin::new(future).poll(&mut Context::from_waker(&place.waker)).is_ready() {
            place.future = None;
            self.free.push(index);
        }
    }
}

#[cfg(test)]
#[path = "task_set_tests.rs"]
mod tests;
