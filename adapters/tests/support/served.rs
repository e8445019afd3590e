//! A server over a pair of pipes in memory, with handlers of every kind, and what a test sees of them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::in_time;
use super::pipe::{Reader, Writer, pipes};
use super::server::Client;
use crate::rt::adapter::{
    Call, Ended, LogLevel, Publisher, RpcError, ServeError, ServeExt, Server, ServerBuilder, StopHandle, Transport,
};
use crate::rt::channel::{Receiver, Sender, unbounded};
use crate::rt::lock::Semaphore;
use crate::rt::{self, Task, future};

/// What the handlers of a test and the test itself share.
#[derive(Debug)]
pub(crate) struct World {
    /// Handlers of `hold` wait for one permit each.
    pub(crate) gate: Semaphore,
    pub(crate) started: AtomicUsize,
    /// Reasons of cancellations that reached a handler.
    pub(crate) cancelled: Sender<Option<String>>,
    /// Handlers alive.
    pub(crate) alive: AtomicUsize,
    pub(crate) kept: Mutex<Option<Arc<Call>>>,
}

struct Alive(Arc<World>);

impl Alive {
    fn new(world: &Arc<World>) -> Self {
        world.alive.fetch_add(1, Ordering::SeqCst);
        Self(world.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn handle(world: Arc<World>, call: Call) -> Result<Value, RpcError> {
    let _alive = Alive::new(&world);
    world.started.fetch_add(1, Ordering::SeqCst);
    match call.method() {
        "echo" => Ok(json!({"echo": call.params::<Value>()?["text"]})),
        "hold" => {
            world.gate.acquire().await.forget();
            Ok(json!({}))
        }
        "until_cancelled" => {
            let reason = call.cancelled().await;
            let _ = world.cancelled.send(reason).await;
            Ok(json!({"nobody": "reads this"}))
        }
        "panic" => panic!("as the test wants"),
        "panic_later" => {
            future::yield_now().await;
            panic!("as the test wants")
        }
        "progress" => {
            let steps = call.params::<Value>()?["steps"].as_u64().unwrap_or(0);
            for step in 1..=steps {
                call.progress(step as f64, Some(steps as f64), None)
                    .map_err(|error| RpcError::internal(error.to_string()))?;
                if step % 3 == 0 {
                    future::yield_now().await;
                }
            }
            Ok(json!({}))
        }
        "log" => {
            call.log(LogLevel::Warning, None, "seen").map_err(|error| RpcError::internal(error.to_string()))?;
            call.log(LogLevel::Debug, None, "not seen").map_err(|error| RpcError::internal(error.to_string()))?;
            Ok(json!({}))
        }
        "big" => {
            let size = call.params::<Value>()?["size"].as_u64().unwrap_or(0);
            Ok(json!({"text": "x".repeat(usize::try_from(size).unwrap_or(0))}))
        }
        "keep" => {
            *world.kept.lock().expect("no panic under it") = Some(Arc::new(call));
            Ok(json!({}))
        }
        "needs_sampling" => {
            call.require_client_capability("sampling")?;
            Ok(json!({}))
        }
        "forbidden_code" => Err(RpcError::new(-32000, "mine")),
        "no_json" => Err(RpcError::invalid_params("no")),
        _ => Err(call.method_not_found()),
    }
}

pub(crate) struct Served {
    pub(crate) client: Client<Reader, Writer>,
    pub(crate) serving: Task<Result<Ended, ServeError>>,
    pub(crate) world: Arc<World>,
    pub(crate) cancelled: Receiver<Option<String>>,
    pub(crate) stop: StopHandle,
    pub(crate) publisher: Publisher,
}

pub(crate) fn builder() -> ServerBuilder {
    Server::builder("test", "1").capabilities(json!({"tools": {"listChanged": true}, "logging": {}}))
}

/// Serves over a pipe in memory that holds so many bytes in each direction.
pub(crate) fn serve(builder: ServerBuilder, pipe: usize) -> Served {
    let ((reader, writer), (their_reader, their_writer)) = pipes(pipe);
    let (sender, cancelled) = unbounded();
    let world = Arc::new(World {
        gate: Semaphore::new(0),
        started: AtomicUsize::new(0),
        cancelled: sender,
        alive: AtomicUsize::new(0),
        kept: Mutex::new(None),
    });
    let server = builder.build().expect("a sound configuration");
    let (stop, publisher) = (server.stop_handle(), server.publisher());
    let shared = world.clone();
    let transport = Transport::from((rt::reader(their_reader), rt::writer(their_writer)));
    let serving = rt::spawn(server.serve(transport, move |call| handle(shared.clone(), call)));
    Served { client: Client::new(reader, writer), serving, world, cancelled, stop, publisher }
}

impl Served {
    pub(crate) async fn ended(self) -> Ended {
        in_time("the end of serving", self.serving).await.expect("a clean end")
    }

    pub(crate) async fn started(&self, n: usize) {
        in_time("handlers to start", async {
            while self.world.started.load(Ordering::SeqCst) < n {
                future::yield_now().await;
            }
        })
        .await;
    }

    pub(crate) async fn none_alive(&self) {
        none_alive(&self.world).await;
    }
}

/// Waits until each handler has ended.
pub(crate) async fn none_alive(world: &World) {
    in_time("handlers to end", async {
        while world.alive.load(Ordering::SeqCst) > 0 {
            future::yield_now().await;
        }
    })
    .await;
}

pub(crate) fn ids(frames: &[Value]) -> BTreeSet<i64> {
    frames.iter().filter_map(|frame| frame["id"].as_i64()).collect()
}
