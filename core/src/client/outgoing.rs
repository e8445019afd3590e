//! Owns the text of what a client writes: requests with their metadata, notifications, cancellations.
//! It must not know when anything is written.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::Config;
use super::peek::{self, Finders};
use crate::config::REASON_LIMIT;
use crate::json::Entry;
use crate::{Era, Id, IdBuf, Json, SendError, encode};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const INFO: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Requests that the core sends itself, or that belong to another era.
const RESERVED_REQUESTS: [&str; 2] = ["initialize", "subscriptions/listen"];
/// Notifications that the core sends itself, that belong to another era, or that a modern client has no request for.
const RESERVED_NOTIFICATIONS: [&str; 3] =
    ["notifications/cancelled", "notifications/initialized", "notifications/progress"];

pub(super) fn check_request(method: &str) -> Result<(), SendError> {
    if RESERVED_REQUESTS.contains(&method) { Err(SendError::ReservedMethod) } else { encode::check_method(method) }
}

pub(super) fn check_notification(method: &str) -> Result<(), SendError> {
    if RESERVED_NOTIFICATIONS.contains(&method) { Err(SendError::ReservedMethod) } else { encode::check_method(method) }
}

/// The progress token of a request, as its frame gives it.
#[derive(Debug, Clone, Default)]
pub(super) enum Token {
    #[default]
    None,
    /// The id of the request.
    Minted,
    /// The caller's.
    Own(IdBuf),
}

/// A request or notification that is not encoded yet, or that may have to be encoded again. `Debug` shows no params (SEC-03).
#[derive(Clone)]
pub(super) struct Payload {
    pub(super) method: String,
    pub(super) params: Option<String>,
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload").field("method", &self.method).field("params", &self.params()).finish()
    }
}

impl Payload {
    pub(super) fn new(method: &str, params: Option<Json<'_>>) -> Self {
        Self { method: method.to_string(), params: params.map(|p| p.get().to_string()) }
    }

    /// What keeping one of this size costs, in bytes.
    pub(super) fn cost_of(method: &str, params: Option<Json<'_>>) -> usize {
        const OWN: usize = size_of::<Payload>() + size_of::<u64>();
        OWN + method.len() + params.map_or(0, |p| p.get().len())
    }

    pub(super) fn cost(&self) -> usize {
        Self::cost_of(&self.method, self.params())
    }

    pub(super) fn params(&self) -> Option<Json<'_>> {
        self.params.as_deref().map(Json::trusted)
    }
}

/// The caller's own progress token among the `_meta` members of its params, if there is one. It is taken over as if it had
/// been given as an option, so that its uniqueness is checked and its progress finds the way back (PRG-01).
pub(super) fn token_in(params: Json<'_>) -> Result<Token, SendError> {
    match peek::member(params, "_meta").and_then(|meta| peek::member(meta, "progressToken")) {
        Some(token) => Id::parse(token.get()).map(|id| Token::Own(id.into())).ok_or(SendError::InvalidToken),
        None => Ok(Token::None),
    }
}

/// The params of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Params<'a> {
    pub(super) text: Json<'a>,
    /// They may have a `_meta` of their own, so that the core's has to be merged with it.
    pub(super) may_have_meta: bool,
}

impl<'a> Params<'a> {
    pub(super) const EMPTY: Params<'static> = Params { text: Json::EMPTY, may_have_meta: false };

    pub(super) fn new(text: Option<Json<'a>>, finders: &Finders) -> Self {
        text.map_or(Params::EMPTY, |text| Self { text, may_have_meta: finders.may_have_meta(text) })
    }
}

/// Writes frames for one protocol version.
#[derive(Debug)]
pub(super) struct Envelope {
    /// The core's members of `_meta`, without braces (META-01).
    meta: Vec<u8>,
    /// Whether `clientInfo` is among them.
    info: bool,
    /// The version has no metadata: what is the modern era's stays away from it (META-08).
    legacy: bool,
}

impl Envelope {
    pub(super) fn new(config: &Config, version: &str) -> Self {
        if Era::of(version) == Era::Legacy {
            return Self { meta: Vec::new(), info: false, legacy: true };
        }
        let mut meta = Vec::new();
        let mut member = |key: &str, value: &dyn Fn(&mut Vec<u8>)| {
            if !meta.is_empty() {
                meta.push(b',');
            }
            encode::string(&mut meta, key);
            meta.push(b':');
            value(&mut meta);
        };
        member(VERSION, &|out| encode::string(out, version));
        if let Some(info) = &config.client_info {
            member(INFO, &|out| encode::raw(out, info.as_json().get()));
        }
        member(CAPABILITIES, &|out| encode::raw(out, config.capabilities.as_json().get()));
        encode::strip_line_breaks(&mut meta, 0);
        Self { meta, info: config.client_info.is_some(), legacy: false }
    }

    /// About what a request takes besides its method and params, in bytes.
    pub(super) fn overhead(&self) -> usize {
        self.meta.len() + 128
    }

    /// A request. The caller's `_meta` members stay but for the keys that are the core's (META-06).
    pub(super) fn request(&self, out: &mut Vec<u8>, id: u64, method: &str, params: Params<'_>, token: &Token) {
        let Params { text: params, may_have_meta } = params;
        out.reserve(params.get().len() + method.len() + self.overhead());
        encode::raw(out, r#"{"jsonrpc":"2.0","id":"#);
        encode::uint(out, id);
        encode::raw(out, r#","method":"#);
        encode::string(out, method);
        if self.legacy {
            legacy_params(out, id, Params { text: params, may_have_meta }, token);
            out.push(b'}');
            return;
        }
        encode::raw(out, r#","params":{"_meta":{"#);
        out.extend_from_slice(&self.meta);
        match token {
            Token::None => {}
            Token::Minted => {
                encode::raw(out, r#","progressToken":"#);
                encode::uint(out, id);
            }
            Token::Own(own) => {
                encode::raw(out, r#","progressToken":"#);
                encode::raw(out, own.as_id().token());
            }
        }
        if may_have_meta {
            self.merge(out, params);
        } else {
            out.push(b'}');
            let rest = params.get().get(1..).unwrap_or("}").trim_start_matches([' ', '\t', '\n', '\r']);
            if !rest.starts_with('}') {
                out.push(b',');
            }
            encode::raw(out, rest);
        }
        out.push(b'}');
    }

    /// Ends `_meta` and the params where the caller's params may have a `_meta` of their own.
    fn merge(&self, out: &mut Vec<u8>, params: Json<'_>) {
        for meta in params.entries().filter(|entry| entry.name == "_meta") {
            meta.value.entries().filter(|entry| !self.owns(&entry.name)).for_each(|entry| write_member(out, &entry));
        }
        out.push(b'}');
        params.entries().filter(|entry| entry.name != "_meta").for_each(|entry| write_member(out, &entry));
        out.push(b'}');
    }

    /// Whether a key of `_meta` is the core's.
    fn owns(&self, key: &str) -> bool {
        [VERSION, CAPABILITIES, "progressToken"].contains(&key) || (self.info && key == INFO)
    }
}

/// The params of a legacy request: the caller's as they are, but for the token, and for what only the modern era has.
fn legacy_params(out: &mut Vec<u8>, id: u64, params: Params<'_>, token: &Token) {
    let Params { text, may_have_meta } = params;
    let plain = matches!(token, Token::None) && !may_have_meta;
    if plain {
        if text.members().next().is_some() {
            encode::raw(out, r#","params":"#);
            encode::raw(out, text.get());
        }
        return;
    }
    let modern = [VERSION, INFO, CAPABILITIES, LOG_LEVEL, "progressToken"];
    let metas = || text.entries().filter(|entry| entry.name == "_meta").flat_map(|meta| meta.value.entries());
    let kept = || metas().filter(|entry| !modern.contains(&&*entry.name));
    encode::raw(out, r#","params":"#);
    let mut object = encode::Object::open(out);
    if !matches!(token, Token::None) || kept().next().is_some() {
        let mut meta = encode::Object::open(object.member("_meta"));
        match token {
            Token::None => {}
            Token::Minted => encode::uint(meta.member("progressToken"), id),
            Token::Own(own) => encode::raw(meta.member("progressToken"), own.as_id().token()),
        }
        kept().for_each(|entry| meta.copy(&entry));
        meta.close();
    }
    text.entries().filter(|entry| entry.name != "_meta").for_each(|entry| object.copy(&entry));
    object.close();
}

/// A further member, as it stands in another object.
fn write_member(out: &mut Vec<u8>, entry: &Entry<'_>) {
    out.push(b',');
    encode::raw(out, entry.token);
    out.push(b':');
    encode::raw(out, entry.value.get());
}

/// A notification of the caller's. A modern one needs no metadata.
pub(super) fn notification(out: &mut Vec<u8>, method: &str, params: Option<Json<'_>>) {
    encode::raw(out, r#"{"jsonrpc":"2.0","method":"#);
    encode::string(out, method);
    if let Some(params) = params {
        encode::raw(out, r#","params":"#);
        encode::raw(out, params.get());
    }
    out.push(b'}');
}

/// W-01: the request with this id is given up (CAN-01). The reason is cut at 1 KiB.
pub(super) fn cancellation(out: &mut Vec<u8>, id: u64, reason: Option<&str>) {
    encode::raw(out, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#);
    encode::uint(out, id);
    if let Some(reason) = reason {
        encode::raw(out, r#","reason":"#);
        encode::string(out, cut(reason));
    }
    encode::raw(out, "}}");
}

/// At most [`REASON_LIMIT`] bytes, cut between characters.
fn cut(reason: &str) -> &str {
    let mut end = reason.len().min(REASON_LIMIT);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JsonBuf;

    fn config() -> Config {
        Config::new("c", "1")
    }

    fn request(config: &Config, params: Option<&str>, token: &Token) -> String {
        let mut out = Vec::new();
        let params = params.map(|p| Json::parse(p).expect("JSON"));
        let params = Params::new(params, &Finders::new());
        Envelope::new(config, "2026-07-28").request(&mut out, 7, "m", params, token);
        let text = String::from_utf8(out).expect("UTF-8");
        let _: &serde_json::value::RawValue = serde_json::from_str(&text).expect("a frame is JSON");
        text
    }

    const META: &str = concat!(
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"#,
        r#""io.modelcontextprotocol/clientCapabilities":{}"#
    );

    // MSG-02, META-01: every request says its JSON-RPC version, its protocol version, who asks and what it can do.
    #[test]
    fn a_request_carries_its_metadata() {
        let wanted = |rest: &str| {
            alloc::format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"_meta":{{{META}}}{rest}}}}}"#)
        };
        assert_eq!(request(&config(), None, &Token::None), wanted(""));
        assert_eq!(request(&config(), Some("{}"), &Token::None), wanted(""));
        assert_eq!(request(&config(), Some("{ }"), &Token::None), wanted(""));
        assert_eq!(request(&config(), Some(r#"{"a":1,"b":[2]}"#), &Token::None), wanted(r#","a":1,"b":[2]"#));
        assert_eq!(request(&config(), Some(r#"{"a":"\u0041"}"#), &Token::None), wanted(r#","a":"\u0041""#));
    }

    // META-01: the name can be switched off, version and capabilities cannot.
    #[test]
    fn the_name_can_be_switched_off() {
        let mut config = config();
        config.client_info = None;
        config.capabilities = JsonBuf::from(Json::parse(r#"{"elicitation":{}}"#).expect("JSON"));
        let text = request(&config, None, &Token::None);
        assert!(!text.contains("clientInfo"));
        assert!(text.contains(r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}"#));
    }

    // META-06: the caller's metadata stays, trace keys too; the core's keys win, however they are spelt.
    #[test]
    fn metadata_of_the_caller_is_kept_and_the_core_wins() {
        let params = r#"{"a":1,"_meta":{"traceparent":"00-1","io.modelcontextprotocol/protocolVersion":"1","x":{"y":2},"io.modelcontextprotocol\/clientCapabilities":{"z":1},"progressToken":9},"b":2}"#;
        assert_eq!(
            request(&config(), Some(params), &Token::Minted),
            alloc::format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"_meta":{{{META},"progressToken":7,"traceparent":"00-1","x":{{"y":2}}}},"a":1,"b":2}}}}"#
            )
        );
        let hidden = request(&config(), Some(r#"{"\u005fmeta":{"x":1},"a":{"_meta":2}}"#), &Token::None);
        assert_eq!(
            hidden,
            alloc::format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"_meta":{{{META},"x":1}},"a":{{"_meta":2}}}}}}"#
            )
        );
    }

    // META-06: a name that has no other form, such as half of a surrogate pair, is not mended on the way; nor is one for a legacy server.
    #[test]
    fn names_leave_as_they_were_written() {
        let params = r#"{"\udeee\/":1,"_meta":{"\ud800":2}}"#;
        let sent = request(&config(), Some(params), &Token::None);
        assert!(sent.ends_with(r#""\ud800":2},"\udeee\/":1}}"#), "{sent}");
        let mut legacy = Vec::new();
        let params = Params { text: Json::parse(params).expect("JSON"), may_have_meta: true };
        legacy_params(&mut legacy, 7, params, &Token::Minted);
        assert_eq!(legacy, br#","params":{"_meta":{"progressToken":7,"\ud800":2},"\udeee\/":1}"#);
    }

    // PRG-01: a token is an integer or a string, and a token that the caller put into its metadata is one too.
    #[test]
    fn tokens_leave_as_they_were_given() {
        let own = Token::Own(IdBuf::from(Id::parse("\"p-9\"").expect("a string")));
        assert!(request(&config(), None, &own).contains(r#""progressToken":"p-9"}"#));
        assert!(request(&config(), None, &Token::Minted).contains(r#""progressToken":7}"#));
        let token = |text: &'static str| token_in(Json::parse(text).expect("JSON"));
        let Ok(Token::Own(own)) = token(r#"{"_meta":{"progressToken":"t"}}"#) else { panic!("a token") };
        assert_eq!(own.as_id().token(), "\"t\"");
        assert!(matches!(token(r#"{"progressToken":"t"}"#), Ok(Token::None)));
        assert_eq!(token(r#"{"_meta":{"progressToken":{}}}"#).err(), Some(SendError::InvalidToken));
    }

    // CAN-01, W-01: the exact text; a reason is cut at 1 KiB, between characters.
    #[test]
    fn a_cancellation_is_exact() {
        let text = |reason: Option<&str>| {
            let mut out = Vec::new();
            cancellation(&mut out, 7, reason);
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(
            text(Some("timeout")),
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"timeout"}}"#
        );
        assert_eq!(text(None), r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
        let long = "é".repeat(1000);
        assert!(text(Some(&long[..])).contains(&alloc::format!("\"{}\"", "é".repeat(512))));
        assert!(text(Some(&alloc::format!("a{long}"))).contains(&alloc::format!("\"a{}\"", "é".repeat(511))));
    }
}
