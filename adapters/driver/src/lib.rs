//! What the runtime adapters of mcp-wire share and no runtime is needed for: the handles a user holds, the mailbox between
//! handles and core, and the process tree.

pub mod client;
#[cfg(all(test, mcp_wire_model))]
mod model;
pub mod process;
pub mod server;
pub mod stdio;
mod sync;
#[cfg(windows)]
mod windows;

#[cfg(not(any(unix, windows)))]
compile_error!(
    "processes and standard streams are known on Unix and on Windows; elsewhere use the crate `mcp-wire` alone"
);
