//! The bodies of HTTP: one that is read whole, and one that grows while the child writes. It must not know where messages come from.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::StatusCode;
use hyper::body::{Body as _, Bytes, Frame, Incoming};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Far over anything that the suite sends.
const LIMIT: usize = 16 << 20;

/// The message in a request.
pub(crate) async fn read(mut incoming: Incoming) -> Result<Value, String> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx)).await {
        let frame = frame.map_err(|error| error.to_string())?;
        bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        if bytes.len() > LIMIT {
            return Err(format!("more than {LIMIT} bytes"));
        }
    }
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// What a response holds.
pub(crate) enum Body {
    /// One message, or nothing, and whether it is still to be written.
    One(Option<Value>),
    /// Server-sent events: the first, and those that follow until the stream ends.
    Events(Option<Value>, Events),
}

/// Messages of the child, as they come.
pub(crate) struct Events {
    pub(crate) messages: mpsc::UnboundedReceiver<Value>,
    /// Dropped with the body: when the last message was written, or when the client has gone away.
    pub(crate) _until: Box<dyn Send + Sync>,
}

impl Body {
    pub(crate) const fn empty() -> Self {
        Self::One(None)
    }

    pub(crate) const fn one(message: Value) -> Self {
        Self::One(Some(message))
    }

    /// JSON if the answer comes first; else a stream, in which it comes last.
    pub(crate) async fn of(mut events: Events, id: &Value) -> Self {
        match events.messages.recv().await {
            Some(first) if !is_response(&first) => Self::Events(Some(first), events),
            Some(answer) => Self::one(answer),
            None => Self::one(error(id, -32603, "The server has ended")),
        }
    }

    pub(crate) const fn content_type(&self) -> Option<&'static str> {
        match self {
            Self::One(None) => None,
            Self::One(_) => Some("application/json"),
            Self::Events(..) => Some("text/event-stream"),
        }
    }

    /// What HTTP calls the error in it, in the modern era: errors of a session are answers like others.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::One(Some(message)) => match message["error"]["code"].as_i64() {
                Some(-32601) => StatusCode::NOT_FOUND,
                Some(-32600 | -32602 | -32700 | -32022..=-32020) => StatusCode::BAD_REQUEST,
                _ => StatusCode::OK,
            },
            _ => StatusCode::OK,
        }
    }
}

pub(crate) fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

pub(crate) fn is_response(message: &Value) -> bool {
    message.get("method").is_none()
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let text = match self.get_mut() {
            Self::One(message) => message.take().map(|message| message.to_string()),
            Self::Events(first, events) => {
                let message = match first.take() {
                    Some(first) => Some(first),
                    None => ready!(events.messages.poll_recv(cx)),
                };
                message.map(|message| format!("event: message\ndata: {message}\n\n"))
            }
        };
        Poll::Ready(text.map(|text| Ok(Frame::data(text.into()))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::One(None))
    }
}
