//! What a run takes from smol. It must not know what it is for.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use async_signal::{Signal, Signals};
use mcp_wire_driver::client::{Client, Options, StartError};
use mcp_wire_smol::{ClientBuilder, ServerCommand};
use smol::stream::Stream;
use smol::{LocalExecutor, Timer};

use super::output::Printer;
use super::run::{Plan, RunError};
use super::wait::{self, live};

/// Runs the work to its end and gives the exit status.
pub(super) fn run(plan: Plan, printer: impl Printer) -> Result<u8, RunError> {
    let executor = Rc::new(LocalExecutor::new());
    let smol = Smol::new(&executor).map_err(|error| RunError::System("signals cannot be caught", error))?;
    smol::block_on(executor.run(live(plan, printer, smol)))
}

/// What asks for the end.
#[cfg(unix)]
const ENDING: &[Signal] = &[Signal::Int, Signal::Term, Signal::Hup];
/// What asks for the end: Ctrl-C, and nothing else here.
#[cfg(windows)]
const ENDING: &[Signal] = &[Signal::Int];

struct Smol {
    executor: Rc<LocalExecutor<'static>>,
    /// They do nothing by themselves any more.
    signals: Signals,
    timer: Timer,
    /// What the timer is set to.
    set_to: Option<Instant>,
}

impl Smol {
    fn new(executor: &Rc<LocalExecutor<'static>>) -> io::Result<Self> {
        let signals = Signals::new(ENDING)?;
        Ok(Self { executor: Rc::clone(executor), signals, timer: Timer::never(), set_to: None })
    }
}

impl wait::Runtime for Smol {
    fn start(&mut self, options: Options, command: ServerCommand) -> Result<Client, StartError> {
        let (client, driver) = ClientBuilder::from(options).start_parts(command)?;
        // It ends with the connection, or else with the executor.
        self.executor.spawn(driver).detach();
        Ok((*client).clone())
    }

    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<u8> {
        match Pin::new(&mut self.signals).poll_next(cx) {
            Poll::Ready(Some(Ok(signal))) => Poll::Ready(signal as u8),
            _ => Poll::Pending,
        }
    }

    fn poll_time(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if self.set_to != Some(at) {
            self.timer.set_at(at);
            self.set_to = Some(at);
        }
        Pin::new(&mut self.timer).poll(cx).map(|_| self.set_to = None)
    }
}
