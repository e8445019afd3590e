//! What the client tests share: small servers as shell scripts, a hand-written peer over a memory pipe, and hard deadlines.

#![allow(dead_code, reason = "each test file takes what it needs")]

use std::future::Future;
use std::time::{Duration, Instant};

use mcp_wire_tokio::{Client, ClientBuilder, ClientEvent, Events, ServerCommand};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

/// After so long a test has hung. Nothing waits for it to pass.
pub(crate) const HANG: Duration = Duration::from_secs(30);

/// The answer to the probe, which is always request 1.
pub(crate) const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#;

/// Fails the test if it takes too long.
pub(crate) async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(HANG, future).await {
        Ok(value) => value,
        Err(_) => panic!("this took too long: {what}"),
    }
}

/// Waits for an outside fact, such as the end of a process, by looking again and again.
pub(crate) async fn until(what: &str, mut fact: impl FnMut() -> bool) {
    let started = Instant::now();
    while !fact() {
        assert!(started.elapsed() < HANG, "this never came true: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A server as a shell script. `$id` of the line last read by `next` can be answered with `answer RESULT`.
pub(crate) fn script(body: &str) -> ServerCommand {
    let text = format!(
        r#"
next() {{ IFS= read -r line || exit 0; id=${{line#*'"id":'}}; id=${{id%%[,\}}]*}}; }}
say() {{ printf '%s\n' "$1"; }}
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
discover() {{ next; answer '{{"supportedVersions":["2026-07-28"]}}'; }}
serve() {{ while next; do case $line in *'"id":'*) answer '{{}}';; esac; done; }}
{body}
"#
    );
    ServerCommand::new("sh").arg("-c").arg(text)
}

pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1.0").restarts(0)
}

/// Whether a process exists, as a zombie or alive.
pub(crate) fn exists(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// The other end of a client's stream, written by hand.
pub(crate) struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub(crate) write: WriteHalf<DuplexStream>,
}

impl Peer {
    /// A client over a memory pipe of that size, and its peer, before the probe is answered.
    pub(crate) fn new(builder: ClientBuilder, size: usize) -> (Client, Self) {
        let (ours, theirs) = tokio::io::duplex(size);
        let (read, write) = tokio::io::split(ours);
        let (client, driver) = builder.connect_parts(read, write).expect("a valid configuration");
        tokio::spawn(driver);
        let (read, write) = tokio::io::split(theirs);
        (client, Self { lines: BufReader::new(read).lines(), write })
    }

    /// The same, established.
    pub(crate) async fn established(builder: ClientBuilder) -> (Client, Self) {
        let (client, mut peer) = Self::new(builder, 64 << 10);
        assert_eq!(peer.next().await["method"], "server/discover");
        peer.say(DISCOVER).await;
        in_time("the connection is established", client.established()).await.expect("established");
        (client, peer)
    }

    /// The next line from the client; it is JSON.
    pub(crate) async fn next(&mut self) -> Value {
        let line = in_time("a line from the client", self.lines.next_line()).await.expect("the pipe works");
        let line = line.expect("the client has not closed its side");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Whether the client has closed its side, with nothing more written.
    pub(crate) async fn at_end(&mut self) -> bool {
        in_time("the end of the client's side", self.lines.next_line()).await.expect("the pipe works").is_none()
    }

    /// Writes a line.
    pub(crate) async fn say(&mut self, line: &str) {
        self.write.write_all(line.as_bytes()).await.expect("the pipe works");
        self.write.write_all(b"\n").await.expect("the pipe works");
    }

    /// Answers a request with a result.
    pub(crate) async fn answer(&mut self, request: &Value, result: &str) {
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request["id"])).await;
    }
}

/// Events up to the first that fits, that one included.
pub(crate) async fn events_until(
    events: &mut Events,
    what: &str,
    mut fits: impl FnMut(&ClientEvent) -> bool,
) -> Vec<ClientEvent> {
    let mut seen = Vec::new();
    loop {
        let event = in_time(what, events.next()).await.unwrap_or_else(|| panic!("{what} never came: {seen:?}"));
        let done = fits(&event);
        seen.push(event);
        if done {
            return seen;
        }
    }
}
