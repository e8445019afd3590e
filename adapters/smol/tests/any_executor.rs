//! Nothing here needs an executor of smol's: a driver and a serving are futures that anybody may poll, `block_on` alone included. (Only
//! the methods that put a driver somewhere by themselves use `smol::spawn`.)

#[path = "../../tests/rt_smol.rs"]
mod rt;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use mcp_wire_smol::{Call, Ended, RpcError, ServeExt, Server};
use serde_json::{Value, json};
use smol::future::{block_on, or, yield_now, zip};
use support::client::builder;
use support::in_time;
use support::pipe::pipes;

// FRM-11: a client and a server, joined by pipes in memory, driven by a `block_on` that knows no reactor
#[test]
fn block_on_alone_drives_both_sides() {
    let ((read, write), (their_read, their_write)) = pipes(4096);
    let (client, driver) = builder().connect_parts(read, write).expect("a valid configuration");
    let server = Server::builder("test", "1");
    let serving = server.serve((their_read, their_write), |call: Call| async move {
        yield_now().await;
        Ok::<_, RpcError>(json!({"method": call.method()}))
    });
    let using = async {
        in_time("the start", client.established()).await.expect("established");
        let result: Value = in_time("the answer", client.call("x", ())).await.expect("a result");
        assert_eq!(result["method"], "x");
        in_time("the close", client.close()).await.expect("an outcome");
    };
    let (ended, _) = block_on(in_time("the end", zip(serving, zip(driver, using))));
    assert_eq!(ended.expect("a clean end"), Ended::EndOfInput);
}

// TMO-01: timers too need nobody who runs the reactor: async-io has a thread for that
#[test]
fn a_timeout_comes_with_block_on_alone() {
    let ((read, write), _peer) = pipes(4096);
    let builder = builder().start_timeout(Duration::from_millis(30));
    let (client, driver) = builder.connect_parts(read, write).expect("a valid configuration");
    block_on(in_time(
        "the end",
        or(driver, async {
            client.established().await.expect_err("nobody answers");
        }),
    ));
}

// A process, on an executor whose tasks never leave their thread
#[cfg(unix)]
#[test]
fn a_process_is_driven_on_a_local_executor() {
    let local = smol::LocalExecutor::new();
    let (client, driver) = builder().start_parts(support::client::script("discover; serve")).expect("sound");
    let driver = local.spawn(driver);
    block_on(local.run(async {
        in_time("the start", client.established()).await.expect("established");
        in_time("the answer", client.call::<Value>("x", ())).await.expect("a result");
        in_time("the close", client.close()).await.expect("an outcome");
        in_time("the driver", driver).await;
    }));
}
