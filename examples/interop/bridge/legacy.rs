//! One session of the legacy era, with a child of its own. Messages pass unchanged; what the child sends goes to the request it answers, or
//! else to the newest stream there is. It must not know of the modern era.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::mpsc;

use crate::body::{Body, Events, is_response};
use crate::child::{self, Ends, Input};
use crate::lock;

#[derive(Default)]
struct Routes {
    /// Requests without an answer, the newest last.
    posts: Vec<(Value, mpsc::UnboundedSender<Value>)>,
    get: Option<mpsc::UnboundedSender<Value>>,
    /// What came while there was no stream at all.
    held: VecDeque<Value>,
}

pub(crate) struct Session {
    input: Input,
    routes: Arc<Mutex<Routes>>,
}

impl Session {
    pub(crate) fn start(command: &[String], ends: &Arc<Ends>) -> std::io::Result<Self> {
        let routes = Arc::new(Mutex::new(Routes::default()));
        let into = routes.clone();
        let input = child::start(command, ends, move |message| lock(&into).route(message))?;
        Ok(Self { input, routes })
    }

    /// Passes a message on; a request has a body when something came for it.
    pub(crate) async fn post(&self, message: Value) -> Option<Body> {
        let id = message.get("id").filter(|_| message.get("method").is_some()).cloned();
        let Some(id) = id else {
            self.input.write(message);
            return None;
        };
        let (stream, messages) = mpsc::unbounded_channel();
        lock(&self.routes).posts.push((id.clone(), stream));
        self.input.write(message);
        // In this era a client that goes away has not cancelled anything.
        Some(Body::of(Events { messages, _until: Box::new(()) }, &id).await)
    }

    /// The stream for what belongs to no request.
    pub(crate) fn listen(&self) -> Body {
        let (stream, messages) = mpsc::unbounded_channel();
        let mut routes = lock(&self.routes);
        for message in routes.held.drain(..) {
            let _ = stream.send(message);
        }
        routes.get = Some(stream);
        Body::Events(None, Events { messages, _until: Box::new(()) })
    }
}

impl Routes {
    fn route(&mut self, message: Option<Value>) {
        let Some(message) = message else {
            *self = Self::default();
            return;
        };
        if is_response(&message) {
            match self.posts.iter().position(|(id, _)| *id == message["id"]) {
                Some(at) => {
                    let _ = self.posts.remove(at).1.send(message);
                }
                None => eprintln!("bridge: an answer to nothing that was asked: {message}"),
            }
            return;
        }
        let mut left = Some(message);
        for stream in self.posts.iter().rev().map(|(_, stream)| stream).chain(&self.get) {
            match left.take().map(|message| stream.send(message)) {
                Some(Err(refused)) => left = Some(refused.0),
                _ => return,
            }
        }
        self.held.extend(left);
    }
}
