//! Lets a client that speaks HTTP reach a server on stdio: `bridge COMMAND [ARG]...` prints the address it serves, and ends when its own
//! input does. It owns the HTTP side and which child a message goes to. Messages pass as they are, but for ids and tokens of modern
//! requests; it must not know what any method means, and decides nothing that a server decides.

mod body;
mod child;
mod legacy;
mod modern;

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use self::body::Body;
use self::child::Ends;
use self::legacy::Session;
use self::modern::Modern;

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

struct Bridge {
    command: Vec<String>,
    /// The one child of all modern requests, which need no session.
    modern: Modern,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    secret: RandomState,
    ends: Arc<Ends>,
}

/// Nothing here panics while it holds a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    if command.is_empty() {
        eprintln!("usage: bridge COMMAND [ARG]...");
        return Ok(ExitCode::from(2));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let ends = Arc::new(Ends::default());
    let bridge = Arc::new(Bridge {
        modern: Modern::start(&command, &ends)?,
        command,
        sessions: Mutex::default(),
        secret: RandomState::new(),
        ends: ends.clone(),
    });
    println!("http://{}/mcp", listener.local_addr()?);
    std::io::stdout().flush()?;

    let serving = tokio::spawn(serve(listener, bridge.clone()));
    // Who started it holds the other end.
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    serving.abort();
    bridge.modern.close();
    lock(&bridge.sessions).clear();
    Ok(if ends.all_ended_well().await { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn serve(listener: TcpListener, bridge: Arc<Bridge>) {
    while let Ok((stream, _)) = listener.accept().await {
        let bridge = bridge.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| answer(bridge.clone(), request));
            // A client that goes away in the middle is its own business; what it had asked for is cancelled.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn answer(bridge: Arc<Bridge>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let (head, incoming) = request.into_parts();
    // A page in a browser could reach us under a name of its own.
    if !is_local(&head.headers) {
        return Ok(refusal(StatusCode::FORBIDDEN, &Value::Null, -32600, "Only this machine is served"));
    }
    let session = match head.headers.get(SESSION).and_then(|id| id.to_str().ok()) {
        None => None,
        Some(id) => match lock(&bridge.sessions).get(id).cloned() {
            Some(session) => Some((id.to_owned(), session)),
            None => return Ok(refusal(StatusCode::NOT_FOUND, &Value::Null, -32001, "Session not found")),
        },
    };
    let answer = match (head.method, session) {
        (Method::POST, session) => match body::read(incoming).await {
            Ok(message) => bridge.post(&head.headers, session.map(|(_, session)| session), message).await,
            Err(why) => refusal(StatusCode::BAD_REQUEST, &Value::Null, -32700, &why),
        },
        (Method::GET, Some((_, session))) => Response::new(session.listen()),
        (Method::DELETE, Some((id, _))) => {
            lock(&bridge.sessions).remove(&id);
            Response::new(Body::empty())
        }
        (Method::GET | Method::DELETE, None) => {
            refusal(StatusCode::BAD_REQUEST, &Value::Null, -32000, "No session is named")
        }
        _ => refusal(StatusCode::METHOD_NOT_ALLOWED, &Value::Null, -32600, "Only POST, GET and DELETE"),
    };
    Ok(typed(answer))
}

impl Bridge {
    async fn post(&self, headers: &HeaderMap, session: Option<Arc<Session>>, message: Value) -> Response<Body> {
        if let Some(session) = session {
            return answered(session.post(message).await, |_| StatusCode::OK);
        }
        let claimed = message["params"]["_meta"][META_VERSION].as_str();
        if message["method"] == "initialize" && claimed.is_none() {
            return self.open(message).await;
        }
        // The one thing that is between the header and the message, and so nobody's but the transport's.
        let named = headers.get(VERSION).and_then(|version| version.to_str().ok());
        if let Some(claimed) = claimed
            && named != Some(claimed)
        {
            let why = "The header MCP-Protocol-Version is not the version of the request";
            return refusal(StatusCode::BAD_REQUEST, &message["id"], -32020, why);
        }
        answered(self.modern.post(message).await, Body::status)
    }

    /// A legacy session, with a child of its own.
    async fn open(&self, initialize: Value) -> Response<Body> {
        let session = match Session::start(&self.command, &self.ends) {
            Ok(session) => Arc::new(session),
            Err(error) => {
                let why = format!("{} cannot be started: {error}", self.command[0]);
                return refusal(StatusCode::BAD_GATEWAY, &initialize["id"], -32603, &why);
            }
        };
        let mut response = answered(session.post(initialize).await, |_| StatusCode::OK);
        let mut sessions = lock(&self.sessions);
        let id = format!("{:016x}", self.secret.hash_one(self.ends.started()));
        if let Ok(value) = id.parse() {
            response.headers_mut().insert(SESSION, value);
            sessions.insert(id, session);
        }
        response
    }
}

/// The answer to a POST; without a body it was a notification or a response.
fn answered(body: Option<Body>, status: impl FnOnce(&Body) -> StatusCode) -> Response<Body> {
    let status = body.as_ref().map_or(StatusCode::ACCEPTED, status);
    with_status(Response::new(body.unwrap_or_else(Body::empty)), status)
}

fn refusal(status: StatusCode, id: &Value, code: i64, message: &str) -> Response<Body> {
    with_status(Response::new(Body::one(body::error(id, code, message))), status)
}

fn with_status(mut response: Response<Body>, status: StatusCode) -> Response<Body> {
    *response.status_mut() = status;
    response
}

fn typed(mut response: Response<Body>) -> Response<Body> {
    if let Some(kind) = response.body().content_type().and_then(|kind| kind.parse().ok()) {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    response
}

fn is_local(headers: &HeaderMap) -> bool {
    let local = |host: &str| {
        let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
        matches!(name.map_or(host, |(name, _)| name), "localhost" | "127.0.0.1" | "[::1]")
    };
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let origin = |origin: &str| origin.split_once("://").is_some_and(|(_, host)| local(host));
    text(HOST).is_some_and(local) && text(ORIGIN).is_none_or(origin)
}
