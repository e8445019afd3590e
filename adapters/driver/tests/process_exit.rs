//! How a server ends: its status, an exit at once, input nobody reads, output to the last byte.

#![cfg(target_os = "linux")]

mod support;

use std::io::{ErrorKind, Write};

use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_driver::process::{ServerCommand, Spawned, spawn};
use support::{exit_of, read_to_end, start};

// The exit is seen without a reap, and the reap says the same
#[test]
fn code_and_signal_are_told_apart() {
    for (step, status) in [
        ("exit:0", ExitStatus::Code(0)),
        ("exit:3", ExitStatus::Code(3)),
        ("exit:127", ExitStatus::Code(127)),
        ("crash:11", ExitStatus::Signal(11)),
        ("crash:6", ExitStatus::Signal(6)),
    ] {
        let Spawned { child, .. } = start(&[step]);
        assert_eq!(exit_of(&child), status, "{step}");
        assert!(support::children().contains(&(child.pid() as i32, 'Z')), "{step}: it is not reaped yet");
        assert_eq!(child.reap(), Some(status), "{step}");
        assert!(!support::children().iter().any(|(pid, _)| *pid == child.pid() as i32), "{step}: now it is");
    }
}

// case 122: child exits between spawn and first write: EPIPE is an error of the write, and no signal ends the host
#[test]
fn a_write_to_a_server_that_is_gone_is_an_error() {
    let Spawned { child, mut stdin, .. } = spawn(&ServerCommand::new("true")).expect("true can be spawned");
    assert_eq!(exit_of(&child), ExitStatus::Code(0));
    // A sibling that another test is just spawning may hold a copy of the reading end until its exec.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let error = loop {
        match stdin.write_all(b"x") {
            Err(error) => break error,
            Ok(()) => assert!(std::time::Instant::now() < deadline, "nobody reads"),
        }
        std::thread::yield_now();
    };
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

// A server that exits on its first byte: what it was sent is not an error before it is read
#[test]
fn a_server_may_exit_on_its_first_byte() {
    let Spawned { child, mut stdin, .. } = start(&["first-byte", "exit:7"]);
    assert_eq!(child.try_exit(), None);
    stdin.write_all(b"{}\n").expect("the pipe takes it");
    assert_eq!(exit_of(&child), ExitStatus::Code(7));
}

// What a server wrote before its end can be read after it, half a line too
#[test]
fn output_outlives_the_server() {
    let Spawned { child, mut stdout, .. } = start(&["say:whole", "half", "crash:9"]);
    assert_eq!(exit_of(&child), ExitStatus::Signal(9));
    child.reap();
    assert_eq!(read_to_end(&mut stdout), b"whole\n{\"jsonrpc\":\"2.0\",\"id\":1,\"resu");
}

// Exit and end of output are two facts: either may come first
#[test]
fn a_server_can_close_its_output_and_live() {
    let Spawned { child, mut stdout, .. } = start(&["close:stdout", "sleep"]);
    assert_eq!(read_to_end(&mut stdout), b"");
    assert_eq!(child.try_exit(), None);
}

// Closing stdin is what ends a server that behaves; a large output at the end is drained meanwhile
#[test]
fn the_end_of_input_ends_a_server_that_behaves() {
    let Spawned { child, stdin, mut stdout, .. } = start(&["drain", "flood:stdout:1048576", "exit:0"]);
    drop(stdin);
    assert_eq!(read_to_end(&mut stdout).len(), 1 << 20);
    assert_eq!(exit_of(&child), ExitStatus::Code(0));
}

// The child answers as a server does: what the tests of clients build on
#[test]
fn the_misbehaving_child_answers_what_it_is_asked() {
    let Spawned { child, mut stdin, mut stdout, .. } = start(&["serve:2", "say:then it misbehaves", "exit:4"]);
    stdin
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{}}\n")
        .expect("it reads");
    stdin
        .write_all("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\",\"params\":{\"t\":\"\u{e9}\"}}\n".as_bytes())
        .expect("it reads");
    let output = String::from_utf8(read_to_end(&mut stdout)).expect("it is UTF-8");
    assert_eq!(
        output.lines().collect::<Vec<_>>(),
        [
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"complete\",\"echo\":{\"t\":\"\u{e9}\"}}}",
            "then it misbehaves",
        ]
    );
    assert_eq!(exit_of(&child), ExitStatus::Code(4));
}
