//! What the runtime adapters of mcp-wire share and no runtime is needed for: the handles a user holds, the mailbox between
//! handles and core, and the process tree.

pub mod client;
pub mod process;
pub mod server;
#[cfg(unix)]
pub mod stdio;
