//! Owns which file a command means, and why a spawn has failed. It must not know how a spawn is made.
//!
//! The file is looked up here and not by exec: exec searches this process's `PATH` or the server's depending on how std spawns, and says
//! "permission denied" for a program that is nowhere as soon as one directory of `PATH` cannot be read.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::super::{ServerCommand, SpawnError};

/// What is searched for a server without a `PATH`, as exec does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The program to execute: as it was given if it has a slash, else the first executable file in `path`, the server's `PATH`.
pub(super) fn find(server: &ServerCommand, path: Option<&OsStr>) -> Result<OsString, SpawnError> {
    if let Some(source) = server.current_dir.as_deref().and_then(unusable) {
        return Err(directory(server, source));
    }
    if has_slash(&server.program) {
        return Ok(server.program.clone());
    }
    let path = path.unwrap_or_else(|| OsStr::new(DEFAULT_PATH));
    let mut refused = false;
    for dir in std::env::split_paths(path) {
        // An empty entry means the working directory. The result must have a slash, or std would search again.
        let file =
            if dir.as_os_str().is_empty() { Path::new(".").join(&server.program) } else { dir.join(&server.program) };
        let seen_from_here = from(server, &file);
        if seen_from_here.is_file() {
            if access(&seen_from_here, Access::EXEC_OK).is_ok() {
                return Ok(file.into());
            }
            refused = true;
        }
    }
    let program = server.program.clone();
    Err(if refused {
        SpawnError::Permission { program, source: Errno::ACCESS.into() }
    } else {
        SpawnError::NotFound {
            program,
            path: Some(path.to_owned()),
            script: None,
            candidates: Box::default(),
            source: Errno::NOENT.into(),
        }
    })
}

/// Why executing `file` has failed, with the path that was searched for it.
pub(super) fn explain(server: &ServerCommand, path: Option<&OsStr>, file: &OsStr, source: io::Error) -> SpawnError {
    if server.current_dir.as_deref().and_then(unusable).is_some() {
        return directory(server, source);
    }
    let program = server.program.clone();
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            let by_name = !has_slash(&program);
            let seen_from_here = from(server, Path::new(file));
            let script = seen_from_here.is_file().then_some(seen_from_here);
            let path = path.filter(|_| by_name).map(OsStr::to_owned);
            SpawnError::NotFound { program, path, script, candidates: Box::default(), source }
        }
        io::ErrorKind::PermissionDenied => SpawnError::Permission { program, source },
        _ => SpawnError::Other { program, source },
    }
}

fn has_slash(program: &OsStr) -> bool {
    program.as_encoded_bytes().contains(&b'/')
}

/// A path as the server will see it: it is executed after the change of directory.
fn from(server: &ServerCommand, file: &Path) -> PathBuf {
    server.current_dir.as_deref().map_or_else(|| file.to_owned(), |dir| dir.join(file))
}

fn directory(server: &ServerCommand, source: io::Error) -> SpawnError {
    SpawnError::Directory { directory: server.current_dir.clone().unwrap_or_default(), source }
}

/// Why one cannot change to this directory.
fn unusable(dir: &Path) -> Option<io::Error> {
    match dir.metadata() {
        Err(source) => Some(source),
        Ok(meta) if !meta.is_dir() => Some(Errno::NOTDIR.into()),
        Ok(_) => access(dir, Access::EXEC_OK).err().map(Into::into),
    }
}
