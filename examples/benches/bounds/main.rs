//! What a hostile peer costs: peak memory and time for each kind of flood, at a size and at sixteen times that size, in one process and in memory.
//!
//! `cargo bench -p mcp-wire-examples --bench bounds -- [--write] [TEXT]`; `--write` puts the table into `core/BOUNDS.md`, TEXT takes the rows that
//! contain it. Fails where memory or time grows faster than the row says.

mod client;
mod lines;
mod measure;
mod server;

use std::path::Path;
use std::process::ExitCode;

use measure::{Row, Unit, measure};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const BEGIN: &str = "<!-- what `--write` wrote begins -->\n";
const END: &str = "<!-- what `--write` wrote ends -->\n";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let write = arguments.iter().any(|argument| argument == "--write");
    let wanted = arguments.iter().find(|argument| !argument.starts_with("--"));

    let unit = Unit::measure(&client::answers());
    let mut table = String::from(
        "| what the peer does | how often | peak memory | at 16 times that | | bounded by | time a byte | at 16 times that | |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    print!("{table}");
    let mut failed = Vec::new();
    for row in lines::rows().into_iter().chain(client::rows()).chain(server::rows()) {
        if wanted.is_some_and(|text| !row.what.contains(text.as_str())) {
            continue;
        }
        let measured = measure(&row);
        let line = measured.line(&row, &unit);
        print!("{line}");
        table.push_str(&line);
        if !measured.holds() {
            failed.push(row.what);
        }
    }
    if !failed.is_empty() {
        eprintln!("grows faster than it may: {}", failed.join("; "));
        return ExitCode::FAILURE;
    }
    if write {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/BOUNDS.md");
        let text = std::fs::read_to_string(&path).expect("core/BOUNDS.md is there");
        let (before, rest) = text.split_once(BEGIN).expect("the table has a place");
        let (_, after) = rest.split_once(END).expect("the table has an end");
        std::fs::write(&path, format!("{before}{BEGIN}\n{table}\n{END}{after}"))
            .expect("core/BOUNDS.md can be written");
    }
    ExitCode::SUCCESS
}

/// What rows are made of.
pub(crate) fn row(
    what: &'static str,
    small: u64,
    bounded_by: &'static str,
    run: impl Fn(u64, &mut measure::Meter) + 'static,
) -> Row {
    Row { what, small, bounded_by, run: Box::new(run) }
}
