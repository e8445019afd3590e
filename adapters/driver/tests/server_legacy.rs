//! The engine of a server with a legacy client: what a handler can ask it, and that each question ends, whoever gives up first.

mod engine_support;

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use engine_support::{Bench, Count, ids, poll};
use mcp_wire::Eras;
use mcp_wire::server::{Ended, LogLevel};
use mcp_wire::{Cause, Delivery, SendError};
use mcp_wire_driver::server::{Builder, Call, LegacyClient, LegacyRequest, LegacyRequestError, RpcError, Server, Task};
use serde_json::{Value, json};

fn builder() -> Builder {
    Server::builder("test", "1").capabilities(json!({"tools": {"listChanged": true}, "logging": {}}))
}

fn message(message: &Value) -> String {
    message.to_string() + "\n"
}

fn request(id: i64, method: &str, params: &Value) -> String {
    message(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

fn open(version: &str) -> String {
    let params = json!({
        "protocolVersion": version,
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "c", "version": "1"},
    });
    request(0, "initialize", &params) + &message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
}

fn modern(id: i64) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    request(id, "tools/call", &json!({"_meta": meta}))
}

fn answer_of_client(id: i64, result: &Value) -> String {
    message(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// A session of the newest legacy version with one call.
fn session(builder: Builder) -> (Bench, Call) {
    let mut bench = Bench::new(builder.build().expect("sound"));
    let mut calls = Vec::new();
    bench.feed(&(open("2025-11-25") + &request(1, "tools/call", &json!({}))), |call| calls.push(call));
    assert_eq!(bench.frames().len(), 1, "the result of initialize");
    (bench, calls.pop().expect("started"))
}

fn client(call: &Call) -> LegacyClient {
    call.legacy_client().expect("the call is legacy")
}

/// A request to the client that was sent.
fn asked(bench: &Bench, call: &Call, waker: &Waker) -> (LegacyRequest, Value) {
    let mut request = client(call).request("roots/list", &json!({}));
    assert!(bench.frames().is_empty(), "it is sent when it is polled");
    assert!(poll(&mut request, waker).is_pending());
    let mut frames = bench.frames();
    assert_eq!(frames.len(), 1, "{frames:?}");
    (request, frames.remove(0))
}

fn no_calls(call: Call) {
    panic!("no request is to be started: {call:?}");
}

// RTE-02: a modern call has no client that could be asked; a legacy one says what its client declared once, for all its calls.
#[test]
fn only_a_legacy_call_has_a_client_to_ask() {
    let (mut bench, call) = session(builder());
    let legacy = client(&call);
    assert_eq!((legacy.version(), &*call.protocol_version()), ("2025-11-25", "2025-11-25"));
    assert_eq!(legacy.info().expect("given").get(), r#"{"name":"c","version":"1"}"#);
    assert!(legacy.has_capability("roots") && call.has_client_capability("roots"));
    assert!(!call.has_client_capability("elicitation"));
    // META-04: the code of the modern era stays in it.
    assert_eq!(call.require_client_capability("elicitation").expect_err("not declared").code, -32602);
    let mut calls = Vec::new();
    bench.feed(&modern(2), |call| calls.push(call));
    assert!(calls[0].legacy_client().is_none());
    assert!(calls[0].has_client_capability("elicitation") && !calls[0].has_client_capability("roots"));
    assert_eq!(calls[0].require_client_capability("roots").expect_err("not declared").code, -32021);
    assert_eq!(calls[0].protocol_version(), "2026-07-28");
}

// LEG-07: a question goes to the client under an id of its own, and its answer to the one who asked, who is woken
#[test]
fn a_handler_asks_and_is_answered() {
    let (mut bench, call) = session(builder());
    let count = Arc::new(Count::default());
    let (mut request, frame) = asked(&bench, &call, &Waker::from(count.clone()));
    assert_eq!(frame, json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list", "params": {}}));
    bench.feed(&answer_of_client(1, &json!({"roots": []})), no_calls);
    assert_eq!(count.get(), 1);
    let Poll::Ready(Ok(result)) = poll(&mut request, Waker::noop()) else { panic!("answered") };
    assert_eq!(result.as_json().get(), r#"{"roots":[]}"#);
    assert!(bench.frames().is_empty());

    let (mut request, _) = asked(&bench, &call, Waker::noop());
    let error = json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -1, "message": "no\u{1b}", "data": [1]}});
    bench.feed(&message(&error), no_calls);
    let Poll::Ready(Err(error)) = poll(&mut request, Waker::noop()) else { panic!("answered") };
    assert!(!error.to_string().contains('\u{1b}'), "SEC-03: {error}");
    let LegacyRequestError::Client(error) = error else { panic!("{error}") };
    assert_eq!((error.code, error.data.expect("given").as_json().get()), (-1, "[1]"));
}

// A question as part of a handler: the answer to the call comes after that of the client
#[test]
fn a_call_can_wait_for_its_client() {
    let (mut bench, call) = session(builder());
    let mut task = Task::new(call, |call: Call| async move {
        let client = call.legacy_client().ok_or_else(|| call.method_not_found())?;
        let roots = client.request("roots/list", &json!({})).await;
        let roots = roots.map_err(|error| RpcError::internal(error.to_string()))?;
        Ok::<_, RpcError>(json!({"resultType": "complete", "got": roots}))
    });
    assert!(poll(&mut task, Waker::noop()).is_pending());
    assert_eq!(bench.frames()[0]["method"], "roots/list");
    bench.feed(&answer_of_client(1, &json!({"roots": []})), no_calls);
    assert!(poll(&mut task, Waker::noop()).is_ready());
    // META-08: without what only the modern era has.
    assert_eq!(bench.frames(), [json!({"jsonrpc": "2.0", "id": 1, "result": {"got": {"roots": []}}})]);
}

// CAN-04: dropping a question cancels it on the wire; one that was never polled leaves no trace, and one that has ended neither
#[test]
fn a_question_that_is_dropped_is_cancelled() {
    let (mut bench, call) = session(builder());
    drop(client(&call).request("roots/list", &json!({})));
    assert!(bench.frames().is_empty());
    let (request, _) = asked(&bench, &call, Waker::noop());
    drop(request);
    let cancelled = |params: Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    assert_eq!(bench.frames(), [cancelled(json!({"requestId": 1}))]);
    let (request, _) = asked(&bench, &call, Waker::noop());
    request.cancel("enough");
    assert_eq!(bench.frames(), [cancelled(json!({"requestId": 2, "reason": "enough"}))]);
    // A late answer has nobody to go to.
    bench.feed(&answer_of_client(2, &json!({})), no_calls);
    let (request, _) = asked(&bench, &call, Waker::noop());
    bench.feed(&answer_of_client(3, &json!({})), no_calls);
    drop(request);
    assert!(bench.frames().is_empty());
}

// TMO-01: a question has a deadline, of which the loop knows
#[test]
fn a_question_that_is_not_answered_times_out() {
    let (bench, call) = session(builder());
    let mut request = client(&call).request("roots/list", &json!({})).timeout(Duration::ZERO);
    assert!(poll(&mut request, Waker::noop()).is_pending());
    assert_eq!(bench.engine.turn().timeout, Some(Duration::ZERO));
    bench.engine.handle_timeout();
    let Poll::Ready(Err(error)) = poll(&mut request, Waker::noop()) else { panic!("ended") };
    assert!(
        matches!(error, LegacyRequestError::Failed { cause: Cause::TimedOut, delivery: Delivery::NotSent }),
        "{error}"
    );
    assert!(bench.frames().is_empty(), "no byte of it had left");
}

// LEG-08, LIM-04: what cannot be asked is said at once
#[test]
fn a_question_that_cannot_be_sent_fails_at_once() {
    let (bench, call) = session(builder().configure(|config| config.client_request_limit = 1));
    let fails = |mut request: LegacyRequest| match poll(&mut request, Waker::noop()) {
        Poll::Ready(Err(LegacyRequestError::NotSent(error))) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(fails(client(&call).request("x", &[1])), SendError::ParamsNotAnObject);
    let keys = std::collections::BTreeMap::from([((1, 2), 3)]);
    assert_eq!(fails(client(&call).request("x", &keys)), SendError::NotJson);
    let (request, _) = asked(&bench, &call, Waker::noop());
    assert_eq!(fails(client(&call).request("x", &json!({}))), SendError::Full);
    drop(request);
    client(&call).notify("x", &json!({"a": 1})).expect("sent");
    let frames = bench.frames();
    assert_eq!(frames[1], json!({"jsonrpc": "2.0", "method": "x", "params": {"a": 1}}));
}

// At the end of the input no answer can come: whoever waits learns it, and the handler may still answer its own call (SHD-05)
#[test]
fn a_question_ends_with_the_input() {
    let (bench, call) = session(builder());
    let count = Arc::new(Count::default());
    let (mut request, _) = asked(&bench, &call, &Waker::from(count.clone()));
    bench.engine.end_of_input();
    assert_eq!(count.get(), 1);
    let Poll::Ready(Err(error)) = poll(&mut request, Waker::noop()) else { panic!("ended") };
    assert!(matches!(error, LegacyRequestError::Failed { cause: Cause::Closed, delivery: Delivery::Sent }), "{error}");
    let mut task = Task::new(call, |_: Call| async move { Ok::<_, RpcError>(json!({})) });
    assert!(poll(&mut task, Waker::noop()).is_ready());
    assert_eq!(ids(&bench.frames()), [1]);
    assert_eq!(bench.engine.turn().ended, Some(Ended::EndOfInput));
}

// LOG-01: a legacy client sets the level for its session, so a call of its own needs none
#[test]
fn a_legacy_call_logs_at_the_level_of_its_session() {
    let (mut bench, call) = session(builder());
    call.log(LogLevel::Debug, None, "low").expect("shed");
    call.log(LogLevel::Info, None, "high").expect("sent");
    let data = |frames: &[Value]| frames.iter().map(|frame| frame["params"]["data"].clone()).collect::<Vec<_>>();
    assert_eq!(data(&bench.frames()), ["high"]);
    bench.feed(&request(2, "logging/setLevel", &json!({"level": "debug"})), no_calls);
    assert_eq!(ids(&bench.frames()), [2]);
    call.log(LogLevel::Debug, None, "low").expect("sent");
    assert_eq!(data(&bench.frames()), ["low"]);
}

// LEG-08: a change reaches a legacy client without a subscription, and counts as one more listen
#[test]
fn a_publisher_reaches_a_legacy_client() {
    let server = builder().build().expect("sound");
    let publisher = server.publisher();
    let mut bench = Bench::new(server);
    bench.feed(&open("2025-06-18"), no_calls);
    let _ = bench.frames();
    assert_eq!(publisher.tools_changed(), 1);
    assert_eq!(bench.frames(), [json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})]);
}

// LEG-11: the progress of a task goes on after the answer that began it, until its handle is dropped
#[test]
fn a_task_reports_progress_after_the_answer() {
    let (mut bench, _call) = session(builder());
    let mut calls = Vec::new();
    let params = json!({"task": {}, "_meta": {"progressToken": "p"}});
    bench.feed(&request(2, "tools/call", &params), |call| calls.push(call));
    let call = calls.pop().expect("started");
    let progress = call.begin_task().expect("a token, and the right revision");
    let mut task = Task::new(call, |_: Call| async move { Ok::<_, RpcError>(json!({"task": {"taskId": "t"}})) });
    assert!(poll(&mut task, Waker::noop()).is_ready());
    progress.progress(1.0, None, None).expect("the task goes on");
    let frames = bench.frames();
    assert_eq!(frames[0]["id"], 2);
    assert_eq!(frames[1]["params"], json!({"progressToken": "p", "progress": 1}));
    drop(progress);
    assert!(bench.frames().is_empty());
}

// LEG-09, LEG-10: an array of revision 2025-03-26 is answered by one array; elsewhere it is no message
#[test]
fn a_batch_is_answered_by_one_array() {
    let batch = |last: i64| {
        let line = |text: String| text.trim_end().to_owned();
        let elements =
            [line(request(1, "ping", &json!({}))), line(request(last, "tools/call", &json!({}))), "7".to_owned()];
        format!("[{}]\n", elements.join(","))
    };
    let mut bench = Bench::new(builder().build().expect("sound"));
    bench.feed(&open("2025-03-26"), no_calls);
    let _ = bench.frames();
    let mut calls = Vec::new();
    bench.feed(&(batch(2) + &request(3, "ping", &json!({}))), |call| calls.push(call));
    assert_eq!(ids(&bench.frames()), [3]);
    let mut task = Task::new(calls.pop().expect("started"), |_: Call| async move { Ok::<_, RpcError>(json!({})) });
    assert!(poll(&mut task, Waker::noop()).is_ready());
    let frames = bench.frames();
    let answers = frames[0].as_array().expect("one array");
    assert_eq!(ids(answers), [1, 2], "and an error without an id: {answers:?}");
    assert_eq!((frames.len(), answers.len()), (1, 3));

    let (mut bench, _call) = session(builder());
    bench.feed(&batch(2), no_calls);
    assert_eq!(bench.frames()[0]["error"]["code"], -32600);
}

// VER-13: by option the server is modern only
#[test]
fn a_modern_server_refuses_the_handshake() {
    let mut bench = Bench::new(builder().eras(Eras::Modern).build().expect("sound"));
    bench.feed(&open("2025-11-25"), no_calls);
    assert_eq!(bench.frames()[0]["error"]["code"], -32022);
}
