//! Turns the pipe ends of a spawned server, and the notice of its exit, into what smol can wait for. It must not know what is
//! read or written, or when the server is to end.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_wire_driver::process::{ChildTree, ServerCommand, SpawnError, spawn};
use smol::Async;

pub(crate) use crate::pipe::Receiver;
use crate::pipe::Sender;

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

/// Spawns on the pool for blocking work: it takes 0.1 ms mostly, but tens of them from a host that blocks signals, or as long as a slow file
/// system needs to find the program. What is spawned for nobody is killed by its drop.
pub(crate) fn spawn_blocking(command: &Arc<ServerCommand>) -> Spawning {
    let command = Arc::clone(command);
    let spawning = smol::unblock(move || {
        let spawned = spawn(&command)?;
        // Dropping the child on the way out ends it.
        let other = |source| SpawnError::Other { program: command.program().to_owned(), source };
        let exit = ExitNotice::new(&spawned.child).map_err(other)?;
        Ok(Piped {
            child: spawned.child,
            input: Sender::pipe(spawned.stdin.into()).map_err(other)?,
            output: Receiver::pipe(spawned.stdout.into()).map_err(other)?,
            stderr: match spawned.stderr {
                Some(stderr) => Some(Receiver::pipe(stderr.into()).map_err(other)?),
                None => None,
            },
            exit,
        })
    });
    Box::pin(spawning.fallible())
}

/// The notice that a child has exited.
pub(crate) struct ExitNotice {
    descriptor: Async<OwnedFd>,
}

impl ExitNotice {
    fn new(child: &ChildTree) -> io::Result<Self> {
        Ok(Self { descriptor: Async::new_nonblocking(child.exit_notice()?)? })
    }

    /// Ready once the child has exited. An error of the reactor is no exit.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self.descriptor.poll_readable(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_wire::lifecycle::ExitStatus;
    use smol::future::{or, poll_fn};
    use std::time::Duration;

    // RST-05: the notice comes with the exit, not before, and the status can be read then
    #[test]
    fn the_exit_notice_comes_with_the_exit() {
        smol::block_on(or(exit_notice(), async {
            smol::Timer::after(Duration::from_secs(20)).await;
            panic!("hung");
        }));
    }

    async fn exit_notice() {
        let command = Arc::new(ServerCommand::new("sh").args(["-c", "read line; exit 7"]));
        let piped = spawn_blocking(&command).await.expect("the pool runs").expect("sh can be spawned");
        poll_fn(|cx| {
            assert!(piped.exit.poll(cx).is_pending(), "it waits for a line");
            Poll::Ready(())
        })
        .await;
        drop(piped.input);
        poll_fn(|cx| piped.exit.poll(cx)).await;
        assert_eq!(piped.child.try_exit(), Some(ExitStatus::Code(7)));
    }
}
