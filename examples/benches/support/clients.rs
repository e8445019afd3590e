//! Owns the clients of the round-trip bench: the bare pipe, tokio pipes without JSON, the hand-written one, rmcp's and ours.
//! It must not know what is measured with them.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rmcp::model::{CallToolRequestParams, ContentBlock, ProtocolVersion};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;

/// One tool call that takes a text and gives one back.
pub(crate) trait Client: Send + Sync + 'static {
    fn call(&self, tool: &'static str, text: &str) -> impl Future<Output = String> + Send;
    fn close(self) -> impl Future<Output = ()> + Send;
}

fn piped(command: &[String]) -> (Child, ChildStdin, ChildStdout) {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server can be spawned");
    let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    (child, stdin, stdout)
}

#[derive(Clone)]
struct Handler;
impl ClientHandler for Handler {}

pub(crate) struct Rmcp(RunningService<RoleClient, Handler>);

impl Rmcp {
    pub(crate) async fn connect(command: &[String]) -> Self {
        let mut child = Command::new(&command[0]);
        child.args(&command[1..]);
        let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        let transport = TokioChildProcess::new(child).expect("the server can be spawned");
        Self(Handler.serve_with_lifecycle(transport, mode).await.expect("the server answers"))
    }
}

impl Client for Rmcp {
    async fn call(&self, tool: &'static str, text: &str) -> String {
        let Value::Object(arguments) = json!({"text": text}) else { unreachable!("an object literal") };
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = self.0.peer().call_tool(params).await.expect("the tool answers");
        match result.content.into_iter().next() {
            Some(ContentBlock::Text(content)) => content.text,
            other => panic!("no text: {other:?}"),
        }
    }

    async fn close(mut self) {
        self.0.close().await.expect("closes");
    }
}

/// What people write by hand: a child, `lines()`, `Value`, a map of oneshots, no shutdown.
pub(crate) struct Hand {
    stdin: tokio::sync::Mutex<ChildStdin>,
    child: Child,
    pending: Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>,
    next: AtomicU64,
}

impl Hand {
    pub(crate) fn connect(command: &[String]) -> Self {
        let (child, stdin, stdout) = piped(command);
        let pending = Arc::new(Mutex::new(HashMap::<u64, oneshot::Sender<Value>>::new()));
        let map = pending.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
                let waiter = message["id"].as_u64().and_then(|id| map.lock().expect("not poisoned").remove(&id));
                if let Some(waiter) = waiter {
                    let _ = waiter.send(message);
                }
            }
        });
        Self { stdin: tokio::sync::Mutex::new(stdin), child, pending, next: AtomicU64::new(1) }
    }
}

impl Client for Hand {
    async fn call(&self, tool: &'static str, text: &str) -> String {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "hand", "version": "1.0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"_meta": meta, "name": tool, "arguments": {"text": text}});
        let mut line = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
        line.push('\n');
        let (sender, receiver) = oneshot::channel();
        self.pending.lock().expect("not poisoned").insert(id, sender);
        self.stdin.lock().await.write_all(line.as_bytes()).await.expect("stdin can be written");
        let mut message = receiver.await.expect("an answer comes");
        match message["result"]["content"][0]["text"].take() {
            Value::String(text) => text,
            other => panic!("no text: {other}"),
        }
    }

    async fn close(mut self) {
        drop(self.stdin);
        self.child.wait().await.expect("can be waited for");
    }
}

/// tokio pipes against the bare pipe server: what an adapter cannot go below. One call at a time.
pub(crate) struct TokioPipe(tokio::sync::Mutex<(Child, ChildStdin, ChildStdout)>, Vec<u8>);

impl TokioPipe {
    pub(crate) fn connect(command: &[String], request: usize) -> Self {
        let mut line = vec![b'x'; request - 1];
        line.push(b'\n');
        Self(tokio::sync::Mutex::new(piped(command)), line)
    }
}

impl Client for TokioPipe {
    async fn call(&self, tool: &'static str, _: &str) -> String {
        let mut pipes = self.0.lock().await;
        let stats = tool == "stats";
        pipes.1.write_all(if stats { b"stats\n" } else { &self.1 }).await.expect("stdin can be written");
        let mut buffer = [0_u8; 64 << 10];
        loop {
            let n = pipes.2.read(&mut buffer).await.expect("stdout can be read");
            if n == 0 || buffer[n - 1] == b'\n' {
                let text = if stats { String::from_utf8_lossy(&buffer[..n]) } else { "".into() };
                return text.trim().to_owned();
            }
        }
    }

    async fn close(self) {
        let (mut child, stdin, _stdout) = self.0.into_inner();
        drop(stdin);
        child.wait().await.expect("can be waited for");
    }
}

/// Ours.
pub(crate) struct Ours(mcp_wire_tokio::Client);

impl Ours {
    pub(crate) async fn connect(command: &[String]) -> Self {
        let server = mcp_wire_tokio::ServerCommand::new(&command[0]).args(&command[1..]);
        Self(mcp_wire_tokio::Client::spawn(server).await.expect("the server comes up"))
    }
}

#[derive(serde::Deserialize)]
struct ToolResult {
    content: (TextContent,),
}

#[derive(serde::Deserialize)]
struct TextContent {
    text: String,
}

#[derive(serde::Serialize)]
struct ToolCall<'a> {
    name: &'a str,
    arguments: Arguments<'a>,
}

#[derive(serde::Serialize)]
struct Arguments<'a> {
    text: &'a str,
}

impl Client for Ours {
    async fn call(&self, tool: &'static str, text: &str) -> String {
        let params = ToolCall { name: tool, arguments: Arguments { text } };
        let result: ToolResult = self.0.call("tools/call", params).await.expect("the tool answers");
        result.content.0.text
    }

    async fn close(self) {
        self.0.close().await.expect("closes");
    }
}

/// Ours, for who hands JSON on as it is: the text is no `String` on either side, only JSON.
pub(crate) struct OursJson(mcp_wire_tokio::Client, std::sync::OnceLock<mcp_wire_tokio::JsonBuf>);

impl OursJson {
    pub(crate) async fn connect(command: &[String]) -> Self {
        let server = mcp_wire_tokio::ServerCommand::new(&command[0]).args(&command[1..]);
        Self(mcp_wire_tokio::Client::spawn(server).await.expect("the server comes up"), std::sync::OnceLock::new())
    }
}

impl Client for OursJson {
    async fn call(&self, tool: &'static str, text: &str) -> String {
        if tool != "echo" {
            let params = ToolCall { name: tool, arguments: Arguments { text } };
            let result: ToolResult = self.0.call("tools/call", params).await.expect("the tool answers");
            return result.content.0.text;
        }
        let params = self.1.get_or_init(|| {
            let call = ToolCall { name: tool, arguments: Arguments { text } };
            mcp_wire_tokio::JsonBuf::new(&call).expect("it is JSON")
        });
        let result = self.0.request_json("tools/call", params.clone()).send().await.expect("the tool answers");
        assert!(result.as_json().get().len() >= text.len(), "the echo is whole");
        String::new()
    }

    async fn close(self) {
        self.0.close().await.expect("closes");
    }
}

/// The bare ping-pong of two blocking processes: `window` lines of `request` bytes in flight, `n` in all. Returns nanoseconds a line.
pub(crate) fn pipe_ping_pong(command: &[String], request: usize, window: usize, n: usize) -> Vec<u64> {
    let mut child = std::process::Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server can be spawned");
    let (mut stdin, mut stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let mut line = vec![b'x'; request - 1];
    line.push(b'\n');
    let batch = line.repeat(window);
    let mut buffer = vec![0_u8; 64 << 10];
    let mut laps = Vec::with_capacity(n / window);
    for _ in 0..n / window {
        let start = std::time::Instant::now();
        // What does not fit the pipe is written beside the reading, or both ends would wait for each other.
        std::thread::scope(|scope| {
            if batch.len() > 32 << 10 {
                scope.spawn(|| stdin.write_all(&batch).expect("stdin can be written"));
            } else {
                stdin.write_all(&batch).expect("stdin can be written");
            }
            let mut lines = 0;
            while lines < window {
                let n = stdout.read(&mut buffer).expect("stdout can be read");
                assert!(n > 0, "the server goes on");
                lines += memchr::memchr_iter(b'\n', &buffer[..n]).count();
            }
        });
        laps.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX) / window as u64);
    }
    drop(stdin);
    child.wait().expect("can be waited for");
    laps
}
