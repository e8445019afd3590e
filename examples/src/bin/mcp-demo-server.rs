//! Owns nothing: the program `mcp-demo-server` is [`mcp_wire_examples::demo`].

use std::process::ExitCode;

fn main() -> ExitCode {
    mcp_wire_examples::demo::main(std::env::args_os().skip(1))
}
