//! Owns the command line of `mcp-demo-server`. It must not know how any of it is done; a mistake is one sentence.

use std::ffi::OsString;
use std::time::Duration;

use mcp_wire::Eras;
use mcp_wire::config as defaults;

use crate::runtime::Runtime;

pub(super) const HELP: &str = "\
mcp-demo-server: a Model Context Protocol server to talk to, over its standard input and output

    mcp-demo-server [OPTIONS]

    --runtime tokio|smol|poll   what drives the core                                        [tokio]
    --max-in-flight N      tools that run at the same time; as many wait                    [256]
    --max-line BYTES       longest line accepted                                            [16777216]
    --drain MS             time for running tools after the end of the input                [10000]
    --era ERA              the protocol era: modern, legacy, or dual, which judges each
                           request by itself                                                [dual]
    --no-stdout-guard      let println! and child processes write between the messages
    -h, --help             this text
    -V, --version          the version

Exit status: 0 when the input ended (or SIGTERM came) and the output could be written; 1 for an I/O error; 2 usage.";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) runtime: Runtime,
    pub(super) eras: Eras,
    pub(super) max_in_flight: usize,
    pub(super) max_line: usize,
    pub(super) drain: Duration,
    pub(super) stdout_guard: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            runtime: Runtime::default(),
            eras: Eras::Dual,
            max_in_flight: defaults::RUNNING_LIMIT,
            max_line: defaults::LINE_LIMIT,
            drain: defaults::DRAIN,
            stdout_guard: true,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task {
    Help,
    Version,
    Serve(Options),
}

/// Reads the command line (without the program's name).
pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Task, String> {
    use lexopt::Arg::{Long, Short, Value};
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(sentence)? {
        match argument {
            Short('h') | Long("help") => return Ok(Task::Help),
            Short('V') | Long("version") => return Ok(Task::Version),
            Long("runtime") => options.runtime = Runtime::parse(&word(&mut parser, "runtime")?)?,
            Long("era") => {
                options.eras = match &*word(&mut parser, "era")? {
                    "modern" => Eras::Modern,
                    "dual" => Eras::Dual,
                    "legacy" => Eras::Legacy,
                    other => return Err(format!("--era is modern, dual or legacy, not {other:?}")),
                }
            }
            Long("max-in-flight") => options.max_in_flight = count(&mut parser, "max-in-flight")?,
            Long("max-line") => options.max_line = count(&mut parser, "max-line")?,
            Long("drain") => options.drain = Duration::from_millis(number(&mut parser, "drain")?),
            Long("no-stdout-guard") => options.stdout_guard = false,
            Long(name) => return Err(format!("there is no option --{}; see --help", name.escape_debug())),
            Short(c) => return Err(format!("there is no option -{}; see --help", c.escape_debug())),
            Value(value) => return Err(format!("{value:?} has no place here; see --help")),
        }
    }
    Ok(Task::Serve(options))
}

fn sentence(error: lexopt::Error) -> String {
    format!("{error}; see --help")
}

fn word(parser: &mut lexopt::Parser, name: &str) -> Result<String, String> {
    let value = parser.value().map_err(sentence)?;
    value.into_string().map_err(|_| format!("the value of --{name} must be UTF-8"))
}

fn number(parser: &mut lexopt::Parser, name: &str) -> Result<u64, String> {
    let word = word(parser, name)?;
    word.parse().map_err(|_| format!("--{name} takes a whole number, not {word:?}"))
}

fn count(parser: &mut lexopt::Parser, name: &str) -> Result<usize, String> {
    match usize::try_from(number(parser, name)?) {
        Ok(count @ 1..) => Ok(count),
        _ => Err(format!("--{name} must be at least 1 and fit the memory of this machine")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &str) -> Result<Task, String> {
        parse(words.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        let Ok(Task::Serve(options)) = parse_words("") else { panic!("good") };
        assert_eq!(
            (options.max_in_flight, options.max_line, options.drain),
            (256, 16_777_216, Duration::from_secs(10))
        );
        assert!(options.stdout_guard);
        assert_eq!(options.eras, Eras::Dual);
        let words = "--runtime tokio --era modern --max-in-flight 2 --max-line 100 --drain 5 --no-stdout-guard";
        let Ok(Task::Serve(options)) = parse_words(words) else { panic!("good") };
        assert_eq!((options.max_in_flight, options.max_line, options.drain), (2, 100, Duration::from_millis(5)));
        assert!(!options.stdout_guard);
        assert_eq!(options.eras, Eras::Modern);
    }

    #[test]
    fn a_mistake_is_one_sentence() {
        for words in [
            "x",
            "--x",
            "-x",
            "--runtime threads",
            "--runtime",
            "--era",
            "--era x",
            "--drain x",
            "--max-line 0",
            "--max-in-flight 0",
        ] {
            let error = parse_words(words).expect_err(words);
            assert!(!error.is_empty() && !error.contains('\n'), "{words}: {error}");
        }
    }
}
