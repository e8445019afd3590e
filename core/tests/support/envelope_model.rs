//! What a line means, by a plain reading with `serde_json`: the model that the envelope is held against.
//! It must not use the code under test.
#![allow(unreachable_pub, reason = "a module of several test crates")]

use crate::json::{self, Members, integer};

/// Bytes of an id, a token or a method, quotes and all.
const NAME_LIMIT: usize = 1024;

/// Says what `line` is, as `chunks::say` does; `None` where the model cannot tell.
pub fn model(line: &[u8]) -> Option<String> {
    let len = line.len();
    let Ok(text) = std::str::from_utf8(line) else { return Some("invalid_utf8".to_owned()) };
    if !json::is_json(text) {
        return Some("invalid_json".to_owned());
    }
    if json::depth(text) > 128 {
        return Some("too_deep".to_owned());
    }
    let root = text.trim_matches([' ', '\t', '\r']);
    if !root.starts_with('{') {
        return Some(format!("unreadable invalid_message - Unknown - {len}"));
    }
    // A name that is no Unicode text is where `serde_json` and JSON part.
    let Members(members) = serde_json::from_str(root).ok()?;
    let all = |name: &str| members.iter().filter(|(key, _)| key == name).map(|(_, value)| *value).collect::<Vec<_>>();
    let one = |name: &str| all(name).first().copied();
    let string = |token: &str| serde_json::from_str::<String>(token).ok();
    // LIM-03: what is longer than a name may be is none.
    let id_ok = |token: &&str| {
        token.len() <= NAME_LIMIT
            && if token.starts_with('"') { string(token).is_some() } else { integer(token).is_some() }
    };
    let id = one("id").filter(id_ok);
    let [method, result, error] = ["method", "result", "error"].map(one);
    let error_members =
        error.filter(|error| error.starts_with('{')).map(|error| serde_json::from_str::<Members<'_>>(error).ok());
    let error_members = match error_members {
        Some(None) => return None,
        Some(Some(members)) => members.0,
        None => Vec::new(),
    };
    let code = error_members
        .iter()
        .find(|(key, _)| key == "code")
        .filter(|_| all("error").len() == 1)
        .and_then(|(_, code)| integer(code)?.parse::<i64>().ok());

    let known = ["jsonrpc", "id", "method", "params", "result", "error"];
    let repeated = known.iter().any(|name| all(name).len() > 1);
    let version = one("jsonrpc").and_then(string).as_deref() == Some("2.0");
    let id_bad = one("id").is_some_and(|token| token != "null") && id.is_none();
    let message = if repeated || !version || id_bad {
        None
    } else {
        let params = one("params").unwrap_or("-");
        match (method, result, error) {
            (Some(method), None, None) if method.len() > NAME_LIMIT => None,
            (Some(method), None, None) => match (string(method), one("id")) {
                (Some(method), None) => Some(format!("notification {method} {params}")),
                (Some(method), Some(_)) => id.map(|id| format!("request {id} {method} {params}")),
                _ => None,
            },
            (None, Some(result), None) => id.map(|id| format!("response {id} {result}")),
            (None, None, Some(error)) => {
                let last = |name: &str| error_members.iter().rfind(|(key, _)| key == name).map(|(_, value)| *value);
                let message = last("message").filter(|message| message.starts_with('"'));
                let message = message.map(string);
                if message == Some(None) {
                    return None; // a surrogate alone: read leniently, which the model does not
                }
                let message = message.flatten();
                let data = last("data").unwrap_or("-");
                let id = id.unwrap_or("-");
                code.zip(message).map(|(code, message)| format!("error {id} {code} {message} {data} {error}"))
            }
            _ => None,
        }
    };
    Some(message.unwrap_or_else(|| {
        let shape = match (method, result.or(error), one("id")) {
            (None, Some(_), _) => "Response",
            (Some(_), None, Some(_)) => "Request",
            (Some(_), None, None) => "Notification",
            _ => "Unknown",
        };
        let id = id.filter(|_| all("id").len() == 1).unwrap_or("-");
        let code = code.map_or_else(|| "-".to_owned(), |code| code.to_string());
        format!("unreadable invalid_message {id} {shape} {code} {len}")
    }))
}

/// Whether what `chunks::say` told of a line is what the model says. Lengths are left out: they are the framing's business.
pub fn agrees(got: &str, want: &str) -> bool {
    let strip = |message: &str| match message.strip_prefix("unreadable ") {
        Some(rest) => rest.rsplit_once(' ').map_or(rest, |(rest, _)| rest).to_owned(),
        None => message.to_owned(),
    };
    let (got, want) = (strip(got), strip(want));
    if want == "invalid_utf8" || want == "invalid_json" || want == "too_deep" {
        got.starts_with(&want)
    } else {
        got == want
    }
}
