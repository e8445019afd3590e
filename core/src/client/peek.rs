//! Owns the few looks that the client takes into a payload: the `resultType`, a subscription id, the fields of progress.
//! It reads text that is known to be valid JSON, without parsing or copying it, and must not know what follows from what it finds.

use alloc::string::String;

use memchr::{memchr2, memmem};

use super::ResultKind;
use crate::{Id, Json};

/// The key in `_meta` that names the subscription of a notification (RTE-04).
pub(super) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The top-level members of an object in their order: the key as it stands between its quotes, and the value.
/// Of anything but an object there are none.
#[derive(Debug, Clone)]
pub(super) struct Members<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Members<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let at = if text.starts_with('{') { 1 } else { text.len() };
        Self { text, at }
    }

    fn skip_space(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Moves behind the string that starts here; gives what is between its quotes.
    fn string(&mut self) -> Option<&'a str> {
        let start = self.at + 1;
        self.at = skip_string(self.text.as_bytes(), self.at)?;
        self.text.get(start..self.at - 1)
    }
}

/// The position behind the string that starts at `at`.
fn skip_string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The position behind the value that starts at `at`.
fn skip_value(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match *bytes.get(at)? {
            b'"' => at = skip_string(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            _ if depth > 0 => {
                at += 1;
                continue;
            }
            _ => {
                let rest = bytes.get(at..)?;
                let end = rest.iter().position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'));
                return Some(at + end.unwrap_or(rest.len()));
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        if self.skip_space()? != b'"' {
            return None;
        }
        let key = self.string()?;
        self.skip_space()?;
        let start = self.at;
        self.at = skip_value(self.text.as_bytes(), start)?;
        Some((key, self.text.get(start..self.at)?))
    }
}

/// Whether a key, as it stands between its quotes, is `name` once its escapes are read.
pub(super) fn key_is(key: &str, name: &str) -> bool {
    if !key.contains('\\') {
        return key == name;
    }
    serde_json::from_str::<String>(&alloc::format!("\"{key}\"")).is_ok_and(|key| key == name)
}

/// The value of a member; the last one where there are several, as most parsers have it.
pub(super) fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    Members::of(object).filter(|(key, _)| key_is(key, name)).last().map(|(_, value)| value)
}

/// Whether `object` can have a member of this name at any depth: it stands there, or escapes may hide it.
pub(super) fn may_contain(object: &str, name: &[u8]) -> bool {
    let bytes = object.as_bytes();
    memmem::find(bytes, name).is_some() || memmem::find(bytes, b"\\u").is_some()
}

/// The `resultType` of a result (MSG-13); `None` if it is one that nobody knows.
pub(super) fn result_kind(result: Json<'_>) -> Option<ResultKind> {
    const USUAL: &str = r#"{"resultType":"complete""#;
    let text = result.get();
    if text.starts_with(USUAL) || !may_contain(text, b"resultType") {
        return Some(ResultKind::Complete);
    }
    match member(text, "resultType") {
        None => Some(ResultKind::Complete),
        Some(r#""complete""#) => Some(ResultKind::Complete),
        Some(r#""input_required""#) => Some(ResultKind::InputRequired),
        Some(value) => match serde_json::from_str::<String>(value).as_deref() {
            Ok("complete") => Some(ResultKind::Complete),
            Ok("input_required") => Some(ResultKind::InputRequired),
            _ => None,
        },
    }
}

/// The subscription id in the `_meta` of a notification's params: the value as it stands there.
pub(super) fn subscription_id<'b>(params: Option<Json<'b>>) -> Option<&'b str> {
    let params = params?.get();
    // The slash of the key may be escaped (some encoders always do), so only what follows it is looked for.
    if !may_contain(params, b"subscriptionId") {
        return None;
    }
    member(member(params, "_meta")?, SUBSCRIPTION_ID)
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
    for (key, value) in Members::of(params?.get()) {
        if key_is(key, "progressToken") {
            token = Some(value);
        } else if key_is(key, "progress") {
            progress = Some(value);
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
    use alloc::vec::Vec;

    #[test]
    fn members_are_found_as_a_parser_finds_them() {
        let text =
            r#" {"a":1 , "b\"}":{"c":[1,{"d":"]}\\"}],"e":null}, "f" : "x,\"y" ,"g":-1.5e3,"h":[],"i":true}"#.trim();
        let members: Vec<_> = Members::of(text).collect();
        let parsed: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).expect("JSON");
        assert_eq!(members.len(), parsed.len());
        for (key, value) in members {
            let key: String = serde_json::from_str(&alloc::format!("\"{key}\"")).expect("a string");
            let value: serde_json::Value = serde_json::from_str(value).expect("a value");
            assert_eq!(parsed[&key], value);
        }
        for none in
            ["{}", "[1]", "null", "\"{\"", "3", "", "{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":\"", "{\"a\":]"]
        {
            assert_eq!(Members::of(none).count(), 0, "{none}");
        }
    }

    // MSG-13: an absent resultType reads as complete, an unknown one is told apart, however it is spelt and wherever it stands.
    #[test]
    fn the_result_type_is_found_wherever_it_stands() {
        let kind = |text: &str| result_kind(Json::parse(text).expect("JSON"));
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
        let id = |text: &'static str| subscription_id(Some(Json::parse(text).expect("JSON")));
        assert_eq!(id(r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}"#), Some("3"));
        assert_eq!(id(r#"{"a":1,"_meta":{"b":2,"io.modelcontextprotocol\/subscriptionId":"L1"}}"#), Some(r#""L1""#));
        assert_eq!(id(r#"{"\u005fmeta":{"io.modelcontextprotocol/\u0073ubscriptionId":4}}"#), Some("4"));
        assert_eq!(id(r#"{"io.modelcontextprotocol/subscriptionId":3}"#), None);
        assert_eq!(id(r#"{"_meta":[]}"#), None);
        assert_eq!(subscription_id(None), None);
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
