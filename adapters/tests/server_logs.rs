//! What a server logs while it is told everything to log: ids and reasons, never content.

use std::fmt::{Debug, Write as _};
use std::sync::Mutex;

use crate::rt::adapter::{Call, RpcError, ServeExt, Server, Transport};
use crate::rt::{self, block_on};
use crate::support::in_time;
use crate::support::pipe::pipes;
use crate::support::server::{Client, cancel, code, request};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Everything that was logged, at every level.
static LOG: Mutex<String> = Mutex::new(String::new());

struct Everything;

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

fn log<'a>() -> std::sync::MutexGuard<'a, String> {
    LOG.lock().expect("no panic under it")
}

impl Subscriber for Everything {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Line(&mut log()));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Line(&mut log()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut log = log();
        let _ = write!(log, "\n{} {}", event.metadata().level(), event.metadata().target());
        event.record(&mut Line(&mut log));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

// SEC-03, UNR-07, case 224: a secret in params, results, broken lines and panics is in no log at any level. CAN-08: cancellations are told
#[test]
fn a_log_at_every_level_shows_no_content() {
    block_on(async {
        tracing::subscriber::set_global_default(Everything).expect("the first one");
        // A panic's text goes where the program's panic hook sends it; it is not ours to log.
        std::panic::set_hook(Box::new(|_| {}));
        let ((reader, writer), (their_reader, their_writer)) = pipes(64 << 10);
        let builder = Server::builder("test", "1").line_limit(4096);
        let transport = Transport::from((rt::reader(their_reader), rt::writer(their_writer)));
        let serving = rt::spawn(builder.serve(transport, |call: Call| async move {
            match call.method() {
                "echo" => Ok(json!({"secret": "SENTINEL"})),
                "panic" => panic!("SENTINEL"),
                "wait" => {
                    call.cancelled().await;
                    Ok(json!({}))
                }
                "fail" => Err(RpcError::new(-32001, "SENTINEL").data("SENTINEL")),
                _ => Err(call.method_not_found()),
            }
        }));
        let mut client = Client::new(reader, writer);
        for (id, method) in ["echo", "panic", "fail", "nothing"].into_iter().enumerate() {
            client.send(&request(id, method, json!({"secret": "SENTINEL"}))).await;
            client.frame().await;
        }
        client.send(&request("w\u{1b}[31m", "wait", json!({}))).await;
        client.send(&cancel("w\u{1b}[31m")).await;
        client.send(&cancel(999)).await;
        client.send("{\"secret\":\"SENTINEL\"\n").await;
        assert_eq!(code(&client.frame().await), Some(-32700));
        client.send("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"SENTINEL\",\"params\":[\"SENTINEL\"]}\n").await;
        client.frame().await;
        client.send(&format!("{{\"id\":10,\"secret\":\"{}\"}}\n", "SENTINEL".repeat(1000))).await;
        client.frame().await;
        client.close().await;
        in_time("the end", serving).await.expect("no error");
        let log = log();
        assert!(!log.contains("SENTINEL"), "{log}");
        assert!(!log.contains('\u{1b}'), "peer text is escaped");
        for expected in
            ["mcp_wire::cancel", "mcp_wire::router", "changed my mind", "999", "invalid_json", "line_too_long"]
        {
            assert!(log.contains(expected), "{expected} is missing: {log}");
        }
        assert_eq!(log.matches("the protocol reserves").count(), 1, "one warning for the code (MSG-11)");
    });
}
