//! Owns the `--json` output: one event a line. It must not know what leads to an event.

use std::io::{self, Write};

use super::output::Printer;
use super::session::Shown;

#[derive(Debug, Default)]
pub(super) struct JsonPrinter {
    line: Vec<u8>,
}

impl Printer for JsonPrinter {
    fn show(&mut self, shown: &Shown, out: &mut dyn Write) -> io::Result<()> {
        let Shown::Event(event) = shown else { return Ok(()) };
        self.line.clear();
        serde_json::to_writer(&mut self.line, event)?;
        self.line.push(b'\n');
        out.write_all(&self.line)
    }
}
