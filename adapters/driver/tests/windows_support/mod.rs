//! What the tests with real processes share on Windows: the misbehaving child, and waits that end with an event or fail at a hard
//! deadline. It must not know what is tested. No wait here is a fixed sleep.

// Each test file includes this whole and uses a part of it.
#![allow(dead_code)]

pub(crate) mod misbehave;

use std::fs::OpenOptions;
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_driver::process::{ChildTree, ServerCommand, Spawned, spawn};
use mcp_wire_driver::stdio::ReadPump;

/// Far longer than anything takes on a busy machine: reaching it is the failure.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The misbehaving child with these steps.
pub(crate) fn misbehaving(steps: &[&str]) -> ServerCommand {
    let binary = std::env::current_exe().expect("the test binary has a path");
    ServerCommand::new(binary).arg(misbehave::FLAG).args(steps)
}

/// Spawns the misbehaving child.
pub(crate) fn start(steps: &[&str]) -> Spawned {
    spawn(&misbehaving(steps)).expect("the test binary can be spawned")
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What it is ready with, in time; only a wake-up makes it be polled again.
pub(crate) fn block<T>(what: &str, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let end = Instant::now() + DEADLINE;
    loop {
        if let Poll::Ready(value) = poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        let left = end.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "in time: {what}");
        std::thread::park_timeout(left);
    }
}

/// Waits for the exit of the child.
pub(crate) fn exit_of(child: &ChildTree) -> ExitStatus {
    let notice = child.exit_notice().expect("there is a notice of the exit");
    block("it exits", |cx| notice.poll(cx));
    child.try_exit().expect("the notice says that it has exited")
}

/// Reads to the end, which must come in time.
pub(crate) fn read_to_end(from: &mut ReadPump) -> String {
    let (mut all, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        match block("the stream goes on", |cx| from.poll_read(cx, &mut chunk)).expect("it can be read") {
            0 => return String::from_utf8_lossy(&all).into_owned(),
            n => all.extend_from_slice(&chunk[..n]),
        }
    }
}

/// Reads a line, without its end, and nothing behind it.
pub(crate) fn read_line(from: &mut ReadPump) -> String {
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        let n = block("the stream goes on", |cx| from.poll_read(cx, &mut byte)).expect("it can be read");
        if n == 0 || byte == *b"\n" {
            return String::from_utf8_lossy(&line).into_owned();
        }
        line.push(byte[0]);
    }
}

/// Everything that a child writes to its output.
pub(crate) fn output_of(server: Spawned) -> String {
    let Spawned { child: _child, stdin, stdout, .. } = server;
    drop(stdin);
    read_to_end(&mut ReadPump::of_pipe(stdout).expect("a thread"))
}

/// Waits until this is true.
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_true() {
        assert!(Instant::now() < end, "in time: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a helper lives that holds this file.
pub(crate) fn helper_lives(file: &str) -> bool {
    OpenOptions::new().read(true).share_mode(0).open(file).is_err()
}

/// The helper that holds this file ends in time.
pub(crate) fn helper_ends(file: &str) {
    wait_until("the helper has ended", || !helper_lives(file));
}

/// Nobody is left in the job of an exited child, without having been ended: its console host goes by itself, a moment after the child.
pub(crate) fn job_empties(child: &ChildTree) {
    wait_until("the job is empty", || child.terminate_group());
}

/// A directory of its own that is removed in the end, when the helpers with a file in it end too.
#[derive(Debug)]
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // A number is given again soon, and a test that was ended has left its directory.
        loop {
            let name = format!("mcp-wire-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            match std::fs::create_dir(&path) {
                Ok(()) => return Self(path),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("a directory for the test: {error}"),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A file in it, as text for a step.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("temporary paths are UTF-8").to_owned()
    }

    /// Writes a file in it.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("it can be written");
        path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let word = self.0.join(misbehave::END);
        let _ = std::fs::write(&word, "");
        let end = Instant::now() + DEADLINE;
        // What a helper holds cannot be removed; the word that ends it stays until then.
        let others = || std::fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.path());
        while others().filter(|file| *file != word).any(|file| std::fs::remove_file(file).is_err()) {
            if Instant::now() > end {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
