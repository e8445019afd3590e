//! Owns what may end a run from outside: signals, and a standard output that nobody reads any more. It must not know what is done then.

#[cfg(unix)]
pub(super) use unix::{Reader, Signals};

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};

    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    use tokio::signal::unix::{Signal, SignalKind, signal};

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

    /// Whoever reads standard output, where that can be seen without writing: behind a pipe.
    #[derive(Debug)]
    pub(in crate::call) struct Reader(Option<AsyncFd<OwnedFd>>);

    impl Reader {
        pub(in crate::call) fn new() -> Self {
            let watch = |fd| AsyncFd::with_interest(fd, Interest::ERROR);
            // A regular file cannot be watched, and has no reader either.
            Self(io::stdout().as_fd().try_clone_to_owned().and_then(watch).ok())
        }

        /// Resolves when it is gone. Cancel-safe.
        pub(in crate::call) async fn gone(&self) {
            if let Some(fd) = &self.0 {
                if fd.ready(Interest::ERROR).await.is_ok() {
                    return;
                }
            }
            std::future::pending().await
        }
    }
}
