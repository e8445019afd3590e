//! Owns the text of what the server writes by itself: results of the core's own, acknowledgments, events and endings of listens,
//! notifications of handlers, requests to a legacy client. It must not know when any of it is written.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Config, LogLevel};
use crate::config::REASON_LIMIT;
use crate::encode::{Object, int, raw, string, strip_line_breaks, uint};
use crate::{Filter, Json};

/// The prefix of all keys that the protocol reserves in `_meta`.
pub(super) const PREFIX: &str = "io.modelcontextprotocol/";
pub(super) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(super) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub(super) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(super) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const SUBSCRIPTION_ID: &str = r#""_meta":{"io.modelcontextprotocol/subscriptionId":"#;

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL_ERROR: i64 = -32603;
pub(super) const MISSING_CAPABILITY: i64 = -32021;
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// Text that is the same in every frame, made once.
#[derive(Debug)]
pub(super) struct Texts {
    /// `["2026-07-28"]`
    pub(super) supported: Vec<u8>,
    /// The message of W-18, as a JSON string.
    pub(super) no_initialize: Vec<u8>,
    /// `"io.modelcontextprotocol/serverInfo":{...}` (META-05).
    pub(super) server_info: Option<Vec<u8>>,
    /// The result of W-14.
    pub(super) discover: Vec<u8>,
    /// What follows the version in the result of `initialize`.
    initialized: Vec<u8>,
}

impl Texts {
    pub(super) fn new(config: &Config) -> Self {
        let server_info = config.server_info.as_ref().map(|info| {
            let mut out = Vec::new();
            string(&mut out, SERVER_INFO);
            out.push(b':');
            raw(&mut out, info.as_json().get());
            strip_line_breaks(&mut out, 0);
            out
        });
        let mut supported = Vec::new();
        let mut message = String::from("Unsupported protocol version; this server speaks ");
        for (i, version) in config.versions.iter().enumerate() {
            supported.push(if i == 0 { b'[' } else { b',' });
            string(&mut supported, version);
            if i > 0 {
                message.push_str(", ");
            }
            message.push_str(version);
        }
        supported.push(b']');
        message.push_str(" without initialize");
        let mut no_initialize = Vec::new();
        string(&mut no_initialize, &message);
        let discover = discover(config, &supported, server_info.as_deref());
        Self { supported, no_initialize, server_info, discover, initialized: initialized(config) }
    }
}

/// W-14
fn discover(config: &Config, supported: &[u8], server_info: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    raw(&mut out, r#"{"resultType":"complete","supportedVersions":"#);
    out.extend_from_slice(supported);
    raw(&mut out, r#","capabilities":"#);
    raw(&mut out, config.capabilities.as_json().get());
    if let Some(instructions) = &config.instructions {
        raw(&mut out, r#","instructions":"#);
        string(&mut out, instructions);
    }
    raw(&mut out, r#","ttlMs":0,"cacheScope":"private""#);
    if let Some(info) = server_info {
        raw(&mut out, r#","_meta":{"#);
        out.extend_from_slice(info);
        out.push(b'}');
    }
    out.push(b'}');
    strip_line_breaks(&mut out, 0);
    out
}

/// The result of `initialize` after its version.
fn initialized(config: &Config) -> Vec<u8> {
    let mut out = Vec::new();
    raw(&mut out, r#","capabilities":"#);
    raw(&mut out, config.capabilities.as_json().get());
    if let Some(info) = &config.server_info {
        raw(&mut out, r#","serverInfo":"#);
        raw(&mut out, info.as_json().get());
    }
    if let Some(instructions) = &config.instructions {
        raw(&mut out, r#","instructions":"#);
        string(&mut out, instructions);
    }
    out.push(b'}');
    strip_line_breaks(&mut out, 0);
    out
}

/// The id of an error response.
#[derive(Debug, Clone, Copy)]
pub(super) enum ErrorId<'a> {
    /// The token as it came (MSG-04).
    Token(&'a str),
    /// It could not be read, or naming it would answer another request (MSG-07, MSG-10).
    Null,
    /// The same, left out by option.
    Omitted,
}

/// Opens an error response, up to its message.
pub(super) fn open_error(out: &mut Vec<u8>, id: ErrorId<'_>, code: i64) {
    raw(out, r#"{"jsonrpc":"2.0","#);
    match id {
        ErrorId::Token(token) => {
            raw(out, r#""id":"#);
            raw(out, token);
            out.push(b',');
        }
        ErrorId::Null => raw(out, r#""id":null,"#),
        ErrorId::Omitted => {}
    }
    raw(out, r#""error":{"code":"#);
    int(out, code);
    raw(out, r#","message":"#);
}

/// An error response of any code, with or without data.
pub(super) fn error(out: &mut Vec<u8>, id: ErrorId<'_>, code: i64, message: &str, data: Option<Json<'_>>) {
    open_error(out, id, code);
    string(out, message);
    if let Some(data) = data {
        raw(out, r#","data":"#);
        raw(out, data.get());
    }
    raw(out, "}}");
}

/// W-08. The legacy era has no code of its own for it.
pub(super) fn missing_capability(out: &mut Vec<u8>, token: &str, required: Json<'_>, legacy: bool) {
    open_error(out, ErrorId::Token(token), if legacy { INVALID_PARAMS } else { MISSING_CAPABILITY });
    raw(out, r#""Missing required client capability","data":{"requiredCapabilities":"#);
    raw(out, required.get());
    raw(out, "}}}");
}

/// The longest start of `text` that is at most `limit` bytes long and ends between characters.
pub(super) fn cut(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let end = (0..=limit).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

/// Opens a result response, up to the result.
pub(super) fn open_result(out: &mut Vec<u8>, token: &str) {
    raw(out, r#"{"jsonrpc":"2.0","id":"#);
    raw(out, token);
    raw(out, r#","result":"#);
}

/// W-17, and what a legacy request with nothing to say is answered with.
pub(super) fn empty_result(out: &mut Vec<u8>, token: &str) {
    open_result(out, token);
    raw(out, "{}}");
}

/// The result of `initialize` (LEG-03).
pub(super) fn opened(out: &mut Vec<u8>, token: &str, version: &str, texts: &Texts) {
    open_result(out, token);
    raw(out, r#"{"protocolVersion":"#);
    string(out, version);
    out.extend_from_slice(&texts.initialized);
    out.push(b'}');
}

/// W-14
pub(super) fn discovered(out: &mut Vec<u8>, token: &str, texts: &Texts) {
    open_result(out, token);
    out.extend_from_slice(&texts.discover);
    out.push(b'}');
}

/// Opens a notification, up to its `params` and their brace.
fn open_notification(out: &mut Vec<u8>, method: &str) {
    raw(out, r#"{"jsonrpc":"2.0","method":"#);
    raw(out, method);
    raw(out, r#","params":{"#);
}

/// W-10
pub(super) fn acknowledgment(out: &mut Vec<u8>, token: &str, granted: &Filter) {
    open_notification(out, r#""notifications/subscriptions/acknowledged""#);
    raw(out, SUBSCRIPTION_ID);
    raw(out, token);
    raw(out, r#"},"notifications":{"#);
    let mut comma = false;
    let mut member = |out: &mut Vec<u8>, text: &str| {
        if comma {
            out.push(b',');
        }
        comma = true;
        raw(out, text);
    };
    if granted.tools_list_changed {
        member(out, r#""toolsListChanged":true"#);
    }
    if granted.prompts_list_changed {
        member(out, r#""promptsListChanged":true"#);
    }
    if granted.resources_list_changed {
        member(out, r#""resourcesListChanged":true"#);
    }
    if !granted.resource_subscriptions.is_empty() {
        member(out, r#""resourceSubscriptions":["#);
        for (i, uri) in granted.resource_subscriptions.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            string(out, uri);
        }
        out.push(b']');
    }
    raw(out, "}}}");
}

/// W-11: `method` is a JSON string. Without a token it is the same for a legacy client (LEG-08).
pub(super) fn event(out: &mut Vec<u8>, token: Option<&str>, method: &str, uri: Option<&str>) {
    if token.is_none() && uri.is_none() {
        raw(out, r#"{"jsonrpc":"2.0","method":"#);
        raw(out, method);
        out.push(b'}');
        return;
    }
    open_notification(out, method);
    if let Some(token) = token {
        raw(out, SUBSCRIPTION_ID);
        raw(out, token);
        out.push(b'}');
    }
    if let Some(uri) = uri {
        raw(out, if token.is_some() { r#","uri":"# } else { r#""uri":"# });
        string(out, uri);
    }
    raw(out, "}}");
}

/// W-12
pub(super) fn listen_result(out: &mut Vec<u8>, token: &str, texts: &Texts) {
    open_result(out, token);
    raw(out, r#"{"resultType":"complete","#);
    raw(out, SUBSCRIPTION_ID);
    raw(out, token);
    if let Some(info) = &texts.server_info {
        out.push(b',');
        out.extend_from_slice(info);
    }
    raw(out, "}}}");
}

/// W-02
pub(super) fn listen_ended(out: &mut Vec<u8>, token: &str) {
    open_notification(out, r#""notifications/cancelled""#);
    raw(out, SUBSCRIPTION_ID);
    raw(out, token);
    raw(out, r#"},"requestId":"#);
    raw(out, token);
    raw(out, r#","reason":"server shutdown"}}"#);
}

/// Progress of a request. The numbers are finite.
pub(super) fn progress(out: &mut Vec<u8>, token: &str, progress: f64, total: Option<f64>, message: Option<&str>) {
    open_notification(out, r#""notifications/progress""#);
    raw(out, r#""progressToken":"#);
    raw(out, token);
    raw(out, r#","progress":"#);
    number(out, progress);
    if let Some(total) = total {
        raw(out, r#","total":"#);
        number(out, total);
    }
    if let Some(message) = message {
        raw(out, r#","message":"#);
        string(out, message);
    }
    raw(out, "}}");
}

/// A finite number: integers without a fraction, so that peers that want integers are content.
fn number(out: &mut Vec<u8>, value: f64) {
    /// Up to here every integer has its own double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value % 1.0 == 0.0 && value.abs() <= EXACT {
        // In range, and without a fraction: the cast is exact.
        int(out, value as i64);
    } else if let Ok(text) = serde_json::to_string(&value) {
        raw(out, &text);
    } else {
        out.push(b'0');
    }
}

/// A request to a legacy client. With `token`, its id is its progress token too; a `progressToken` in the params gives way to it.
pub(super) fn client_request(out: &mut Vec<u8>, id: u64, method: &str, params: Option<Json<'_>>, token: bool) {
    raw(out, r#"{"jsonrpc":"2.0","id":"#);
    uint(out, id);
    raw(out, r#","method":"#);
    string(out, method);
    if token {
        let params = params.unwrap_or(Json::EMPTY);
        raw(out, r#","params":"#);
        let mut object = Object::open(out);
        let mut meta = Object::open(object.member("_meta"));
        uint(meta.member("progressToken"), id);
        let given = params.entries().filter(|entry| entry.name == "_meta").flat_map(|given| given.value.entries());
        given.filter(|entry| entry.name != "progressToken").for_each(|entry| meta.copy(&entry));
        meta.close();
        params.entries().filter(|entry| entry.name != "_meta").for_each(|entry| object.copy(&entry));
        object.close();
    } else if let Some(params) = params {
        raw(out, r#","params":"#);
        raw(out, params.get());
    }
    out.push(b'}');
}

/// A notification to a legacy client.
pub(super) fn client_notification(out: &mut Vec<u8>, method: &str, params: Option<Json<'_>>) {
    raw(out, r#"{"jsonrpc":"2.0","method":"#);
    string(out, method);
    if let Some(params) = params {
        raw(out, r#","params":"#);
        raw(out, params.get());
    }
    out.push(b'}');
}

/// W-01, from the server: its request to a legacy client is given up. The reason is cut at [`REASON_LIMIT`].
pub(super) fn cancellation(out: &mut Vec<u8>, id: u64, reason: Option<&str>) {
    open_notification(out, r#""notifications/cancelled""#);
    raw(out, r#""requestId":"#);
    uint(out, id);
    if let Some(reason) = reason {
        raw(out, r#","reason":"#);
        string(out, cut(reason, REASON_LIMIT));
    }
    raw(out, "}}");
}

/// A log message of a request.
pub(super) fn log(out: &mut Vec<u8>, level: LogLevel, logger: Option<&str>, data: Json<'_>) {
    open_notification(out, r#""notifications/message""#);
    raw(out, r#""level":"#);
    string(out, level.as_str());
    if let Some(logger) = logger {
        raw(out, r#","logger":"#);
        string(out, logger);
    }
    raw(out, r#","data":"#);
    raw(out, data.get());
    raw(out, "}}");
}
