//! The tests: one behaviour each, over every kind of stream that can show it.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::host::{Host, Lines, parse, server, server_on};
use super::streams::{KINDS, Kind, Scratch, pipe, start, start_unread};
use crate::support::HANG;
use crate::support::server::{cancel, code, request};

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        /// Every test by its name.
        pub(crate) const ALL: &[(&str, fn())] = &[$((stringify!($name), $name)),*];
    };
}

tests![
    every_kind_of_stream_is_served,
    descriptions_that_others_share_stay_blocking,
    files_are_served_to_their_end,
    no_input_at_all_is_a_clean_end,
    stray_output_goes_to_stderr,
    a_child_of_a_handler_gets_no_descriptor_of_ours,
    without_the_guard_stdout_is_left_alone,
    the_streams_are_claimed_once_and_put_back,
    the_end_of_input_waits_for_a_slow_handler,
    a_half_closed_socket_still_gets_its_answers,
    stop_ends_the_process_with_its_input_open,
    a_runtime_shuts_down_with_a_read_pending,
    sigterm_ends_a_stuck_server,
    a_reader_that_closes_early_ends_serving,
    a_reset_connection_ends_serving,
    large_answers_to_a_client_that_does_not_read,
    half_a_line_then_the_rest,
    a_flood_of_requests_is_answered_whole,
];

// FRM-11: the same rules on every reliable stream
fn every_kind_of_stream_is_served() {
    for kind in KINDS {
        for runtime in ["current", "multi"] {
            let mut host = start(server_on("serve", runtime), kind);
            for id in 0..20 {
                host.send(&request(id, "echo", json!({"text": "hi"})));
                let frame = host.frame();
                assert_eq!((&frame["id"], &frame["result"]["echo"]), (&json!(id), &json!("hi")), "{kind:?}");
            }
            // All at once, in one write.
            let burst: String = (20..120).map(|id| request(id, "echo", json!({"text": "x".repeat(200)}))).collect();
            host.send(&burst);
            for id in 20..120 {
                assert_eq!(host.frame()["id"], id, "{kind:?}");
            }
        }
    }
}

// O_NONBLOCK is a property of the open file, which the shell, the host and other programs share
fn descriptions_that_others_share_stay_blocking() {
    for kind in [Kind::Pipes, Kind::OneSocket, Kind::TwoSockets, Kind::Terminal] {
        let (mut host, output, inner) = start_unread(server("serve"), kind);
        host.read(output);
        host.send(&request(1, "echo", json!({})));
        host.frame();
        assert!(inner.are_blocking(), "while serving: {kind:?}");
        host.send(&request(2, "stop", json!({})));
        host.frame();
        assert!(host.exit().success());
        assert!(inner.are_blocking(), "afterwards: {kind:?}");
    }
}

// case 210: a file as input, a file as output: `server < requests > answers`
fn files_are_served_to_their_end() {
    let (input, output) = (Scratch::new("requests"), Scratch::new("answers"));
    let mut requests: String = (0..500).map(|id| request(id, "big", json!({"size": 3000}))).collect();
    requests += request("last", "sleep", json!({"ms": 50})).trim_end(); // FRM-09
    std::fs::write(&input.0, requests).expect("can be written");
    let mut command = server("serve");
    command.stdin(File::open(&input.0).expect("there")).stdout(File::create(&output.0).expect("can be made"));
    let mut host = Host::start(command, None, None);
    assert!(host.exit().success());
    let answers = std::fs::read_to_string(&output.0).expect("there");
    let frames: Vec<Value> = answers.lines().map(parse).collect();
    assert_eq!(frames.len(), 501);
    assert!(frames.iter().all(|frame| frame["result"].is_object()));
    assert_eq!(frames.last().expect("501")["id"], "last");
}

// case 210, case 212, case 220: no input, or a closed one, is a clean end with exit code 0
fn no_input_at_all_is_a_clean_end() {
    let mut null = server("serve");
    null.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut closed = Command::new("sh");
    closed.arg("-c").arg("exec \"$0\" <&-").arg(std::env::current_exe().expect("we run"));
    closed.env(super::child::ROLE, "serve").stderr(Stdio::piped()).stdout(Stdio::piped());
    let mut blank = server("serve");
    blank.stdin(Stdio::piped()).stdout(Stdio::piped());
    for mut command in [null, closed, blank] {
        let mut child = command.spawn().expect("can be started");
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(b"\n\r\n  \n").expect("can be written"); // FRM-05
        }
        let output = Lines::of(child.stdout.take().expect("piped"));
        let mut host = Host::new(child, None, Some(output));
        assert!(host.exit().success());
        assert_eq!(host.output().rest(), Vec::<String>::new());
        host.fact("ended EndOfInput");
    }
}

// LOG-03, LOG-04: what a handler prints and what a child of it prints goes to stderr; a child that reads stdin gets nothing of ours
fn stray_output_goes_to_stderr() {
    for kind in KINDS {
        let mut host = start(server("serve"), kind);
        host.send(&request(1, "print", json!({})));
        let frame = host.frame();
        assert_eq!((&frame["id"], &frame["result"]["worked"]), (&json!(1), &json!(true)), "{kind:?}");
        assert_eq!(host.errors.next().as_deref(), Some("printed by the handler"));
        assert_eq!(host.errors.next().as_deref(), Some("printed by its child"));
        let both = request(2, "read_input", json!({})) + &request(3, "echo", json!({"text": "mine"}));
        host.send(&both);
        assert_eq!(host.frame()["result"]["read"], "");
        assert_eq!(host.frame()["result"]["echo"], "mine");
    }
}

// The private descriptors are close-on-exec: a child that outlives us must not hold the wire open
fn a_child_of_a_handler_gets_no_descriptor_of_ours() {
    let mut look = Command::new("ls");
    let usual = look.arg("/proc/self/fd").stdin(Stdio::null()).output().expect("can be run");
    for kind in KINDS {
        let mut host = start(server("serve"), kind);
        host.send(&request(1, "descriptors", json!({})));
        assert_eq!(host.frame()["result"]["open"], String::from_utf8_lossy(&usual.stdout).as_ref(), "{kind:?}");
    }
}

// LOG-04 is an option
fn without_the_guard_stdout_is_left_alone() {
    let mut host = Host::on_pipes(server("unguarded"));
    host.send(&request(1, "print", json!({})));
    let lines: Vec<_> = (0..3).filter_map(|_| host.output().next()).collect();
    assert_eq!(lines[..2], ["printed by the handler", "printed by its child"]);
    assert_eq!(parse(&lines[2])["id"], 1);
}

// LOG-04, case 218: one claim at a time; afterwards the numbers 0 to 2 are what they were, and the streams can be served again
fn the_streams_are_claimed_once_and_put_back() {
    let mut host = Host::on_pipes(server("after"));
    host.send(&request(1, "claim", json!({})));
    let second = host.frame()["result"]["second"].to_string();
    assert!(second.contains("served already"), "{second}");
    host.send(&request(2, "stop", json!({})));
    assert_eq!(host.frame()["id"], 2);
    let line = host.output().next();
    assert_eq!(line.as_deref(), Some("printed after serving, next descriptor is above 2: true"));
    host.fact("ended Stopped");
    host.send(&request(3, "echo", json!({"text": "again"})));
    assert_eq!(host.frame()["result"]["echo"], "again");
    host.close_input();
    host.fact("ended EndOfInput");
    assert!(host.exit().success());
}

// SHD-05: `echo … | server` with a slow tool still gets its answer, and the process ends with it
fn the_end_of_input_waits_for_a_slow_handler() {
    for kind in [Kind::Pipes, Kind::OneSocket, Kind::TwoSockets] {
        let mut host = start(server("serve"), kind);
        host.send(&request(1, "sleep", json!({"ms": 300})));
        host.close_input();
        assert_eq!(host.frame()["id"], 1, "{kind:?}");
        assert!(host.exit().success());
        host.fact("ended EndOfInput");
        assert_eq!(host.output().rest(), Vec::<String>::new());
    }
}

// A client that shuts down its sending half has not gone
fn a_half_closed_socket_still_gets_its_answers() {
    let mut host = start(server("serve"), Kind::OneSocket);
    host.send(&request(1, "sleep", json!({"ms": 100})));
    host.send(&request(2, "big", json!({"size": 1 << 20})));
    host.close_input();
    assert_eq!(host.frame()["id"], 2);
    assert_eq!(host.frame()["id"], 1);
    assert!(host.exit().success());
}

// SHD-06, SHD-07, case 216, case 217: stop() ends serve and the process though the input is open and silent, and handles are kept for ever
fn stop_ends_the_process_with_its_input_open() {
    for kind in KINDS {
        for runtime in ["current", "multi"] {
            let mut host = start(server_on("serve", runtime), kind);
            host.send(&request(1, "stop", json!({})));
            assert_eq!(host.frame()["id"], 1, "{kind:?}");
            assert!(host.exit().success(), "{kind:?}");
            host.fact("ended Stopped");
        }
    }
}

// case 213: a pending read of stdin is nothing that a runtime waits for
fn a_runtime_shuts_down_with_a_read_pending() {
    for kind in KINDS {
        for runtime in ["current", "multi"] {
            let mut host = start(server_on("shutdown", runtime), kind);
            host.send(&request(1, "shutdown", json!({})));
            host.fact("the runtime is gone");
            assert!(host.exit().success(), "{kind:?}");
        }
    }
}

// case 213: SIGTERM with the input open and a handler that never ends: what is owed is told, then the process ends
fn sigterm_ends_a_stuck_server() {
    for kind in KINDS {
        let mut host = start(server("signal"), kind);
        host.fact("listening to signals");
        host.send(&request(1, "stuck", json!({})));
        host.fact("started 1");
        rustix::process::kill_process(host.pid(), rustix::process::Signal::TERM).expect("it lives");
        let frame = host.frame();
        assert_eq!((&frame["id"], &frame["error"]["message"]), (&json!(1), &json!("Server shutting down")), "{kind:?}");
        assert!(host.exit().success());
        host.fact("ended Stopped");
    }
}

// SHD-07: a closed reader is noticed at the next write; no panic, no death by SIGPIPE, and the open input does not hold serve
fn a_reader_that_closes_early_ends_serving() {
    let (their_input, our_input) = pipe();
    let (our_output, their_output) = pipe();
    let mut command = server("serve");
    command.stdin(their_input).stdout(their_output);
    let mut host = Host::start(command, Some(Box::new(our_input)), None);
    drop(our_output);
    host.send(&request(1, "echo", json!({})));
    assert!(host.exit().success());
    host.fact("ended PeerGone");

    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let (their_input, our_input) = pipe();
    let mut command = server("serve");
    command.stdin(their_input).stdout(OwnedFd::from(theirs));
    let mut host = Host::start(command, Some(Box::new(our_input)), None);
    drop(ours);
    host.send(&request(1, "echo", json!({})));
    assert!(host.exit().success());
    host.fact("ended PeerGone");
}

// SHD-07: a client that dies with an answer unread resets its socket: that is no error of the server's
fn a_reset_connection_ends_serving() {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let mut command = server("serve");
    command.stdin(OwnedFd::from(theirs.try_clone().expect("a copy"))).stdout(OwnedFd::from(theirs));
    let our_input = ours.try_clone().expect("a copy");
    let mut host = Host::start(command, Some(Box::new(our_input)), None);
    host.send(&request(1, "until_cancelled", json!({})));
    host.send(&request(2, "echo", json!({})));
    host.fact("started 1");
    let begun = Instant::now();
    while rustix::io::ioctl_fionread(&ours).expect("it tells") == 0 {
        assert!(begun.elapsed() < HANG, "hung: an answer");
        std::thread::yield_now();
    }
    host.close_input();
    drop(ours);
    host.fact("ended PeerGone");
    assert!(host.exit().success());
}

// case 094: ten answers of 1 MiB that nobody reads, and still a cancellation gets through and a timer fires; then all are read
fn large_answers_to_a_client_that_does_not_read() {
    for kind in KINDS {
        let (mut host, output, _inner) = start_unread(server("serve"), kind);
        for id in 0..10 {
            host.send(&request(id, "big", json!({"size": 1 << 20})));
        }
        host.send(&request(99, "until_cancelled", json!({})));
        host.fact("started 99");
        host.send(&cancel(99));
        host.fact("cancelled 99");
        host.read(output);
        let mut seen: Vec<i64> = (0..10).filter_map(|_| host.frame()["id"].as_i64()).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..10).collect::<Vec<_>>(), "{kind:?}");
        host.send(&request("end", "stop", json!({})));
        assert_eq!(host.frame()["id"], "end");
    }
}

// case 032: a line that comes in two reads
fn half_a_line_then_the_rest() {
    for kind in KINDS {
        let (mut host, output, inner) = start_unread(server("serve"), kind);
        host.read(output);
        let line = request(1, "echo", json!({"text": "ümlaut"}));
        let cut = line.find('ü').expect("there") + 1;
        let bytes = line.as_bytes();
        host.send_bytes(&bytes[..cut]);
        inner.wait_until_read();
        host.send_bytes(&bytes[cut..]);
        assert_eq!(host.frame()["result"]["echo"], "ümlaut", "{kind:?}");
    }
}

// RTE-11: a client that writes everything before it reads anything: nothing is lost or torn
fn a_flood_of_requests_is_answered_whole() {
    const N: i64 = 5000;
    for kind in [Kind::Pipes, Kind::OneSocket, Kind::Terminal] {
        let mut host = start(server_on("serve", "multi"), kind);
        let text: String = (0..N).map(|id| request(id, "echo", json!({"text": "x"}))).collect();
        host.send(&text);
        let answered = (0..N).filter(|_| code(&host.frame()).is_none()).count();
        assert_eq!(answered, usize::try_from(N).expect("small"), "{kind:?}");
    }
}
