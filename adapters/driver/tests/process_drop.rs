//! Dropping a server, outside of any runtime: nothing is left, and nothing waits. Alone in its file, because it counts children and threads.

#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use mcp_wire_driver::process::{ServerCommand, spawn};
use support::{TempDir, Watched, nothing_is_left, start};

// One test, so that nobody else's children are counted.
#[test]
fn drops() {
    a_thousand_drops_leave_no_process();
    every_way_to_end_is_reaped();
    the_helpers_of_a_dropped_server_end_too();
    a_drop_does_not_wait_for_the_child();
    drops_from_many_threads();
    threads_of_the_transport_do_not_keep_the_host_from_exiting();
}

// PRC-05, SHD-04, case 140: children are not killed on drop and not reaped: 1,000 servers spawned and dropped, 0 zombies, 0 alive
fn a_thousand_drops_leave_no_process() {
    for round in 0..1000 {
        let command = if round % 2 == 0 { ServerCommand::new("true") } else { ServerCommand::new("sleep").arg("1000") };
        drop(spawn(&command).expect("it can be spawned"));
    }
    nothing_is_left();
}

// PRC-05: closed, killed, crashed, reaped or not: the drop leaves nothing
fn every_way_to_end_is_reaped() {
    for steps in [&["drain", "exit:0"][..], &["exit:1"], &["crash:9"], &["deaf", "sleep"], &["stop"], &["flood:stdout"]]
    {
        for reap in [false, true] {
            let server = start(steps);
            if reap {
                server.child.kill();
                support::exit_of(&server.child);
                assert!(server.child.reap().is_some());
            }
        }
    }
    nothing_is_left();
}

// SHD-04, PRC-02: the whole tree ends, a deaf helper too
fn the_helpers_of_a_dropped_server_end_too() {
    let dir = TempDir::new();
    let helpers: Vec<Watched> = (0..10)
        .map(|n| {
            let file = dir.file(&format!("helper{n}"));
            let server = start(&[&format!("helper:{file}:ioed"), "deaf", "sleep"]);
            let helper = Watched::helper(Path::new(&file));
            drop(server);
            helper
        })
        .collect();
    helpers.iter().for_each(Watched::ends);
    nothing_is_left();
}

// SHD-04: a drop never blocks. What it does not do is wait for the exit: of many drops at least one comes back before its child is gone
fn a_drop_does_not_wait_for_the_child() {
    let mut returned_first = 0;
    let mut spent = Duration::ZERO;
    for _ in 0..100 {
        let server = start(&["sleep"]);
        let watched = Watched::pid(server.child.pid() as i32);
        let begin = Instant::now();
        drop(server.child);
        spent += begin.elapsed();
        returned_first += u32::from(watched.lives());
        watched.ends();
    }
    assert!(returned_first > 0, "100 drops took {spent:?}");
    nothing_is_left();
}

// SHD-04: one thread reaps for all of them, and it is there again after it has ended
fn drops_from_many_threads() {
    for _ in 0..3 {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..10).for_each(|_| drop(start(&["sleep"]))));
            }
            let reapers = || support::threads().iter().filter(|name| *name == "mcp-wire-reaper").count();
            for _ in 0..50 {
                // One that has handed over may still be on its way out while the next is there.
                assert!(reapers() <= 2);
            }
        });
        nothing_is_left();
    }
}

const HOST: &str = "MCP_WIRE_TEST_HOST";

// case 156: threads of the transport keep the host from exiting: with a dropped server, and with one that was forgotten
fn threads_of_the_transport_do_not_keep_the_host_from_exiting() {
    let mut host = Command::new(std::env::current_exe().expect("the test binary has a path"))
        .args(["--exact", "a_host_that_returns", "--ignored"])
        .env(HOST, "1")
        .spawn()
        .expect("it can be executed again");
    support::wait_until("the host exits", || host.try_wait().is_ok_and(|status| status.is_some()));
    assert!(host.wait().expect("it has exited").success());
}

#[test]
#[ignore = "the host of another test, which executes it"]
fn a_host_that_returns() {
    if std::env::var_os(HOST).is_some() {
        drop(start(&["deaf", "sleep"]));
        // Its input ends with the host, which is how a server learns that.
        std::mem::forget(start(&["drain"]));
        let waited_for = start(&["drain"]);
        waited_for.child.exit_notice().expect("there is one");
        std::mem::forget(waited_for);
    }
}
