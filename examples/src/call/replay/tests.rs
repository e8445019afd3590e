//! Tests of what no run of `mcp-call` can record: tapes of a client that answers its server's requests.

use std::future::{Future, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mcp_wire_driver::client::{Link, Options as ClientOptions, Output, ServerRequest, Wrote};
use serde_json::json;

use super::super::args::Options;
use super::super::event::Event as Shows;
use super::super::tape::Tape;
use super::*;

fn line(link: &mut Link, line: &str) {
    let line = format!("{line}\n");
    link.spare_mut()[..line.len()].copy_from_slice(line.as_bytes());
    link.read(line.len());
}

/// Writes all there is.
fn write(link: &mut Link) {
    let mut wrote = Wrote::default();
    while let Some(bytes) = link.turn(Waker::noop(), Output::Wanted, std::mem::take(&mut wrote)).output {
        wrote = Wrote { accepted: bytes.len(), spent: Some(bytes), failed: false };
    }
}

fn answer(request: &ServerRequest) -> Result<serde_json::Value, RpcError> {
    match request.method.as_str() {
        "roots/list" => Ok(json!({"roots": [{"uri": "file:///a\u{2028}"}]})),
        "no/object" => Ok(json!(7)),
        _ => Err(RpcError::new(-7, "no \"such\" thing").data(&json!({"why": [1.50]}))),
    }
}

/// Makes the tape of a legacy session in which the server asks three things and pings, and gives what was told of that.
fn record(path: &Path) -> Vec<(String, &'static str)> {
    let tape = Tape::create(path, &Options::default()).expect("a file can be made");
    let mut options = ClientOptions::new("c", "1").on_request(|request| ready(answer(&request))).tape(tape.sink());
    let mut events = options.events();
    let (client, mut link) = options.with_stream(|| Instant::EPOCH).expect("a sound configuration");
    write(&mut link);
    line(&mut link, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"m"}}"#);
    write(&mut link);
    line(&mut link, r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#);
    write(&mut link);
    for (id, method) in [("1", "roots/list"), ("\"x\"", "no/object"), ("2", "ping"), ("3", "else")] {
        line(&mut link, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#));
    }
    write(&mut link);
    let mut asked = Vec::new();
    while let Poll::Ready(Some(event)) = pin!(events.next()).poll(&mut Context::from_waker(Waker::noop())) {
        if let ClientEvent::ServerRequest { method, answered } = event {
            asked.push((method, answered));
        }
    }
    drop((client, link));
    tape.finish().expect("every line was written");
    asked
}

fn play(path: &Path) -> Result<Vec<(String, &'static str)>, ReplayError> {
    let mut asked = Vec::new();
    replay(path, |shown| {
        if let Shown::Event(Shows::ServerRequest { method, answered }) = shown {
            asked.push((method, answered));
        }
    })?;
    Ok(asked)
}

// LEG-06, SEC-03: the answers of a handler play again, results and errors, to the same output and the same events; another answer than was given
// shows in the output.
#[test]
fn a_handlers_answers_play_again() {
    let path = std::env::temp_dir().join(format!("mcp-call-{}-answers.tape", std::process::id()));
    let told = record(&path);
    let expected = [("roots/list", "result"), ("no/object", "error"), ("ping", "result"), ("else", "error")];
    assert_eq!(told, expected.map(|(method, answered)| (method.to_owned(), answered)));
    assert_eq!(play(&path).expect("it plays"), told);

    let text = std::fs::read_to_string(&path).expect("it was written");
    let op = r#""op":{"op":"answer","request":1,"method":"roots/list","result":{"roots":"#;
    assert!(text.contains(op), "{text}");
    let others = [
        text.replacen(r#""result":{"roots":["#, r#""result":{"root":["#, 1),
        text.replacen(r#""op":"answer","request":3,"#, r#""op":"answer","request":9,"#, 1),
        text.replacen(r#""code":-7,"#, r#""code":-8,"#, 1),
    ];
    for other in others {
        assert_ne!(other, text);
        std::fs::write(&path, other).expect("it can be written");
        assert!(matches!(play(&path), Err(ReplayError::Differs { .. })));
    }
    let broken = text.replacen(r#""op":"answer","request":1,"#, r#""op":"answer","#, 1);
    std::fs::write(&path, broken).expect("it can be written");
    let Err(error @ ReplayError::Tape(_)) = play(&path) else { panic!("an answer to no request was taken") };
    assert!(error.to_string().contains("request"), "{error}");
    std::fs::remove_file(&path).expect("it is there");
}
