//! Both programs on each runtime while nothing happens to them, or only the end of somebody they speak to: they wait, and use no
//! processor time. One test, so that nobody else's children are counted.

#![cfg(unix)]

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::json;
use support::{DEMO, On, Program, tool};

/// Processor time of all children so far.
fn used() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("there is one");
    let time = |time: nix::sys::time::TimeVal| {
        Duration::from_micros(u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or(u64::MAX))
    };
    time(usage.user_time()) + time(usage.system_time())
}

/// Runs `mcp-call` on a server that answers the probe and then does this.
fn call(on: On, options: &[&str], then: &str, script: &str) {
    let serve = r#"read probe; echo '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}'"#;
    on.call([options, &["--", "sh", "-c", &format!("{serve}\n{then}")]].concat(), script);
}

// SHD-07, case 083: a wait is a wait, whatever has ended at the other end of whichever stream
#[test]
fn who_waits_uses_no_processor() {
    let request = ["--grace", "3000", "--stderr", "events", "tools/list"];
    let close = "{\"op\":\"wait_event\",\"event\":\"era\"}\n{\"op\":\"close\"}\n";
    type Situation = (&'static str, Box<dyn Fn(On) + Send + Sync>);
    let situations: [Situation; 7] = [
        ("the output is closed", Box::new(move |on| call(on, &request, "exec >&-; trap '' TERM; sleep 1.5", ""))),
        ("the input is closed", Box::new(move |on| call(on, &request, "exec <&-; sleep 1.5", ""))),
        ("standard error is closed", Box::new(move |on| call(on, &request, "exec 2>&-; read x; sleep 1.5", ""))),
        ("all are closed", Box::new(move |on| call(on, &request, "exec <&- >&- 2>&-; trap '' TERM; sleep 1.5", ""))),
        ("the end takes time", Box::new(move |on| call(on, &["--script", "-"], "cat >/dev/null; sleep 1.5", close))),
        ("a tool sleeps", Box::new(a_tool_sleeps)),
        ("the client has gone while a tool sleeps", Box::new(the_client_goes)),
    ];
    for on in ["tokio", "smol", "poll"].map(On::named) {
        let before = used();
        std::thread::scope(|scope| {
            for (what, run) in &situations {
                scope.spawn(move || {
                    let begun = Instant::now();
                    run(on);
                    let took = begun.elapsed();
                    assert!(took > Duration::from_secs(1), "{what}: ended early on {}, after {took:?}", on.runtime());
                });
            }
        });
        // One spin would use a second at least. What all of them need to start and to end, in a debug build, is far less.
        let used = used().saturating_sub(before);
        assert!(used < Duration::from_millis(900), "{used:?} on {}", on.runtime());
    }
}

fn a_tool_sleeps(on: On) {
    let sleep = r#"{"name":"sleep","arguments":{"ms":1500}}"#;
    on.call(["tools/call", sleep, "--", DEMO, "--runtime", on.runtime()], "");
}

/// Its first answer is read, and then nothing more.
fn the_client_goes(on: On) {
    let mut command = Command::new("sh");
    command.args(["-c", "\"$0\" --runtime \"$1\" | head -n 1", DEMO, on.runtime()]);
    let mut program = Program::spawn(command);
    program.line(&tool(1, "echo", json!({"text": "x"})));
    program.next_json();
    program.line(&tool(2, "sleep", json!({"ms": 1500})));
    program.end();
}
