//! Owns what a handler answers when it has no result, and why serving ended badly. It must not know how either is written.

use std::{error, fmt, io};

use mcp_wire::{ConfigError, JsonBuf};

/// The error response of a handler.
///
/// A code that the protocol forbids to applications leaves as -32603 with this message (MSG-11).
///
/// ```
/// use mcp_wire_driver::server::RpcError;
///
/// let error = RpcError::invalid_params("no such tool");
/// assert_eq!(error.code, -32602);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// What a program may want to know.
    pub data: Option<JsonBuf>,
}

impl RpcError {
    /// An error with this code and message. Applications take codes outside -32768 to -32000.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// -32602: the params are wrong.
    #[must_use]
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// -32603: it is not the caller's fault.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(-32603, message)
    }

    /// Adds `data`. What cannot be serialized is left out.
    #[must_use]
    pub fn data<T: serde::Serialize + ?Sized>(mut self, data: &T) -> Self {
        self.data = JsonBuf::new(data).ok();
        self
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl error::Error for RpcError {}

/// A result that cannot be serialized is the server's fault.
impl From<serde_json::Error> for RpcError {
    fn from(error: serde_json::Error) -> Self {
        Self::internal(format!("the result cannot be written as JSON: {error}"))
    }
}

/// Why serving could not begin or ended badly.
///
/// ```
/// let error = mcp_wire_driver::server::ServeError::StdioTaken;
/// assert!(error.to_string().contains("standard streams"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration contradicts itself.
    Config(ConfigError),
    /// Somebody in this process serves the standard streams already (LOG-04).
    StdioTaken,
    /// The standard streams could not be set up.
    Stdio(io::Error),
    /// The input could not be read.
    Read(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => write!(f, "the server's configuration is wrong: {error}"),
            Self::StdioTaken => {
                f.write_str("the standard streams are served already; a process can serve them once at a time")
            }
            Self::Stdio(error) => write!(f, "the standard streams could not be set up: {error}"),
            Self::Read(error) => write!(f, "the input could not be read: {error}"),
        }
    }
}

impl error::Error for ServeError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Stdio(error) | Self::Read(error) => Some(error),
            Self::StdioTaken => None,
        }
    }
}

impl From<ConfigError> for ServeError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}
