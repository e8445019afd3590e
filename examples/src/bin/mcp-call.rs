//! Owns nothing: the program `mcp-call` is [`mcp_wire_examples::call`].

use std::process::ExitCode;

fn main() -> ExitCode {
    mcp_wire_examples::call::main()
}
