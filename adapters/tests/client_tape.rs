//! Tapes: what was recorded plays again through the core, with no process and no clock, and every output and event comes out the same.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::rt::adapter::{Client, ClientBuilder, ClientEvent, Events};
use crate::rt::block_on;
use crate::support::client::{Peer, builder, events_until};
use crate::support::in_time;
use mcp_wire::client::{Config, Handle, RequestOptions};
use mcp_wire::{Filter, Instant, Json, JsonBuf, RecvBuffer, lifecycle};
use mcp_wire_driver::client::{Engine, ProcessFact, TapeEntry, TapeFact, TapeOp};
use serde_json::json;

/// A tape entry, owned.
#[derive(Debug)]
enum Fact {
    Config(Box<Config>, Option<Box<lifecycle::Config>>, usize),
    Request(Handle, String, Option<JsonBuf>, RequestOptions),
    Listen(Handle, Filter, RequestOptions),
    Notify(String, Option<JsonBuf>),
    Cancel(Handle, Option<String>),
    Overflow(Handle),
    Close,
    Kill,
    RetryNow,
    In(Vec<u8>),
    InCut(u64),
    Out(Vec<u8>),
    Accepted(usize),
    Stderr,
    Process(ProcessFact),
    Tick,
}

type Tape = Arc<Mutex<Vec<(u64, Fact)>>>;

fn own(entry: &TapeEntry<'_>) -> Fact {
    match &entry.fact {
        TapeFact::Config { connection, process, line_limit } => {
            Fact::Config(Box::new((*connection).clone()), process.map(|p| Box::new(p.clone())), *line_limit)
        }
        TapeFact::Op(TapeOp::Request { handle, method, params, options }) => {
            Fact::Request(*handle, (*method).to_owned(), params.map(JsonBuf::from), (*options).clone())
        }
        TapeFact::Op(TapeOp::Listen { handle, filter, options }) => {
            Fact::Listen(*handle, (*filter).clone(), (*options).clone())
        }
        TapeFact::Op(TapeOp::Notify { method, params }) => {
            Fact::Notify((*method).to_owned(), params.map(JsonBuf::from))
        }
        TapeFact::Op(TapeOp::Cancel { handle, reason }) => Fact::Cancel(*handle, reason.map(str::to_owned)),
        TapeFact::Op(TapeOp::Overflow { handle }) => Fact::Overflow(*handle),
        TapeFact::Op(TapeOp::Close) => Fact::Close,
        TapeFact::Op(TapeOp::Kill) => Fact::Kill,
        TapeFact::Op(TapeOp::RetryNow) => Fact::RetryNow,
        TapeFact::In(bytes) => Fact::In(bytes.to_vec()),
        TapeFact::InCut { bytes, .. } => Fact::InCut(*bytes),
        TapeFact::Out(bytes) => Fact::Out(bytes.to_vec()),
        TapeFact::Accepted(n) => Fact::Accepted(*n),
        TapeFact::Stderr(_) => Fact::Stderr,
        TapeFact::Process(fact) => Fact::Process(*fact),
        TapeFact::Tick => Fact::Tick,
        other => panic!("{other:?}"),
    }
}

/// Records, and gives the events as they happened.
fn record(builder: ClientBuilder) -> (ClientBuilder, Events, Tape) {
    let tape = Tape::default();
    let to = Arc::clone(&tape);
    let mut builder = builder.tape(move |entry| to.lock().expect("no panic").push((entry.t_us, own(&entry))));
    let events = builder.events();
    (builder, events, tape)
}

/// Plays a tape through a fresh core.
fn replay(tape: &[(u64, Fact)]) -> Vec<ClientEvent> {
    let mut events = Vec::new();
    let mut recv = RecvBuffer::default();
    let Some((start, Fact::Config(connection, process, line_limit))) = tape.first() else { panic!("no configuration") };
    let at = |us: u64| Instant::from_epoch(Duration::from_micros(us));
    let mut engine =
        Engine::new((**connection).clone(), process.as_deref().cloned(), at(*start)).expect("a valid configuration");
    let mut lent: Option<Vec<u8>> = None;
    // Steps are performed at once in a replay: what came of them is on the tape.
    while engine.supervisor_mut().poll_step().is_some() {}
    for (position, (us, fact)) in tape.iter().enumerate().skip(1) {
        let now = at(*us);
        let supervisor = engine.supervisor_mut();
        match fact {
            Fact::Config(..) => panic!("a second configuration"),
            Fact::Request(handle, method, params, options) => {
                let again = supervisor.request(method, params.as_ref().map(JsonBuf::as_json), options.clone(), now);
                assert_eq!(again, Ok(*handle));
            }
            Fact::Listen(handle, filter, options) => {
                assert_eq!(supervisor.listen(filter, options.clone(), now), Ok(*handle));
            }
            Fact::Notify(method, params) => {
                supervisor.notify(method, params.as_ref().map(JsonBuf::as_json), now).expect("taken");
            }
            Fact::Cancel(handle, reason) => supervisor.cancel(*handle, reason.as_deref(), now),
            Fact::Overflow(handle) => supervisor.overflow(*handle, now),
            Fact::Close => supervisor.close(now),
            Fact::Kill => supervisor.kill(now),
            Fact::RetryNow => supervisor.retry_now(now),
            Fact::In(bytes) => recv.extend(bytes),
            Fact::InCut(len) => {
                // Any line that is too long will do; this test has those without an id.
                assert!(*len > *line_limit as u64);
            }
            Fact::Out(bytes) => {
                let out = supervisor.take_output(now).unwrap_or_else(|| panic!("no output for {fact:?}"));
                assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(bytes), "at {us}");
                let later = tape[position + 1..].iter().find_map(|(_, fact)| match fact {
                    Fact::Accepted(_) => Some(true),
                    Fact::Out(_) => Some(false),
                    _ => None,
                });
                if later != Some(true) {
                    supervisor.accepted(out.len(), now);
                    supervisor.recycle(out);
                } else {
                    lent = Some(out);
                }
            }
            Fact::Accepted(n) => {
                supervisor.accepted(*n, now);
                if let Some(out) = &mut lent {
                    out.drain(..*n);
                    if out.is_empty() {
                        supervisor.recycle(lent.take().expect("it is there"));
                    }
                }
            }
            Fact::Stderr => supervisor.output_seen(now),
            Fact::Tick => supervisor.handle_timeout(now),
            Fact::Process(fact) => match fact {
                ProcessFact::Started { pid } => {
                    recv.reset();
                    lent = None;
                    engine.spawned(*pid, now);
                }
                ProcessFact::Eof => recv.close(),
                ProcessFact::StderrEof => supervisor.stderr_ended(now),
                ProcessFact::InputFailed => supervisor.input_failed(now),
                ProcessFact::Exited(status) => supervisor.exited(*status, now),
                ProcessFact::GroupSignalled { empty } => supervisor.group_signalled(*empty, now),
                ProcessFact::Reaped => supervisor.reaped(now),
                other => panic!("{other:?}"),
            },
        }
        while let Some(frame) = recv.next_frame() {
            events.extend(Engine::frame_event(&engine.handle(frame, now)));
            while let Some(signal) = engine.poll_signal() {
                events.extend(engine.signal_event(&signal));
            }
        }
        if matches!(fact, Fact::Process(ProcessFact::Eof)) {
            engine.supervisor_mut().output_ended(now);
        }
        while engine.supervisor_mut().poll_step().is_some() {}
        while let Some(signal) = engine.poll_signal() {
            events.extend(engine.signal_event(&signal));
        }
    }
    events
}

// Replay of a session over a stream: answers, progress, a banner, a cancellation, a timeout, a stuck write, a close
#[test]
fn a_session_plays_again_through_a_fresh_core() {
    block_on(async {
        let (builder, mut events, tape) = record(builder());
        let (client, mut peer) = Peer::established(builder).await;
        let mut call = client.request("progress", json!({"a": 1})).progress().send();
        let request = peer.next().await;
        let token = &request["params"]["_meta"]["progressToken"];
        for n in 1..4 {
            peer.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n}}}}}"#
        ))
        .await;
        }
        assert!(call.next_notification().await.is_some());
        peer.say("a banner").await;
        peer.answer(&request, r#"{"é":1}"#).await;
        in_time("the result", call).await.expect("a result");
        drop(client.request("dropped", ()).send());
        let timed_out = client.request("short", ()).timeout(Duration::from_millis(20)).send();
        in_time("its end", timed_out).await.expect_err("a timeout");
        let stuck = client.request("stuck", json!({"big": "x".repeat(200 << 10)})).send();
        let behind = client.request("behind", ()).send();
        loop {
            let request = peer.next().await;
            if request["method"] == "behind" {
                peer.answer(&request, "{}").await;
                break;
            }
        }
        in_time("the one behind", behind).await.expect("a result");
        let closing = client.close();
        in_time("the stuck one", stuck).await.expect_err("closed");
        drop(peer);
        in_time("the close", closing).await.expect("an outcome");
        let seen = events_until(&mut events, "the end", |e| matches!(e, ClientEvent::Closed { .. })).await;
        let tape = tape.lock().expect("no panic");
        assert!(tape.windows(2).all(|two| two[0].0 <= two[1].0), "time does not go back");
        assert_eq!(replay(&tape), seen);
    });
}

// A tape's time never goes back, though a callback between two lines of one read uses the connection: the core is told no earlier time
// than before, by whoever
#[test]
fn the_time_on_a_tape_never_goes_back() {
    block_on(async {
        let slot: Arc<Mutex<Option<Client>>> = Arc::default();
        let callback = {
            let slot = Arc::clone(&slot);
            move |_| {
                // A microsecond is what a tape can tell apart.
                let begun = std::time::Instant::now();
                while begun.elapsed() < Duration::from_micros(50) {}
                if let Some(client) = slot.lock().expect("no panic").as_ref() {
                    client.notify("notifications/seen", ()).expect("taken");
                }
            }
        };
        let (builder, _events, tape) = record(builder().on_notification(callback));
        let (client, mut peer) = Peer::established(builder).await;
        *slot.lock().expect("no panic") = Some(client.clone());
        let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
        peer.say(&format!("{note}\n{note}")).await;
        for _ in 0..2 {
            assert_eq!(peer.next().await["method"], "notifications/seen");
        }
        slot.lock().expect("no panic").take();
        let tape = tape.lock().expect("no panic");
        let times: Vec<_> = tape.iter().map(|(us, _)| *us).collect();
        assert!(times.is_sorted(), "{times:?}");
    });
}

// Replay of a process with a crash, a restart, standard error and a listen that is sent again
#[cfg(unix)]
#[test]
fn a_process_plays_again_through_a_fresh_core() {
    block_on(async {
        let body = r#"
ack() { say "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":$id},\"notifications\":{\"toolsListChanged\":true}}}"; }
echo noise >&2
while next; do case $line in
  *server/discover*) answer '{"supportedVersions":["2026-07-28"]}';;
  *subscriptions/listen*) ack;;
  *crash*) exit 9;;
  *'"id":'*) answer '{}';;
esac; done"#;
        let ms = Duration::from_millis;
        let (builder, mut events, tape) = record(builder().restarts(2).restart_delay(ms(5), ms(10)));
        let command = crate::support::client::script(body).stderr(crate::rt::adapter::Stderr::Tee);
        let client = in_time("the start", builder.spawn(command)).await.expect("starts");
        let mut listen = in_time("the listen", client.listen(Filter::default().tools_list_changed()).send())
            .await
            .expect("acknowledged");
        in_time("the crash", client.call_raw("crash", ())).await.expect_err("closed");
        assert!(in_time("the gap", listen.next()).await.is_some());
        in_time("an answer", client.call_raw("x", json!({"text": "é"}))).await.expect("a result");
        in_time("the close", client.close()).await.expect("an outcome");
        let seen = events_until(&mut events, "the end", |e| matches!(e, ClientEvent::Closed { .. })).await;
        assert_eq!(replay(&tape.lock().expect("no panic")), seen);
    });
}

// SEC-03: content goes to the tape and nowhere else: `Debug` of entries, events and handles shows none
#[test]
fn debug_output_shows_no_content() {
    block_on(async {
        let (builder, mut events, _tape) = record(builder());
        let (client, mut peer) = Peer::established(builder).await;
        let call = client.request("x", json!({"secret": "S3CRET"})).send();
        let shown = format!("{client:?} {call:?}");
        let request = peer.next().await;
        peer.answer(&request, r#"{"secret":"S3CRET"}"#).await;
        peer.say(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"secret":"S3CRET"}}"#).await;
        let result = in_time("the result", call).await.expect("a result");
        assert_eq!(result.as_json(), Json::parse(r#"{"secret":"S3CRET"}"#).expect("JSON"));
        let seen = events_until(&mut events, "the log", |e| matches!(e, ClientEvent::Notification { .. })).await;
        let shown = format!("{shown} {seen:?} {result:?}");
        assert!(!shown.contains("S3CRET"), "{shown}");
    });
}
