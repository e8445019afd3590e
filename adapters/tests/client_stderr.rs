//! A server's standard error: always drained, kept to explain an exit, given line by line, never a failure.

#![cfg(unix)]

use std::sync::mpsc;

use crate::rt::adapter::{ClientEvent, Stderr};
use crate::rt::block_on;
use crate::support::client::{builder, events_until, script};
use crate::support::in_time;
use serde_json::Value;

// case 086: 1 MiB of standard error before each answer, the one to the probe included, in each mode that pipes it
#[test]
fn a_talkative_stderr_never_blocks_the_server() {
    block_on(async {
        let body = r#"
mib=$(head -c 65536 /dev/zero | tr '\0' x)
noise() { for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do echo "$mib" >&2; done; }
next; noise; answer '{"supportedVersions":["2026-07-28"]}'
while next; do noise; answer '{}'; done"#;
        let command = script(body).stderr(Stderr::Lines);
        let client = in_time("the start", builder().spawn(command)).await.expect("starts");
        for _ in 0..3 {
            in_time("an answer", client.call::<Value>("x", ())).await.expect("a result");
        }
        let outcome = in_time("the close", client.close()).await.expect("an outcome");
        assert_eq!(outcome.exit, Some(mcp_wire::lifecycle::ExitStatus::Code(0)));
        assert!(client.stderr_tail().len() <= 8 << 10);
    });
}

// LOG-05, case 113, case 117: lines go to events and callback; a panic in the callback and bad bytes do not end the drain
#[test]
fn lines_go_to_events_and_callback() {
    block_on(async {
        let (send, seen) = mpsc::channel();
        let mut builder = builder().on_stderr(move |line| {
            assert_ne!(line, "two", "the callback panics on the second line");
            let _ = send.send(line.to_owned());
        });
        let mut events = builder.events();
        let command = script(r"printf 'one\ntwo\r\ncaf\351\nlast' >&2; discover; serve").stderr(Stderr::Lines);
        let client = in_time("the start", builder.spawn(command)).await.expect("starts");
        in_time("the close", client.close()).await.expect("an outcome");
        let events = events_until(&mut events, "the end", |e| matches!(e, ClientEvent::Closed { .. })).await;
        let lines: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                ClientEvent::Stderr { line } => Some(line.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(lines, ["one", "two", "caf\u{fffd}", "last"]);
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), ["one", "caf\u{fffd}", "last"]);
    });
}

// LOG-05: the tail is kept when standard error is copied to ours
#[test]
fn a_teed_stderr_is_kept_too() {
    block_on(async {
        let command = script("echo 'a teed line' >&2; exit 1").stderr(Stderr::Tee);
        let error = in_time("the failure", builder().spawn(command)).await.expect_err("it exits");
        assert_eq!(error.stderr(), "a teed line");
    });
}
