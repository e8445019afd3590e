//! Owns the replay of a tape: it feeds what the tape holds to the core at its times, with no process and no clock, and shows the same
//! events. It must not know runtimes.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use mcp_wire::client::{Event, Handle, ProgressToken, RequestOptions, ServerTicket};
use mcp_wire::lifecycle::{ExitStatus, SpawnFailure};
use mcp_wire::{Cause, Instant, JsonBuf, RecvBuffer, SendError};
use mcp_wire_driver::client::{CallError, ClientEvent, Engine};
use mcp_wire_driver::server::RpcError;

use super::script::Op;
use super::session::{Next, Session, Shown};
use super::tape::{Exit, Fact, Failure};
use super::tape_config::TapeConfig;
use super::tape_entry::{Entry, parse};

/// Why a replay came to no end.
#[derive(Debug)]
pub(super) enum ReplayError {
    /// The tape cannot be read, or a line of it is none.
    Tape(String),
    /// The core wrote something else than what stands on this line.
    Differs { line: usize, expected: String, found: String },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tape(what) => f.write_str(what),
            Self::Differs { line, expected, found } => {
                let at = expected.bytes().zip(found.bytes()).take_while(|(a, b)| a == b).count();
                let from = |text: &str| {
                    let bytes = text.as_bytes().get(at..).unwrap_or_default();
                    String::from_utf8_lossy(bytes.get(..bytes.len().min(60)).unwrap_or_default()).into_owned()
                };
                write!(
                    f,
                    "line {line} of the tape: the output differs from byte {at} on: the tape has {:?}, the core writes {:?}",
                    from(expected),
                    from(found)
                )
            }
        }
    }
}

/// Replays a tape, showing each event with `show`, and gives the exit status of the run that it recorded.
pub(super) fn replay(path: &Path, show: impl FnMut(Shown)) -> Result<u8, ReplayError> {
    let text = std::fs::read_to_string(path).map_err(|error| ReplayError::Tape(format!("it cannot be read: {error}")));
    text.and_then(|text| replay_text(&text, show)).map_err(|error| match error {
        ReplayError::Tape(what) => ReplayError::Tape(format!("the tape {}: {what}", path.display())),
        differs @ ReplayError::Differs { .. } => differs,
    })
}

/// The same for the text of a tape.
pub(super) fn replay_text(text: &str, mut show: impl FnMut(Shown)) -> Result<u8, ReplayError> {
    let tape = ReplayError::Tape;
    let mut entries = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if !line.trim().is_empty() {
            let (time, entry) = parse(line).map_err(|what| tape(format!("line {}: {what}", at + 1)))?;
            entries.push((at + 1, time, entry));
        }
    }
    let mut entries = entries.into_iter().peekable();
    let Some((_, start, Entry::Config(config))) = entries.next() else {
        return Err(tape("its first line must be the configuration".to_owned()));
    };
    let mut replay = Replay::new(*config, start).map_err(|what| tape(format!("line 1: {what}")))?;
    while let Some((line, time, entry)) = entries.next() {
        let whole = !matches!(entries.peek(), Some((_, _, Entry::Accepted(_))));
        replay.step(line, time, entry, whole)?;
        replay.shown(&mut show);
    }
    replay.end(&mut show);
    Ok(replay.session.status())
}

struct Replay {
    engine: Engine,
    recv: RecvBuffer,
    session: Session,
    config: TapeConfig,
    handles: BTreeMap<String, Handle>,
    /// The server's requests that came for a handler, in their order.
    asked: Vec<(ServerTicket, String)>,
    now: Instant,
    pid: u32,
    /// What the core has lent and the tape has not seen accepted.
    lent: Option<Vec<u8>>,
}

impl Replay {
    fn new(config: TapeConfig, now: Instant) -> Result<Self, String> {
        let engine = Engine::new(config.connection(), config.process(), now).map_err(|error| error.to_string())?;
        let recv = RecvBuffer::new(config.line_limit());
        let session = Session::new(Vec::new(), true);
        Ok(Self { engine, recv, session, config, handles: BTreeMap::new(), asked: Vec::new(), now, pid: 0, lent: None })
    }

    /// Shows what is there.
    fn shown(&mut self, show: &mut impl FnMut(Shown)) {
        // Patience and sleeps are of the session's own clock, which stands still here.
        while let Next::Show(shown) = self.session.next(std::time::Instant::now()) {
            show(shown);
        }
    }

    fn end(&mut self, show: &mut impl FnMut(Shown)) {
        self.session.line(None);
        loop {
            match self.session.next(std::time::Instant::now()) {
                Next::Show(shown) => show(shown),
                // A tape that was cut off has no last event.
                Next::Perform(_) => {}
                Next::Wait { .. } | Next::Done => return,
            }
        }
    }

    /// Takes the signals and steps that the last call gave.
    fn pump(&mut self) {
        while let Some(signal) = self.engine.poll_signal() {
            if let Some(event) = self.engine.signal_event(&signal) {
                self.session.event(event);
            }
        }
        // What became of them stands on the tape.
        while self.engine.supervisor_mut().poll_step().is_some() {}
        while let Some(signal) = self.engine.poll_signal() {
            if let Some(event) = self.engine.signal_event(&signal) {
                self.session.event(event);
            }
        }
    }

    /// Lets deadlines expire at their times. A tape of this program's own says itself when one did.
    fn expire(&mut self, until: Instant, inclusive: bool) {
        while let Some(at) = self.engine.supervisor().poll_timeout() {
            if self.config.has_ticks() || at > until || (at == until && !inclusive) {
                return;
            }
            self.engine.supervisor_mut().handle_timeout(at);
            self.pump();
            if self.engine.supervisor().poll_timeout() == Some(at) {
                return;
            }
        }
    }

    fn step(&mut self, line: usize, now: Instant, entry: Entry, whole: bool) -> Result<(), ReplayError> {
        // Input wins over a deadline of the same moment; what is written may be its doing.
        self.expire(now, matches!(entry, Entry::Out(_)));
        self.now = now;
        match entry {
            Entry::Config(_) => {
                return Err(ReplayError::Tape(format!("line {line} of the tape: a second configuration")));
            }
            Entry::Op(op) => self.op(op),
            Entry::Overflow(key) => {
                if let Some(handle) = self.handles.get(&key) {
                    self.engine.supervisor_mut().overflow(*handle, now);
                }
            }
            Entry::Answer(request, answer) => self.answer(request, &answer),
            Entry::In(bytes) => self.input(&bytes),
            Entry::InCut { bytes, id } => self.cut(bytes, id.as_deref()),
            Entry::Out(text) => self.output(line, &text, whole)?,
            Entry::Accepted(n) => self.accepted(n),
            Entry::Tick => self.engine.supervisor_mut().handle_timeout(now),
            Entry::Stderr(text) => self.stderr(Some(&text)),
            Entry::StderrEof => self.stderr(None),
            Entry::Pid(pid) => self.pid = pid,
            Entry::Started => {
                self.recv.reset();
                self.lent = None;
                self.engine.spawned(self.pid, now);
            }
            Entry::Eof => {
                self.recv.close();
                self.frames();
                self.engine.supervisor_mut().output_ended(now);
            }
            Entry::InputFailed => self.engine.supervisor_mut().input_failed(now),
            Entry::Reaped => self.engine.supervisor_mut().reaped(now),
            Entry::Fact(fact) => self.fact(fact),
        }
        self.pump();
        Ok(())
    }

    fn fact(&mut self, fact: Fact) {
        let now = self.now;
        match fact {
            Fact::Exit(exit) => {
                let status = match exit {
                    Some(Exit::Code(code)) => ExitStatus::Code(code),
                    Some(Exit::Signal(signal)) => ExitStatus::Signal(signal),
                    None => ExitStatus::Unknown,
                };
                self.engine.supervisor_mut().exited(status, now);
            }
            Fact::SpawnFailed(failure) => {
                let failure = match failure {
                    Failure::NotFound => SpawnFailure::NotFound,
                    Failure::Permission => SpawnFailure::Permission,
                    Failure::Directory => SpawnFailure::Directory,
                    Failure::Other => SpawnFailure::Other,
                };
                self.engine.spawn_failed(failure, None, now);
            }
            Fact::GroupSignalled { empty } => self.engine.supervisor_mut().group_signalled(empty, now),
        }
    }

    fn stderr(&mut self, text: Option<&str>) {
        let mut lines = Vec::new();
        let mut keep = |line: &str| lines.push(line.to_owned());
        match text {
            Some(text) => self.engine.stderr(text.as_bytes(), &mut keep, self.now),
            None => self.engine.stderr_ended(&mut keep, self.now),
        }
        if self.config.stderr_events() {
            for line in lines {
                self.session.event(ClientEvent::Stderr { line });
            }
        }
    }

    fn op(&mut self, op: Op) {
        let now = self.now;
        match op {
            Op::Request { key, method, params, timeout, idempotent } => {
                let mut options = RequestOptions::default();
                options.timeout = timeout;
                options.max_timeout = self.config.max_timeout();
                options.idempotent = idempotent;
                if self.config.progress() {
                    options.progress = ProgressToken::Minted;
                }
                let params = params.as_ref().map(JsonBuf::as_json);
                let taken = self.engine.supervisor_mut().request(&method, params, options, now);
                self.taken(key, false, taken);
            }
            Op::Listen { key, filter } => {
                let taken = self.engine.supervisor_mut().listen(&filter, RequestOptions::default(), now);
                self.taken(key, true, taken);
            }
            Op::Notify { method, params } => {
                let params = params.as_ref().map(JsonBuf::as_json);
                // One that was refused changes nothing, then as now.
                let _ = self.engine.supervisor_mut().notify(&method, params, now);
            }
            Op::Cancel { key, reason } => {
                if let Some(handle) = self.handles.get(&key) {
                    self.engine.supervisor_mut().cancel(*handle, reason.as_deref(), now);
                }
            }
            Op::Close => self.engine.supervisor_mut().close(now),
            Op::Kill => self.engine.supervisor_mut().kill(now),
            Op::Wait { .. } | Op::WaitEvent { .. } | Op::Sleep { .. } => {}
        }
    }

    /// What a handler answered. One that cannot be, as on a tape that was changed by hand, shows in the output that follows.
    fn answer(&mut self, request: u64, answer: &Result<JsonBuf, RpcError>) {
        let index = usize::try_from(request).ok().and_then(|request| request.checked_sub(1));
        let Some((ticket, method)) = index.and_then(|index| self.asked.get(index)) else { return };
        let supervisor = self.engine.supervisor_mut();
        let answered = match answer {
            Ok(result) => supervisor.respond(*ticket, result.as_json(), self.now),
            Err(RpcError { code, message, data, .. }) => {
                supervisor.respond_error(*ticket, *code, message, data.as_ref().map(JsonBuf::as_json), self.now)
            }
        };
        if answered.is_ok() {
            let answered = if answer.is_ok() { "result" } else { "error" };
            self.session.event(ClientEvent::ServerRequest { method: method.clone(), answered });
        }
    }

    fn taken(&mut self, key: String, listen: bool, taken: Result<Handle, SendError>) {
        match taken {
            Ok(handle) => {
                self.handles.insert(key.clone(), handle);
                self.session.sent(key, listen, handle);
            }
            Err(error) => {
                let cause = match error {
                    SendError::Full | SendError::TooLarge { .. } => Cause::Overflow,
                    _ => Cause::Closed,
                };
                let error = match self.engine.start_error() {
                    Some(start) => CallError::Start(start.clone()),
                    None => CallError::Send(error),
                };
                self.session.refused(key, listen, cause.as_str(), error.to_string());
            }
        }
    }

    fn input(&mut self, bytes: &[u8]) {
        self.recv.extend(bytes);
        self.frames();
        self.engine.supervisor_mut().output_seen(self.now);
    }

    /// A line of that length with that id: its content was not kept.
    fn cut(&mut self, bytes: u64, id: Option<&str>) {
        let head = match id {
            Some(id) => format!("{{\"id\":{id},\"result\":\""),
            None => "\"".to_owned(),
        };
        self.recv.extend(head.as_bytes());
        let chunk = vec![b'.'; 64 << 10];
        let mut left = bytes.saturating_sub(head.len() as u64);
        while left > 0 {
            let n = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            self.recv.extend(chunk.get(..n).unwrap_or_default());
            left -= n as u64;
            self.frames();
        }
        self.input(b"\n");
    }

    fn frames(&mut self) {
        while let Some(frame) = self.recv.next_frame() {
            let Some(batch) = self.engine.open_batch(&frame, self.now) else {
                let event = self.engine.handle(frame, self.now);
                tell(&mut self.engine, &mut self.session, &mut self.asked, &event);
                continue;
            };
            for message in batch {
                let event = self.engine.handle_message(message, self.now);
                tell(&mut self.engine, &mut self.session, &mut self.asked, &event);
            }
            self.engine.supervisor_mut().close_batch(self.now);
        }
    }

    fn output(&mut self, line: usize, expected: &str, whole: bool) -> Result<(), ReplayError> {
        let found = self.engine.supervisor_mut().take_output(self.now).unwrap_or_default();
        if found != expected.as_bytes() {
            let found = String::from_utf8_lossy(&found).into_owned();
            return Err(ReplayError::Differs { line, expected: expected.to_owned(), found });
        }
        let n = found.len();
        self.lent = Some(found);
        if whole {
            self.accepted(n);
        }
        Ok(())
    }

    fn accepted(&mut self, n: usize) {
        self.engine.supervisor_mut().accepted(n, self.now);
        if let Some(lent) = self.lent.take() {
            if let (Some(rest), true) = (lent.get(n..), n < lent.len()) {
                self.lent = Some(rest.to_vec());
            } else {
                self.engine.supervisor_mut().recycle(lent);
            }
        }
    }
}

/// Hands on what a message means, and what follows from it.
fn tell(engine: &mut Engine, session: &mut Session, asked: &mut Vec<(ServerTicket, String)>, event: &Event<'_>) {
    if let Event::ServerRequest { ticket, method, .. } = event {
        asked.push((*ticket, method.to_string()));
    }
    if let Some(event) = Engine::frame_event(event) {
        session.event(event);
    }
    while let Some(signal) = engine.poll_signal() {
        if let Some(event) = engine.signal_event(&signal) {
            session.event(event);
        }
    }
}

#[cfg(test)]
mod tests;
