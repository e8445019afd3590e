//! Owns the target for what the core writes: whatever a caller hands in comes out as one line that the other side reads as just that.

use mcp_wire::client::{self, RequestOptions};
use mcp_wire::server::{self, Event};
use mcp_wire::{Id, Instant, Json, Message, RecvBuffer, SendError};
use serde_json::{Map, Value};

use crate::choices::Choices;

const NOW: Instant = Instant::EPOCH;
const META: &str = "io.modelcontextprotocol/";

/// A request with any method and params, then any result for it under any id. The input is a method, an id, a result, then params.
pub fn round_trip(data: &[u8]) {
    let mut choices = Choices::new(data);
    let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
    let (method, id, result) = (text(choices.bytes()), text(choices.bytes()), text(choices.bytes()));
    let params = text(choices.rest());
    let params = Json::parse(params).ok();

    let mut config = client::Config::new("c", "1");
    config.known_version = Some("2026-07-28".into());
    let mut client = client::Connection::new(config).expect("it is consistent");
    client.opened(NOW);
    let handle = match client.request(method, params, RequestOptions::default(), NOW) {
        Ok(handle) => handle,
        Err(error) => {
            assert!(client.output(NOW).is_empty(), "an error changes nothing");
            let object = params.is_none_or(Json::is_object);
            assert_eq!(error == SendError::ParamsNotAnObject, !object && error != SendError::ReservedMethod);
            return;
        }
    };
    let line = one_line(client.output(NOW));
    read(&line, |message| {
        let Message::Request { method: read, params: got, .. } = message else { panic!("{message:?}") };
        assert_eq!(read, method);
        let (got, want) = (object(got), object(params));
        let (mut got_rest, mut want_rest) = (got.clone(), want.clone());
        (got_rest.remove("_meta"), want_rest.remove("_meta"));
        assert_eq!(got_rest, want_rest, "params pass through");
        let meta =
            |object: &Map<String, Value>| object.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default();
        for (name, value) in meta(&want) {
            assert!(
                name.starts_with(META) || meta(&got).get(&name) == Some(&value),
                "the caller's `_meta` stays: {name}"
            );
        }
    });

    answer(id, result);
    let n = line.len();
    client.accepted(n, NOW);
    client.cancel(handle, Some(method), NOW);
    let line = one_line(client.output(NOW));
    read(&line, |message| {
        let Message::Notification { method, params } = message else { panic!("{message:?}") };
        assert_eq!(method, "notifications/cancelled");
        assert!(object(params).contains_key("reason"));
    });
}

/// A server's answer repeats the id's token, and carries the result.
fn answer(id: &str, result: &str) {
    let (Some(id), Ok(result)) = (Id::parse(id), Json::parse(result)) else { return };
    if result.deserialize::<Value>().is_err() {
        // A number that is JSON and no float, such as 1e999: the comparison below cannot hold it.
        return;
    }
    let mut server = server::Connection::new(server::Config::new("s", "1")).expect("it is consistent");
    let meta = format!(r#""{META}protocolVersion":"2026-07-28","{META}clientCapabilities":{{}}"#);
    let request = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"x","params":{{"_meta":{{{meta}}}}}}}"#, id.token());
    let mut ticket = None;
    read(request.as_bytes(), |message| {
        if let Event::Request { ticket: of, .. } = server.handle(message, NOW) {
            ticket = Some(of);
        }
    });
    let Some(ticket) = ticket else { return };
    if server.respond(ticket, result, NOW).is_err() {
        return;
    }
    let line = one_line(server.output(NOW));
    read(&line, |message| match message {
        Message::Response { id: read, result: got } => {
            assert_eq!(read.token(), id.token(), "byte for byte");
            let (mut got, mut want) = (object(Some(got)), object(Some(result)));
            assert!(got.contains_key("resultType"));
            for name in ["_meta", "resultType"] {
                (got.remove(name), want.remove(name));
            }
            assert_eq!(got, want, "the result passes through");
        }
        Message::Error { id: read, error } => {
            assert_eq!(read.map(|id| id.token().to_owned()).as_deref(), Some(id.token()));
            assert!(!result.is_object(), "a result that is an object is fine: {}", error.code);
        }
        other => panic!("{other:?}"),
    });
}

fn object(json: Option<Json<'_>>) -> Map<String, Value> {
    json.and_then(|json| json.deserialize().ok()).unwrap_or_default()
}

/// What is to be written, a single line, without its end.
#[track_caller]
fn one_line(output: &[u8]) -> Vec<u8> {
    let line = output.strip_suffix(b"\n").expect("it ends with a line feed");
    assert!(!line.iter().any(|byte| matches!(byte, b'\n' | b'\r')), "no other line break");
    output.to_vec()
}

#[track_caller]
fn read(line: &[u8], look: impl FnOnce(Message<'_>)) {
    let mut recv = RecvBuffer::new(1 << 20);
    recv.extend(line);
    recv.close();
    let frame = recv.next_frame().expect("a frame");
    look(frame.message());
    assert!(recv.next_frame().is_none());
}
