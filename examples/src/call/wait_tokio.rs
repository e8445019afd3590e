//! What a run takes from tokio. It must not know what it is for.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use mcp_wire_driver::client::{Client, Options, StartError};
use mcp_wire_tokio::{ClientBuilder, ServerCommand};
use tokio::time::Sleep;

use super::output::Printer;
use super::run::{Plan, RunError};
use super::signals_tokio::Signals;
use super::wait::{self, live};

/// Runs the work to its end and gives the exit status.
pub(super) fn run(plan: Plan, printer: impl Printer) -> Result<u8, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| RunError::System("the runtime cannot be started", error))?;
    let status = runtime.block_on(async {
        let tokio = Tokio::new().map_err(|error| RunError::System("signals cannot be caught", error))?;
        live(plan, printer, tokio).await
    });
    // A spawn that takes long is waited for by nobody.
    runtime.shutdown_background();
    status
}

struct Tokio {
    signals: Signals,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Tokio {
    fn new() -> io::Result<Self> {
        Ok(Self { signals: Signals::new()?, sleep: None })
    }
}

impl wait::Runtime for Tokio {
    fn start(&mut self, options: Options, command: ServerCommand) -> Result<Client, StartError> {
        ClientBuilder::from(options).start(command).map(|client| (*client).clone())
    }

    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<u8> {
        self.signals.poll(cx)
    }

    fn poll_time(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let at = tokio::time::Instant::from(at);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx)
    }
}
