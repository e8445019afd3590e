//! Calls over a real process and over a memory pipe: results, errors, notifications, cancellation, timeouts.

mod client_support;

use client_support::{Peer, builder, in_time, script};
use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_tokio::CallError;
use serde_json::{Value, json};

#[tokio::test]
async fn a_call_to_a_real_process_and_a_clean_close() {
    let command = script("discover; next; answer '{\"sum\":42}'; serve");
    let client = in_time("the start", builder().spawn(command)).await.expect("it starts");
    assert_eq!(client.version().as_deref(), Some("2026-07-28"));
    let sum: Value = in_time("the call", client.call("tools/call", json!({"name": "add"}))).await.expect("a result");
    assert_eq!(sum, json!({"sum": 42}));
    let outcome = in_time("the close", client.close()).await.expect("an outcome");
    assert_eq!(outcome.exit, Some(ExitStatus::Code(0)));
}

// case 041 and RPC errors: an error response is an error of that call, unchanged
#[tokio::test]
async fn an_error_response_is_the_error_of_its_call() {
    let (client, mut peer) = Peer::established(builder()).await;
    let (error, ()) = tokio::join!(client.call::<Value>("x", ()), async {
        let request = peer.next().await;
        let id = &request["id"];
        peer.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no","data":{{"a":1}}}}}}"#
        ))
        .await;
    });
    match error {
        Err(CallError::Rpc { code: -32602, message, data: Some(data) }) => {
            assert_eq!((message.as_str(), data.as_json().get()), ("no", r#"{"a":1}"#));
        }
        other => panic!("{other:?}"),
    }
}
