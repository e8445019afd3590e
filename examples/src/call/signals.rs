//! Owns what may end a run from outside: signals, and a standard output that nobody reads any more. It must not know what is done then.

#[cfg(unix)]
pub(super) use unix::{Reader, Signals};

#[cfg(unix)]
mod unix {
    use std::io;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;
    use tokio::signal::unix::{Signal, SignalKind, signal};
    use tokio::sync::oneshot;

    /// SIGINT, SIGTERM and SIGHUP, which from here on do nothing by themselves.
    #[derive(Debug)]
    pub(in crate::call) struct Signals {
        interrupt: Signal,
        terminate: Signal,
        hangup: Signal,
    }

    impl Signals {
        pub(in crate::call) fn new() -> io::Result<Self> {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hangup: signal(SignalKind::hangup())?,
            })
        }

        /// The exit status that the next one stands for. Cancel-safe.
        pub(in crate::call) async fn next(&mut self) -> u8 {
            let kind = tokio::select! {
                _ = self.interrupt.recv() => SignalKind::interrupt(),
                _ = self.terminate.recv() => SignalKind::terminate(),
                _ = self.hangup.recv() => SignalKind::hangup(),
            };
            u8::try_from(128 + kind.as_raw_value()).unwrap_or(u8::MAX)
        }
    }

    /// Whoever reads standard output, where that can be seen without writing: behind a pipe or a socket.
    #[derive(Debug)]
    pub(in crate::call) struct Reader(Option<oneshot::Receiver<()>>);

    impl Reader {
        /// A thread waits, as the descriptor is shared with others and must stay as it is; it ends with the process.
        pub(in crate::call) fn new() -> Self {
            let (gone, told) = oneshot::channel();
            let watch = move || {
                let stdout = io::stdout();
                loop {
                    // Errors and hang-ups are reported whether asked for or not, and nothing else is asked for.
                    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
                    match poll(&mut fds, None) {
                        Err(Errno::INTR) => {}
                        Ok(_) if fds.iter().any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP)) => break,
                        // It cannot be watched.
                        _ => return,
                    }
                }
                // The run may be over.
                let _ = gone.send(());
            };
            Self(std::thread::Builder::new().name("reader".to_owned()).spawn(watch).ok().map(|_| told))
        }

        /// Resolves when it is gone. Cancel-safe.
        pub(in crate::call) async fn gone(&mut self) {
            if let Some(told) = &mut self.0 {
                if told.await.is_ok() {
                    return;
                }
                self.0 = None;
            }
            std::future::pending::<()>().await;
        }
    }
}
