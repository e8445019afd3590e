//! Owns what the black-box tests share: a child under a hard deadline, its output line by line, and requests in their wire form.
//! It must not know what a test expects.

#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Nothing here takes that long, on the slowest machine.
pub const DEADLINE: Duration = Duration::from_secs(60);

pub const DEMO: &str = env!("CARGO_BIN_EXE_mcp-demo-server");
pub const CALL: &str = env!("CARGO_BIN_EXE_mcp-call");

/// With `MCP_WIRE_PROGRAMS`, the same command for programs that were built for another system. It names a folder with `mcp-call` and
/// `mcp-demo-server`, which run them here, and with `server`, which holds the path of the latter as the former knows it.
fn translated(command: Command) -> Command {
    let Some(folder) = std::env::var_os("MCP_WIRE_PROGRAMS").map(PathBuf::from) else { return command };
    let program = match command.get_program() {
        program if program == CALL => folder.join("mcp-call"),
        program if program == DEMO => folder.join("mcp-demo-server"),
        other => other.into(),
    };
    let server = std::fs::read_to_string(folder.join("server")).expect("the folder says where the server is");
    let mut translated = Command::new(program);
    translated.args(command.get_args().map(|arg| if arg == DEMO { OsStr::new(server.trim_end()) } else { arg }));
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => translated.env(name, value),
            None => translated.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        translated.current_dir(directory);
    }
    translated
}

/// A request with the metadata that it must carry.
pub fn request(id: impl Into<Value>, method: &str, mut params: Value) -> String {
    params["_meta"] = meta();
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}).to_string()
}

pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

pub fn tool(id: impl Into<Value>, name: &str, arguments: Value) -> String {
    request(id, "tools/call", json!({"name": name, "arguments": arguments}))
}

pub fn cancel(id: impl Into<Value>) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id.into()}}).to_string()
}

/// A running program. Dropped, it is killed.
pub struct Program {
    child: Child,
    pub stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
    until: Instant,
}

/// What is left of one that has ended.
pub struct Ended {
    pub status: ExitStatus,
    /// Lines of its output that nobody had read.
    pub lines: Vec<String>,
    pub stderr: String,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Its output as JSON, one value a line.
    pub fn json(&self) -> Vec<Value> {
        self.lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }
}

impl Program {
    pub fn start<A: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = A>) -> Self {
        let mut command = Command::new(program);
        command.args(arguments);
        Self::spawn(command)
    }

    pub fn spawn(command: Command) -> Self {
        let mut child = translated(command)
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let (lines_in, lines) = channel();
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                if lines_in.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        let (stderr_in, stderr_out) = channel();
        let mut stderr = child.stderr.take().expect("piped");
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            let _ = stderr_in.send(text);
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, stderr: stderr_out, until: Instant::now() + DEADLINE }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, whoever else still holds its streams.
    pub fn waits(&mut self) {
        assert!(self.child.wait().expect("can be waited for").success());
    }

    /// Writes all of it, beside the reading.
    pub fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().expect("stdin is open").write_all(bytes).expect("stdin can be written");
    }

    pub fn line(&mut self, line: &str) {
        self.write(format!("{line}\n").as_bytes());
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// The next line of its output; `None` at the end.
    pub fn next(&mut self) -> Option<String> {
        match self.lines.recv_timeout(self.until.saturating_duration_since(Instant::now())) {
            Ok(line) => Some(text(line)),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line before the deadline"),
        }
    }

    pub fn next_json(&mut self) -> Value {
        let line = self.next().expect("there is another line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Lines up to the first that `found` likes.
    pub fn until(&mut self, mut found: impl FnMut(&Value) -> bool) -> Value {
        loop {
            let value = self.next_json();
            if found(&value) {
                return value;
            }
        }
    }

    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").arg(format!("-{signal}")).arg(self.pid().to_string()).status();
        assert!(status.expect("kill runs").success());
    }

    /// Gives it this input, and waits for its end.
    pub fn feed(mut self, input: &[u8]) -> Ended {
        let mut stdin = self.stdin.take().expect("stdin is open");
        std::thread::scope(|scope| {
            // Beside the reading, or both ends could wait for each other.
            scope.spawn(move || {
                let _ = stdin.write_all(input);
            });
            self.end()
        })
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        self.close_stdin();
        let mut lines = Vec::new();
        while let Some(line) = self.next() {
            lines.push(line);
        }
        let stderr = self.stderr.recv_timeout(self.until.saturating_duration_since(Instant::now()));
        let stderr = text(stderr.expect("stderr ends before the deadline"));
        // Its streams have ended, so it is about to end.
        loop {
            if let Some(status) = self.child.try_wait().expect("can be waited for") {
                return Ended { status, lines, stderr };
            }
            assert!(Instant::now() < self.until, "it does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(bytes: Vec<u8>) -> String {
    let mut text = String::from_utf8(bytes).expect("its output is UTF-8");
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

/// Runs a program on this input to its end.
pub fn run<A: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = A>, input: &[u8]) -> Ended {
    Program::start(program, arguments).feed(input)
}

/// The programs on one runtime.
#[derive(Clone, Copy)]
pub struct On(&'static str);

impl On {
    /// The runtime that the module is named after: `poll` for `on_poll`.
    pub fn the_runtime_of(module: &'static str) -> Self {
        let (_, runtime) = module.rsplit_once("::on_").expect("the module is named after a runtime");
        Self(runtime)
    }

    pub const fn named(runtime: &'static str) -> Self {
        Self(runtime)
    }

    pub const fn runtime(self) -> &'static str {
        self.0
    }

    pub fn command(self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(["--runtime", self.0]);
        command
    }

    fn start<A: AsRef<OsStr>>(self, program: &str, arguments: impl IntoIterator<Item = A>) -> Program {
        let mut command = self.command(program);
        command.args(arguments);
        Program::spawn(command)
    }

    pub fn start_call<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Program {
        self.start(CALL, arguments)
    }

    pub fn start_demo<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Program {
        self.start(DEMO, arguments)
    }

    pub fn run_call<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>, input: &[u8]) -> Ended {
        self.start_call(arguments).feed(input)
    }

    pub fn run_demo<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>, input: &[u8]) -> Ended {
        self.start_demo(arguments).feed(input)
    }

    /// Runs `mcp-call --json` and gives its events too.
    pub fn call<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>, script: &str) -> (Ended, Vec<Value>) {
        let mut command = vec![OsString::from("--json")];
        command.extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        let ended = self.run_call(command, script.as_bytes());
        let events = ended.json();
        (ended, events)
    }
}

/// Runs `mcp-call --json` on the default runtime and gives its events too.
pub fn call<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>, script: &str) -> (Ended, Vec<Value>) {
    On("tokio").call(arguments, script)
}

/// The names of events.
pub fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().expect("an event has a name")).collect()
}

/// The one event of this name about this key.
pub fn of_key<'a>(events: &'a [Value], kind: &str, key: &str) -> &'a Value {
    let mut found = events.iter().filter(|event| event["event"] == kind && event["key"] == key);
    match (found.next(), found.next()) {
        (Some(event), None) => event,
        _ => panic!("not one {kind} of {key}: {events:#?}"),
    }
}

/// The `exit` of a server that was killed. The programs that are tested elsewhere are those for Windows, where a job ends with a code.
pub fn killed() -> Value {
    if std::env::var_os("MCP_WIRE_PROGRAMS").is_some() { json!({"code": 1}) } else { json!({"signal": 9}) }
}

/// Whether a process is there and no zombie. Of another system's nothing is known.
#[cfg(target_os = "linux")]
pub fn lives(pid: u64) -> bool {
    if std::env::var_os("MCP_WIRE_PROGRAMS").is_some() {
        return false;
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Waits until a process is gone.
#[cfg(target_os = "linux")]
pub fn dies(pid: u64) {
    let until = Instant::now() + DEADLINE;
    while lives(pid) {
        assert!(Instant::now() < until, "process {pid} lives on");
        std::thread::yield_now();
    }
}

/// The path of one of this package's examples.
pub fn example(name: &str) -> String {
    let me = std::env::current_exe().expect("the own path is known");
    let folder = me.parent().and_then(std::path::Path::parent).expect("a test stands in target/PROFILE/deps");
    let path = folder.join("examples").join(name);
    assert!(
        path.exists(),
        "{} is not built: `cargo test` builds it, unless told to build some tests only",
        path.display()
    );
    path.to_str().expect("UTF-8").to_owned()
}
