//! Owns the handles that reach a serving connection from outside its handlers: the publisher of changes, and stop.
//! It must not know who listens; the core does.

use std::sync::Arc;

use mcp_wire::server::Change;

use super::shared::Shared;

/// Tells the listens of a connection of changes (SUB-03, SUB-05), and its legacy client, which counts as one more listen (LEG-08). Cheap to
/// clone; does nothing after the end.
///
/// ```
/// use mcp_wire_driver::server::Server;
///
/// let server = Server::builder("demo", "1.0").build()?;
/// assert_eq!(server.publisher().tools_changed(), 0); // nobody listens
/// # Ok::<(), mcp_wire::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Publisher(Arc<Shared>);

impl Publisher {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    fn publish(&self, change: Change<'_>) -> usize {
        self.0.with(|state, now| state.connection.publish(change, now))
    }

    /// The tool list has changed. Returns how many listens were told.
    pub fn tools_changed(&self) -> usize {
        self.publish(Change::ToolsList)
    }

    /// The prompt list has changed. Returns how many listens were told.
    pub fn prompts_changed(&self) -> usize {
        self.publish(Change::PromptsList)
    }

    /// The resource list has changed. Returns how many listens were told.
    pub fn resources_changed(&self) -> usize {
        self.publish(Change::ResourcesList)
    }

    /// A resource has changed. Returns how many listens were told.
    pub fn resource_updated(&self, uri: &str) -> usize {
        self.publish(Change::Resource { subscribed: uri, uri })
    }

    /// A part of a resource that may be subscribed to has changed. Returns how many listens were told.
    pub fn resource_part_updated(&self, subscribed: &str, uri: &str) -> usize {
        self.publish(Change::Resource { subscribed, uri })
    }
}

/// Stops a serving connection from anywhere, also from a signal handler's task. Cheap to clone.
///
/// ```
/// use mcp_wire_driver::server::Server;
///
/// let server = Server::builder("demo", "1.0").build()?;
/// server.stop_handle().stop();
/// # Ok::<(), mcp_wire::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct StopHandle(Arc<Shared>);

impl StopHandle {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Ends serving as at the end of the input: listens are closed, handlers get the drain time, the rest is told that the server shuts
    /// down (SHD-06). Returns at once; `serve` returns when it is done, though its input is still open. A client that then does not read
    /// what it is owed for a second more counts as gone.
    pub fn stop(&self) {
        self.0.with(|state, now| state.stop(false, now));
    }

    /// The same for SIGTERM: no drain for handlers that do not stop. They are cancelled now, and what they have not answered is told
    /// that the server shuts down. `serve` returns within a second, whatever the client does.
    pub fn terminate(&self) {
        self.0.with(|state, now| state.stop(true, now));
    }
}
