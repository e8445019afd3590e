//! Owns the thread that writes to the standard streams, so that a reader who does not read stops nothing but the next event. It must
//! not know what an event means.

use std::io::{self, BufWriter, Write};

use tokio::sync::{mpsc, oneshot};

use super::session::Shown;

/// Events that wait for the terminal.
const QUEUE: usize = 256;

/// How events are shown.
pub(super) trait Printer: Send + 'static {
    /// Writes one, to `out` or to standard error.
    fn show(&mut self, shown: &Shown, out: &mut dyn Write) -> io::Result<()>;

    /// Nothing more comes.
    fn finish(&mut self) {}
}

/// The writing thread. Its queue is bounded: who has an event waits for a place.
#[derive(Debug)]
pub(super) struct Output {
    queue: mpsc::Sender<Shown>,
    done: oneshot::Receiver<io::Result<()>>,
}

impl Output {
    pub(super) fn start(printer: impl Printer) -> io::Result<Self> {
        let (queue, events) = mpsc::channel(QUEUE);
        let (tell, done) = oneshot::channel();
        let write = move || {
            let _ = tell.send(write_all(printer, events));
        };
        std::thread::Builder::new().name("output".to_owned()).spawn(write)?;
        Ok(Self { queue, done })
    }

    /// The way in. It is closed once standard output cannot be written any more.
    pub(super) const fn queue(&self) -> &mpsc::Sender<Shown> {
        &self.queue
    }

    /// Shows what the queue still holds, as long as that takes. Dropped before it is done, the rest may be lost.
    pub(super) async fn finish(self) -> io::Result<()> {
        drop(self.queue);
        self.done.await.unwrap_or_else(|_| Err(io::Error::other("the output thread panicked")))
    }
}

fn write_all(mut printer: impl Printer, mut events: mpsc::Receiver<Shown>) -> io::Result<()> {
    // One write for all that is there, none held back while nothing more comes.
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    while let Some(event) = events.blocking_recv() {
        printer.show(&event, &mut out)?;
        while let Ok(event) = events.try_recv() {
            printer.show(&event, &mut out)?;
        }
        out.flush()?;
    }
    printer.finish();
    out.flush()
}
