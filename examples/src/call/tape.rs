//! Owns the lines of a tape as they are written: one JSON object each, with its time. It must not know how a tape is replayed.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_wire::Json;
use mcp_wire::client::{Handle, RequestOptions};
use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_driver::client::{ProcessFact, TapeEntry, TapeFact, TapeOp};
use mcp_wire_driver::server::RpcError;
use serde::Serialize;
use serde_json::value::RawValue;

use super::args::Options;
use super::base64;
use super::script::{Op, to_json};
use super::tape_config::{CallOptions, TapeConfig};

/// The value of `process`, as far as it is no plain word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fact {
    Exit(Option<Exit>),
    SpawnFailed(Failure),
    GroupSignalled { empty: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Exit {
    Code(i32),
    Signal(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Failure {
    NotFound,
    Permission,
    Directory,
    Other,
}

/// A tape that is being written. A line that stands on it is in the file, whatever ends this program.
#[derive(Debug, Clone)]
pub(super) struct Tape(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    file: File,
    failed: Option<io::Error>,
    call: CallOptions,
    /// Keys of requests and listens that the adapter has not taken yet, in their order.
    expected: VecDeque<String>,
    keys: BTreeMap<Handle, String>,
    last: u64,
}

impl Tape {
    pub(super) fn create(path: &Path, options: &Options) -> io::Result<Self> {
        let inner = Inner {
            file: File::create(path)?,
            failed: None,
            call: options.into(),
            expected: VecDeque::new(),
            keys: BTreeMap::new(),
            last: 0,
        };
        Ok(Self(Arc::new(Mutex::new(inner))))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the adapter's entries go. The writes are to a file of the user's own, and short: nobody waits for a peer here.
    pub(super) fn sink(&self) -> impl FnMut(TapeEntry<'_>) + Send + 'static {
        let tape = self.clone();
        move |entry| tape.lock().entry(entry.t_us, &entry.fact)
    }

    /// The next request or listen that the adapter takes has this key.
    pub(super) fn expect(&self, key: &str) {
        self.lock().expected.push_back(key.to_owned());
    }

    /// The adapter did not take it: the operation stands on the tape all the same, so that a replay refuses it too.
    pub(super) fn refused(&self, op: &Op) {
        let mut inner = self.lock();
        inner.expected.pop_back();
        inner.op(op);
    }

    /// It waited to be taken, and was given up.
    pub(super) fn forget(&self, key: &str) {
        self.lock().expected.retain(|expected| expected != key);
    }

    /// What kept lines from being written, if anything did.
    pub(super) fn finish(self) -> io::Result<()> {
        match self.lock().failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Inner {
    /// Writes one line. After a failure nothing more is written: a tape with a hole is none.
    fn write(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        if self.failed.is_some() {
            return;
        }
        let line = match serde_json::to_string(value) {
            Ok(value) => format!("{{\"t_us\":{},\"{name}\":{value}}}\n", self.last),
            Err(error) => {
                self.failed = Some(error.into());
                return;
            }
        };
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            self.failed = Some(error);
        }
    }

    fn op(&mut self, op: &Op) {
        if let Some(Ok(line)) = to_json(op).map(RawValue::from_string) {
            self.write("op", &line);
        }
    }

    fn entry(&mut self, t_us: u64, fact: &TapeFact<'_>) {
        self.last = t_us;
        match fact {
            TapeFact::Config { connection, process, line_limit } => {
                match TapeConfig::new(connection, *process, *line_limit, self.call) {
                    Ok(config) => self.write("config", &config),
                    Err(error) => self.failed = Some(error.into()),
                }
            }
            TapeFact::Op(op) => self.taken(op),
            TapeFact::In(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => self.write("in", text),
                Err(_) => self.write("in_base64", &base64::encode(bytes)),
            },
            TapeFact::InCut { bytes, id } => {
                #[derive(Serialize)]
                struct Cut<'a> {
                    bytes: u64,
                    id: Json<'a>,
                }
                let id = id.and_then(|id| Json::parse(id).ok()).unwrap_or(Json::NULL);
                self.write("in_cut", &Cut { bytes: *bytes, id });
            }
            TapeFact::Out(bytes) => self.write("out", &String::from_utf8_lossy(bytes)),
            TapeFact::Accepted(n) => self.write("accepted", n),
            TapeFact::Tick => self.write("tick", &true),
            TapeFact::Stderr(bytes) => self.write("stderr", &String::from_utf8_lossy(bytes)),
            TapeFact::Process(fact) => self.process(*fact),
            _ => {}
        }
    }

    fn process(&mut self, fact: ProcessFact) {
        let fact = match fact {
            ProcessFact::Started { pid } => {
                self.write("pid", &pid);
                return self.write("process", "started");
            }
            ProcessFact::Eof => return self.write("process", "eof"),
            ProcessFact::StderrEof => return self.write("process", "stderr_eof"),
            ProcessFact::InputFailed => return self.write("process", "input_failed"),
            ProcessFact::Reaped => return self.write("process", "reaped"),
            ProcessFact::Exited(ExitStatus::Code(code)) => Fact::Exit(Some(Exit::Code(code))),
            ProcessFact::Exited(ExitStatus::Signal(signal)) => Fact::Exit(Some(Exit::Signal(signal))),
            ProcessFact::Exited(_) => Fact::Exit(None),
            ProcessFact::SpawnFailed(failure) => Fact::SpawnFailed(failure.into()),
            ProcessFact::GroupSignalled { empty } => Fact::GroupSignalled { empty },
            _ => return,
        };
        self.write("process", &fact);
    }

    fn taken(&mut self, op: &TapeOp<'_>) {
        let key = |inner: &Self, handle| inner.keys.get(handle).cloned();
        let op = match op {
            TapeOp::Request { handle, method, params, options: RequestOptions { timeout, idempotent, .. } } => {
                let Some(key) = self.name(*handle) else { return };
                let (method, params) = ((*method).to_owned(), params.map(Into::into));
                Op::Request { key, method, params, timeout: *timeout, idempotent: *idempotent }
            }
            TapeOp::Listen { handle, filter, .. } => {
                let Some(key) = self.name(*handle) else { return };
                Op::Listen { key, filter: (*filter).clone() }
            }
            TapeOp::Notify { method, params } => {
                Op::Notify { method: (*method).to_owned(), params: params.map(Into::into) }
            }
            TapeOp::Cancel { handle, reason } => {
                let Some(key) = key(self, handle) else { return };
                Op::Cancel { key, reason: reason.map(str::to_owned) }
            }
            TapeOp::Overflow { handle } => {
                let Some(key) = key(self, handle) else { return };
                #[derive(Serialize)]
                struct Overflow<'a> {
                    op: &'a str,
                    key: &'a str,
                }
                return self.write("op", &Overflow { op: "overflow", key: &key });
            }
            TapeOp::Answer { request, method, answer } => return self.answer(*request, method, answer),
            TapeOp::Close => Op::Close,
            TapeOp::Kill => Op::Kill,
            // Of no script.
            _ => return,
        };
        self.op(&op);
    }

    fn answer(&mut self, request: u64, method: &str, answer: &Result<Json<'_>, &RpcError>) {
        #[derive(Serialize)]
        struct Answer<'a> {
            op: &'a str,
            request: u64,
            method: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            result: Option<Json<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<Error<'a>>,
        }
        #[derive(Serialize)]
        struct Error<'a> {
            code: i64,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<Json<'a>>,
        }
        let error = answer.as_ref().err().map(|RpcError { code, message, data, .. }| Error {
            code: *code,
            message,
            data: data.as_ref().map(mcp_wire::JsonBuf::as_json),
        });
        self.write("op", &Answer { op: "answer", request, method, result: answer.as_ref().ok().copied(), error });
    }

    fn name(&mut self, handle: Handle) -> Option<String> {
        let key = self.expected.pop_front()?;
        self.keys.insert(handle, key.clone());
        Some(key)
    }
}

impl From<mcp_wire::lifecycle::SpawnFailure> for Failure {
    fn from(failure: mcp_wire::lifecycle::SpawnFailure) -> Self {
        use mcp_wire::lifecycle::SpawnFailure;
        match failure {
            SpawnFailure::NotFound => Self::NotFound,
            SpawnFailure::Permission => Self::Permission,
            SpawnFailure::Directory => Self::Directory,
            _ => Self::Other,
        }
    }
}
