//! Spawning on Unix: through std, with a process group, close-on-exec pipes and clean signal dispositions.
//! It must not know runtimes: the pipe ends go out as std has them.

mod dispositions;
mod group;
mod lookup;
mod notice;
mod reaper;
mod standard;
mod tree;

pub use tree::ChildTree;

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::{Environment, ServerCommand, SpawnError, Spawned, Stderr};

/// Spawns a server (PRC-01). A success says that the program was executed, not that it is of any use.
///
/// Blocks for the time of a spawn: about 0.1 ms, or tens of milliseconds where the calling thread blocks signals or the process ignores some,
/// because the server must not inherit that and std then copies the address space. An async caller in such a host spawns off its runtime's threads.
///
/// All descriptors made here are close-on-exec, so that no sibling holds this server's pipes open (PRC-06). Descriptors that the host itself
/// left open over exec are inherited as in any other spawn (case 129).
///
/// # Errors
/// Told apart by kind: [`SpawnError`]. The child does not live on when this fails.
pub fn spawn(server: &ServerCommand) -> Result<Spawned, SpawnError> {
    let other = |source| SpawnError::Other { program: server.program.clone(), source };
    let own_environment = server.environment != Environment::Inherit || !server.env.is_empty();
    let variables = own_environment.then(|| server.variables());
    // The look-up uses the PATH that the server will have. A path with a slash also keeps std on its fast way to spawn.
    let path = match &variables {
        Some(variables) => variables.get(OsStr::new("PATH")).cloned(),
        None => std::env::var_os("PATH"),
    };
    let program = lookup::find(server, path.as_deref())?;
    let standard = standard::Held::new();
    let mut command = Command::new(&program);
    command.arg0(&server.program).args(&server.args).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(match server.stderr {
        Stderr::Inherit if standard.stderr_is_closed() => Stdio::null(),
        Stderr::Inherit => Stdio::inherit(),
        Stderr::Null => Stdio::null(),
        Stderr::Tee | Stderr::Lines => Stdio::piped(),
    });
    if let Some(variables) = &variables {
        command.env_clear().envs(variables);
    }
    if let Some(dir) = &server.current_dir {
        command.current_dir(dir);
    }
    if server.process_group {
        command.process_group(0);
    }
    dispositions::clean(&mut command);
    let mut child = command.spawn().map_err(|source| lookup::explain(server, path.as_deref(), &program, source))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // From here on the tree owns the child: whatever fails, dropping it ends it.
    let tree = ChildTree::new(child, server.process_group).map_err(other)?;
    drop(standard);
    let (Some(stdin), Some(stdout), stderr) = pipes else {
        return Err(other(io::Error::other("the pipes of the child are missing")));
    };
    Ok(Spawned { child: tree, stdin, stdout, stderr })
}
