//! Owns why a server could not be spawned. It must not know what is done about it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::{error, fmt, io};

use mcp_wire::lifecycle::SpawnFailure;

/// Why a server could not be spawned (PRC-05). The message says what to do.
///
/// ```
/// use mcp_wire_driver::process::{ServerCommand, SpawnError};
///
/// let error = mcp_wire_driver::process::spawn(&ServerCommand::new("no-such-program-anywhere")).unwrap_err();
/// assert!(matches!(error, SpawnError::NotFound { .. }));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// The program was not found.
    NotFound {
        /// As it was given.
        program: OsString,
        /// The `PATH` that was searched, the server's own; `None` if the program was given as a path.
        path: Option<OsString>,
        /// The program is there, in this file; the interpreter that its first line names is not.
        script: Option<PathBuf>,
        /// The file names that were looked for, where the program's is not the only one: `npx.exe`, `npx.cmd` on Windows.
        candidates: Box<[OsString]>,
        /// The system's error.
        source: io::Error,
    },
    /// The program was found and may not be executed.
    Permission {
        /// As it was given.
        program: OsString,
        /// The system's error.
        source: io::Error,
    },
    /// The working directory does not exist, is none, or may not be entered.
    Directory {
        /// As it was given.
        directory: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Anything else.
    Other {
        /// As it was given.
        program: OsString,
        /// The system's error.
        source: io::Error,
    },
}

impl SpawnError {
    /// The same in the core's words.
    #[must_use]
    pub const fn failure(&self) -> SpawnFailure {
        match self {
            Self::NotFound { .. } => SpawnFailure::NotFound,
            Self::Permission { .. } => SpawnFailure::Permission,
            Self::Directory { .. } => SpawnFailure::Directory,
            Self::Other { .. } => SpawnFailure::Other,
        }
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { script: Some(script), .. } => {
                write!(
                    f,
                    "the interpreter that the first line of {script:?} names was not found; install it or mend that line"
                )
            }
            Self::NotFound { program, path: Some(path), candidates, .. } => write!(
                f,
                "the command {program:?}{} was not found in PATH ({}); give its full path or set PATH for the server",
                AsOneOf(candidates),
                path.to_string_lossy().escape_debug()
            ),
            Self::NotFound { program, path: None, candidates, .. } => {
                write!(f, "the command {program:?}{} was not found; check the path", AsOneOf(candidates))
            }
            Self::Permission { program, .. } => {
                write!(f, "the command {program:?} may not be executed; check its permissions")
            }
            Self::Directory { directory, source } => {
                write!(f, "the working directory {directory:?} cannot be used: {source}")
            }
            Self::Other { program, source } => write!(f, "the command {program:?} could not be started: {source}"),
        }
    }
}

/// The names under which a program was looked for, if there are several.
struct AsOneOf<'a>(&'a [OsString]);

impl fmt::Display for AsOneOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            write!(f, "{}{name:?}", if index == 0 { ", as " } else { " or " })?;
        }
        Ok(())
    }
}

impl error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::NotFound { source, .. }
            | Self::Permission { source, .. }
            | Self::Directory { source, .. }
            | Self::Other { source, .. } => Some(source),
        }
    }
}
