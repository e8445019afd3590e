//! Owns what a spawn gives: the tree and our ends of the pipes. It must not know how it was made.

use std::process::{ChildStderr, ChildStdin, ChildStdout};

use super::ChildTree;

/// A spawned server: its process tree and our ends of its pipes.
///
/// Dropping the tree ends it; the pipes are closed by dropping them.
///
/// ```
/// use mcp_wire_driver::process::{ServerCommand, spawn};
///
/// let mut server = spawn(&ServerCommand::new("cat"))?;
/// drop(server.stdin); // `cat` sees the end of its input
/// std::io::copy(&mut server.stdout, &mut std::io::sink())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Spawned {
    /// The process and its group.
    pub child: ChildTree,
    /// Its standard input.
    pub stdin: ChildStdin,
    /// Its standard output.
    pub stdout: ChildStdout,
    /// Its standard error, if it is piped (`Tee`, `Lines`).
    pub stderr: Option<ChildStderr>,
}
