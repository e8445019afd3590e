//! Owns what a client tells of the server it is connected to, as a value. It must not know how it was learned.

use mcp_wire::client::{Connection, Facts};
use mcp_wire::{Era, JsonBuf};

/// What is known of a server once the connection is established. All but era and version is the server's own word.
///
/// ```
/// # use mcp_wire_driver::client::ServerFacts;
/// fn title(facts: &ServerFacts) -> String {
///     format!("{} server, version {}", facts.era.as_str(), facts.version)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFacts {
    /// The era of the connection.
    pub era: Era,
    /// The protocol version.
    pub version: String,
    /// `serverInfo`: name, version and the like.
    pub server_info: Option<JsonBuf>,
    /// `capabilities`.
    pub capabilities: Option<JsonBuf>,
    /// `instructions`.
    pub instructions: Option<String>,
    /// The result of `server/discover` or, of a legacy server, of `initialize`, as it stands on the wire. `None` where a known version made the
    /// question needless; then the rest is not known either.
    pub result: Option<JsonBuf>,
}

impl ServerFacts {
    pub(super) fn of(connection: &Connection) -> Option<Self> {
        let (era, version) = (connection.era()?, connection.version()?.to_owned());
        let facts = connection.facts();
        Some(Self {
            era,
            version,
            server_info: facts.and_then(Facts::server_info).map(JsonBuf::from),
            capabilities: facts.and_then(Facts::capabilities).map(JsonBuf::from),
            instructions: facts.and_then(Facts::instructions).map(std::borrow::Cow::into_owned),
            result: facts.map(Facts::result).map(JsonBuf::from),
        })
    }
}
