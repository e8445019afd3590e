//! Owns how the demo server is put together and run: methods, runtime, signals, exit status. It must not know what a tool does.

use std::ffi::OsString;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mcp_wire::server::Ended;
use mcp_wire::{Json, JsonBuf};
use mcp_wire_driver::server::{Call, Publisher, RpcError, ServeError, Server};

use super::args::{self, HELP, Options, Task};
use super::describe;
use super::resources::Resources;
use super::tools;
use crate::runtime::Runtime;

/// What the tools take from a runtime.
///
/// ```
/// async fn nap(host: impl mcp_wire_examples::demo::Host) {
///     host.sleep(std::time::Duration::from_millis(1)).await;
/// }
/// ```
pub trait Host: Clone + Send + Sync + 'static {
    /// Resolves after that time.
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send;

    /// Runs something that blocks where it stops nobody.
    fn blocking<T: Send + 'static>(&self, run: impl FnOnce() -> T + Send + 'static) -> impl Future<Output = T> + Send;

    /// Resolves with either; true if it was the first, which wins a tie.
    fn first<A, B>(&self, a: A, b: B) -> impl Future<Output = bool> + Send
    where
        A: Future + Send,
        B: Future<Output = ()> + Send,
    {
        async {
            let (mut a, mut b) = (pin!(a), pin!(b));
            poll_fn(|cx| {
                if a.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(true);
                }
                b.as_mut().poll(cx).map(|()| false)
            })
            .await
        }
    }
}

/// Twice a line of the usual limit, so that a client can be tried with a line that is too long for it.
pub(super) const QUEUE_LIMIT: usize = 32 << 20;

pub(super) fn build(options: &Options) -> Result<Server, ServeError> {
    let capabilities =
        JsonBuf::from(Json::parse(describe::CAPABILITIES).map_err(|error| ServeError::Stdio(error.into()))?);
    let server = Server::builder("mcp-demo-server", env!("CARGO_PKG_VERSION"))
        .eras(options.eras)
        .capabilities(&capabilities)
        .instructions("Call the tools to try out a client; read demo://clock or demo://counter.")
        .max_in_flight(options.max_in_flight)
        .line_limit(options.max_line)
        .drain(options.drain)
        .stdout_guard(options.stdout_guard)
        .configure(|config| config.queue_limit = QUEUE_LIMIT)
        .build()?;
    Ok(server)
}

/// One request.
pub(super) async fn handle<H: Host>(
    call: Call,
    host: H,
    resources: Arc<Resources>,
    publisher: Publisher,
) -> Result<JsonBuf, RpcError> {
    let listing = matches!(call.method(), "tools/list" | "resources/list" | "resources/templates/list");
    if listing && call.params_json().members().any(|(name, _)| name == "cursor") {
        return Err(RpcError::invalid_params("Invalid params: no list here has a second page, so no cursor is known"));
    }
    let result = match call.method() {
        "tools/list" => describe::tools(),
        "tools/call" => return tools::call(&call, &host, &resources, &publisher).await,
        "resources/list" => Resources::list(),
        "resources/templates/list" => Resources::templates(),
        "resources/read" => resources.read(&call)?,
        _ => return Err(call.method_not_found()),
    };
    Ok(JsonBuf::new(&result)?)
}

/// The program: reads its command line, serves, and returns its exit status.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options = match args::parse(arguments) {
        Ok(Task::Serve(options)) => options,
        Ok(Task::Help) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Task::Version) => {
            println!("mcp-demo-server {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("mcp-demo-server: {error}");
            return ExitCode::from(2);
        }
    };
    let ended = match options.runtime {
        Runtime::Tokio => tokio::run(&options),
        Runtime::Smol => super::smol::run(&options),
        #[cfg(unix)]
        Runtime::Poll => super::poll::run(&options),
    };
    match ended {
        Ok(Ended::PeerGone) => {
            eprintln!("mcp-demo-server: the output could not be written: the client is gone");
            ExitCode::FAILURE
        }
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mcp-demo-server: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves the standard streams on the current tokio runtime with the default options.
///
/// # Errors
/// The standard streams cannot be served, or the input cannot be read.
pub async fn serve_tokio() -> Result<Ended, ServeError> {
    tokio::serve(&Options::default()).await
}

mod tokio {
    //! The tokio side of it.

    use std::pin::pin;

    use ::tokio::runtime;
    use mcp_wire_tokio::{ServeExt, stdio};

    use super::{Arc, Call, Duration, Ended, Future, Host, Options, Resources, ServeError, build, handle};

    #[derive(Debug, Clone)]
    struct Tokio;

    impl Host for Tokio {
        fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send {
            ::tokio::time::sleep(time)
        }

        async fn blocking<T: Send + 'static>(&self, run: impl FnOnce() -> T + Send + 'static) -> T {
            match ::tokio::task::spawn_blocking(run).await {
                Ok(value) => value,
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
    }

    pub(super) fn run(options: &Options) -> Result<Ended, ServeError> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Stdio)?;
        let ended = runtime.block_on(serve(options));
        // A blocked read or a tool's child keeps nobody: the process ends now.
        runtime.shutdown_background();
        ended
    }

    pub(super) async fn serve(options: &Options) -> Result<Ended, ServeError> {
        let server = build(options)?;
        let (publisher, stop) = (server.publisher(), server.stop_handle());
        let resources = Arc::new(Resources::default());
        let handler = move |call: Call| handle(call, Tokio, resources.clone(), publisher.clone());
        let mut serving = pin!(server.serve(stdio(), handler));
        let mut terminated = pin!(terminated().map_err(ServeError::Stdio)?);
        ::tokio::select! {
            ended = &mut serving => return ended,
            () = &mut terminated => stop.terminate(),
        }
        serving.await
    }

    /// Resolves at the first SIGTERM, which from the call on does nothing else.
    #[cfg(unix)]
    fn terminated() -> std::io::Result<impl Future<Output = ()>> {
        use ::tokio::signal::unix::{SignalKind, signal};
        let mut signals = signal(SignalKind::terminate())?;
        Ok(async move {
            signals.recv().await;
        })
    }

    #[cfg(not(unix))]
    fn terminated() -> std::io::Result<impl Future<Output = ()>> {
        Ok(std::future::pending())
    }
}
