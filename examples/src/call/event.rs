//! Owns the events of `mcp-call` as its contract names them: kinds, members and their order, the key of each request in place of a
//! handle. It must not know how they are shown.

use mcp_wire::lifecycle::{Escalation, ExitStatus};
use mcp_wire::{IdBuf, Json, JsonBuf};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Every kind that can be waited for.
pub(super) const KINDS: [&str; 17] = [
    "started",
    "start_failed",
    "era",
    "result",
    "error",
    "failed",
    "acknowledged",
    "listen_ended",
    "resubscribed",
    "notification",
    "dropped",
    "server_request",
    "stderr",
    "restarted",
    "idle_stopped",
    "missed",
    "closed",
];

/// One event. Its JSON has the members in the order in which they stand here; values of the server's are text that goes through unchanged.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event {
    Started {
        pid: u32,
        restarts: u32,
    },
    StartFailed {
        kind: &'static str,
        detail: String,
    },
    Era {
        era: &'static str,
        version: String,
    },
    Result {
        key: String,
        result: JsonBuf,
    },
    Error {
        key: String,
        error: JsonBuf,
    },
    Failed {
        key: String,
        cause: &'static str,
        delivery: &'static str,
        detail: String,
    },
    Acknowledged {
        key: String,
        notifications: JsonBuf,
    },
    ListenEnded {
        key: String,
        how: &'static str,
    },
    Resubscribed {
        key: String,
    },
    Notification {
        key: Option<String>,
        method: String,
        params: Option<JsonBuf>,
    },
    Dropped {
        reason: &'static str,
        #[serde(serialize_with = "write_id")]
        id: Option<IdBuf>,
        code: Option<i64>,
    },
    /// A request of a legacy server's was answered.
    ServerRequest {
        method: String,
        answered: &'static str,
    },
    Stderr {
        line: String,
    },
    Restarted {
        restarts: u32,
        #[serde(serialize_with = "write_exit")]
        exit: Option<ExitStatus>,
    },
    IdleStopped {
        #[serde(serialize_with = "write_exit")]
        exit: Option<ExitStatus>,
    },
    /// Standard output was not read fast enough: so many events that end nothing were dropped here.
    Missed {
        events: u64,
    },
    Closed {
        #[serde(serialize_with = "write_exit")]
        exit: Option<ExitStatus>,
        #[serde(serialize_with = "write_escalation")]
        escalation: Escalation,
        restarts: u32,
    },
}

impl Event {
    /// Its name.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Started { .. } => "started",
            Self::StartFailed { .. } => "start_failed",
            Self::Era { .. } => "era",
            Self::Result { .. } => "result",
            Self::Error { .. } => "error",
            Self::Failed { .. } => "failed",
            Self::Acknowledged { .. } => "acknowledged",
            Self::ListenEnded { .. } => "listen_ended",
            Self::Resubscribed { .. } => "resubscribed",
            Self::Notification { .. } => "notification",
            Self::Dropped { .. } => "dropped",
            Self::ServerRequest { .. } => "server_request",
            Self::Stderr { .. } => "stderr",
            Self::Restarted { .. } => "restarted",
            Self::IdleStopped { .. } => "idle_stopped",
            Self::Missed { .. } => "missed",
            Self::Closed { .. } => "closed",
        }
    }
}

/// An id as it stood on the wire.
fn write_id<S: Serializer>(id: &Option<IdBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match id.as_ref().map(|id| Json::parse(id.as_id().token())) {
        Some(Ok(token)) => token.serialize(serializer),
        Some(Err(error)) => Err(serde::ser::Error::custom(error)),
        None => serializer.serialize_none(),
    }
}

fn write_exit<S: Serializer>(exit: &Option<ExitStatus>, serializer: S) -> Result<S::Ok, S::Error> {
    let (name, number) = match exit {
        Some(ExitStatus::Code(code)) => ("code", *code),
        Some(ExitStatus::Signal(signal)) => ("signal", *signal),
        // Somebody else took the status, so nothing can be said.
        _ => return serializer.serialize_none(),
    };
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(name, &number)?;
    map.end()
}

fn write_escalation<S: Serializer>(escalation: &Escalation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(escalation.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(event: &Event) -> String {
        serde_json::to_string(event).expect("an event can be written")
    }

    fn buf(text: &str) -> JsonBuf {
        JsonBuf::from(Json::parse(text).expect("JSON"))
    }

    #[test]
    fn members_stand_in_the_order_of_the_contract() {
        let (key, detail) = ("a".to_owned(), "d".to_owned());
        let cases = [
            (Event::Started { pid: 123, restarts: 0 }, r#"{"event":"started","pid":123,"restarts":0}"#),
            (
                Event::StartFailed { kind: "not_found", detail: detail.clone() },
                r#"{"event":"start_failed","kind":"not_found","detail":"d"}"#,
            ),
            (
                Event::Era { era: "modern", version: "2026-07-28".into() },
                r#"{"event":"era","era":"modern","version":"2026-07-28"}"#,
            ),
            (
                Event::Failed { key: key.clone(), cause: "timeout", delivery: "sent", detail },
                r#"{"event":"failed","key":"a","cause":"timeout","delivery":"sent","detail":"d"}"#,
            ),
            (
                Event::Acknowledged { key: key.clone(), notifications: buf(r#"{"toolsListChanged":true}"#) },
                r#"{"event":"acknowledged","key":"a","notifications":{"toolsListChanged":true}}"#,
            ),
            (
                Event::ListenEnded { key: key.clone(), how: "graceful" },
                r#"{"event":"listen_ended","key":"a","how":"graceful"}"#,
            ),
            (Event::Resubscribed { key: key.clone() }, r#"{"event":"resubscribed","key":"a"}"#),
            (
                Event::Notification { key: None, method: "notifications/message".into(), params: Some(buf("{}")) },
                r#"{"event":"notification","key":null,"method":"notifications/message","params":{}}"#,
            ),
            (
                Event::ServerRequest { method: "roots/list".into(), answered: "error" },
                r#"{"event":"server_request","method":"roots/list","answered":"error"}"#,
            ),
            (Event::Stderr { line: "x".into() }, r#"{"event":"stderr","line":"x"}"#),
            (
                Event::Restarted { restarts: 1, exit: Some(ExitStatus::Code(3)) },
                r#"{"event":"restarted","restarts":1,"exit":{"code":3}}"#,
            ),
            (Event::IdleStopped { exit: Some(ExitStatus::Code(0)) }, r#"{"event":"idle_stopped","exit":{"code":0}}"#),
            (
                Event::Closed { exit: Some(ExitStatus::Signal(15)), escalation: Escalation::Terminate, restarts: 0 },
                r#"{"event":"closed","exit":{"signal":15},"escalation":"terminate","restarts":0}"#,
            ),
            (
                Event::Closed { exit: None, escalation: Escalation::None, restarts: 0 },
                r#"{"event":"closed","exit":null,"escalation":"none","restarts":0}"#,
            ),
        ];
        for (event, expected) in cases {
            assert_eq!(json(&event), expected);
            assert!(KINDS.contains(&event.kind()));
            assert!(expected.starts_with(&format!(r#"{{"event":"{}""#, event.kind())));
        }
    }

    #[test]
    fn values_of_the_server_go_through_unchanged() {
        let result = buf(r#"{"n":1.0,"big":123456789012345678901234567890,"s":"\u0041","n":2}"#);
        let text = json(&Event::Result { key: "1".into(), result: result.clone() });
        assert_eq!(text, format!(r#"{{"event":"result","key":"1","result":{}}}"#, result.as_json().get()));
        let text = json(&Event::Error { key: "1".into(), error: result.clone() });
        assert_eq!(text, format!(r#"{{"event":"error","key":"1","error":{}}}"#, result.as_json().get()));
    }
}
