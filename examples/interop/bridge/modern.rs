//! All requests of the modern era, which share one child: each gets an id and a progress token of its own on the way in, and its own back on
//! the way out. It owns which stream a message of the child belongs to, and must not know of sessions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::body::{Body, Events, is_response};
use crate::child::{self, Ends, Input};
use crate::lock;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

type Open = Arc<Mutex<BTreeMap<u64, Asked>>>;

/// A request that has no answer yet.
struct Asked {
    id: Value,
    token: Option<Value>,
    /// It asked for log messages, which on stdio do not say whose they are.
    logs: bool,
    stream: mpsc::UnboundedSender<Value>,
}

pub(crate) struct Modern {
    input: Mutex<Option<Input>>,
    open: Open,
    next: Mutex<u64>,
}

impl Modern {
    pub(crate) fn start(command: &[String], ends: &Arc<Ends>) -> std::io::Result<Self> {
        let open = Open::default();
        let routes = open.clone();
        let input = child::start(command, ends, move |message| route(&routes, message))?;
        Ok(Self { input: Mutex::new(Some(input)), open, next: Mutex::new(0) })
    }

    pub(crate) fn close(&self) {
        *lock(&self.input) = None;
        lock(&self.open).clear();
    }

    /// Passes a message on; a request has a body when something came for it.
    pub(crate) async fn post(&self, mut message: Value) -> Option<Body> {
        let input = lock(&self.input).clone()?;
        let Some(id) = message.get_mut("id").map(Value::take) else {
            input.write(message);
            return None;
        };
        let n = {
            let mut next = lock(&self.next);
            *next += 1;
            *next
        };
        message["id"] = json!(n);
        let (mut logs, mut token) = (false, None);
        if let Some(meta) = message.pointer_mut("/params/_meta") {
            logs = meta.get(LOG_LEVEL).is_some();
            token = meta.get_mut("progressToken").map(|token| std::mem::replace(token, json!(n)));
        }
        let (stream, messages) = mpsc::unbounded_channel();
        lock(&self.open).insert(n, Asked { id: id.clone(), token, logs, stream });
        input.write(message);
        let until = Box::new(Until { n, open: self.open.clone(), input });
        Some(Body::of(Events { messages, _until: until }, &id).await)
    }
}

/// A client that goes away before the answer has cancelled its request.
struct Until {
    n: u64,
    open: Open,
    input: Input,
}

impl Drop for Until {
    fn drop(&mut self) {
        if lock(&self.open).remove(&self.n).is_some() {
            let params = json!({"requestId": self.n});
            self.input.write(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        }
    }
}

/// Gives a message of the child to the streams that it belongs to, in the words of the requests there.
fn route(open: &Open, message: Option<Value>) {
    let mut open = lock(open);
    let Some(mut message) = message else {
        open.clear();
        return;
    };
    let unclaimed = if is_response(&message) {
        match message["id"].as_u64().and_then(|n| open.remove(&n)) {
            Some(asked) => {
                message["id"] = asked.id.clone();
                if let Some(Value::Object(meta)) = message.pointer_mut("/result/_meta") {
                    meta.entry(SUBSCRIPTION).and_modify(|id| *id = asked.id.clone());
                }
                asked.stream.send(message).is_err()
            }
            None => true,
        }
    } else if message["method"] == "notifications/message" {
        open.values().filter(|asked| asked.logs && asked.stream.send(message.clone()).is_ok()).count() == 0
    } else {
        notify(&open, message)
    };
    if unclaimed {
        eprintln!("bridge: the server said something that belongs to no request");
    }
}

/// True if the notification belongs to no request.
fn notify(open: &BTreeMap<u64, Asked>, mut message: Value) -> bool {
    let Some(params) = message.get_mut("params") else { return true };
    let subscription = params["_meta"][SUBSCRIPTION].as_u64();
    let n = subscription.or_else(|| params["progressToken"].as_u64());
    let Some(asked) = n.and_then(|n| open.get(&n)) else { return true };
    if subscription.is_some() {
        params["_meta"][SUBSCRIPTION] = asked.id.clone();
    }
    for (name, own) in [("progressToken", asked.token.as_ref()), ("requestId", Some(&asked.id))] {
        if let (Some(value), Some(own)) = (params.get_mut(name), own) {
            *value = own.clone();
        }
    }
    asked.stream.send(message).is_err()
}
