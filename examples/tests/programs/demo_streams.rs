//! `mcp-demo-server` on standard streams of every kind: it serves each, leaves no flag behind on what others share, and ends with its input.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::pty::OpenptFlags;
use serde_json::{Value, json};

use super::support::{DEADLINE, DEMO, On, tool};

fn on() -> On {
    On::the_runtime_of(module_path!())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipes,
    /// One for both directions.
    Socket,
    /// In raw mode: nothing to wait for but a blocking read.
    Terminal,
}

const KINDS: [Kind; 3] = [Kind::Pipes, Kind::Socket, Kind::Terminal];

/// A server on streams of one kind, with our ends and copies of its own.
struct Host {
    child: Child,
    input: Option<OwnedFd>,
    lines: Receiver<String>,
    theirs: [OwnedFd; 2],
}

fn copy(fd: &impl AsFd) -> OwnedFd {
    fd.as_fd().try_clone_to_owned().expect("a copy")
}

/// A pair of terminal ends that pass bytes through as they are.
fn terminal() -> (OwnedFd, OwnedFd) {
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    rustix::pty::grantpt(&ours).and_then(|()| rustix::pty::unlockpt(&ours)).expect("ours");
    let name = rustix::pty::ptsname(&ours, Vec::new()).expect("it has a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).expect("can be opened");
    let mut modes = rustix::termios::tcgetattr(&theirs).expect("a terminal");
    modes.make_raw();
    rustix::termios::tcsetattr(&theirs, rustix::termios::OptionalActions::Now, &modes).expect("a terminal");
    (ours, theirs)
}

impl Host {
    fn start(kind: Kind) -> Self {
        let (input, output, theirs) = match kind {
            Kind::Pipes => {
                let (their_input, our_input) = std::io::pipe().expect("a pipe");
                let (our_output, their_output) = std::io::pipe().expect("a pipe");
                (our_input.into(), our_output.into(), [their_input.into(), their_output.into()])
            }
            Kind::Socket => {
                let (ours, theirs) = UnixStream::pair().expect("a pair");
                (copy(&ours), ours.into(), [copy(&theirs), theirs.into()])
            }
            Kind::Terminal => {
                let (ours, theirs) = terminal();
                (copy(&ours), ours, [copy(&theirs), theirs])
            }
        };
        let mut command = on().command(DEMO);
        command.stdin(copy(&theirs[0])).stdout(copy(&theirs[1]));
        let child = command.spawn().expect("it can be started");
        // The command holds copies of its own.
        drop(command);
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // A terminal reports its end as an error.
            for line in BufReader::new(File::from(output)).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, input: Some(input), lines, theirs }
    }

    fn input(&self) -> File {
        copy(self.input.as_ref().expect("it is open")).into()
    }

    fn send(&self, text: &str) {
        self.input().write_all(text.as_bytes()).expect("the server reads");
    }

    fn answer(&self) -> Value {
        let line = self.lines.recv_timeout(DEADLINE).expect("an answer in time");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no frame: {line:?}"))
    }

    fn are_blocking(&self) -> bool {
        self.theirs.iter().all(|fd| !rustix::fs::fcntl_getfl(fd).expect("it is open").contains(OFlags::NONBLOCK))
    }

    fn exit_code(&mut self) -> Option<i32> {
        let until = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().expect("can be waited for") {
                return status.code();
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// FRM-11, case 107: the same rules on each kind: an answer leaves at once, also to a client that sends nothing more. O_NONBLOCK is a property of the open file, which the shell, the host and others share: it is never left
// there, neither while the server runs nor afterwards.
#[test]
fn every_kind_is_served_and_stays_blocking() {
    for kind in KINDS {
        let mut host = Host::start(kind);
        for id in 0..20 {
            host.send(&(tool(id, "echo", json!({"text": "hi"})) + "\n"));
            assert_eq!(host.answer()["id"], id, "{kind:?}");
        }
        // More than any of them holds at once, in both directions.
        let burst: String = (20..220).map(|id| tool(id, "big", json!({"bytes": 4000})) + "\n").collect();
        let mut input = host.input();
        std::thread::scope(|scope| {
            scope.spawn(move || input.write_all(burst.as_bytes()).expect("the server reads"));
            for id in 20..220 {
                assert_eq!(host.answer()["id"], id, "{kind:?}");
            }
        });
        assert!(host.are_blocking(), "while it serves: {kind:?}");
        // SIGTERM, as a read that nothing ends keeps nobody; and a terminal has no end.
        let status = Command::new("kill").arg(host.child.id().to_string()).status();
        assert!(status.expect("kill runs").success());
        assert_eq!(host.exit_code(), Some(0), "{kind:?}");
        assert!(host.are_blocking(), "afterwards: {kind:?}");
    }
}

// SHD-05: the end of a socket's one direction is the end of the input, and the answers still leave by the other
#[test]
fn a_half_closed_socket_gets_its_answers() {
    let mut host = Host::start(Kind::Socket);
    host.send(&(tool(1, "sleep", json!({"ms": 100})) + "\n"));
    let socket = UnixStream::from(host.input.take().expect("it is open"));
    socket.shutdown(Shutdown::Write).expect("it is connected");
    assert_eq!(host.answer()["result"]["content"][0]["text"], "slept 100 ms");
    assert_eq!(host.exit_code(), Some(0));
}

// case 210: files at both ends: `server < requests > answers`; the last line has no end (FRM-09)
#[test]
fn files_are_served_to_their_end() {
    let path =
        |name: &str| std::env::temp_dir().join(format!("mcp-demo-{}-{}-{name}", std::process::id(), on().runtime()));
    let (input, output) = (path("requests"), path("answers"));
    let mut requests: String = (0..300).map(|id| tool(id, "big", json!({"bytes": 3000})) + "\n").collect();
    requests += &tool("last", "sleep", json!({"ms": 50}));
    std::fs::write(&input, requests).expect("can be written");
    let mut command = on().command(DEMO);
    command.stdin(File::open(&input).expect("there")).stdout(File::create(&output).expect("can be made"));
    assert!(command.status().expect("it runs").success());
    let answers = std::fs::read_to_string(&output).expect("there");
    let _ = (std::fs::remove_file(input), std::fs::remove_file(output));
    assert_eq!(answers.lines().count(), 301);
    assert!(answers.lines().last().is_some_and(|line| line.contains(r#""id":"last""#)), "it came last");
}

// case 212, case 220: no input, or a closed one, is a clean end
#[test]
fn no_input_is_a_clean_end() {
    let ended = on().command(DEMO).stdin(Stdio::null()).output().expect("it runs");
    assert_eq!((ended.status.code(), &*ended.stdout, &*ended.stderr), (Some(0), &b""[..], &b""[..]));
    let mut closed = Command::new("sh");
    closed.args(["-c", "exec \"$0\" --runtime \"$1\" <&-", DEMO, on().runtime()]);
    let ended = closed.output().expect("it runs");
    assert_eq!((ended.status.code(), &*ended.stdout), (Some(0), &b""[..]));
}

// SHD-05: `echo REQUEST | mcp-demo-server > out` answers a tool that takes 3 s, and the process ends at once after it
#[test]
fn a_slow_tool_is_answered_after_the_end_of_the_input() {
    let started = Instant::now();
    let mut shell = Command::new("sh");
    let request = tool(1, "sleep", json!({"ms": 3000}));
    shell.args(["-c", "echo \"$0\" | \"$1\" --runtime \"$2\"", &request, DEMO, on().runtime()]);
    let ended = shell.output().expect("it runs");
    let answer: Value = serde_json::from_slice(&ended.stdout).expect("one answer");
    assert_eq!(answer["result"]["content"][0]["text"], "slept 3000 ms");
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(9), "{took:?}: the drain is 10 s");
}

// SHD-07: a socket that is reset with answers unread is a client that is gone, with one line on standard error and status 1
#[test]
fn a_reset_socket_ends_it() {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let mut command = on().command(DEMO);
    let output = theirs.try_clone().expect("a copy");
    let child = command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(output)).stderr(Stdio::piped()).spawn();
    drop(command);
    (&ours).write_all((tool(1, "big", json!({"bytes": 3_000_000})) + "\n").as_bytes()).expect("it reads");
    // It begins to answer, and nobody reads on.
    rustix::event::poll(&mut [rustix::event::PollFd::new(&ours, rustix::event::PollFlags::IN)], None)
        .expect("it answers");
    drop(ours);
    let ended = child.expect("it can be started").wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!((ended.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
}
