//! What the server tests share: requests as text, and a client made of lines.

use serde_json::{Value, json};

use super::in_time;
use crate::rt::io::{AsyncRead, AsyncWrite, BufReader};
use crate::rt::{AsyncBufReadExt, AsyncWriteExt};

/// A request line with the metadata that each request carries.
pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> String {
    request_with(id, method, params, json!({}))
}

/// The same with further members of `_meta`.
pub(crate) fn request_with(id: impl Into<Value>, method: &str, mut params: Value, meta: Value) -> String {
    let mut full = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let more = meta.as_object().cloned().unwrap_or_default();
    full.as_object_mut().expect("an object").extend(more);
    params["_meta"] = full;
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}).to_string() + "\n"
}

/// A cancellation line.
pub(crate) fn cancel(id: impl Into<Value>) -> String {
    let params = json!({"requestId": id.into(), "reason": "changed my mind"});
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string() + "\n"
}

/// A client that speaks lines.
pub(crate) struct Client<R, W> {
    reader: BufReader<R>,
    writer: Option<W>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Client<R, W> {
    pub(crate) fn new(reader: R, writer: W) -> Self {
        Self { reader: BufReader::new(reader), writer: Some(writer) }
    }

    pub(crate) async fn send(&mut self, text: &str) {
        let writer = self.writer.as_mut().expect("not closed yet");
        in_time("a write", writer.write_all(text.as_bytes())).await.expect("the server reads");
        in_time("a flush", writer.flush()).await.expect("the server reads");
    }

    /// The streams, for tests that want bytes.
    pub(crate) fn into_parts(self) -> (BufReader<R>, W) {
        (self.reader, self.writer.expect("not closed yet"))
    }

    /// Closes our end.
    pub(crate) async fn close(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            in_time("a shutdown", writer.close()).await.expect("can be closed");
        }
    }

    /// The next frame; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        if in_time("a frame", self.reader.read_line(&mut line)).await.expect("can be read") == 0 {
            return None;
        }
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON on the wire: {line}")))
    }

    /// The next frame, which must come.
    pub(crate) async fn frame(&mut self) -> Value {
        self.next().await.expect("a frame, not the end")
    }

    /// All that is left, until the end.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

/// The code of an error response.
pub(crate) fn code(frame: &Value) -> Option<i64> {
    frame["error"]["code"].as_i64()
}
