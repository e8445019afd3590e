//! Turns the pipe ends of a spawned server, and the notice of its exit, into what smol can wait for. It must not know what is
//! read or written, or when the server is to end.
//!
//! A pipe of std's has no readiness on Windows: the driver's pumps read and write it, each by a thread that no runtime waits for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub(crate) use mcp_wire_driver::process::ExitNotice;
use mcp_wire_driver::process::{ChildTree, ServerCommand, SpawnError, spawn};
use mcp_wire_driver::stdio::{ReadPump, WritePump};

pub(crate) use crate::pump::Receiver;
use crate::pump::Sender;

/// A spawned server whose ends smol can wait for.
pub(crate) struct Piped {
    pub(crate) child: ChildTree,
    pub(crate) input: Sender,
    pub(crate) output: Receiver,
    pub(crate) stderr: Option<Receiver>,
    pub(crate) exit: ExitNotice,
}

/// What comes of a spawn; nothing if it panicked.
pub(crate) type Spawning = Pin<Box<dyn Future<Output = Option<Result<Piped, SpawnError>>> + Send>>;

/// Spawns on the pool for blocking work: it takes some milliseconds, or as long as a slow file system needs to find the program. What is spawned
/// for nobody is killed by its drop.
pub(crate) fn spawn_blocking(command: &Arc<ServerCommand>) -> Spawning {
    let command = Arc::clone(command);
    let spawning = smol::unblock(move || {
        let spawned = spawn(&command)?;
        // Dropping the child on the way out ends it.
        let other = |source| SpawnError::Other { program: command.program().to_owned(), source };
        let exit = spawned.child.exit_notice().map_err(other)?;
        Ok(Piped {
            child: spawned.child,
            input: Sender(WritePump::of_pipe(spawned.stdin).map_err(other)?),
            output: Receiver(ReadPump::of_pipe(spawned.stdout).map_err(other)?),
            stderr: match spawned.stderr {
                Some(stderr) => Some(Receiver(ReadPump::of_pipe(stderr).map_err(other)?)),
                None => None,
            },
            exit,
        })
    });
    Box::pin(spawning.fallible())
}
