//! Owns why the core refuses something by itself, and the error response that says so. It must not know when that is.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::answers::{
    ErrorId, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, Texts,
    UNSUPPORTED_VERSION, cut, open_error,
};
use crate::config::NAME_LIMIT;
use crate::encode::{raw, string, uint};

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
    /// `params` is no object (MSG-14).
    Params,
    /// The params of `initialize` name no version, or are wrong otherwise.
    Opening,
    /// The params of a legacy subscription name no URI.
    Uri,
    /// A request to a server that is legacy only, before the handshake.
    NotInitialized,
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
    /// A handler's result is of a kind that the legacy era does not have.
    ModernResult,
}

impl Refusal<'_> {
    pub(super) const fn code(&self) -> i64 {
        match self {
            Self::Parse => PARSE_ERROR,
            Self::Invalid | Self::TooLong | Self::NotInitialized => INVALID_REQUEST,
            Self::UnknownMethod => METHOD_NOT_FOUND,
            Self::MissingMeta(_)
            | Self::LogLevel
            | Self::Token
            | Self::Filter
            | Self::Params
            | Self::Opening
            | Self::Uri => INVALID_PARAMS,
            Self::Version(_) | Self::Initialize(_) => UNSUPPORTED_VERSION,
            Self::Busy
            | Self::ShuttingDown
            | Self::Internal
            | Self::AnswerTooLarge
            | Self::InvalidResult
            | Self::ModernResult => INTERNAL_ERROR,
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
            Self::Params => r#""Invalid params: params must be an object""#,
            Self::Opening => {
                r#""Invalid params: initialize takes a protocolVersion (a string), capabilities and clientInfo (objects, 64 KiB at most)""#
            }
            Self::Uri => r#""Invalid params: uri must be a string""#,
            Self::NotInitialized => r#""Invalid Request: the session begins with initialize""#,
            Self::Busy => r#""Server busy""#,
            Self::ShuttingDown => r#""Server shutting down""#,
            Self::Internal => r#""Internal error""#,
            Self::AnswerTooLarge => r#""Internal error: the answer is too large""#,
            Self::InvalidResult => r#""Internal error: the handler gave no valid result""#,
            Self::ModernResult => r#""Internal error: the negotiated protocol version has no such result""#,
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
