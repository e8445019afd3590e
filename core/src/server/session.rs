//! Owns the legacy session: its opening (LEG-03), what the client told of itself, its log level and its subscriptions (LEG-08).
//! It must not know the requests of either side.

use alloc::borrow::Cow;

use super::answers;
use super::checks::{Opening, Served};
use super::refusals::Refusal;
use super::{Connection, Event, LogLevel, Session};
use crate::config::LEGACY_VERSIONS;
use crate::{Id, Json, JsonBuf};

/// The version of which alone a frame may be a batch (LEG-09).
const BATCHED: &str = "2025-03-26";
/// The version that knows tasks (LEG-11).
const WITH_TASKS: &str = "2025-11-25";

/// The session that is open, if one is.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: Option<Open>,
    last: u64,
}

#[derive(Debug)]
struct Open {
    session: Session,
    version: &'static str,
    capabilities: JsonBuf,
    client_info: Option<JsonBuf>,
    initialized: bool,
    level: Option<LogLevel>,
}

/// What a legacy client told of itself when it opened its session. It is the client's word, and no ground for decisions (META-08).
///
/// ```
/// # use mcp_wire::server::ClientFacts;
/// fn can_elicit(client: &ClientFacts<'_>) -> bool {
///     client.capabilities.members().any(|(name, _)| name == "elicitation")
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ClientFacts<'a> {
    /// The version of the session.
    pub version: &'static str,
    /// Its `capabilities`: an object.
    pub capabilities: Json<'a>,
    /// Its `clientInfo`.
    pub info: Option<Json<'a>>,
    /// Whether it has said `notifications/initialized`.
    pub initialized: bool,
}

impl Sessions {
    fn get(&self, session: Session) -> Option<&Open> {
        self.open.as_ref().filter(|open| open.session == session)
    }

    /// The least level of the session's log messages.
    pub(super) fn level(&self, session: Session) -> Option<LogLevel> {
        self.get(session).and_then(|open| open.level)
    }

    /// Whether requests may be sent to the client of a session, besides `ping` (LEG-08). `None`: it is not open.
    pub(super) fn is_ready(&self, session: Session) -> Option<bool> {
        self.get(session).map(|open| open.initialized)
    }

    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether a line may be an array of messages.
    pub(super) fn takes_batches(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.version == BATCHED)
    }

    /// Whether a request of this session may have begun a task.
    pub(super) fn knows_tasks(&self, session: Session) -> bool {
        self.get(session).is_some_and(|open| open.version == WITH_TASKS)
    }
}

impl Connection {
    /// What the client of a legacy session told of itself; `None` once another has been opened.
    #[must_use]
    pub fn client(&self, session: Session) -> Option<ClientFacts<'_>> {
        self.sessions.get(session).map(|open| ClientFacts {
            version: open.version,
            capabilities: open.capabilities.as_json(),
            info: open.client_info.as_ref().map(JsonBuf::as_json),
            initialized: open.initialized,
        })
    }

    /// What a request is judged by.
    pub(super) fn served(&self) -> Served<'_> {
        Served {
            versions: &self.config.versions,
            legacy: !self.config.legacy_versions.is_empty(),
            session: self.sessions.open.as_ref().map(|open| (open.session, open.version)),
            grants: self.grants,
            in_batch: self.batches.is_open(),
        }
    }

    /// Opens a session with the version asked for, or else the newest that is served (LEG-03). One that is open already ends: a relay may
    /// carry one client after the other over one stream.
    pub(super) fn initialize<'b>(&mut self, id: Id<'b>, opening: &Opening<'b>) -> Event<'b> {
        if self.is_draining() {
            return self.refuse(id, &Refusal::ShuttingDown);
        }
        let served = |version: &&str| self.config.legacy_versions.iter().any(|served| served == version);
        // The list is sorted, the newest first.
        let asked = LEGACY_VERSIONS.into_iter().filter(served).find(|version| **version == *opening.version);
        let Some(version) = asked.or_else(|| LEGACY_VERSIONS.into_iter().find(served)) else {
            return self.refuse(id, &Refusal::Initialize(opening.version.clone()));
        };
        self.end_client_requests();
        self.sessions.last += 1;
        let session = Session(self.sessions.last);
        self.sessions.open = Some(Open {
            session,
            version,
            capabilities: opening.capabilities.into(),
            client_info: opening.client_info.map(JsonBuf::from),
            initialized: false,
            level: self.config.legacy_log_level,
        });
        self.listens.open_session(self.grants);
        self.own(|out, texts| answers::opened(out, id.token(), version, texts));
        Event::Initialize { session, version }
    }

    /// The client is ready: what has changed meanwhile is told.
    pub(super) fn initialized(&mut self) {
        if let Some(open) = &mut self.sessions.open {
            open.initialized = true;
            self.listens.release_session();
            self.tell_missed();
        }
    }

    pub(super) fn set_level<'b>(&mut self, id: Id<'b>, level: LogLevel) -> Event<'b> {
        if let Some(open) = &mut self.sessions.open {
            open.level = Some(level);
        }
        self.reply_empty(id)
    }

    pub(super) fn subscribe<'b>(&mut self, id: Id<'b>, uri: Cow<'b, str>, subscribe: bool) -> Event<'b> {
        if self.is_draining() {
            return self.refuse(id, &Refusal::ShuttingDown);
        }
        if !subscribe {
            self.listens.unsubscribe(&uri);
        } else if !self.listens.subscribe(uri) {
            return self.refuse(id, &Refusal::Busy);
        }
        self.reply_empty(id)
    }
}
