//! Owns what a request must be before anything is done for it: its era (VER-10 to VER-13), the metadata it carries and the order of the
//! checks (META-07). Each request is judged by itself (RTE-10); this module keeps no state and must not know what is in flight or how much runs.

use alloc::borrow::Cow;
use alloc::string::String;

use super::answers::{CLIENT_CAPABILITIES, CLIENT_INFO, PREFIX, PROTOCOL_VERSION};
use super::refusals::Refusal;
use super::{Grants, LogLevel, Request, Session};
use crate::config::{CLIENT_FACTS_LIMIT, NAME_LIMIT};
use crate::{Id, Json};

/// What the checks make of a request.
#[derive(Debug)]
pub(super) enum Verdict<'b> {
    /// Answer it so.
    Refuse(Refusal<'b>),
    /// A `ping` of no era: W-17.
    Pong,
    /// W-14
    Discover,
    /// `subscriptions/listen`, with its `notifications` object.
    Listen(Json<'b>),
    /// `initialize`, well-formed.
    Initialize(Opening<'b>),
    /// `logging/setLevel` of a legacy session.
    SetLevel(LogLevel),
    /// `resources/subscribe` of a legacy session, or (false) `resources/unsubscribe`.
    Subscribe(Cow<'b, str>, bool),
    /// It is for a handler; with its progress token.
    Call(Request<'b>, Option<Id<'b>>),
}

/// What an `initialize` says.
#[derive(Debug)]
pub(super) struct Opening<'b> {
    pub(super) version: Cow<'b, str>,
    /// An object.
    pub(super) capabilities: Json<'b>,
    pub(super) client_info: Option<Json<'b>>,
}

/// What a request is judged by, besides itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Served<'a> {
    /// Modern versions.
    pub(super) versions: &'a [String],
    /// Whether legacy versions are served.
    pub(super) legacy: bool,
    /// The legacy session that is open, with its version.
    pub(super) session: Option<(Session, &'static str)>,
    pub(super) grants: Grants,
    /// The request is an element of a batch.
    pub(super) in_batch: bool,
}

/// The fields of `_meta` that the core reads, as they stand there.
#[derive(Debug, Default)]
struct Fields<'b> {
    version: Option<Json<'b>>,
    capabilities: Option<Json<'b>>,
    info: Option<Json<'b>>,
    level: Option<Json<'b>>,
    token: Option<Json<'b>>,
}

impl<'b> Fields<'b> {
    fn read(params: Option<Json<'b>>) -> Self {
        let mut fields = Self::default();
        // The search ends at the first `_meta`. Clients write it first: then it is read where it stands, and where it ends need not be
        // known. The rest is not looked at.
        let meta = params.and_then(|params| match params.get().strip_prefix(r#"{"_meta":"#) {
            Some(rest) if rest.starts_with('{') => Some(Json::trusted(rest)),
            _ => member(params, "_meta"),
        });
        for (name, value) in meta.into_iter().flat_map(Json::members) {
            let field = match name.strip_prefix(PREFIX) {
                Some("protocolVersion") => &mut fields.version,
                Some("clientCapabilities") => &mut fields.capabilities,
                Some("clientInfo") => &mut fields.info,
                Some("logLevel") => &mut fields.level,
                None if name == "progressToken" => &mut fields.token,
                _ => continue,
            };
            field.get_or_insert(value);
        }
        fields
    }

    /// Whether the request says that it is modern. A progress token alone says nothing: legacy requests have it as well.
    fn claims_modern(&self) -> bool {
        self.version.is_some() || self.capabilities.is_some() || self.info.is_some() || self.level.is_some()
    }
}

fn member<'b>(object: Json<'b>, name: &str) -> Option<Json<'b>> {
    object.members().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// Judges a request from its era on; what comes before (frame, shape, duplicate id) and after (capacity) is the facade's.
pub(super) fn check<'b>(served: Served<'_>, id: Id<'b>, method: Cow<'b, str>, params: Option<Json<'b>>) -> Verdict<'b> {
    let fields = Fields::read(params);
    // A server that is legacy only knows no modern metadata: it is like any other.
    let claims_modern = fields.claims_modern() && !served.versions.is_empty();
    let verdict = match (&*method, served.session) {
        _ if claims_modern && served.in_batch => Err(Refusal::Invalid),
        _ if claims_modern => modern(served.versions, id, method, params, fields),
        ("ping", _) => Ok(Verdict::Pong),
        // LEG-10
        ("initialize", _) if served.in_batch => Err(Refusal::Invalid),
        ("initialize", _) if served.legacy => initialize(params),
        ("initialize", _) => {
            let requested =
                params.and_then(|p| member(p, "protocolVersion")).and_then(Json::as_str).unwrap_or_default();
            Err(Refusal::Initialize(requested))
        }
        (_, Some((session, version))) => legacy((session, version, served.grants), id, method, params, &fields),
        // VER-12: no era is chosen yet.
        _ if !served.versions.is_empty() => modern(served.versions, id, method, params, fields),
        // Probing clients take this for what it is: a server that wants a handshake.
        ("server/discover", None) => Err(Refusal::UnknownMethod),
        (_, None) => Err(Refusal::NotInitialized),
    };
    verdict.unwrap_or_else(Verdict::Refuse)
}

fn initialize(params: Option<Json<'_>>) -> Result<Verdict<'_>, Refusal<'_>> {
    let mut opening = Opening { version: Cow::Borrowed(""), capabilities: Json::EMPTY, client_info: None };
    let mut version = None;
    for (name, value) in params.into_iter().flat_map(Json::members) {
        match &*name {
            "protocolVersion" => version = value.as_str(),
            "capabilities" if value.is_object() => opening.capabilities = value,
            "clientInfo" if value.is_object() => opening.client_info = Some(value),
            // A client that says nothing of its capabilities has none; one that says something else is refused.
            "capabilities" | "clientInfo" => return Err(Refusal::Opening),
            _ => {}
        }
    }
    opening.version = version.ok_or(Refusal::Opening)?;
    let told = opening.capabilities.get().len() + opening.client_info.map_or(0, |info| info.get().len());
    if told > CLIENT_FACTS_LIMIT {
        return Err(Refusal::Opening);
    }
    Ok(Verdict::Initialize(opening))
}

/// Judges a request of a legacy session.
fn legacy<'b>(
    (session, version, grants): (Session, &'static str, Grants),
    id: Id<'b>,
    method: Cow<'b, str>,
    params: Option<Json<'b>>,
    fields: &Fields<'b>,
) -> Result<Verdict<'b>, Refusal<'b>> {
    let params = params.unwrap_or(Json::EMPTY);
    if !params.is_object() {
        return Err(Refusal::Params);
    }
    let token = match fields.token {
        None => None,
        Some(token) => Some(progress_token(token)?),
    };
    match &*method {
        "logging/setLevel" if grants.logging => {
            let level = member(params, "level").and_then(Json::as_str).and_then(|name| LogLevel::parse(&name));
            level.map(Verdict::SetLevel).ok_or(Refusal::LogLevel)
        }
        "resources/subscribe" | "resources/unsubscribe" if grants.subscribe => {
            let uri = member(params, "uri").and_then(Json::as_str).ok_or(Refusal::Uri)?;
            Ok(Verdict::Subscribe(uri, method == "resources/subscribe"))
        }
        // Without the capability there is no such method; the last two are the modern era's.
        "logging/setLevel"
        | "resources/subscribe"
        | "resources/unsubscribe"
        | "server/discover"
        | "subscriptions/listen" => Err(Refusal::UnknownMethod),
        _ => Ok(Verdict::Call(
            Request {
                id,
                method,
                params,
                version: Cow::Borrowed(version),
                session: Some(session),
                client_capabilities: None,
                client_info: None,
                log_level: None,
                wants_progress: token.is_some(),
            },
            token,
        )),
    }
}

fn modern<'b>(
    versions: &[String],
    id: Id<'b>,
    method: Cow<'b, str>,
    params: Option<Json<'b>>,
    fields: Fields<'b>,
) -> Result<Verdict<'b>, Refusal<'b>> {
    let version = fields.version.and_then(Json::as_str).ok_or(Refusal::MissingMeta(PROTOCOL_VERSION))?;
    let object = |json: Option<Json<'b>>| json.filter(|json| json.is_object());
    let capabilities = object(fields.capabilities).ok_or(Refusal::MissingMeta(CLIENT_CAPABILITIES))?;
    if fields.info.is_some() && object(fields.info).is_none() {
        return Err(Refusal::MissingMeta(CLIENT_INFO));
    }
    if !versions.iter().any(|served| *served == version) {
        return Err(Refusal::Version(version));
    }
    let log_level = match fields.level {
        None => None,
        Some(level) => Some(level.as_str().and_then(|name| LogLevel::parse(&name)).ok_or(Refusal::LogLevel)?),
    };
    let token = match fields.token {
        None => None,
        Some(token) => Some(progress_token(token)?),
    };
    // `_meta` was found in them, so they are an object (MSG-14).
    let params = params.unwrap_or(Json::EMPTY);
    match &*method {
        "server/discover" => Ok(Verdict::Discover),
        "subscriptions/listen" => object(member(params, "notifications")).map(Verdict::Listen).ok_or(Refusal::Filter),
        // VER-13: requests of the legacy era, gone from this one.
        "initialize" | "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
            Err(Refusal::UnknownMethod)
        }
        _ => Ok(Verdict::Call(
            Request {
                id,
                method,
                params,
                version,
                session: None,
                client_capabilities: Some(capabilities),
                client_info: fields.info,
                log_level,
                wants_progress: token.is_some(),
            },
            token,
        )),
    }
}

/// A string or an integer; one that is too long makes the frame unreadable (LIM-03).
fn progress_token(token: Json<'_>) -> Result<Id<'_>, Refusal<'_>> {
    let token = token.get();
    let kind = token.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit());
    Id::parse(token).ok_or(if kind && token.len() > NAME_LIMIT { Refusal::Invalid } else { Refusal::Token })
}
