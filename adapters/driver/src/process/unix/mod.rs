//! Spawning on Unix: through std, with a process group, close-on-exec pipes and clean signal dispositions.
//! It must not know runtimes: the pipe ends go out as std has them.

mod dispositions;
mod reaper;
mod tree;

pub use tree::ChildTree;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use super::{Environment, ServerCommand, SpawnError, Stderr};

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

/// Spawns a server. Blocks for the time of a spawn (about 0.1 ms; tens of milliseconds from a host whose threads block or ignore signals, see findings in the
/// module `dispositions`).
///
/// # Errors
/// Told apart by kind: [`SpawnError`].
pub fn spawn(server: &ServerCommand) -> Result<Spawned, SpawnError> {
    let own_environment = server.environment != Environment::Inherit || !server.env.is_empty();
    let variables = own_environment.then(|| server.variables());
    // The look-up uses the PATH that the server will have; an absolute program also keeps std on its fast path.
    let path = match &variables {
        Some(variables) => variables.get(OsStr::new("PATH")).cloned(),
        None => std::env::var_os("PATH"),
    };
    let resolved = if variables.is_some() { look_up(&server.program, path.as_deref()) } else { None };
    let mut command = Command::new(resolved.as_deref().unwrap_or(&server.program));
    command.arg0(&server.program).args(&server.args).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(match server.stderr {
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
    let mut child = command.spawn().map_err(|source| explain(server, path, source))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let tree = ChildTree::new(child, server.process_group);
    let (Some(stdin), Some(stdout), stderr) = pipes else {
        // Dropping the tree ends the child.
        let source = io::Error::other("the pipes of the child are missing");
        return Err(SpawnError::Other { program: server.program.clone(), source });
    };
    Ok(Spawned { child: tree, stdin, stdout, stderr })
}

/// Finds a program that is given by name only.
fn look_up(program: &OsStr, path: Option<&OsStr>) -> Option<OsString> {
    use std::os::unix::fs::PermissionsExt;
    if program.as_encoded_bytes().contains(&b'/') {
        return None;
    }
    std::env::split_paths(path?)
        .map(|dir| dir.join(program))
        .find(|file| file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0))
        .map(Into::into)
}

fn explain(server: &ServerCommand, path: Option<OsString>, source: io::Error) -> SpawnError {
    let program = server.program.clone();
    if let Some(directory) = server.current_dir.as_ref().filter(|dir| !Path::is_dir(dir)) {
        return SpawnError::Directory { directory: directory.clone(), source };
    }
    match source.kind() {
        io::ErrorKind::NotFound => {
            let by_name = !program.as_encoded_bytes().contains(&b'/');
            SpawnError::NotFound { program, path: path.filter(|_| by_name), source }
        }
        io::ErrorKind::PermissionDenied => SpawnError::Permission { program, source },
        _ => SpawnError::Other { program, source },
    }
}
