//! Owns what is to be executed: program, arguments, directory, environment, stderr, process group.
//! It must not know how it is executed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// Variables that [`Environment::Minimal`] passes on.
#[cfg(unix)]
const MINIMAL: &[&str] = &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
#[cfg(not(unix))]
const MINIMAL: &[&str] = &[
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];

/// Which variables of this process the server gets (PRC-01).
///
/// ```
/// assert_eq!(mcp_wire_driver::process::Environment::default(), mcp_wire_driver::process::Environment::Inherit);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Environment {
    /// All of them.
    #[default]
    Inherit,
    /// `HOME LOGNAME PATH SHELL TERM USER` only (on Windows its own list).
    Minimal,
}

/// Where the server's standard error goes (LOG-05).
///
/// ```
/// assert_eq!(mcp_wire_driver::process::Stderr::default(), mcp_wire_driver::process::Stderr::Inherit);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Stderr {
    /// To ours, directly.
    #[default]
    Inherit,
    /// Nowhere.
    Null,
    /// To ours, and its tail is kept to explain an early exit: what hosts should choose.
    Tee,
    /// Line by line to the client's events and callback; its tail is kept too.
    Lines,
}

/// The command that starts a server: an argument vector, never a shell (PRC-01).
///
/// `Debug` names the variables that are set, not their values, and counts the arguments; [`describe`](Self::describe) shows all (SEC-02).
///
/// ```
/// use mcp_wire_driver::process::{ServerCommand, Stderr};
///
/// let command = ServerCommand::new("my-server").arg("--stdio").env("API_KEY", "secret").stderr(Stderr::Tee);
/// assert!(command.describe().contains("--stdio"));
/// assert!(!format!("{command:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct ServerCommand {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) current_dir: Option<PathBuf>,
    pub(crate) environment: Environment,
    /// `None` removes the variable.
    pub(crate) env: BTreeMap<OsString, Option<OsString>>,
    pub(crate) stderr: Stderr,
    pub(crate) process_group: bool,
}

impl ServerCommand {
    /// A command without arguments. A name without a slash is looked up in the `PATH` that the server will have, whatever this process's own is;
    /// a relative path starts at the server's directory. On Windows a name without an extension stands for those that `PATHEXT` lists, as far as
    /// they can be executed without a shell: `npx` is `npx.cmd`.
    #[must_use]
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            current_dir: None,
            environment: Environment::default(),
            env: BTreeMap::new(),
            stderr: Stderr::default(),
            process_group: true,
        }
    }

    /// Adds an argument, passed as it is.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments, passed as they are.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// The directory it starts in; this process's own otherwise.
    #[must_use]
    pub fn current_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.current_dir = Some(dir.as_ref().to_owned());
        self
    }

    /// Which variables of this process it gets.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets a variable. Secrets belong here, never into arguments, which every user of the machine can read.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.insert(name.as_ref().to_owned(), Some(value.as_ref().to_owned()));
        self
    }

    /// Removes a variable.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.env.insert(name.as_ref().to_owned(), None);
        self
    }

    /// Where its standard error goes.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Whether it gets a process group of its own, on Windows a job, to which signals go (PRC-02, on by default). Off: only the server itself is
    /// signalled, and what it leaves behind stays.
    #[must_use]
    pub fn process_group(mut self, own: bool) -> Self {
        self.process_group = own;
        self
    }

    /// Where its standard error goes.
    #[must_use]
    pub const fn stderr_policy(&self) -> Stderr {
        self.stderr
    }

    /// Whether it gets a process group of its own.
    #[must_use]
    pub const fn has_process_group(&self) -> bool {
        self.process_group
    }

    /// The program as it was given.
    #[must_use]
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// Everything that decides what is executed, one fact a line, for the consent that a host must ask for (SEC-02): the program, each
    /// argument, the directory, each change of the environment with its value. It holds what secrets the command holds: it is for the user, not
    /// for a log.
    ///
    /// Each text is quoted; control characters, marks that reorder text and bytes that are no UTF-8 are escaped: two commands that differ are
    /// shown differently, and no line can pass for two.
    ///
    /// ```
    /// use mcp_wire_driver::process::ServerCommand;
    ///
    /// let command = ServerCommand::new("npx").args(["-y", "a b;c"]).env("API_KEY", "k");
    /// assert_eq!(
    ///     command.describe(),
    ///     "program: \"npx\"\nargument: \"-y\"\nargument: \"a b;c\"\n\
    ///      environment: inherited\nsets: \"API_KEY\" to \"k\"\n"
    /// );
    /// ```
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = format!("program: {}\n", escaped(&self.program));
        for arg in &self.args {
            text += &format!("argument: {}\n", escaped(arg));
        }
        if let Some(dir) = &self.current_dir {
            text += &format!("directory: {}\n", escaped(dir.as_os_str()));
        }
        match self.environment {
            Environment::Inherit => text += "environment: inherited\n",
            Environment::Minimal => text += &format!("environment: only {}\n", MINIMAL.join(" ")),
        }
        for (name, value) in &self.env {
            match value {
                Some(value) => text += &format!("sets: {} to {}\n", escaped(name), escaped(value)),
                None => text += &format!("removes: {}\n", escaped(name)),
            }
        }
        text
    }

    /// The variables the server gets, where they are not simply inherited.
    pub(crate) fn variables(&self) -> BTreeMap<OsString, OsString> {
        let mut variables: BTreeMap<OsString, OsString> = match self.environment {
            Environment::Inherit => std::env::vars_os().collect(),
            Environment::Minimal => {
                MINIMAL.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?))).collect()
            }
        };
        for (name, value) in &self.env {
            // Under another spelling it is the same variable to Windows, and would win over this one.
            #[cfg(windows)]
            variables.retain(|known, _| !known.eq_ignore_ascii_case(name));
            match value {
                Some(value) => variables.insert(name.clone(), value.clone()),
                None => variables.remove(name),
            };
        }
        variables
    }
}

/// Quoted, and reversible: no two texts give the same.
fn escaped(text: &OsStr) -> String {
    let mut shown = String::from('"');
    for chunk in text.as_encoded_bytes().utf8_chunks() {
        // Characters that are not printable, whatever direction they write in, are escaped; a single quote need not be.
        shown += &chunk.valid().escape_debug().to_string().replace("\\'", "'");
        for byte in chunk.invalid() {
            shown += &format!("\\x{byte:02x}");
        }
    }
    shown.push('"');
    shown
}

impl fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCommand")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("current_dir", &self.current_dir)
            .field("environment", &self.environment)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("stderr", &self.stderr)
            .field("process_group", &self.process_group)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SEC-02: what will be executed can be shown in full
    #[test]
    fn describe_shows_the_exact_command() {
        let command = ServerCommand::new("/opt/my server")
            .args(["a b;c", "", "it's \"$HOME\" `x`", "--token=T0KEN"])
            .current_dir("/work dir")
            .env("API_KEY", "S3CRET")
            .env_remove("HOME");
        assert_eq!(
            command.describe(),
            r#"program: "/opt/my server"
argument: "a b;c"
argument: ""
argument: "it's \"$HOME\" `x`"
argument: "--token=T0KEN"
directory: "/work dir"
environment: inherited
sets: "API_KEY" to "S3CRET"
removes: "HOME"
"#
        );
    }

    // SEC-02: nothing in a text can hide, end its line, change the order on the screen, or pass for something else
    #[cfg(unix)]
    #[test]
    fn describe_cannot_be_tricked() {
        use std::os::unix::ffi::OsStrExt;

        let command = ServerCommand::new("x")
            .arg("a\nargument: b")
            .arg("\x1b[2K")
            .arg("\u{202e}dcba")
            .arg("\u{200b}")
            .arg(OsStr::from_bytes(b"caf\xe9"))
            .arg("caf\u{fffd}")
            .arg("caf\\xe9");
        assert_eq!(
            command.describe().lines().skip(1).take(7).collect::<Vec<_>>(),
            [
                r#"argument: "a\nargument: b""#,
                r#"argument: "\u{1b}[2K""#,
                r#"argument: "\u{202e}dcba""#,
                r#"argument: "\u{200b}""#,
                r#"argument: "caf\xe9""#,
                "argument: \"caf\u{fffd}\"",
                r#"argument: "caf\\xe9""#,
            ]
        );
    }

    // case 226: environment and arguments printed; Debug shows the names of variables and no value
    #[test]
    fn debug_holds_no_secret() {
        let command = ServerCommand::new("x").arg("--token=T0KEN").env("API_KEY", "S3CRET").env_remove("HOME");
        for debug in [format!("{command:?}"), format!("{command:#?}")] {
            assert!(debug.contains("API_KEY") && debug.contains("HOME"), "{debug}");
            assert!(!debug.contains("S3CRET") && !debug.contains("T0KEN"), "{debug}");
        }
    }

    // PRC-01: names of variables have no case on Windows, so what is set or removed hits the inherited one however it is spelled
    #[cfg(windows)]
    #[test]
    fn a_variable_is_set_whatever_its_spelling() {
        let named = |variables: &BTreeMap<OsString, OsString>| {
            variables.keys().filter(|name| name.eq_ignore_ascii_case("PATH")).cloned().collect::<Vec<_>>()
        };
        let set = ServerCommand::new("x").env("pAtH", "C:\\mine").variables();
        assert_eq!(named(&set), ["pAtH"]);
        assert_eq!(set.get(OsStr::new("pAtH")).map(OsString::as_os_str), Some(OsStr::new("C:\\mine")));
        assert!(named(&ServerCommand::new("x").env_remove("pAtH").variables()).is_empty());
    }

    // PRC-01: the allow list leaves everything else out
    #[test]
    fn the_minimal_environment_is_an_allow_list() {
        let variables = ServerCommand::new("x").environment(Environment::Minimal).env("MINE", "1").variables();
        assert!(variables.keys().all(|name| name == "MINE" || MINIMAL.iter().any(|known| name == known)));
        assert_eq!(variables.get(OsStr::new("MINE")).map(OsString::as_os_str), Some(OsStr::new("1")));
    }
}
