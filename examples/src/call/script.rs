//! Owns the script of `mcp-call`: one JSON object a line, checked as a whole before anything starts. It must not know how an
//! operation is performed, nor when.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_wire::{Filter, Json, JsonBuf};
use serde::Deserialize;

use super::args::UsageError;
use super::event::KINDS;

/// One line of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Op {
    Request { key: String, method: String, params: Option<JsonBuf>, timeout: Option<Duration>, idempotent: bool },
    Listen { key: String, filter: Filter },
    Notify { method: String, params: Option<JsonBuf> },
    Cancel { key: String, reason: Option<String> },
    Wait { key: String },
    WaitEvent { event: &'static str },
    Sleep { time: Duration },
    Close,
    Kill,
}

/// Reads a script line by line and keeps what has to be known of the lines before.
#[derive(Debug, Default)]
pub(super) struct Reader {
    number: usize,
    /// Where each key was given.
    keys: BTreeMap<String, usize>,
}

impl Reader {
    /// Reads the next line; `None` for an empty one.
    pub(super) fn line(&mut self, line: &str) -> Result<Option<Op>, UsageError> {
        self.number += 1;
        let wrong = |what: String| UsageError(format!("line {} of the script: {what}", self.number));
        // A byte order mark at the very start is what some editors leave.
        let line = if self.number == 1 { line.trim_start_matches('\u{feff}') } else { line };
        let line = line.trim_matches([' ', '\t', '\r', '\n']);
        if line.is_empty() {
            return Ok(None);
        }
        let op = parse_op(line).map_err(wrong)?;
        check_method(&op).map_err(wrong)?;
        match &op {
            Op::Request { key, .. } | Op::Listen { key, .. } => {
                if let Some(first) = self.keys.get(key) {
                    return Err(wrong(format!("the key {key:?} is that of line {first} already")));
                }
                self.keys.insert(key.clone(), self.number);
            }
            Op::Cancel { key, .. } | Op::Wait { key } if !self.keys.contains_key(key) => {
                return Err(wrong(format!("no line before it has the key {key:?}")));
            }
            _ => {}
        }
        Ok(Some(op))
    }
}

/// Reads a whole script.
pub(super) fn parse(text: &str) -> Result<Vec<Op>, UsageError> {
    let mut reader = Reader::default();
    text.split('\n').filter_map(|line| reader.line(line).transpose()).collect()
}

/// Methods that the protocol core sends by itself: by hand they would break the connection's own bookkeeping.
pub(super) fn check_method(op: &Op) -> Result<(), String> {
    match op {
        Op::Request { method, .. } if method == "subscriptions/listen" => {
            Err("subscriptions/listen is no plain request: use the listen operation of a script".to_owned())
        }
        Op::Request { method, .. } if method == "initialize" => {
            Err("initialize is sent by mcp-call itself where a server needs it".to_owned())
        }
        Op::Notify { method, .. } if method == "notifications/cancelled" => {
            Err("notifications/cancelled is sent by the cancel operation".to_owned())
        }
        Op::Notify { method, .. } if method == "notifications/initialized" || method == "notifications/progress" => {
            Err(format!("{method} is not for a client to send by hand"))
        }
        _ => Ok(()),
    }
}

/// The members of one line. Kept as text, so that a payload goes on unchanged.
struct Members<'a>(BTreeMap<String, Json<'a>>);

impl<'a> Members<'a> {
    fn read(line: &'a str) -> Result<Self, String> {
        let json = Json::parse(line).map_err(|error| format!("not JSON: {error}"))?;
        if !json.is_object() {
            return Err("not a JSON object".to_owned());
        }
        let mut members = BTreeMap::new();
        for (name, value) in json.members() {
            if members.insert(name.clone().into_owned(), value).is_some() {
                return Err(format!("the member {name:?} stands there twice"));
            }
        }
        Ok(Self(members))
    }

    fn take<T: Deserialize<'a>>(&mut self, name: &str, what: &str) -> Result<Option<T>, String> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(value) => value.deserialize().map(Some).map_err(|_| format!("{name:?} must be {what}")),
        }
    }

    fn need<T: Deserialize<'a>>(&mut self, name: &str, what: &str) -> Result<T, String> {
        self.take(name, what)?.ok_or_else(|| format!("the member {name:?} is missing"))
    }

    fn key(&mut self) -> Result<String, String> {
        self.need("key", "a string")
    }

    fn method(&mut self) -> Result<String, String> {
        let method: String = self.need("method", "a string")?;
        if method.is_empty() { Err("\"method\" must not be empty".to_owned()) } else { Ok(method) }
    }

    fn params(&mut self) -> Result<Option<JsonBuf>, String> {
        match self.0.remove("params") {
            Some(params) if !params.is_object() => Err("\"params\" must be an object".to_owned()),
            params => Ok(params.map(JsonBuf::from)),
        }
    }
}

pub(super) fn parse_op(line: &str) -> Result<Op, String> {
    let mut members = Members::read(line)?;
    let op: String = members.need("op", "a string")?;
    let op = match &*op {
        "request" => Op::Request {
            key: members.key()?,
            method: members.method()?,
            params: members.params()?,
            timeout: members.take("timeout_ms", "a whole number of milliseconds")?.map(Duration::from_millis),
            idempotent: members.take("idempotent", "true or false")?.unwrap_or(false),
        },
        "listen" => Op::Listen { key: members.key()?, filter: filter(&mut members)? },
        "notify" => Op::Notify { method: members.method()?, params: members.params()? },
        "cancel" => Op::Cancel { key: members.key()?, reason: members.take("reason", "a string")? },
        "wait" => Op::Wait { key: members.key()? },
        "wait_event" => {
            let event: String = members.need("event", "the name of an event")?;
            match KINDS.into_iter().find(|kind| *kind == event) {
                Some(event) => Op::WaitEvent { event },
                None => return Err(format!("there is no event {event:?}")),
            }
        }
        "sleep" => Op::Sleep { time: Duration::from_millis(members.need("ms", "a whole number of milliseconds")?) },
        "close" => Op::Close,
        "kill" => Op::Kill,
        other => return Err(format!("there is no operation {other:?}")),
    };
    match members.0.keys().next() {
        Some(name) => Err(format!("the member {name:?} has no place here")),
        None => Ok(op),
    }
}

fn filter(members: &mut Members<'_>) -> Result<Filter, String> {
    const WHAT: &str = "an object with toolsListChanged, promptsListChanged, resourcesListChanged (true or false) and resourceSubscriptions (an array of URIs)";
    const KNOWN: [&str; 4] =
        ["toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions"];
    let Some(json) = members.0.get("filter").copied() else {
        return Err("the member \"filter\" is missing".to_owned());
    };
    if let Some((name, _)) = json.members().find(|(name, _)| !KNOWN.contains(&&**name)) {
        return Err(format!("a filter has no member {name:?}"));
    }
    if !json.is_object() {
        return Err(format!("\"filter\" must be {WHAT}"));
    }
    members.need("filter", WHAT)
}

/// A script line again, for a tape. `None`: an operation that is `mcp-call`'s own and changes nothing below.
pub(super) fn to_json(op: &Op) -> Option<String> {
    #[derive(serde::Serialize)]
    #[serde(tag = "op", rename_all = "snake_case")]
    enum Line<'a> {
        Request {
            key: &'a str,
            method: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            params: Option<&'a JsonBuf>,
            #[serde(skip_serializing_if = "Option::is_none")]
            timeout_ms: Option<u64>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            idempotent: bool,
        },
        Listen {
            key: &'a str,
            filter: &'a Filter,
        },
        Notify {
            method: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            params: Option<&'a JsonBuf>,
        },
        Cancel {
            key: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<&'a str>,
        },
        Close {},
        Kill {},
    }
    let line = match op {
        Op::Request { key, method, params, timeout, idempotent } => Line::Request {
            key,
            method,
            params: params.as_ref(),
            timeout_ms: timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            idempotent: *idempotent,
        },
        Op::Listen { key, filter } => Line::Listen { key, filter },
        Op::Notify { method, params } => Line::Notify { method, params: params.as_ref() },
        Op::Cancel { key, reason } => Line::Cancel { key, reason: reason.as_deref() },
        Op::Close => Line::Close {},
        Op::Kill => Line::Kill {},
        Op::Wait { .. } | Op::WaitEvent { .. } | Op::Sleep { .. } => return None,
    };
    serde_json::to_string(&line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_the_contract_is_read() {
        let text = r#"
            {"op":"request","key":"a","method":"tools/call","params":{"n":1.0},"timeout_ms":500,"idempotent":true}
            {"op":"listen","key":"s","filter":{"toolsListChanged":true}}
            {"op":"notify","method":"notifications/x","params":{}}

            {"op":"cancel","key":"a","reason":"changed my mind"}
            {"op":"wait","key":"a"}
            {"op":"wait_event","event":"restarted"}
            {"op":"sleep","ms":100}
            {"op":"close"}
            {"op":"kill"}"#;
        let ops = parse(text).expect("a good script");
        assert_eq!(ops.len(), 9);
        let Op::Request { params: Some(params), timeout, idempotent, .. } = &ops[0] else { panic!("a request") };
        // MSG-14: unknown members of a payload, and how its numbers are written, pass through untouched.
        assert_eq!(params.as_json().get(), r#"{"n":1.0}"#);
        assert_eq!((*timeout, *idempotent), (Some(Duration::from_millis(500)), true));
        assert_eq!(ops[1], Op::Listen { key: "s".into(), filter: Filter::default().tools_list_changed() });
        assert_eq!(ops[5], Op::WaitEvent { event: "restarted" });
    }

    #[test]
    fn a_bad_line_is_named_by_its_number() {
        let request = r#"{"op":"request","key":"a","method":"m"}"#;
        let bad = [
            "nonsense",
            "[]",
            "{}",
            r#"{"op":"dance"}"#,
            r#"{"op":1}"#,
            r#"{"op":"request","key":"a","method":"m"}"#,
            r#"{"op":"listen","key":"a","filter":{}}"#,
            r#"{"op":"wait","key":"b"}"#,
            r#"{"op":"cancel","key":"b"}"#,
            r#"{"op":"request","key":"b"}"#,
            r#"{"op":"request","method":"m"}"#,
            r#"{"op":"request","key":"b","method":"m","params":[1]}"#,
            r#"{"op":"request","key":"b","method":"m","timeout_ms":-1}"#,
            r#"{"op":"request","key":"b","method":"m","colour":"red"}"#,
            r#"{"op":"request","key":"b","key":"c","method":"m"}"#,
            r#"{"op":"request","key":"b","method":"subscriptions/listen"}"#,
            r#"{"op":"notify","method":"notifications/cancelled"}"#,
            r#"{"op":"listen","key":"b","filter":{"toolListChanged":true}}"#,
            r#"{"op":"listen","key":"b","filter":[]}"#,
            r#"{"op":"listen","key":"b"}"#,
            r#"{"op":"sleep"}"#,
            r#"{"op":"wait_event","event":"rain"}"#,
            r#"{"op":"close","key":"a"}"#,
        ];
        for line in bad {
            let error = parse(&format!("{request}\n\n{line}\n{request}")).expect_err(line).to_string();
            assert!(error.contains("line 3 "), "{line}: {error}");
            assert!(!error.contains('\n'), "{line}: {error}");
        }
    }

    #[test]
    fn a_line_for_a_tape_reads_back_as_the_same_operation() {
        let text = r#"{"op":"request","key":"a","method":"m","params":{"x":[1.50,"\u0041"]},"timeout_ms":5,"idempotent":true}
            {"op":"listen","key":"s","filter":{"resourceSubscriptions":["demo://clock"]}}
            {"op":"notify","method":"n"}
            {"op":"cancel","key":"a","reason":"r"}
            {"op":"close"}
            {"op":"kill"}"#;
        let ops = parse(text).expect("a good script");
        let again: Vec<String> = ops.iter().filter_map(to_json).collect();
        assert_eq!(parse(&again.join("\n")).expect("good"), ops);
        assert!(again[0].contains(r#""params":{"x":[1.50,"\u0041"]}"#), "{}", again[0]);
    }
}
