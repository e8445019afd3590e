//! The client's side of the tests: starts the server on given streams, reads its lines on threads, and has a deadline for everything.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};
use serde_json::Value;

use super::child::{ROLE, RUNTIME};
use crate::support::HANG;

/// The command that starts the server.
pub(crate) fn server(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("we run"));
    command.env(ROLE, role).stderr(Stdio::piped());
    command
}

/// The same on a runtime with threads.
pub(crate) fn server_on(role: &str, runtime: &str) -> Command {
    let mut command = server(role);
    command.env(RUNTIME, runtime);
    command
}

/// Lines of a stream, read by a thread as they come.
#[derive(Debug)]
pub(crate) struct Lines(Receiver<String>);

impl Lines {
    pub(crate) fn of(stream: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            // A terminal reports the end as an error.
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self(receiver)
    }

    /// The next line; `None` at the end.
    pub(crate) fn next(&self) -> Option<String> {
        match self.0.recv_timeout(HANG) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("hung: a line"),
        }
    }

    /// All that is left.
    pub(crate) fn rest(&self) -> Vec<String> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

/// LOG-03: every line of the server's standard output is a frame.
pub(crate) fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| panic!("no frame on standard output: {line:?}"))
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Host {
    child: Child,
    input: Option<Box<dyn Wire>>,
    output: Option<Lines>,
    pub(crate) errors: Lines,
}

/// Something to write requests to.
pub(crate) trait Wire: Write + Send + std::fmt::Debug {}
impl<W: Write + Send + std::fmt::Debug> Wire for W {}

impl Host {
    /// Starts a server on two pipes.
    pub(crate) fn on_pipes(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("can be started");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self::new(child, Some(Box::new(input)), Some(Lines::of(output)))
    }

    /// Starts a server; the command has its streams already, and these are our ends of them.
    pub(crate) fn start(mut command: Command, input: Option<Box<dyn Wire>>, output: Option<Lines>) -> Self {
        let child = command.spawn().expect("can be started");
        // The command holds the server's ends; as long as it does, we would not see them close.
        drop(command);
        Self::new(child, input, output)
    }

    pub(crate) fn new(mut child: Child, input: Option<Box<dyn Wire>>, output: Option<Lines>) -> Self {
        let errors = Lines::of(child.stderr.take().expect("piped"));
        Self { child, input, output, errors }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.send_bytes(text.as_bytes());
    }

    /// The same for half a character.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("not closed yet");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the server reads");
    }

    /// Begins to read its output.
    pub(crate) fn read(&mut self, output: Box<dyn Read + Send>) {
        self.output = Some(Lines::of(output));
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    pub(crate) fn output(&self) -> &Lines {
        self.output.as_ref().expect("we have its other end")
    }

    /// The next frame, which must come.
    pub(crate) fn frame(&self) -> Value {
        parse(&self.output().next().expect("a frame, not the end"))
    }

    /// Waits for a fact on standard error; lines before it are skipped.
    pub(crate) fn fact(&self, fact: &str) {
        let fact = format!("fact: {fact}");
        while self.errors.next().unwrap_or_else(|| panic!("the end, and never: {fact}")) != fact {}
    }

    /// Waits for the exit, with its input still open if it was not closed before.
    pub(crate) fn exit(&mut self) -> ExitStatus {
        let pidfd = rustix::process::pidfd_open(self.pid(), PidfdFlags::empty()).expect("not reaped yet");
        let limit = Timespec { tv_sec: HANG.as_secs().try_into().expect("small"), tv_nsec: 0 };
        let ready =
            rustix::event::poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit)).expect("can be awaited");
        assert_eq!(ready, 1, "hung: the exit");
        self.child.wait().expect("it has exited")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
