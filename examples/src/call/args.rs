//! Owns the command line of `mcp-call`: its options, their defaults and what they exclude. It must not know how any of it is
//! done; a mistake is one sentence.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_wire::{Eras, Json, JsonBuf, config as defaults};

use super::script::Op;
use crate::runtime::Runtime;

/// The text of `--help`.
pub const HELP: &str = "\
mcp-call: talk to a Model Context Protocol server over stdio

    mcp-call [OPTIONS] METHOD [PARAMS-JSON] -- COMMAND [ARG]...
    mcp-call [OPTIONS] --script FILE        -- COMMAND [ARG]...      (FILE `-`: standard input)
    mcp-call [--json] --replay FILE

Starts COMMAND as a server, sends the request(s), prints what happens, closes the server, and exits.

    --runtime tokio|smol|poll  what drives the core                                       [tokio]
    --era auto|modern|legacy   auto asks the server, and falls back to `initialize`       [auto]
    --protocol VERSION         preferred protocol version; one of the legacy era is that
                               of `initialize`                                            [2026-07-28]
    --timeout MS               time for each request                                      [60000]
    --max-timeout MS           progress restarts the clock, under this ceiling (implies
                               --progress); 0: it does not                                [0]
    --probe-timeout MS         time for the answer to the probe; after that the server
                               counts as legacy                                           [10000]
    --start-timeout MS         time from a start to an established connection; less where
                               the times above are set                                    [120000]
    --grace MS                 wait after each step of the shutdown                       [2000]
    --max-line BYTES           longest line accepted from the server                      [16777216]
    --restarts N               restarts when the server exits on its own                  [0]
    --lazy                     start the server at the first request of a script
    --idle-stop MS             stop the server after that long without work               [never]
    --no-process-group         signal the child alone, not its process group
    --env inherit|minimal      the server's environment                                   [inherit]
    --stderr inherit|null|tee|events
                               the server's standard error                                [tee]
    --capabilities JSON        what the client says that it can do; mcp-call answers no
                               question by itself, but a script can                       [{}]
    --progress                 ask for progress with each request
    --tape FILE                record a tape
    --replay FILE              print the events of a tape again, with no process
    --json                     one JSON object a line on standard output
    -v, -vv                    logs on standard error (info, debug)
    -h, --help                 this text
    -V, --version              the version

Exit status: 0 every request got a result; 1 one got an error; 2 usage; 3 the server did not start; 4 a request failed without
an answer; 128 + signal.";

/// A mistake on the command line or in a script, told in one sentence.
///
/// ```
/// let error = mcp_wire_examples::call::args::parse(["--json".into()]).unwrap_err();
/// assert!(error.to_string().contains("METHOD"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageError(pub(super) String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

pub(super) fn usage<T>(text: impl Into<String>) -> Result<T, UsageError> {
    Err(UsageError(text.into()))
}

/// What the server's environment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Environment {
    Inherit,
    Minimal,
}

/// What becomes of the server's standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stderr {
    Inherit,
    Null,
    Tee,
    Events,
}

/// What to ask the server.
#[derive(Debug)]
pub(super) enum Work {
    /// One request, with the key `"1"`, or a script that has been read.
    Script { ops: Vec<Op>, single: bool },
    /// A script on standard input, line by line.
    Input,
}

/// Who wants answers soon does not want to wait two minutes for a server that is silent; but a start may take so long, whatever a request may.
const SHORT_START: Duration = Duration::from_secs(10);

/// How the server is started and spoken to.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) runtime: Runtime,
    pub(super) eras: Eras,
    pub(super) protocol: String,
    pub(super) timeout: Duration,
    /// `None`: progress does not restart the clock.
    pub(super) max_timeout: Option<Duration>,
    pub(super) probe_timeout: Duration,
    pub(super) start_timeout: Duration,
    pub(super) grace: Duration,
    pub(super) max_line: usize,
    pub(super) restarts: u32,
    pub(super) lazy: bool,
    pub(super) idle_stop: Option<Duration>,
    pub(super) process_group: bool,
    pub(super) environment: Environment,
    pub(super) stderr: Stderr,
    pub(super) progress: bool,
    /// An object.
    pub(super) capabilities: JsonBuf,
    pub(super) tape: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            runtime: Runtime::default(),
            eras: Eras::Dual,
            protocol: defaults::PROTOCOL_VERSION.to_owned(),
            timeout: defaults::REQUEST_TIMEOUT,
            max_timeout: None,
            probe_timeout: defaults::PROBE_TIMEOUT,
            start_timeout: defaults::START_TIMEOUT,
            grace: defaults::SHUTDOWN_GRACE,
            max_line: defaults::LINE_LIMIT,
            restarts: 0,
            lazy: false,
            idle_stop: None,
            process_group: true,
            environment: Environment::Inherit,
            stderr: Stderr::Tee,
            progress: false,
            capabilities: JsonBuf::from(Json::EMPTY),
            tape: None,
        }
    }
}

/// What to do.
#[derive(Debug)]
pub(super) enum Task {
    Help,
    Version,
    Replay(PathBuf),
    Call { options: Box<Options>, work: Work, command: Vec<OsString> },
}

/// A whole command line.
#[derive(Debug)]
pub struct Arguments {
    pub(super) task: Task,
    pub(super) json: bool,
    /// How many `-v`.
    pub(super) verbose: u8,
}

/// Reads the command line (without the program's name), and the script that it names.
///
/// # Errors
/// What is wrong with either.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, UsageError> {
    let mut before: Vec<OsString> = arguments.into_iter().collect();
    // Everything after the first `--` is the server's, however it looks.
    let command = before.iter().position(|a| a == "--").map(|at| before.split_off(at).split_off(1));
    let mut options = Options::default();
    let (mut json, mut verbose) = (false, 0_u8);
    let (mut script, mut replay, mut free) = (None, None, Vec::new());
    let mut max_timeout = 0;
    let (mut start_timeout, mut timeout_set, mut probe_timeout_set) = (None, false, false);
    let mut live = None; // the first option that is for a live server only
    let mut parser = lexopt::Parser::from_args(before);
    while let Some(argument) = parser.next().map_err(sentence)? {
        use lexopt::Arg::{Long, Short, Value};
        let name = match argument {
            Short('h') | Long("help") => return Ok(Arguments { task: Task::Help, json, verbose }),
            Short('V') | Long("version") => return Ok(Arguments { task: Task::Version, json, verbose }),
            Short('v') => {
                verbose = verbose.saturating_add(1);
                continue;
            }
            Value(value) => {
                free.push(text(value, "METHOD and PARAMS-JSON")?);
                continue;
            }
            Short(c) => return usage(format!("there is no option -{}; see --help", c.escape_debug())),
            Long("json") => {
                json = true;
                continue;
            }
            Long("replay") => {
                replay = Some(PathBuf::from(parser.value().map_err(sentence)?));
                continue;
            }
            Long(name) => name.to_owned(),
        };
        let name = &*name;
        live.get_or_insert_with(|| format!("--{name}"));
        match name {
            "runtime" => options.runtime = Runtime::parse(&word(&mut parser, name)?).map_err(UsageError)?,
            "era" => {
                options.eras = match &*word(&mut parser, name)? {
                    "auto" => Eras::Dual,
                    "modern" => Eras::Modern,
                    "legacy" => Eras::Legacy,
                    other => return unknown(name, other, "auto, modern or legacy"),
                }
            }
            "protocol" => options.protocol = version(word(&mut parser, name)?)?,
            "timeout" => {
                options.timeout = milliseconds(&mut parser, name)?;
                timeout_set = true;
            }
            "max-timeout" => max_timeout = number(&mut parser, name)?,
            "probe-timeout" => {
                options.probe_timeout = milliseconds(&mut parser, name)?;
                probe_timeout_set = true;
            }
            "start-timeout" => start_timeout = Some(milliseconds(&mut parser, name)?),
            "grace" => options.grace = milliseconds(&mut parser, name)?,
            "max-line" => match usize::try_from(number(&mut parser, name)?) {
                Ok(bytes @ 1..) => options.max_line = bytes,
                _ => return usage("--max-line must be at least 1 and fit the memory of this machine"),
            },
            "restarts" => match u32::try_from(number(&mut parser, name)?) {
                Ok(restarts) => options.restarts = restarts,
                Err(_) => return usage("--restarts must be less than 4294967296"),
            },
            "lazy" => options.lazy = true,
            "idle-stop" => match milliseconds(&mut parser, name)? {
                Duration::ZERO => {
                    return usage("--idle-stop must be at least 1; leave it out to never stop the server");
                }
                time => options.idle_stop = Some(time),
            },
            "no-process-group" => options.process_group = false,
            "env" => {
                options.environment = match &*word(&mut parser, name)? {
                    "inherit" => Environment::Inherit,
                    "minimal" => Environment::Minimal,
                    other => return unknown(name, other, "inherit or minimal"),
                }
            }
            "stderr" => {
                options.stderr = match &*word(&mut parser, name)? {
                    "inherit" => Stderr::Inherit,
                    "null" => Stderr::Null,
                    "tee" => Stderr::Tee,
                    "events" => Stderr::Events,
                    other => return unknown(name, other, "inherit, null, tee or events"),
                }
            }
            "progress" => options.progress = true,
            "capabilities" => {
                options.capabilities = object("the value of --capabilities", &word(&mut parser, name)?)?;
            }
            "tape" => options.tape = Some(PathBuf::from(parser.value().map_err(sentence)?)),
            "script" => script = Some(parser.value().map_err(sentence)?),
            other => return usage(format!("there is no option --{}; see --help", other.escape_debug())),
        }
    }
    options.start_timeout = start_timeout.unwrap_or_else(|| {
        let handshake = if timeout_set { options.timeout } else { SHORT_START };
        let short = options.probe_timeout.saturating_add(handshake).max(SHORT_START);
        if timeout_set || probe_timeout_set { short.min(defaults::START_TIMEOUT) } else { defaults::START_TIMEOUT }
    });
    if max_timeout > 0 {
        let ceiling = Duration::from_millis(max_timeout);
        if ceiling < options.timeout {
            return usage(
                "--max-timeout must not be below --timeout: it is the ceiling of what progress can make of it",
            );
        }
        options.max_timeout = Some(ceiling);
        options.progress = true;
    }
    if let Some(tape) = replay {
        if let Some(option) = live {
            return usage(format!("--replay starts no server, so {option} has no place beside it"));
        }
        if !free.is_empty() || command.is_some() {
            return usage("--replay takes its requests from the tape: give no METHOD and no COMMAND");
        }
        return Ok(Arguments { task: Task::Replay(tape), json, verbose });
    }
    let work = work(script, free)?;
    let command = command.unwrap_or_default();
    if command.first().is_none_or(|program| program.is_empty()) {
        return usage("no COMMAND: put `--` and the server's command line at the end");
    }
    Ok(Arguments { task: Task::Call { options: Box::new(options), work, command }, json, verbose })
}

fn work(script: Option<OsString>, free: Vec<String>) -> Result<Work, UsageError> {
    if let Some(file) = script {
        if !free.is_empty() {
            return usage("give either METHOD or --script, not both");
        }
        if file == "-" {
            return Ok(Work::Input);
        }
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) => return usage(format!("the script {} cannot be read: {error}", Path::new(&file).display())),
        };
        return Ok(Work::Script { ops: super::script::parse(&text)?, single: false });
    }
    let mut free = free.into_iter();
    let Some(method) = free.next() else {
        return usage("no METHOD: name one (tools/list, say), or give --script FILE; see --help");
    };
    if method.is_empty() {
        return usage("METHOD must not be empty");
    }
    let params = free.next().map(|text| object("PARAMS-JSON", &text)).transpose()?;
    if free.next().is_some() {
        return usage("more than METHOD and PARAMS-JSON before `--`: quote the JSON as one argument");
    }
    let op = Op::Request { key: "1".to_owned(), method, params, timeout: None, idempotent: false };
    super::script::check_method(&op).map_err(UsageError)?;
    Ok(Work::Script { ops: vec![op], single: true })
}

fn object(what: &str, text: &str) -> Result<JsonBuf, UsageError> {
    match Json::parse(text) {
        Ok(json) if json.is_object() => Ok(one_line(json)),
        Ok(_) => usage(format!("{what} must be a JSON object")),
        Err(error) => usage(format!("{what} is not JSON: {error}")),
    }
}

/// Line breaks between tokens, as a shell argument may have them, would tear the lines of a tape. Within a string there are none.
fn one_line(json: Json<'_>) -> JsonBuf {
    let text = json.get().replace(['\n', '\r'], " ");
    Json::parse(&text).map_or_else(|_| JsonBuf::from(json), JsonBuf::from)
}

fn sentence(error: lexopt::Error) -> UsageError {
    UsageError(format!("{error}; see --help"))
}

fn text(value: OsString, what: &str) -> Result<String, UsageError> {
    value.into_string().map_err(|_| UsageError(format!("{what} must be UTF-8")))
}

fn word(parser: &mut lexopt::Parser, name: &str) -> Result<String, UsageError> {
    let value = parser.value().map_err(sentence)?;
    text(value, &format!("the value of --{name}"))
}

fn number(parser: &mut lexopt::Parser, name: &str) -> Result<u64, UsageError> {
    let word = word(parser, name)?;
    word.parse().map_err(|_| UsageError(format!("--{name} takes a whole number, not {word:?}")))
}

fn milliseconds(parser: &mut lexopt::Parser, name: &str) -> Result<Duration, UsageError> {
    number(parser, name).map(Duration::from_millis)
}

fn unknown<T>(name: &str, value: &str, known: &str) -> Result<T, UsageError> {
    usage(format!("--{name} is {known}, not {value:?}"))
}

/// A date. One of the legacy era is for `initialize` alone and changes nothing in the probe.
fn version(word: String) -> Result<String, UsageError> {
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let mut parts = word.split('-').map(|part| (part.len(), digits(part)));
    let date = [4, 2, 2].into_iter().all(|len| parts.next() == Some((len, true))) && parts.next().is_none();
    if date { Ok(word) } else { usage(format!("--protocol takes a version such as 2026-07-28, not {word:?}")) }
}

#[cfg(test)]
mod tests;
