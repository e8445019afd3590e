//! The client on tokio: what puts a driver on the runtime and hands out the handle. It must not know what the handle does.

use std::ops::Deref;

use mcp_wire_driver::client::{Options, StartError};
use mcp_wire_driver::process::ServerCommand;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::clock::Clock;
use crate::driver::Driver;

/// A connection to a server, driven by tokio. It derefs to the handle that all runtimes share, which has the calls.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use mcp_wire_tokio::{Client, ServerCommand};
/// use serde_json::{Value, json};
///
/// let client = Client::spawn(ServerCommand::new("my-server").arg("--stdio")).await?;
/// let sum: Value = client.call("tools/call", json!({"name": "add", "arguments": {"a": 40, "b": 2}})).await?;
/// let outcome = client.close().await?;
/// println!("{sum}, {:?}", outcome.exit);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    handle: mcp_wire_driver::client::Client,
}

impl Deref for Client {
    type Target = mcp_wire_driver::client::Client;

    fn deref(&self) -> &Self::Target {
        &self.handle
    }
}

impl Client {
    /// Sets things before a client is started.
    #[must_use]
    pub fn builder(name: &str, version: &str) -> Builder {
        Builder { options: Options::new(name, version) }
    }

    fn anonymous_builder() -> Builder {
        Self::builder(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    /// Starts a server, with the defaults. Resolves when the connection is established.
    ///
    /// # Errors
    /// Why the server could not be started or never came up; its process tree has ended then.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn spawn(command: ServerCommand) -> Result<Self, StartError> {
        Self::anonymous_builder().spawn(command).await
    }

    /// Connects over a byte stream, with the defaults. Resolves when the connection is established.
    ///
    /// # Errors
    /// Why the connection could not be established.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn connect(
        read: impl AsyncRead + Send + 'static,
        write: impl AsyncWrite + Send + 'static,
    ) -> Result<Self, StartError> {
        Self::anonymous_builder().connect(read, write).await
    }

    /// The two parts of [`connect`](Self::connect): a handle, and the future that has to be polled for anything to happen.
    ///
    /// # Errors
    /// None with the defaults.
    pub fn connect_parts(
        read: impl AsyncRead + Send + 'static,
        write: impl AsyncWrite + Send + 'static,
    ) -> Result<(Self, Driver), StartError> {
        Self::anonymous_builder().connect_parts(read, write)
    }
}

/// Sets things before a client is started.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use mcp_wire_tokio::{Client, ServerCommand, Stderr};
///
/// let mut builder = Client::builder("my-host", "1.0")
///     .capabilities(serde_json::json!({"elicitation": {}}))
///     .request_timeout(Duration::from_secs(30))
///     .restarts(2)
///     .on_notification(|note| println!("{}", note.method));
/// let mut events = builder.events();
/// let client = builder.spawn(ServerCommand::new("my-server").stderr(Stderr::Tee)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Builder {
    options: Options,
}

/// A builder with everything set that the options set.
impl From<Options> for Builder {
    fn from(options: Options) -> Self {
        Self { options }
    }
}

impl Builder {
    mcp_wire_driver::client_builder_methods!();

    /// Starts a server. Resolves when the connection is established; at once if the start is lazy.
    ///
    /// Dropping the future before kills what was started.
    ///
    /// # Errors
    /// Why the server could not be started or never came up; its process tree has ended then.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn spawn(self, command: ServerCommand) -> Result<Client, StartError> {
        let lazy = self.options.is_lazy();
        let client = self.start(command)?;
        if lazy {
            return Ok(client);
        }
        client.into_established().await
    }

    /// Starts a server and gives the handle at once; requests wait until the connection is established.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(self, command: ServerCommand) -> Result<Client, StartError> {
        let (client, driver) = self.start_parts(command)?;
        tokio::spawn(driver);
        Ok(client)
    }

    /// The two parts of [`start`](Self::start): a handle, and the future that has to be polled for anything to happen.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn start_parts(self, command: ServerCommand) -> Result<(Client, Driver), StartError> {
        let clock = Clock::new();
        let (handle, link) = self.options.with_process(&command, move || clock.now())?;
        Ok((Client { handle }, Driver::of_process(link, clock, command)))
    }

    /// Connects over a byte stream. Resolves when the connection is established.
    ///
    /// # Errors
    /// Why the connection could not be established.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn connect(
        self,
        read: impl AsyncRead + Send + 'static,
        write: impl AsyncWrite + Send + 'static,
    ) -> Result<Client, StartError> {
        let (client, driver) = self.connect_parts(read, write)?;
        tokio::spawn(driver);
        client.into_established().await
    }

    /// The two parts of [`connect`](Self::connect): a handle, and the future that has to be polled for anything to happen. It wants the
    /// context of a tokio runtime, whoever polls it.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn connect_parts(
        self,
        read: impl AsyncRead + Send + 'static,
        write: impl AsyncWrite + Send + 'static,
    ) -> Result<(Client, Driver), StartError> {
        let clock = Clock::new();
        let (handle, link) = self.options.with_stream(move || clock.now())?;
        Ok((Client { handle }, Driver::of_stream(link, clock, read, write)))
    }
}

impl Client {
    /// This client once it is established. Where that fails, once everything has ended.
    async fn into_established(self) -> Result<Self, StartError> {
        match self.handle.established().await {
            Ok(()) => Ok(self),
            Err(error) => {
                // The error says all there is to say.
                let _ = self.handle.closed().await;
                Err(error)
            }
        }
    }
}
