//! Spawning on Windows: through std, without a window, into a job before its first instruction. It must not know runtimes: the pipe ends go
//! out as std has them.

mod lookup;
mod notice;
mod tree;

pub use notice::ExitNotice;
pub use tree::ChildTree;

use std::io;
use std::os::windows::io::AsHandle;
use std::os::windows::process::CommandExt;
use std::process::{Child, Command, Stdio};

use windows_sys::Win32::System::Threading::{CREATE_NO_WINDOW, CREATE_SUSPENDED};

use super::{Environment, ServerCommand, SpawnError, Spawned, Stderr};
use crate::windows::{Job, resume};

/// Spawns a server (PRC-01). A success says that the program was executed, not that it is of any use.
///
/// The server gets no console window (case 187), and unless [`process_group`](ServerCommand::process_group) is off it is in a job of its own
/// before its first instruction runs, so nothing it starts can be outside (PRC-02). A `.cmd` or `.bat` file is run by the command interpreter, with
/// the quoting of std, which refuses arguments that no quoting makes safe (SEC-02).
///
/// Blocks for the time of a spawn, about 10 ms. Our ends of the pipes are not inherited by anything else that this process starts (PRC-06).
///
/// # Errors
/// Told apart by kind: [`SpawnError`]. The child does not live on when this fails.
pub fn spawn(server: &ServerCommand) -> Result<Spawned, SpawnError> {
    let other = |source| SpawnError::Other { program: server.program.clone(), source };
    let own_environment = server.environment != Environment::Inherit || !server.env.is_empty();
    let variables = own_environment.then(|| server.variables());
    let program = lookup::find(server, variables.as_ref())?;
    let job = if server.process_group { Some(Job::new().map_err(other)?) } else { None };
    let mut command = Command::new(&program);
    command.args(&server.args).stdin(Stdio::piped()).stdout(Stdio::piped());
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
    // Set once, together: a second call would overwrite the first (case 184).
    command.creation_flags(if job.is_some() { CREATE_NO_WINDOW | CREATE_SUSPENDED } else { CREATE_NO_WINDOW });
    let mut child = command.spawn().map_err(|source| lookup::explain(server, source))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    if let Some(job) = &job {
        if let Err(source) = begin(&child, job) {
            // Outside of the job, or suspended for ever: neither may stay.
            let _ = child.kill();
            return Err(other(source));
        }
    }
    // From here on the tree owns the child: whatever fails, dropping it ends it.
    let tree = ChildTree::new(child, job);
    let (Some(stdin), Some(stdout), stderr) = pipes else {
        return Err(other(io::Error::other("the pipes of the child are missing")));
    };
    Ok(Spawned { child: tree, stdin, stdout, stderr })
}

/// Puts a suspended child into its job and lets it run.
fn begin(child: &Child, job: &Job) -> io::Result<()> {
    job.assign(child.as_handle())?;
    resume(child.id())
}
