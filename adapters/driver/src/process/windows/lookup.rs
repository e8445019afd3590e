//! Owns which file a command means, and why a spawn has failed. It must not know how a spawn is made.
//!
//! The file is looked up here and not by the system, which would find `.exe` files only, and would search directories that nobody named.

use std::collections::BTreeMap;
use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::ERROR_ELEVATION_REQUIRED;

use super::super::{ServerCommand, SpawnError};

/// What can be executed without asking the shell which program opens it.
const RUNNABLE: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];

/// The program to execute, with its whole path. A name without an extension stands for the files that `PATHEXT` says (case 181): `npx` is `npx.cmd`,
/// not the shell script without an extension that lies beside it. `variables` is the server's environment, unless it is simply ours.
pub(super) fn find(
    server: &ServerCommand,
    variables: Option<&BTreeMap<OsString, OsString>>,
) -> Result<PathBuf, SpawnError> {
    if let Some(source) = server.current_dir.as_deref().and_then(unusable) {
        return Err(directory(server, source));
    }
    let variable = |name: &str| match variables {
        Some(variables) => {
            (variables.iter()).find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
        }
        None => std::env::var_os(name),
    };
    let (program, names) = (&server.program, candidates(&server.program, variable("PATHEXT").as_deref()));
    let not_found = |path, names: Vec<OsString>| SpawnError::NotFound {
        program: program.clone(),
        path,
        script: None,
        candidates: names.into(),
        source: io::ErrorKind::NotFound.into(),
    };
    if is_path(program) {
        // As the last resort the file as it is: a program needs no extension.
        let found = names.iter().chain([program]).map(|name| from(server, Path::new(name))).find(|file| is_there(file));
        return found.ok_or_else(|| not_found(None, names));
    }
    let path = variable("PATH").unwrap_or_default();
    for dir in split_paths(&path).filter(|dir| !dir.as_os_str().is_empty()) {
        if let Some(file) = names.iter().map(|name| from(server, &dir.join(name))).find(|file| is_there(file)) {
            return Ok(file);
        }
    }
    Err(not_found(Some(path), names))
}

/// Why executing it has failed.
pub(super) fn explain(server: &ServerCommand, source: io::Error) -> SpawnError {
    if server.current_dir.as_deref().and_then(unusable).is_some() || source.kind() == io::ErrorKind::NotADirectory {
        return directory(server, source);
    }
    let program = server.program.clone();
    let elevation = i32::try_from(ERROR_ELEVATION_REQUIRED).ok();
    match source.kind() {
        io::ErrorKind::NotFound => {
            SpawnError::NotFound { program, path: None, script: None, candidates: Box::default(), source }
        }
        io::ErrorKind::PermissionDenied => SpawnError::Permission { program, source },
        _ if source.raw_os_error() == elevation => SpawnError::Permission { program, source },
        _ => SpawnError::Other { program, source },
    }
}

/// The file names that a command may mean, the first that is there counts.
fn candidates(program: &OsStr, extensions: Option<&OsStr>) -> Vec<OsString> {
    let extension = Path::new(program).extension().and_then(OsStr::to_str).unwrap_or_default();
    if RUNNABLE.iter().any(|runnable| runnable[1..].eq_ignore_ascii_case(extension)) {
        return vec![program.to_owned()];
    }
    let listed = extensions.and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    let mut runnable: Vec<&str> =
        listed.split(';').map(str::trim).filter(|extension| RUNNABLE.contains(extension)).collect();
    if runnable.is_empty() {
        runnable = RUNNABLE.to_vec();
    }
    let with = |extension| {
        let mut name = program.to_owned();
        name.push(extension);
        name
    };
    runnable.into_iter().map(with).collect()
}

/// Not a bare name: it has a separator or a drive.
fn is_path(program: &OsStr) -> bool {
    program.as_encoded_bytes().iter().any(|byte| matches!(byte, b'/' | b'\\' | b':'))
}

/// A whole path: a relative one starts at the server's directory, as on other systems, and not at ours.
fn from(server: &ServerCommand, file: &Path) -> PathBuf {
    let file = server.current_dir.as_deref().map_or_else(|| file.to_owned(), |dir| dir.join(file));
    std::path::absolute(&file).unwrap_or(file)
}

/// An alias of a packaged app can be executed, but only looked at as a link.
fn is_there(file: &Path) -> bool {
    match file.metadata() {
        Ok(meta) => meta.is_file(),
        Err(_) => file.symlink_metadata().is_ok(),
    }
}

fn directory(server: &ServerCommand, source: io::Error) -> SpawnError {
    SpawnError::Directory { directory: server.current_dir.clone().unwrap_or_default(), source }
}

/// Why one cannot change to this directory.
fn unusable(dir: &Path) -> Option<io::Error> {
    match dir.metadata() {
        Err(source) => Some(source),
        Ok(meta) if !meta.is_dir() => Some(io::ErrorKind::NotADirectory.into()),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(program: &str, extensions: Option<&str>) -> Vec<String> {
        let names = candidates(OsStr::new(program), extensions.map(OsStr::new));
        names.into_iter().map(|name| name.into_string().expect("it is UTF-8")).collect()
    }

    // case 181: .cmd and .bat shims are not found or refused: the order is PATHEXT's, and what only a shell could open is left out
    #[test]
    fn a_name_without_an_extension_stands_for_what_can_be_executed() {
        assert_eq!(names("npx", Some(".EXE;.JS;.CMD")), ["npx.exe", "npx.cmd"]);
        assert_eq!(names("npx", None), ["npx.com", "npx.exe", "npx.bat", "npx.cmd"]);
        assert_eq!(names("npx", Some(".JS")), names("npx", None));
        assert_eq!(names("python3.11", Some(".EXE")), ["python3.11.exe"]);
        assert_eq!(names("npx.CMD", Some(".EXE")), ["npx.CMD"]);
    }
}
