//! Owns the servers of the round-trip bench: the bare pipe, the hand-written one, rmcp's and ours. Each serves its standard streams
//! until they end. It must not know clients.

use std::io::{Read, Write};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::stats::stats_text;

/// One line of `response` bytes for each line, the same line for 0; no JSON. All answers of a read leave in one write.
pub(crate) fn pipe(response: usize) {
    let mut fixed = vec![b'y'; response.saturating_sub(1)];
    fixed.push(b'\n');
    let mut stdin = std::io::stdin().lock();
    let mut stdout = std::fs::File::options().write(true).open("/proc/self/fd/1").expect("stdout is a pipe");
    let (mut chunk, mut carry, mut out) = (vec![0_u8; 64 << 10], Vec::new(), Vec::new());
    loop {
        let n = stdin.read(&mut chunk).expect("stdin can be read");
        if n == 0 {
            return;
        }
        let mut rest = &chunk[..n];
        while let Some(at) = memchr::memchr(b'\n', rest) {
            carry.extend_from_slice(&rest[..=at]);
            rest = &rest[at + 1..];
            if carry == b"stats\n" {
                out.extend_from_slice(stats_text().as_bytes());
                out.push(b'\n');
            } else {
                out.extend_from_slice(if response == 0 { &carry } else { &fixed });
            }
            carry.clear();
        }
        carry.extend_from_slice(rest);
        stdout.write_all(&out).expect("stdout can be written");
        out.clear();
    }
}

/// What people write by hand: `lines()`, `Value`, a flush for each answer.
pub(crate) async fn hand() {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut out = tokio::io::stdout();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let params = &message["params"];
        let text = match params["name"].as_str() {
            Some("echo") => params["arguments"]["text"].as_str().unwrap_or_default().to_owned(),
            _ => stats_text(),
        };
        let result = json!({"resultType": "complete", "content": [{"type": "text", "text": text}]});
        let mut answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        answer.push('\n');
        out.write_all(answer.as_bytes()).await.expect("stdout can be written");
        out.flush().await.expect("stdout can be written");
    }
}

#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, rmcp::ErrorData> {
        let text = match (&*params.name, params.arguments.and_then(|mut arguments| arguments.remove("text"))) {
            ("echo", Some(Value::String(text))) => text,
            _ => stats_text(),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// rmcp over its `stdio_pipes()`, the faster of its two ways.
pub(crate) async fn rmcp() {
    let service = Echo.serve(rmcp::transport::stdio_pipes()).await.expect("the client opens");
    service.waiting().await.expect("the service ends well");
}

#[derive(serde::Deserialize)]
struct ToolCall {
    name: String,
    #[serde(default)]
    arguments: Arguments,
}

#[derive(serde::Deserialize, Default)]
struct Arguments {
    #[serde(default)]
    text: String,
}

#[derive(serde::Serialize)]
struct ToolResult {
    content: [Text; 1],
}

#[derive(serde::Serialize)]
struct Text {
    r#type: &'static str,
    text: String,
}

/// Ours.
pub(crate) async fn ours() {
    use mcp_wire_tokio::{Call, RpcError, ServeExt, Server, stdio};

    let server = Server::builder("bench", "1.0").capabilities(json!({"tools": {}})).build().expect("it is consistent");
    let handler = |call: Call| async move {
        let ToolCall { name, arguments } = call.params()?;
        let text = if name == "echo" { arguments.text } else { stats_text() };
        Ok::<_, RpcError>(ToolResult { content: [Text { r#type: "text", text }] })
    };
    server.serve(stdio(), handler).await.expect("the service ends well");
}

/// Ours, for who hands JSON on as it is.
pub(crate) async fn ours_json() {
    use mcp_wire_tokio::{Call, Json, JsonBuf, RpcError, ServeExt, Server, stdio};

    fn member<'a>(object: Json<'a>, name: &str) -> Json<'a> {
        object.members().find(|(key, _)| key == name).map_or(Json::NULL, |(_, value)| value)
    }
    let server = Server::builder("bench", "1.0").capabilities(json!({"tools": {}})).build().expect("it is consistent");
    let handler = |call: Call| async move {
        let params = call.params_json();
        if member(params, "name").as_str().as_deref() == Some("echo") {
            let text = member(member(params, "arguments"), "text").get();
            return Ok::<_, RpcError>(JsonBuf::from_text(format!(
                r#"{{"content":[{{"type":"text","text":{text}}}]}}"#
            ))?);
        }
        Ok(JsonBuf::new(&ToolResult { content: [Text { r#type: "text", text: stats_text() }] })?)
    };
    server.serve(stdio(), handler).await.expect("the service ends well");
}
