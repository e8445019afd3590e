//! Owns the second round of a request that needs input: its params with the answers in them (MSG-15). It must not know how either round is
//! sent.

use alloc::string::String;
use alloc::vec::Vec;

use super::peek::member;
use crate::{Json, JsonBuf, encode};

/// What a server wants to know before it answers: the parts of an `input_required` result, unchanged.
///
/// ```
/// use mcp_wire::Json;
/// use mcp_wire::client::InputRequired;
///
/// let result = Json::parse(r#"{"resultType":"input_required","inputRequests":{"q":{}},"requestState":"s"}"#)?;
/// let required = InputRequired::of(result);
/// let params = Json::parse(r#"{"name":"ask"}"#)?;
/// let again = required.params(Some(params), Json::parse(r#"{"q":{"action":"accept"}}"#)?);
/// assert_eq!(again.as_json().get(), r#"{"name":"ask","inputResponses":{"q":{"action":"accept"}},"requestState":"s"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct InputRequired<'a> {
    result: Json<'a>,
}

impl<'a> InputRequired<'a> {
    /// Looks into a result of that kind.
    #[must_use]
    pub const fn of(result: Json<'a>) -> Self {
        Self { result }
    }

    /// `inputRequests`: an object with a request for each thing the server wants to know.
    #[must_use]
    pub fn requests(self) -> Option<Json<'a>> {
        member(self.result, "inputRequests")
    }

    /// `requestState`, which goes back as it came.
    #[must_use]
    pub fn state(self) -> Option<Json<'a>> {
        member(self.result, "requestState")
    }

    /// The params of the next round: those of the first, with `inputResponses` and the state. It is a new request, with a new id.
    #[must_use]
    pub fn params(self, params: Option<Json<'_>>, responses: Json<'_>) -> JsonBuf {
        let mut out = Vec::new();
        let mut object = encode::Object::open(&mut out);
        let rounds = ["inputResponses", "requestState"];
        for (name, value) in params.into_iter().flat_map(Json::members).filter(|(name, _)| !rounds.contains(&&**name)) {
            encode::raw(object.member(&name), value.get());
        }
        encode::raw(object.member("inputResponses"), responses.get());
        if let Some(state) = self.state() {
            encode::raw(object.member("requestState"), state.get());
        }
        object.close();
        // It is made of JSON, which is text.
        JsonBuf::from(Json::trusted(&String::from_utf8(out).unwrap_or_default()))
    }
}
