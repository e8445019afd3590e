//! The demo server on the bare loop: what its tools need of a host, and the loop with nothing around it. It must not know how the loop
//! waits.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use mcp_wire::server::Ended;
use mcp_wire_driver::server::{Call, ServeError};

use super::args::Options;
use super::resources::Resources;
use super::serve::{Host, build, handle};
use crate::poll::{SelfPipe, Signal, Signals, Timers};

#[derive(Debug, Clone)]
struct Bare {
    timers: Timers,
}

impl Host for Bare {
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send {
        self.timers.sleep(time)
    }

    /// On a thread, which ends with what it runs.
    async fn blocking<T: Send + 'static>(&self, run: impl FnOnce() -> T + Send + 'static) -> T {
        let shared = Arc::new(Mutex::new((None, None::<Waker>)));
        let theirs = Arc::clone(&shared);
        let work = move || {
            let value = catch_unwind(AssertUnwindSafe(run));
            let mut shared = theirs.lock().unwrap_or_else(PoisonError::into_inner);
            shared.0 = Some(value);
            let waker = shared.1.take();
            drop(shared);
            waker.into_iter().for_each(Waker::wake);
        };
        if let Err(error) = thread::Builder::new().name("blocking".to_owned()).spawn(work) {
            resume_unwind(Box::new(error));
        }
        let value = std::future::poll_fn(|cx| {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.1 = Some(cx.waker().clone());
            shared.0.take().map_or(Poll::Pending, Poll::Ready)
        });
        value.await.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

pub(super) fn run(options: &Options) -> Result<Ended, ServeError> {
    // Before there is any other thread.
    let signals = Signals::new(&[Signal::SIGTERM]).map_err(ServeError::Stdio)?;
    let pipe = SelfPipe::new().map_err(ServeError::Stdio)?;
    let server = build(options)?;
    let (publisher, resources) = (server.publisher(), Arc::new(Resources::default()));
    let host = Bare { timers: Timers::default() };
    let timers = host.timers.clone();
    let handler = move |call: Call| handle(call, host.clone(), resources.clone(), publisher.clone());
    crate::poll::serve(server, &signals, &timers, &pipe, handler)
}
