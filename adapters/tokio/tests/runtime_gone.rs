//! A tokio runtime that is dropped under a connection. Only tokio has such a thing; what a dropped driver leaves is tested on both runtimes.

#[path = "../../tests/rt_tokio.rs"]
mod rt;
#[path = "../../tests/support/mod.rs"]
mod support;

use mcp_wire_tokio::{CallError, Cause, CloseError};
use rt::Executor;
use support::client::{Peer, builder};
use support::in_time;

// case 159: the runtime goes away under a call: it resolves, and so does the close
#[test]
fn a_call_outlives_its_runtime_and_resolves() {
    let runtime = Executor::new(true);
    let (client, peer) = runtime.block_on(Peer::established(builder()));
    let call = client.request("x", ()).send();
    let closed = client.closed();
    drop(runtime);
    Executor::new(false).block_on(async {
        match in_time("its end", call).await {
            Err(CallError::Failed { cause: Cause::Closed, .. }) => {}
            end => panic!("{end:?}"),
        }
        let outcome = in_time("the close", closed).await;
        assert_eq!(outcome, Err(CloseError::DriverStopped));
    });
    drop(peer);
}

// SHD-04, case 161: the runtime stands still or is gone when the last handle is dropped
#[cfg(unix)]
#[test]
fn no_process_is_left_without_a_runtime() {
    use support::client::{gone, script};

    let runtime = Executor::new(false);
    let start = || in_time("the start", builder().spawn(script("trap '' TERM; discover; sleep 1000")));
    let client = runtime.block_on(start()).expect("starts");
    let pid = client.pid().expect("a process");
    drop(client);
    gone(pid); // nobody polls the driver

    let client = runtime.block_on(start()).expect("starts");
    let pid = client.pid().expect("a process");
    drop(runtime);
    gone(pid);
    drop(client);
}
