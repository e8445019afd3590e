//! Owns the text of what the server writes by itself: refusals, the discover result, acknowledgments, events and endings of
//! listens, notifications of handlers. It must not know when any of it is written.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Config, LogLevel};
use crate::config::NAME_LIMIT;
use crate::encode::{int, raw, string, strip_line_breaks, uint};
use crate::{Filter, Json};

/// The prefix of all keys that the protocol reserves in `_meta`.
pub(super) const PREFIX: &str = "io.modelcontextprotocol/";
pub(super) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(super) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
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
    supported: Vec<u8>,
    /// The message of W-18, as a JSON string.
    no_initialize: Vec<u8>,
    /// `"io.modelcontextprotocol/serverInfo":{...}` (META-05).
    pub(super) server_info: Option<Vec<u8>>,
    /// The result of W-14.
    pub(super) discover: Vec<u8>,
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
        Self { supported, no_initialize, server_info, discover }
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

/// Opens an error response, up to and with its message.
fn open_error(out: &mut Vec<u8>, id: ErrorId<'_>, code: i64) {
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

/// W-08
pub(super) fn missing_capability(out: &mut Vec<u8>, token: &str, required: Json<'_>) {
    open_error(out, ErrorId::Token(token), MISSING_CAPABILITY);
    raw(out, r#""Missing required client capability","data":{"requiredCapabilities":"#);
    raw(out, required.get());
    raw(out, "}}}");
}

/// Why the core refuses something by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal<'b> {
    /// W-03
    Parse,
    /// W-04
    Invalid,
    /// W-05
    UnknownMethod,
    /// W-06, by the key of the field.
    MissingMeta(&'static str),
    /// LOG-02
    LogLevel,
    /// The progress token is neither a string nor an integer.
    Token,
    /// `notifications` of a listen is no filter.
    Filter,
    /// W-07
    Version(Cow<'b, str>),
    /// W-09
    Busy,
    /// W-18
    Initialize(Cow<'b, str>),
    /// W-19
    TooLong,
    /// W-20
    ShuttingDown,
    /// A handler ended without an answer.
    Internal,
    /// A handler's answer is larger than the outgoing queue.
    AnswerTooLarge,
    /// A handler's result is no result (MSG-12).
    InvalidResult,
}

impl Refusal<'_> {
    pub(super) const fn code(&self) -> i64 {
        match self {
            Self::Parse => PARSE_ERROR,
            Self::Invalid | Self::TooLong => INVALID_REQUEST,
            Self::UnknownMethod => METHOD_NOT_FOUND,
            Self::MissingMeta(_) | Self::LogLevel | Self::Token | Self::Filter => INVALID_PARAMS,
            Self::Version(_) | Self::Initialize(_) => UNSUPPORTED_VERSION,
            Self::Busy | Self::ShuttingDown | Self::Internal | Self::AnswerTooLarge | Self::InvalidResult => {
                INTERNAL_ERROR
            }
        }
    }

    /// Writes the error response. `line_limit` is for W-19.
    pub(super) fn write(&self, out: &mut Vec<u8>, id: ErrorId<'_>, texts: &Texts, line_limit: usize) {
        open_error(out, id, self.code());
        let message = match self {
            Self::Parse => r#""Parse error""#,
            Self::Invalid => r#""Invalid Request""#,
            Self::UnknownMethod => r#""Method not found""#,
            Self::MissingMeta(field) => {
                raw(out, r#""Invalid params: missing _meta field "#);
                raw(out, field);
                r#"""#
            }
            Self::LogLevel => r#""Invalid params: unknown log level""#,
            Self::Token => r#""Invalid params: progressToken must be a string or an integer""#,
            Self::Filter => r#""Invalid params: notifications must be a filter object""#,
            Self::Busy => r#""Server busy""#,
            Self::ShuttingDown => r#""Server shutting down""#,
            Self::Internal => r#""Internal error""#,
            Self::AnswerTooLarge => r#""Internal error: the answer is too large""#,
            Self::InvalidResult => r#""Internal error: the handler gave no valid result""#,
            Self::TooLong => {
                raw(out, r#""Message too large","data":{"limit":"#);
                uint(out, u64::try_from(line_limit).unwrap_or(u64::MAX));
                "}"
            }
            Self::Version(requested) => {
                raw(out, r#""Unsupported protocol version""#);
                supported(out, texts, requested);
                "}"
            }
            Self::Initialize(requested) => {
                out.extend_from_slice(&texts.no_initialize);
                supported(out, texts, requested);
                "}"
            }
        };
        raw(out, message);
        raw(out, "}}");
    }
}

/// The data of a version error, but for its closing brace. The requested version is peer text: it is echoed up to the limit of names.
fn supported(out: &mut Vec<u8>, texts: &Texts, requested: &str) {
    raw(out, r#","data":{"supported":"#);
    out.extend_from_slice(&texts.supported);
    raw(out, r#","requested":"#);
    string(out, cut(requested, NAME_LIMIT));
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

/// W-17
pub(super) fn pong(out: &mut Vec<u8>, token: &str) {
    open_result(out, token);
    raw(out, "{}}");
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

/// W-11: `method` is a JSON string.
pub(super) fn event(out: &mut Vec<u8>, token: &str, method: &str, uri: Option<&str>) {
    open_notification(out, method);
    raw(out, SUBSCRIPTION_ID);
    raw(out, token);
    out.push(b'}');
    if let Some(uri) = uri {
        raw(out, r#","uri":"#);
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
