//! What the client tests share: small servers as shell scripts, and a hand-written peer over a memory pipe.

use serde_json::Value;

use super::in_time;
use super::pipe::{Reader, Writer, pipes};
use crate::rt::adapter::{Client, ClientBuilder, ClientEvent, Events, ServerCommand};
use crate::rt::io::{BufReader, Lines};
use crate::rt::{self, AsyncBufReadExt, AsyncWriteExt, StreamExt};

/// The answer to the probe, which is always request 1.
pub(crate) const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#;

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

/// Waits until there is no such process, without a runtime.
pub(crate) fn gone(pid: u32) {
    let started = std::time::Instant::now();
    while exists(pid) {
        assert!(started.elapsed() < super::HANG, "the process is still there");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// The other end of a client's stream, written by hand.
pub(crate) struct Peer {
    lines: Lines<BufReader<Reader>>,
    pub(crate) write: Writer,
}

impl Peer {
    /// A client over a memory pipe of that size, and its peer, before the probe is answered.
    pub(crate) fn new(builder: ClientBuilder, size: usize) -> (Client, Self) {
        let ((read, write), (their_read, their_write)) = pipes(size);
        let connected = builder.connect_parts(rt::reader(read), rt::writer(write));
        let (client, driver) = connected.expect("a valid configuration");
        drop(rt::spawn(driver));
        (client, Self { lines: BufReader::new(their_read).lines(), write: their_write })
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
        let line = in_time("a line from the client", self.lines.next()).await;
        let line = line.expect("the client has not closed its side").expect("the pipe works");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Whether the client has closed its side, with nothing more written.
    pub(crate) async fn at_end(&mut self) -> bool {
        in_time("the end of the client's side", self.lines.next()).await.is_none()
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
