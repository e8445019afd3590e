//! Owns `mcp-call`: a client for any stdio server, for people, scripts and tests. It must not know frames; the adapter does.

pub mod args;
mod base64;
mod event;
mod input;
mod output;
mod print_human;
mod print_json;
#[cfg_attr(windows, path = "reader_windows.rs")]
mod reader;
mod replay;
mod requests;
mod run;
mod script;
mod session;
#[cfg_attr(windows, path = "signals_tokio_windows.rs")]
mod signals_tokio;
mod tape;
mod tape_config;
mod tape_entry;
mod text;
mod wait;
#[cfg(unix)]
mod wait_poll;
mod wait_smol;
mod wait_tokio;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use args::{Arguments, Options, Task, Work};
use output::Printer;
use print_human::HumanPrinter;
use print_json::JsonPrinter;
use replay::ReplayError;
use run::{Plan, RunError};

use crate::runtime::Runtime;

/// One sentence on standard error. That it cannot be written is no reason to do anything else.
fn complain(what: &dyn fmt::Display) {
    let _ = writeln!(io::stderr(), "mcp-call: {what}");
}

/// Replays the text of a tape and shows nothing: the exit status of the run that it recorded, and how many events it has.
///
/// # Errors
/// What is wrong with the tape, in a sentence.
pub fn replay_tape(text: &str) -> Result<(u8, usize), String> {
    let mut events = 0;
    let status = replay::replay_text(text, |_| events += 1).map_err(|error| error.to_string())?;
    Ok((status, events))
}

/// The program: reads its command line, runs, and returns its exit status.
#[must_use]
pub fn main() -> ExitCode {
    let Arguments { task, json, verbose } = match args::parse(std::env::args_os().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            complain(&error);
            return ExitCode::from(2);
        }
    };
    log(verbose, json);
    let status = match task {
        Task::Help => print(args::HELP),
        Task::Version => print(concat!("mcp-call ", env!("CARGO_PKG_VERSION"))),
        Task::Replay(tape) if json => play(&tape, JsonPrinter::default()),
        Task::Replay(tape) => play(&tape, HumanPrinter::new(false)),
        Task::Call { options, work, command } => {
            let single = matches!(work, Work::Script { single: true, .. });
            let ran = if json {
                run(*options, work, &command, JsonPrinter::default())
            } else {
                run(*options, work, &command, HumanPrinter::new(single))
            };
            match ran {
                Ok(status) => status,
                Err(RunError::Usage(error)) => {
                    complain(&error);
                    2
                }
                Err(RunError::System(what, error)) => {
                    complain(&format_args!("{what}: {error}"));
                    1
                }
            }
        }
    };
    ExitCode::from(status)
}

fn run(options: Options, work: Work, command: &[OsString], printer: impl Printer) -> Result<u8, RunError> {
    let runtime = options.runtime;
    let plan = Plan::new(options, work, command)?;
    match runtime {
        Runtime::Tokio => wait_tokio::run(plan, printer),
        Runtime::Smol => wait_smol::run(plan, printer),
        #[cfg(unix)]
        Runtime::Poll => wait_poll::run(plan, printer),
    }
}

fn log(verbose: u8, json: bool) {
    let level = match verbose {
        // What the warnings say is said in sentences.
        0 if !json => return,
        0 => tracing::Level::WARN,
        1 => tracing::Level::INFO,
        _ => tracing::Level::DEBUG,
    };
    tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level).with_target(true).init();
}

fn print(text: &str) -> u8 {
    u8::from(writeln!(io::stdout(), "{text}").is_err())
}

fn play(tape: &Path, mut printer: impl Printer) -> u8 {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut shown = Ok(());
    let played = replay::replay(tape, |event| {
        if shown.is_ok() {
            shown = printer.show(&event, &mut out);
        }
    });
    printer.finish();
    let shown = shown.and_then(|()| out.flush());
    match (played, shown) {
        (Err(error @ ReplayError::Tape(_)), _) => {
            complain(&error);
            2
        }
        (Err(error @ ReplayError::Differs { .. }), _) => {
            complain(&error);
            4
        }
        (Ok(_), Err(_)) => 1,
        (Ok(status), Ok(())) => status,
    }
}
