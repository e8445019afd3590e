//! The server that the tests start. What happens inside it is told on standard error, one `fact:` a line.

use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::rt::adapter::{Call, Ended, Publisher, RpcError, ServeError, ServeExt, Server, StopHandle, stdio};
use crate::rt::{
    self, Executor,
    channel::{Sender, bounded},
};
use serde_json::{Value, json};

/// What the child is to do.
pub(crate) const ROLE: &str = "MCP_WIRE_TEST_ROLE";
/// `current` or `multi`.
pub(crate) const RUNTIME: &str = "MCP_WIRE_TEST_RUNTIME";

/// case 216: handles that are kept for ever keep nothing alive.
static KEPT: OnceLock<(Publisher, StopHandle)> = OnceLock::new();

fn server(guard: bool) -> Server {
    let server =
        Server::builder("child", "1").stdout_guard(guard).drain(Duration::from_secs(20)).build().expect("sound");
    let _ = KEPT.set((server.publisher(), server.stop_handle()));
    server
}

async fn serve(guard: bool, shutdown: Sender<()>) -> Result<Ended, ServeError> {
    server(guard).serve(stdio(), move |call| handle(call, shutdown.clone())).await
}

fn tell(ended: Result<Ended, ServeError>) -> ExitCode {
    match ended {
        Ok(ended) => {
            eprintln!("fact: ended {ended:?}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("fact: failed {error}");
            ExitCode::FAILURE
        }
    }
}

pub(crate) fn run(role: &str) -> ExitCode {
    let (shutdown, told) = bounded(1);
    let runtime = Executor::new(std::env::var(RUNTIME).as_deref() == Ok("multi"));
    match role {
        "serve" => tell(runtime.block_on(serve(true, shutdown))),
        "unguarded" => tell(runtime.block_on(serve(false, shutdown))),
        // case 213: the runtime is dropped, and waits for its threads, while a read is pending.
        "shutdown" => {
            runtime.spawn(async move { _ = serve(true, shutdown).await });
            runtime.block_on(told.recv()).expect("a handler tells");
            drop(runtime);
            eprintln!("fact: the runtime is gone");
            ExitCode::SUCCESS
        }
        // What a program may do that drives a server from a signal.
        "signal" => {
            let served = runtime.block_on(async {
                let terminated = rt::terminated();
                let server = server(true);
                let stop = server.stop_handle();
                runtime.spawn(async move {
                    terminated.await;
                    stop.terminate();
                });
                eprintln!("fact: listening to signals");
                server.serve(stdio(), move |call| handle(call, shutdown.clone())).await
            });
            tell(served)
        }
        // case 218: after serving the standard streams are what they were, and no number below 3 is free.
        "after" => {
            let served = runtime.block_on(serve(true, shutdown.clone()));
            let file = std::fs::File::open("/dev/null").expect("can be opened");
            let number = std::os::fd::AsRawFd::as_raw_fd(&file);
            println!("printed after serving, next descriptor is above 2: {}", number > 2);
            // LOG-04: the claim is free again.
            tell(served);
            tell(runtime.block_on(serve(true, shutdown)))
        }
        other => panic!("no such role: {other}"),
    }
}

fn output(command: &mut Command) -> Result<String, RpcError> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| RpcError::internal(error.to_string()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn handle(call: Call, shutdown: Sender<()>) -> Result<Value, RpcError> {
    let params: Value = call.params()?;
    let number = |name: &str| params[name].as_u64().unwrap_or(0);
    match call.method() {
        "echo" => Ok(json!({"echo": params["text"]})),
        "sleep" => {
            rt::sleep(Duration::from_millis(number("ms"))).await;
            Ok(json!({}))
        }
        "print" => {
            println!("printed by the handler");
            let status = Command::new("echo").arg("printed by its child").status();
            Ok(json!({"worked": status.is_ok_and(|status| status.success())}))
        }
        // A child that reads its standard input must not eat ours.
        "read_input" => Ok(json!({"read": output(Command::new("cat").stdin(Stdio::inherit()))?})),
        // SEC, PRC-06: what a child of a handler has open.
        "descriptors" => Ok(json!({"open": output(Command::new("ls").arg("/proc/self/fd"))?})),
        "claim" => {
            let second = Server::builder("second", "1")
                .serve(stdio(), |call: Call| async move { Ok::<Value, _>(json!(call.id())) });
            Ok(json!({"second": second.await.map_or_else(|error| error.to_string(), |_| "served".to_owned())}))
        }
        "big" => Ok(json!({"text": "x".repeat(usize::try_from(number("size")).unwrap_or(0))})),
        "until_cancelled" => {
            eprintln!("fact: started {}", call.id());
            call.cancelled().await;
            eprintln!("fact: cancelled {}", call.id());
            Ok(json!({}))
        }
        "stuck" => {
            eprintln!("fact: started {}", call.id());
            std::future::pending().await
        }
        "stop" => {
            KEPT.get().expect("served").1.stop();
            Ok(json!({}))
        }
        "shutdown" => {
            let _ = shutdown.send(()).await;
            std::future::pending().await
        }
        _ => Err(call.method_not_found()),
    }
}
