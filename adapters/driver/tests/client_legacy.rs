//! A client of a legacy server, with no runtime: its handler of the server's requests, what it knows of the server, and the second round of a
//! request that needs input.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use mcp_wire::{Era, Instant};
use mcp_wire_driver::client::{
    CallError, Client, ClientEvent, Link, Options, Output, ServerRequest, TapeFact, TapeOp, Wrote,
};
use mcp_wire_driver::server::RpcError;
use serde_json::{Value, json};

/// A link driven by hand: lines in, lines out.
struct Server {
    link: Link,
    waker: Waker,
}

impl Server {
    fn line(&mut self, line: &str) {
        self.link.spare_mut()[..=line.len()].copy_from_slice(format!("{line}\n").as_bytes());
        self.link.read(line.len() + 1);
    }

    /// All that is written.
    fn wire(&mut self) -> Vec<Value> {
        let (mut lines, mut wrote) = (Vec::new(), Wrote::default());
        loop {
            let turn = self.link.turn(&self.waker, Output::Wanted, std::mem::take(&mut wrote));
            let Some(bytes) = turn.output else { return lines };
            let text = std::str::from_utf8(&bytes).expect("UTF-8");
            lines.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")));
            wrote = Wrote { accepted: bytes.len(), spent: Some(bytes), failed: false };
        }
    }
}

fn start(options: Options) -> (Client, Server) {
    let (client, link) = options.with_stream(|| Instant::EPOCH).expect("a sound configuration");
    (client, Server { link, waker: Waker::noop().clone() })
}

/// In a legacy session.
fn session(options: Options) -> (Client, Server) {
    let (client, mut server) = start(options);
    assert_eq!(server.wire()[0]["method"], "server/discover");
    server.line(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"m"}}"#);
    assert_eq!(server.wire()[0]["method"], "initialize");
    server.line(
        r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"i"}}"#,
    );
    assert_eq!(server.wire(), [json!({"jsonrpc": "2.0", "method": "notifications/initialized"})]);
    (client, server)
}

fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it is not ready"),
    }
}

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

// VER-08, LEG-01: era, version and what the server told of itself can be read.
#[test]
fn the_facts_of_a_server_can_be_read() {
    let mut options = Options::new("c", "1");
    let mut events = options.events();
    let (client, _server) = session(options);
    let facts = client.server().expect("it is established");
    assert_eq!((facts.era, facts.version.as_str()), (Era::Legacy, "2025-11-25"));
    assert_eq!(facts.instructions.as_deref(), Some("i"));
    assert_eq!(facts.capabilities.expect("they were told").as_json().get(), r#"{"tools":{}}"#);
    assert!(facts.server_info.is_some() && facts.result.is_some());
    let event = ready(events.next());
    assert_eq!(event, Some(ClientEvent::Era { era: "legacy", version: "2025-11-25".into() }));
}

// LEG-06: without a handler a request gets -32601, a ping its answer; both are told.
#[test]
fn without_a_handler_no_method_is_known() {
    let mut options = Options::new("c", "1");
    let mut events = options.events();
    let (_client, mut server) = session(options);
    ready(events.next());
    server.line(r#"{"jsonrpc":"2.0","id":"a","method":"roots/list"}"#);
    server.line(r#"{"jsonrpc":"2.0","id":"b","method":"ping"}"#);
    let wire = server.wire();
    assert_eq!((&wire[0]["error"]["code"], &wire[1]["result"]), (&json!(-32601), &json!({})));
    for (method, answered) in [("roots/list", "error"), ("ping", "result")] {
        let event = ClientEvent::ServerRequest { method: method.into(), answered };
        assert_eq!(ready(events.next()), Some(event));
    }
}

// LIM-04, RTE-11: while a server does not read what it is answered, reading pauses; what was read before waits, and is routed once there is room. The
// driver is woken then, as nobody waits for more to read.
#[test]
fn reading_pauses_while_a_server_does_not_read_its_answers() {
    let (_client, mut server) = session(Options::new("c", "1"));
    let count = Arc::new(Count::default());
    server.waker = Waker::from(count.clone());
    let ping = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let mut asked = 0;
    while server.link.wants_read() {
        server.line(&ping(asked));
        asked += 1;
        assert!(asked < 100_000);
    }
    server.line(&ping(asked));
    assert!(!server.link.wants_read());
    let woken = count.0.load(Ordering::Relaxed);
    let wire = server.wire();
    assert_eq!(wire.len(), asked as usize + 1);
    assert_eq!(wire.last().map(|pong| &pong["id"]), Some(&json!(asked)));
    assert!(server.link.wants_read() && count.0.load(Ordering::Relaxed) > woken);
}

// LEG-06: a handler that works for a while wakes the driver, and its answer leaves then; one that fails or panics answers too.
#[test]
fn a_handler_answers_when_it_is_done() {
    let waiter = Arc::new(Mutex::new((false, None::<Waker>)));
    let shared = Arc::clone(&waiter);
    let mut options = Options::new("c", "1").on_request(move |request: ServerRequest| {
        let shared = Arc::clone(&shared);
        async move {
            match request.method.as_str() {
                "roots/list" => {
                    poll_fn(|cx| {
                        let mut state = shared.lock().expect("not poisoned");
                        state.1 = Some(cx.waker().clone());
                        if state.0 { Poll::Ready(()) } else { Poll::Pending }
                    })
                    .await;
                    Ok(json!({"roots": []}))
                }
                "elicitation/create" => Ok(json!({"echo": request.params::<Value>()?})),
                "odd" => Ok(json!([1])),
                "panic" => panic!("a handler's panic"),
                _ => Err(request.method_not_found()),
            }
        }
    });
    let mut events = options.events();
    let (_client, mut server) = session(options);
    ready(events.next());
    let woken = Arc::new(Count::default());
    server.waker = Waker::from(Arc::clone(&woken));
    server.line(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    assert!(server.wire().is_empty(), "it works");
    server.line(r#"{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"a":1}}"#);
    server.line(r#"{"jsonrpc":"2.0","id":3,"method":"x"}"#);
    server.line(r#"{"jsonrpc":"2.0","id":4,"method":"panic"}"#);
    server.line(r#"{"jsonrpc":"2.0","id":5,"method":"odd"}"#);
    let wire = server.wire();
    assert_eq!(wire[0], json!({"jsonrpc": "2.0", "id": 2, "result": {"echo": {"a": 1}}}));
    let codes: Vec<_> = wire[1..].iter().map(|line| (&line["id"], &line["error"]["code"])).collect();
    assert_eq!(codes, [(&json!(3), &json!(-32601)), (&json!(4), &json!(-32603)), (&json!(5), &json!(-32603))]);
    let before = woken.0.load(Ordering::Relaxed);
    let waker = {
        let mut state = waiter.lock().expect("not poisoned");
        state.0 = true;
        state.1.take().expect("it waits")
    };
    waker.wake();
    assert!(woken.0.load(Ordering::Relaxed) > before, "the driver is woken");
    assert_eq!(server.wire(), [json!({"jsonrpc": "2.0", "id": 1, "result": {"roots": []}})]);
    let told: Vec<_> = std::iter::from_fn(|| Some(ready(events.next()))).take(5).flatten().collect();
    let answered = |method: &str, answered| ClientEvent::ServerRequest { method: method.into(), answered };
    assert_eq!(told[0], answered("elicitation/create", "result"));
    assert_eq!(told[4], answered("roots/list", "result"));
}

// LEG-07: what the server cancels is dropped, and nothing is answered; so is what is open when the connection ends.
#[test]
fn a_cancelled_request_drops_its_future() {
    struct Guard(Arc<AtomicU32>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&dropped);
    let options = Options::new("c", "1").on_request(move |_| {
        let guard = Guard(Arc::clone(&count));
        async move {
            let _guard = guard;
            pending::<()>().await;
            Ok::<_, RpcError>(json!({}))
        }
    });
    let (client, mut server) = session(options);
    server.line(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    server.line(r#"{"jsonrpc":"2.0","id":2,"method":"roots/list"}"#);
    server.wire();
    server.line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    assert!(server.wire().is_empty());
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    drop(client.close());
    server.wire();
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
}

// MSG-15: the second round has the params of the first, the answers and the state, and a new id.
#[test]
fn a_request_that_needs_input_is_asked_again() {
    let (client, mut server) = start(Options::new("c", "1"));
    server.wire();
    server.line(r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#);
    let params = json!({"name": "ask"});
    let mut call = Box::pin(client.call::<Value>("tools/call", &params));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut cx).is_pending());
    assert_eq!(server.wire()[0]["id"], 2);
    server.line(
        r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"q":{}},"requestState":"s\u0041"}}"#,
    );
    let Poll::Ready(Err(CallError::InputRequired(required))) = call.as_mut().poll(&mut cx) else { panic!("no input") };
    let again = client.answer_input("tools/call", &params, &required, json!({"q": {"action": "accept"}})).send();
    let wire = server.wire();
    assert_eq!(wire[0]["id"], 3);
    let sent = &wire[0]["params"];
    assert_eq!((&sent["name"], &sent["requestState"]), (&json!("ask"), &json!("sA")));
    assert_eq!(sent["inputResponses"], json!({"q": {"action": "accept"}}));
    server.line(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
    assert_eq!(ready(again).expect("it is answered").as_json().get(), "{}");
}

// LEG-06, SEC-03: what a handler answered stands on the tape as an operation of the caller's, before the bytes that it became, in the order of the
// answers and by the number of the request.
#[test]
fn the_answers_of_a_handler_stand_on_the_tape() {
    let tape = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&tape);
    let options = Options::new("c", "1")
        .on_request(|request: ServerRequest| async move {
            match request.method.as_str() {
                // No answer before it is cancelled.
                "slow" => pending().await,
                "roots/list" => Ok(json!({"roots": []})),
                "no/object" => Ok(json!(5)),
                _ => Err(RpcError::new(-7, "no").data(&json!(["why"]))),
            }
        })
        .tape(move |entry| {
            let line = match entry.fact {
                TapeFact::Op(TapeOp::Answer { request, method, answer }) => match answer {
                    Ok(result) => format!("{request} {method}: {}", result.get()),
                    Err(error) => format!("{request} {method}: {} {}", error.code, error.message),
                },
                TapeFact::Out(bytes) => String::from_utf8_lossy(bytes).trim_end().to_owned(),
                _ => return,
            };
            sink.lock().expect("not poisoned").push(line);
        });
    let (_client, mut server) = session(options);
    tape.lock().expect("not poisoned").clear();
    for (id, method) in [("s", "slow"), ("r", "roots/list"), ("n", "no/object"), ("e", "else")] {
        server.line(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}"}}"#));
    }
    assert_eq!(server.wire().len(), 3);
    let lines = tape.lock().expect("not poisoned");
    assert_eq!(lines[..3], ["2 roots/list: {\"roots\":[]}", "3 no/object: -32603 Internal error", "4 else: -7 no"]);
    assert!(lines[3].contains(r#""id":"r""#), "{lines:?}");
}
