//! Turns the pipe ends of a spawned server, and the notice of its exit, into what tokio can wait for. It must not know what is
//! read or written, or when the server is to end.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_wire_driver::process::{ChildTree, ServerCommand, SpawnError, spawn};
pub(crate) use tokio::net::unix::pipe::Receiver;
use tokio::net::unix::pipe::Sender;
use tokio::task::JoinHandle;

/// A spawned server whose ends tokio can wait for.
pub(crate) struct Piped {
    pub(crate) child: ChildTree,
    pub(crate) input: Sender,
    pub(crate) output: Receiver,
    pub(crate) stderr: Option<Receiver>,
    pub(crate) exit: ExitNotice,
}

/// Spawns on the pool for blocking work: it takes 0.1 ms mostly, but tens of them from a host that blocks signals, or as long as a slow file
/// system needs to find the program. What is spawned for nobody is killed by its drop.
pub(crate) fn spawn_blocking(command: &Arc<ServerCommand>) -> JoinHandle<Result<Piped, SpawnError>> {
    let command = Arc::clone(command);
    tokio::task::spawn_blocking(move || {
        let spawned = spawn(&command)?;
        // Dropping the child on the way out ends it.
        let other = |source| SpawnError::Other { program: command.program().to_owned(), source };
        let exit = ExitNotice::new(&spawned.child).map_err(other)?;
        Ok(Piped {
            child: spawned.child,
            input: Sender::from_owned_fd(spawned.stdin.into()).map_err(other)?,
            output: Receiver::from_owned_fd(spawned.stdout.into()).map_err(other)?,
            stderr: match spawned.stderr {
                Some(stderr) => Some(Receiver::from_owned_fd(stderr.into()).map_err(other)?),
                None => None,
            },
            exit,
        })
    })
}

/// The notice that a child has exited.
///
/// A pidfd is no pipe, but all that is asked of it is readiness; the safe constructors of tokio's `AsyncFd` are deprecated for an unsafe one.
pub(crate) struct ExitNotice {
    descriptor: Receiver,
}

impl ExitNotice {
    fn new(child: &ChildTree) -> io::Result<Self> {
        Self::from_descriptor(child.exit_notice()?)
    }

    fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        Ok(Self { descriptor: Receiver::from_owned_fd_unchecked(descriptor)? })
    }

    /// Ready once the child has exited. An error of the runtime, which is shutting down then, is no exit.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self.descriptor.poll_read_ready(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_wire::lifecycle::ExitStatus;
    use std::future::poll_fn;
    use std::time::Duration;

    // RST-05: the notice comes with the exit, not before, and the status can be read then
    #[tokio::test]
    async fn the_exit_notice_comes_with_the_exit() {
        let command = Arc::new(ServerCommand::new("sh").args(["-c", "read line; exit 7"]));
        let piped = spawn_blocking(&command).await.expect("the pool runs").expect("sh can be spawned");
        poll_fn(|cx| {
            assert!(piped.exit.poll(cx).is_pending(), "it waits for a line");
            Poll::Ready(())
        })
        .await;
        drop(piped.input);
        let exit = tokio::time::timeout(Duration::from_secs(20), poll_fn(|cx| piped.exit.poll(cx))).await;
        assert!(exit.is_ok());
        assert_eq!(piped.child.try_exit(), Some(ExitStatus::Code(7)));
    }
}
