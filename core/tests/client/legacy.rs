//! The handshake with a legacy server: what leads to it, what follows, and what never leaves before it.

use mcp_wire::client::{Config, Event, ProgressToken, Signal};
use mcp_wire::{Cause, ConnectionError, Delivery, DropReason, Era, Eras, Filter, Instant, RecvBuffer, SendError};

use crate::support::{Client, DISCOVERED, Seen, ended, established, json, ms, options, probe_line};

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// W-15
pub(crate) fn initialize_line(id: u64, version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    )
}

pub(crate) fn initialize_result(id: u64, version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"2"}},"instructions":"a\nb"}}}}"#
    )
}

fn established_as(version: &str) -> Signal {
    Signal::Established { era: Era::Legacy, version: version.into() }
}

/// Opened, the probe answered by an error that no modern server has.
fn asked(config: Config) -> Client {
    let mut client = Client::new(config);
    client.open();
    assert_eq!(client.wire(), [probe_line(1)]);
    assert_eq!(client.error("1", -32601), Seen::Handled);
    client
}

/// In a legacy session of this version.
pub(crate) fn session(version: &str) -> Client {
    session_with(version, |_| {})
}

/// The same, with what else the test wants.
pub(crate) fn session_with(version: &str, change: impl FnOnce(&mut Config)) -> Client {
    let mut config = Config::new("c", "1");
    config.answers_requests = true;
    change(&mut config);
    let mut client = asked(config);
    assert_eq!(client.wire(), [initialize_line(2, "2025-11-25")]);
    assert_eq!(client.feed(&initialize_result(2, version)), Seen::Handled);
    assert_eq!(client.signals(), [established_as(version)]);
    assert_eq!(client.wire(), [INITIALIZED]);
    client
}

// VER-04, LEG-01, CAN-12, case 194: any error but a modern server's leads to the handshake, whatever its code and id; what waits follows it,
// in its order, and nothing is written before.
#[test]
fn any_other_error_leads_to_the_handshake() {
    for code in [-32601, -32602, -32600, -32000, -32700, 0, 42] {
        for id in ["\"id\":1,", "\"id\":null,", ""] {
            let mut client = Client::new(Config::new("c", "1"));
            let a = client.request("a");
            client.notify("notifications/x").expect("there is room");
            client.open();
            assert_eq!(client.wire(), [probe_line(1)]);
            let line = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":{code},"message":"x"}}}}"#);
            assert_eq!(client.feed(&line), Seen::Handled, "{line}");
            assert!(client.signals().is_empty());
            assert_eq!(client.wire(), [initialize_line(2, "2025-11-25")]);
            client.request("b");
            assert!(client.wire().is_empty(), "nothing before the result");
            assert_eq!(client.feed(&initialize_result(2, "2025-06-18")), Seen::Handled);
            assert_eq!(client.signals(), [established_as("2025-06-18")]);
            let request = |id: u64, method: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
            let note = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#.to_owned();
            assert_eq!(client.wire(), [INITIALIZED.to_owned(), request(3, "a"), note, request(4, "b")]);
            assert!(matches!(client.result(3), Seen::Result(handle, ..) if handle == a));
        }
    }
}

// VER-09, VER-04: a result that is no discover result is that of a server which answers anything to anything.
#[test]
fn a_result_of_another_shape_leads_to_the_handshake() {
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":"2026-07-28"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]"#,
    ] {
        let mut client = Client::new(Config::new("c", "1"));
        client.open();
        client.wire();
        client.feed(line);
        assert_eq!(client.wire(), [initialize_line(2, "2025-11-25")], "{line}");
    }
}

// VER-04, CAN-12, case 193: so does silence for the probe's time, and the probe is not cancelled.
#[test]
fn silence_leads_to_the_handshake() {
    let mut client = Client::new(Config::new("c", "1"));
    client.open();
    client.wire();
    client.pass(9999);
    assert!(client.wire().is_empty());
    client.pass(1);
    assert_eq!(client.wire(), [initialize_line(2, "2025-11-25")]);
    client.feed(&initialize_result(2, "2025-11-25"));
    assert_eq!(client.signals(), [established_as("2025-11-25")]);
    assert_eq!(client.wire(), [INITIALIZED]);
}

// A banner on the output costs its line, before the probe's answer and before that of the handshake.
#[test]
fn a_banner_hinders_neither() {
    let mut client = Client::new(Config::new("c", "1"));
    client.open();
    client.wire();
    assert!(matches!(client.feed("Server 1.0 ready"), Seen::Dropped(DropReason::Unreadable(_), None, None)));
    client.error("1", -32601);
    client.wire();
    assert!(matches!(client.feed("listening"), Seen::Dropped(DropReason::Unreadable(_), None, None)));
    client.feed(&initialize_result(2, "2024-11-05"));
    assert_eq!(client.signals(), [established_as("2024-11-05")]);
}

// VER-06, case 195: the probe's answer comes while the handshake is open: the server is modern, and what it says to the handshake is ignored.
#[test]
fn a_late_discover_result_settles_it() {
    for answer in
        [initialize_result(2, "2025-11-25"), r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32022,"message":"m"}}"#.into()]
    {
        let mut client = Client::new(Config::new("c", "1"));
        client.open();
        client.wire();
        client.pass(10_000);
        assert_eq!(client.wire(), [initialize_line(2, "2025-11-25")]);
        assert_eq!(client.feed(DISCOVERED), Seen::Handled);
        assert_eq!(client.signals(), [established()]);
        assert_eq!(client.feed(&answer), Seen::Handled);
        assert!(client.signals().is_empty() && client.wire().is_empty());
        assert!(matches!(client.feed(&answer), Seen::Dropped(..)), "once");
        client.request("a");
        assert!(client.wire()[0].contains("io.modelcontextprotocol/protocolVersion"));
    }
    // A late error says what is known already, with the probe's id or without any; only a second one can be about the handshake.
    for id in ["1", "null"] {
        let mut client = Client::new(Config::new("c", "1"));
        client.open();
        client.wire();
        client.pass(10_000);
        client.wire();
        assert_eq!(client.error(id, -32601), Seen::Handled);
        assert!(client.signals().is_empty());
        client.error("null", -32000);
        assert!(matches!(client.signals()[..], [Signal::Failed(ConnectionError::InitializeRefused { .. })]));
    }
    let mut client = Client::new(Config::new("c", "1"));
    client.open();
    client.wire();
    client.pass(10_000);
    client.wire();
    assert_eq!(client.error("1", -32601), Seen::Handled);
    client.feed(&initialize_result(2, "2025-11-25"));
    assert_eq!(client.signals(), [established_as("2025-11-25")]);
}

// VER-06: a server that refuses the handshake with its versions is probed again, once.
#[test]
fn a_version_error_to_the_handshake_is_one_more_probe() {
    let mut client = asked(Config::new("c", "1"));
    client.wire();
    assert_eq!(client.error("2", -32022), Seen::Handled);
    assert_eq!(client.wire(), [probe_line(3)]);
    client.feed(&DISCOVERED.replace(r#""id":1"#, r#""id":3"#));
    assert_eq!(client.signals(), [established()]);
    // One that goes on like that is neither.
    let mut client = asked(Config::new("c", "1"));
    client.wire();
    client.error("2", -32022);
    client.wire();
    client.error("3", -32601);
    assert_eq!(client.wire(), [initialize_line(4, "2025-11-25")]);
    client.error("4", -32022);
    assert!(matches!(
        &client.signals()[..],
        [Signal::Failed(ConnectionError::NoCommonVersion { server, .. })] if server.is_empty()
    ));
}

// VER-07: a server that lists no modern version of ours but a legacy one gets the handshake in that one.
#[test]
fn a_listed_legacy_version_is_taken() {
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"m","data":{"supported":["2025-06-18"]}}}"#;
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2030-01-01","2025-06-18"]}}"#;
    for line in [error, result] {
        let mut client = Client::new(Config::new("c", "1"));
        client.open();
        client.wire();
        assert_eq!(client.feed(line), Seen::Handled);
        assert_eq!(client.wire(), [initialize_line(2, "2025-06-18")], "{line}");
    }
}

// VER-07: an established modern connection is never downgraded; an error is the caller's alone.
#[test]
fn a_modern_connection_stays_modern() {
    let mut client = Client::plain();
    let a = client.request("a");
    client.wire();
    assert_eq!(client.error("2", -32601), Seen::Error(a, -32601));
    assert!(client.wire().is_empty() && client.signals().is_empty());
    assert_eq!(client.conn.era(), Some(Era::Modern));
}

// LEG-02: a version that this client does not speak closes the connection, and both sides are named.
#[test]
fn a_version_that_is_not_ours_is_final() {
    for version in ["2030-01-01", "1.0", "2026-07-28"] {
        let mut client = Client::new(Config::new("c", "1"));
        let a = client.request("a");
        client.open();
        client.wire();
        client.error("1", -32601);
        client.wire();
        client.feed(&initialize_result(2, version));
        let signals = client.signals();
        let [Signal::Failed(ConnectionError::NoCommonVersion { client: ours, server }), end] = &signals[..] else {
            panic!("{signals:?}")
        };
        assert_eq!((ours.len(), &server[..]), (4, &[version.to_owned()][..]));
        assert_eq!(*end, ended(a, Cause::Closed, Delivery::NotSent));
        assert!(client.wire().is_empty());
    }
}

// LEG-01: a refused handshake, or an answer that is none, is one clear error; an error without an id can be about nothing else.
#[test]
fn a_refused_handshake_is_one_clear_error() {
    let error = |id: &str| format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32000,"message":"no \u001b[2J"}}}}"#);
    for (line, code) in [
        (error(r#""id":2,"#), Some(-32000)),
        (error(r#""id":null,"#), Some(-32000)),
        (error(""), Some(-32000)),
        (r#"{"jsonrpc":"2.0","id":2,"result":{}}"#.into(), None),
        (r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":3}}"#.into(), None),
        (r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion""#.into(), None),
    ] {
        let mut client = asked(Config::new("c", "1"));
        client.wire();
        client.feed(&line);
        let signals = client.signals();
        let [Signal::Failed(error)] = &signals[..] else { panic!("{line}: {signals:?}") };
        assert!(
            matches!(error, ConnectionError::InitializeRefused { code: got, .. } if *got == code),
            "{line}: {error:?}"
        );
        assert!(!error.to_string().contains('\u{1b}'));
    }
}

// LEG-04, case 068: the handshake is never cancelled on the wire; the start-up limit is what bounds it.
#[test]
fn the_handshake_is_never_cancelled() {
    let mut client = asked(Config::new("c", "1"));
    client.wire();
    let due = client.conn.poll_timeout().expect("the start-up limit");
    assert_eq!(due, Instant::from_epoch(mcp_wire::config::START_TIMEOUT));
    client.now = due;
    client.conn.handle_timeout(due);
    assert_eq!(client.signals(), [Signal::Failed(ConnectionError::StartTimeout { output_seen: true })]);
    assert!(client.wire().is_empty());
    let mut client = asked(Config::new("c", "1"));
    client.wire();
    client.conn.close(client.now);
    assert!(client.wire().is_empty(), "nor by a close");
}

// VER-08: the verdict is kept over a restart; a caller can supply it; one that does not hold is probed.
#[test]
fn the_verdict_is_kept_and_can_be_supplied() {
    let mut client = session("2025-06-18");
    client.conn.lost(true, client.now);
    client.open();
    assert_eq!(client.wire(), [initialize_line(3, "2025-06-18")], "no second probe");
    let mut config = Config::new("c", "1");
    config.known_version = Some("2025-03-26".into());
    let mut client = Client::new(config);
    client.open();
    assert_eq!(client.wire(), [initialize_line(1, "2025-03-26")]);
    client.error("1", -32601);
    assert_eq!(client.wire(), [probe_line(2)], "it was only assumed");
    let mut config = Config::new("c", "1");
    config.speak(Eras::Legacy);
    let mut client = Client::new(config);
    client.open();
    assert_eq!(client.wire(), [initialize_line(1, "2025-11-25")], "who speaks nothing else asks nothing else");
    client.error("1", -32601);
    assert!(matches!(&client.signals()[..], [Signal::Failed(ConnectionError::InitializeRefused { .. })]));
}

// META-08: legacy frames carry nothing of the modern era; the caller's own metadata stay, and so does the token.
#[test]
fn legacy_frames_carry_nothing_modern() {
    let mut client = session("2025-11-25");
    let params = r#"{"a":1,"_meta":{"x":2,"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":9}}"#;
    let mut send = |params: &str, token| {
        let mut options = options();
        options.progress = token;
        client.conn.request("m", Some(json(params)), options, client.now).expect("there is room");
        client.wire().remove(0)
    };
    let line = |id: u64, params: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"{params}}}"#);
    assert_eq!(send(params, ProgressToken::Minted), line(3, r#","params":{"_meta":{"progressToken":3,"x":2},"a":1}"#));
    assert_eq!(send(params, ProgressToken::None), line(4, r#","params":{"_meta":{"progressToken":9,"x":2},"a":1}"#));
    assert_eq!(send(r#"{"b":[1]}"#, ProgressToken::None), line(5, r#","params":{"b":[1]}"#));
    assert_eq!(send("{}", ProgressToken::Minted), line(6, r#","params":{"_meta":{"progressToken":6}}"#));
    let only = r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{}}}"#;
    assert_eq!(send(only, ProgressToken::None), line(7, r#","params":{}"#));
}

// MSG-13: `resultType` is a word of the modern era; in a legacy result it is the server's own business.
#[test]
fn a_legacy_result_is_complete() {
    let mut client = session("2025-11-25");
    let a = client.request("a");
    client.wire();
    let seen = client.feed(r#"{"jsonrpc":"2.0","id":3,"result":{"resultType":"odd"}}"#);
    assert!(matches!(seen, Seen::Result(handle, ..) if handle == a));
}

// LEG-08: change and log notifications need no subscription; the facts of the server can be read.
#[test]
fn notifications_go_to_the_connection() {
    let mut client = session("2025-11-25");
    for method in ["notifications/tools/list_changed", "notifications/message", "notifications/resources/updated"] {
        assert_eq!(client.note(method, r#"{"uri":"x"}"#), Seen::Note(None, method.into()));
    }
    let facts = client.conn.facts().expect("they were told");
    assert_eq!(facts.instructions().as_deref(), Some("a\nb"));
    assert_eq!(facts.server_info().expect("a name").get(), r#"{"name":"s","version":"2"}"#);
    assert_eq!(facts.capabilities().expect("some").get(), r#"{"tools":{}}"#);
    assert!(facts.result().get().starts_with(r#"{"protocolVersion""#));
}

// RTE-02: the legacy era has no listens: one that waited ends with the reason, a new one is refused.
#[test]
fn there_are_no_listens() {
    let filter = Filter::default().tools_list_changed();
    let mut client = Client::new(Config::new("c", "1"));
    let (listen, a) = (client.listen(&filter), client.request("a"));
    client.open();
    client.wire();
    client.error("1", -32601);
    client.wire();
    client.feed(&initialize_result(2, "2025-11-25"));
    let signals = client.signals();
    let [first, Signal::Ended { request, cause: Cause::Closed, delivery: Delivery::NotSent, hint: Some(hint) }] =
        &signals[..]
    else {
        panic!("{signals:?}")
    };
    assert_eq!((first, *request), (&established_as("2025-11-25"), listen));
    assert!(hint.to_string().contains("no such request"));
    assert_eq!(client.wire().len(), 2, "the request alone follows the handshake");
    assert!(matches!(client.result(3), Seen::Result(handle, ..) if handle == a));
    assert_eq!(client.conn.listen(&filter, options(), client.now), Err(SendError::NotInThisEra));
    assert!(client.conn.is_idle());
}

// LEG-11: a task goes on when its request has been answered, and so does its progress, until the task is over.
#[test]
fn a_task_reports_progress_after_the_answer() {
    let mut client = session("2025-11-25");
    let a = client.request_with(|o| o.progress = ProgressToken::Minted);
    client.wire();
    assert_eq!(client.progress("3", "1"), Seen::Note(Some(a), "notifications/progress".into()));
    client.feed(r#"{"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t","status":"working"}}}"#);
    let progress = Seen::Note(None, "notifications/progress".into());
    assert_eq!(client.progress("3", "2"), progress);
    client.note("notifications/tasks/status", r#"{"taskId":"t","status":"working"}"#);
    client.note("notifications/tasks/status", r#"{"taskId":"u","status":"completed"}"#);
    assert_eq!(client.progress("3", "3"), progress);
    client.note("notifications/tasks/status", r#"{"taskId":"t","status":"completed"}"#);
    assert_eq!(client.progress("3", "4"), Seen::Dropped(DropReason::UnknownProgressToken, None, None));
    // Other revisions have no tasks.
    let mut client = session("2025-06-18");
    client.request_with(|o| o.progress = ProgressToken::Minted);
    client.wire();
    client.feed(r#"{"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t"}}}"#);
    assert_eq!(client.progress("3", "2"), Seen::Dropped(DropReason::UnknownProgressToken, None, None));
}

// LEG-01, TMO-01: requests of a session time out and are cancelled as in the modern era.
#[test]
fn requests_of_a_session_end_like_any_other() {
    let mut client = session("2025-11-25");
    let a = client.request_with(|o| o.timeout = Some(ms(100)));
    client.wire();
    client.pass(100);
    assert_eq!(client.signals(), [ended(a, Cause::TimedOut, Delivery::Sent)]);
    assert_eq!(client.wire(), [crate::support::cancelled_line(3, Some("timeout"))]);
    assert_eq!(client.result(3), Seen::Dropped(DropReason::LateResponse, Some("3".into()), None));
}

// LEG-09, MSG-01: an array of messages is a message in 2025-03-26 alone.
#[test]
fn arrays_are_messages_in_one_revision() {
    for (version, taken) in [("2025-03-26", true), ("2025-06-18", false)] {
        let mut client = session(version);
        let (a, b) = (client.request("a"), client.request("b"));
        client.wire();
        let mut recv = RecvBuffer::default();
        recv.extend(br#"[{"jsonrpc":"2.0","id":4,"result":{}},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":3,"result":{}}]"#);
        recv.extend(b"\n");
        let frame = recv.next_frame().expect("a line");
        assert_eq!(client.conn.open_batch(client.now), taken);
        let mut answered = Vec::new();
        for message in frame.batch().expect("an array").filter(|_| taken) {
            if let Event::Result { request, .. } = client.conn.handle(message, client.now) {
                answered.push(request);
            }
        }
        client.conn.close_batch(client.now);
        assert_eq!(answered, if taken { vec![b, a] } else { vec![] });
    }
}
