//! Owns the few looks that the client takes into a payload: the `resultType`, a subscription id, the fields of progress.
//! It reads text that is known to be valid JSON, without parsing or copying it, and must not know what follows from what it finds.

use alloc::string::String;

use memchr::memmem::Finder;

use super::ResultKind;
use crate::{Id, Json};

/// The key in `_meta` that names the subscription of a notification (RTE-04).
pub(super) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The value of a member; the last one where there are several, as most parsers have it.
pub(super) fn member<'a>(object: Json<'a>, name: &str) -> Option<Json<'a>> {
    object.members().filter(|(key, _)| key == name).last().map(|(_, value)| value)
}

/// Prepared searches for the few names that payloads are looked through for. A name can be hidden behind `\u` escapes, so text
/// with such an escape counts as having every name: then a walk over the members decides.
#[derive(Debug)]
pub(super) struct Finders {
    escape: Finder<'static>,
    meta: Finder<'static>,
    result_type: Finder<'static>,
    subscription_id: Finder<'static>,
}

impl Finders {
    pub(super) fn new() -> Self {
        Self {
            escape: Finder::new("\\u"),
            meta: Finder::new("\"_meta\""),
            result_type: Finder::new("resultType"),
            // The slash of the key may be escaped (some encoders always do), so only what follows it is looked for.
            subscription_id: Finder::new("subscriptionId"),
        }
    }

    fn may_contain(&self, name: &Finder<'_>, text: Json<'_>) -> bool {
        let bytes = text.get().as_bytes();
        name.find(bytes).is_some() || self.escape.find(bytes).is_some()
    }

    /// Whether params may have a `_meta` member, at some depth.
    pub(super) fn may_have_meta(&self, params: Json<'_>) -> bool {
        self.may_contain(&self.meta, params)
    }

    /// The `resultType` of a result (MSG-13); `None` if it is one that nobody knows.
    pub(super) fn result_kind(&self, result: Json<'_>) -> Option<ResultKind> {
        const USUAL: &str = r#"{"resultType":"complete""#;
        if result.get().starts_with(USUAL) || !self.may_contain(&self.result_type, result) {
            return Some(ResultKind::Complete);
        }
        let Some(kind) = member(result, "resultType") else { return Some(ResultKind::Complete) };
        match kind.get() {
            r#""complete""# => Some(ResultKind::Complete),
            r#""input_required""# => Some(ResultKind::InputRequired),
            _ => match kind.deserialize::<String>().as_deref() {
                Ok("complete") => Some(ResultKind::Complete),
                Ok("input_required") => Some(ResultKind::InputRequired),
                _ => None,
            },
        }
    }

    /// The subscription id in the `_meta` of a notification's params: the value as it stands there.
    pub(super) fn subscription_id<'b>(&self, params: Option<Json<'b>>) -> Option<&'b str> {
        let params = params?;
        if !self.may_contain(&self.subscription_id, params) {
            return None;
        }
        member(member(params, "_meta")?, SUBSCRIPTION_ID).map(Json::get)
    }
}

/// Progress of one notification.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report<'b> {
    pub(super) token: Id<'b>,
    pub(super) progress: f64,
}

/// Reads the params of `notifications/progress`; `None` if they are not what the schema wants: a token, and a finite number.
pub(super) fn progress(params: Option<Json<'_>>) -> Option<Report<'_>> {
    let (mut token, mut progress) = (None, None);
    for (key, value) in params?.members() {
        match &*key {
            "progressToken" => token = Some(value.get()),
            "progress" => progress = Some(value.get()),
            _ => {}
        }
    }
    let progress = progress?;
    if !progress.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return None;
    }
    let progress = progress.parse::<f64>().ok().filter(|value| value.is_finite())?;
    Some(Report { token: Id::parse(token?)?, progress })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    // MSG-13: an absent resultType reads as complete, an unknown one is told apart, however it is spelt and wherever it stands.
    #[test]
    fn the_result_type_is_found_wherever_it_stands() {
        let kind = |text: &str| Finders::new().result_kind(Json::parse(text).expect("JSON"));
        let complete = Some(ResultKind::Complete);
        for text in [
            r#"{"resultType":"complete","a":1}"#,
            r#"{"a":{"resultType":"x"},"resultType" : "complete"}"#,
            r#"{"a":1}"#,
            r#"{"a":"\u0041"}"#,
            r#"{"a":"resultType","b":{"resultType":"x"}}"#,
            "{}",
            "[]",
            "null",
        ] {
            assert_eq!(kind(text), complete, "{text}");
        }
        assert_eq!(kind(r#"{"x":1,"resultType":"input_required"}"#), Some(ResultKind::InputRequired));
        assert_eq!(kind(r#"{"\u0072esultType":"input\u005frequired"}"#), Some(ResultKind::InputRequired));
        assert_eq!(kind(r#"{"resultType":"x"}"#), None);
        assert_eq!(kind(r#"{"resultType":null}"#), None);
        assert_eq!(kind(r#"{"resultType":"completed"}"#), None);
    }

    // RTE-04: encoders that escape the slash, or hide the key behind `\u`, name the same subscription.
    #[test]
    fn the_subscription_id_is_found_however_its_key_is_spelt() {
        let id = |text: &'static str| Finders::new().subscription_id(Some(Json::parse(text).expect("JSON")));
        assert_eq!(id(r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}"#), Some("3"));
        assert_eq!(id(r#"{"a":1,"_meta":{"b":2,"io.modelcontextprotocol\/subscriptionId":"L1"}}"#), Some(r#""L1""#));
        assert_eq!(id(r#"{"\u005fmeta":{"io.modelcontextprotocol/\u0073ubscriptionId":4}}"#), Some("4"));
        assert_eq!(id(r#"{"io.modelcontextprotocol/subscriptionId":3}"#), None);
        assert_eq!(id(r#"{"_meta":[]}"#), None);
        assert_eq!(Finders::new().subscription_id(None), None);
    }

    // case 057: a progress that is no finite number is no progress.
    #[test]
    fn progress_needs_a_token_and_a_finite_number() {
        let report = |text: &'static str| {
            progress(Some(Json::parse(text).expect("JSON"))).map(|r| (r.token.token().to_string(), r.progress))
        };
        assert_eq!(report(r#"{"progressToken":"a","progress":1.5,"total":5}"#), Some((r#""a""#.into(), 1.5)));
        assert_eq!(report(r#"{"progress":-2e1,"progressToken":7}"#), Some(("7".into(), -20.0)));
        for bad in [
            r#"{"progressToken":1,"progress":1e400}"#,
            r#"{"progressToken":1,"progress":"1"}"#,
            r#"{"progressToken":1,"progress":null}"#,
            r#"{"progressToken":1.5,"progress":1}"#,
            r#"{"progressToken":1}"#,
            r#"{"progress":1}"#,
            "[]",
        ] {
            assert_eq!(report(bad), None, "{bad}");
        }
    }
}
