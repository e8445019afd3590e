//! Owns the handlers that have not answered yet: polls those that were woken, and wakes those whose time has come. It must not know
//! what they do.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Futures by number, polled by the one thread that owns them.
#[derive(Debug)]
pub(crate) struct Tasks<F> {
    futures: BTreeMap<u64, (F, Waker)>,
    next: u64,
    woken: Arc<Woken>,
}

#[derive(Debug)]
struct Woken {
    numbers: Mutex<Vec<u64>>,
    /// Ends the loop's wait.
    rouse: Waker,
}

struct TaskWaker {
    number: u64,
    woken: Arc<Woken>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut numbers = lock(&self.woken.numbers);
        // A few are woken at a time; one that is woken over and over stands there once.
        if !numbers.contains(&self.number) {
            numbers.push(self.number);
        }
        drop(numbers);
        self.woken.rouse.wake_by_ref();
    }
}

impl<F: Future<Output = ()> + Unpin> Tasks<F> {
    pub(crate) fn new(rouse: Waker) -> Self {
        Self { futures: BTreeMap::new(), next: 0, woken: Arc::new(Woken { numbers: Mutex::default(), rouse }) }
    }

    /// Polls it at once, as most are done at once, and keeps it if it is not.
    pub(crate) fn start(&mut self, mut future: F) {
        let number = self.next;
        self.next += 1;
        let waker = Waker::from(Arc::new(TaskWaker { number, woken: Arc::clone(&self.woken) }));
        if Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending() {
            self.futures.insert(number, (future, waker));
        }
    }

    /// Polls those that were woken. Whether there were any.
    pub(crate) fn run(&mut self) -> bool {
        let numbers = std::mem::take(&mut *lock(&self.woken.numbers));
        for number in &numbers {
            let Some((future, waker)) = self.futures.get_mut(number) else { continue };
            if Pin::new(future).poll(&mut Context::from_waker(waker)).is_ready() {
                self.futures.remove(number);
            }
        }
        !numbers.is_empty()
    }
}

/// Who is to be woken when.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timers(Arc<Mutex<BTreeMap<(Instant, u64), Waker>>>);

impl Timers {
    /// Resolves after that time.
    pub(crate) fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send + use<> {
        let (timers, until) = (self.clone(), Instant::now().checked_add(time));
        let mut sleep = Sleep { timers, until, key: None };
        poll_fn(move |cx| sleep.poll(cx))
    }

    /// Time until the first of them is due.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        lock(&self.0).first_key_value().map(|((at, _), _)| at.saturating_duration_since(Instant::now()))
    }

    /// Wakes those whose time has come.
    pub(crate) fn fire(&self) {
        let now = Instant::now();
        loop {
            let mut timers = lock(&self.0);
            let Some(due) = timers.first_entry().filter(|first| first.key().0 <= now) else { return };
            let waker = due.remove();
            drop(timers);
            waker.wake();
        }
    }
}

struct Sleep {
    timers: Timers,
    /// `None`: later than the platform can say, so never.
    until: Option<Instant>,
    key: Option<(Instant, u64)>,
}

impl Sleep {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        let Some(until) = self.until else { return Poll::Pending };
        if until <= Instant::now() {
            return Poll::Ready(());
        }
        let mut timers = lock(&self.timers.0);
        let key = *self.key.get_or_insert_with(|| {
            // Numbers tell sleeps of the same moment apart.
            let last = timers.range((until, 0)..=(until, u64::MAX)).next_back();
            (until, last.map_or(0, |((_, number), _)| number + 1))
        });
        timers.insert(key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            lock(&self.timers.0).remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    const SOON: Duration = Duration::from_millis(5);

    /// Runs tasks until there is nothing to wait for.
    fn run_all<F: Future<Output = ()> + Unpin>(tasks: &mut Tasks<F>, timers: &Timers) {
        let until = Instant::now() + Duration::from_secs(20);
        while tasks.run() || !tasks.futures.is_empty() {
            assert!(Instant::now() < until, "it ends in time");
            std::thread::sleep(timers.timeout().unwrap_or_default().min(SOON));
            timers.fire();
        }
    }

    #[test]
    fn many_sleeps_end_each_in_its_time_also_those_of_one_moment() {
        let (timers, mut tasks) = (Timers::default(), Tasks::new(Waker::noop().clone()));
        let order = Arc::new(Mutex::new(Vec::new()));
        for ms in [30_u64, 10, 20, 10, 0] {
            let (sleep, order) = (timers.sleep(Duration::from_millis(ms)), Arc::clone(&order));
            tasks.start(Box::pin(async move {
                sleep.await;
                lock(&order).push(ms);
            }));
        }
        run_all(&mut tasks, &timers);
        assert_eq!(*lock(&order), [0, 10, 10, 20, 30]);
        assert_eq!(timers.timeout(), None);
    }

    // case 077: a sleep beyond what the platform can say never ends and does not panic; one that is dropped leaves nothing behind
    #[test]
    fn a_sleep_that_is_dropped_wakes_nobody() {
        let timers = Timers::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut never = Box::pin(timers.sleep(Duration::MAX));
        assert!(never.as_mut().poll(&mut cx).is_pending());
        assert_eq!(timers.timeout(), None);
        let mut sleep = Box::pin(timers.sleep(Duration::from_secs(60)));
        assert!(sleep.as_mut().poll(&mut cx).is_pending());
        assert!(timers.timeout().is_some_and(|left| left > Duration::from_secs(50)));
        drop(sleep);
        assert_eq!(timers.timeout(), None);
    }

    // A task that is woken is polled, by whomever and however often it was woken; the others are not
    #[test]
    fn who_is_woken_is_polled() {
        let polls = [const { AtomicU32::new(0) }; 2];
        let wakers = Mutex::new(Vec::new());
        let mut tasks = Tasks::new(Waker::noop().clone());
        for polls in &polls {
            tasks.start(Box::pin(poll_fn(|cx| {
                lock(&wakers).push(cx.waker().clone());
                if polls.fetch_add(1, Ordering::Relaxed) == 1 { Poll::Ready(()) } else { Poll::Pending }
            })));
        }
        assert!(!tasks.run(), "nobody was woken");
        let waker = lock(&wakers)[1].clone();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..10).for_each(|_| waker.wake_by_ref()));
        });
        assert!(tasks.run() && !tasks.run());
        assert_eq!(polls.each_ref().map(|polls| polls.load(Ordering::Relaxed)), [1, 2]);
        waker.wake();
        assert!(tasks.run(), "a wake for one that has ended is heard and harmless");
        assert_eq!(tasks.futures.len(), 1);
    }
}
