//! What the tests with real processes share: the misbehaving child, and waits that end with an event or fail at a hard deadline.
//! It must not know what is tested. No wait here is a fixed sleep.

// Each test file includes this whole and uses a part of it.
#![allow(dead_code)]

pub(crate) mod misbehave;

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_driver::process::{ChildTree, ServerCommand, Spawned, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Far longer than anything takes on a busy machine: reaching it is the failure.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// The misbehaving child with these steps.
pub(crate) fn misbehaving(steps: &[&str]) -> ServerCommand {
    let binary = std::env::current_exe().expect("the test binary has a path");
    ServerCommand::new(binary).arg(misbehave::FLAG).args(steps)
}

/// Spawns the misbehaving child.
pub(crate) fn start(steps: &[&str]) -> Spawned {
    spawn(&misbehaving(steps)).expect("the test binary can be spawned")
}

/// Whether the descriptor becomes readable within this time.
pub(crate) fn readable_within(fd: impl AsFd, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    loop {
        let left = Timespec::try_from(end.saturating_duration_since(Instant::now())).expect("it fits");
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => panic!("poll: {errno}"),
        }
    }
}

/// Waits for the exit of the leader, without reaping it.
pub(crate) fn exit_of(child: &ChildTree) -> ExitStatus {
    let notice = child.exit_notice().expect("there is a notice of the exit");
    assert!(readable_within(&notice, DEADLINE), "it exited in time");
    child.try_exit().expect("the notice says that it has exited")
}

/// Reads to the end, which must come in time.
pub(crate) fn read_to_end(from: &mut (impl Read + AsFd)) -> Vec<u8> {
    let (mut all, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        assert!(readable_within(from.as_fd(), DEADLINE), "the stream goes on");
        match from.read(&mut chunk).expect("it can be read") {
            0 => return all,
            n => all.extend_from_slice(&chunk[..n]),
        }
    }
}

/// Reads a line, without its end, and nothing behind it.
pub(crate) fn read_line(from: &mut (impl Read + AsFd)) -> String {
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        assert!(readable_within(from.as_fd(), DEADLINE), "the stream goes on");
        if from.read(&mut byte).expect("it can be read") == 0 || byte == *b"\n" {
            return String::from_utf8_lossy(&line).into_owned();
        }
        line.push(byte[0]);
    }
}

/// What the step `report` says under a name.
pub(crate) fn reported<'a>(report: &'a str, name: &str) -> Vec<&'a str> {
    report.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).collect()
}

/// Waits until this is true.
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_true() {
        assert!(Instant::now() < end, "in time: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Some process that is not our child, watched by its pidfd; it is killed in the end.
#[derive(Debug)]
pub(crate) struct Watched(OwnedFd);

impl Watched {
    /// The helper that wrote its pid to this file.
    pub(crate) fn helper(file: &Path) -> Self {
        wait_until("the helper writes its pid", || file.exists());
        let pid = std::fs::read_to_string(file).expect("the helper's pid");
        Self::pid(pid.parse().expect("a number"))
    }

    /// A process that lives now.
    pub(crate) fn pid(pid: i32) -> Self {
        let pid = Pid::from_raw(pid).expect("a pid is not 0");
        Self(pidfd_open(pid, PidfdFlags::empty()).expect("it lives"))
    }

    /// It ends in time.
    pub(crate) fn ends(&self) {
        assert!(readable_within(&self.0, DEADLINE), "the process has ended");
    }

    /// It has not ended until now.
    pub(crate) fn lives(&self) -> bool {
        !readable_within(&self.0, Duration::ZERO)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }
}

/// A directory of its own that is removed in the end.
#[derive(Debug)]
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("mcp-wire-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a directory for the test");
        Self(path.canonicalize().expect("it exists"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A file in it, as text for a step.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("temporary paths are UTF-8").to_owned()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes an executable script.
pub(crate) fn script(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    use std::os::unix::fs::OpenOptionsExt;
    let path = dir.path().join(name);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(&path).expect("a new file");
    std::io::Write::write_all(&mut file, text.as_bytes()).expect("it can be written");
    path
}

/// Spawns what was written a moment ago: another test that forks meanwhile may hold it open for writing (case 126).
pub(crate) fn spawn_script(command: &ServerCommand) -> Spawned {
    let end = Instant::now() + DEADLINE;
    loop {
        match spawn(command) {
            Ok(spawned) => return spawned,
            Err(error) => {
                let source =
                    std::error::Error::source(&error).and_then(|source| source.downcast_ref::<std::io::Error>());
                let busy = source.is_some_and(|source| source.kind() == std::io::ErrorKind::ExecutableFileBusy);
                assert!(busy && Instant::now() < end, "{error}");
                std::thread::yield_now();
            }
        }
    }
}

/// Ids and states of the children of this process.
pub(crate) fn children() -> Vec<(i32, char)> {
    let me = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("there is /proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        let stat = String::from_utf8_lossy(&stat).into_owned();
        let mut fields = stat.rsplit_once(") ").expect("a stat line").1.split(' ');
        let state = fields.next().and_then(|state| state.chars().next()).expect("a state");
        if fields.next() == Some(&me) {
            found.push((pid, state));
        }
    }
    found
}

/// Names of the threads of this process.
pub(crate) fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("there is /proc").flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .collect()
}

/// No child is left, alive or as a zombie, and then no thread that reaps.
pub(crate) fn nothing_is_left() {
    // In this order: a thread has its name only once it runs, and it ends only after the last child.
    wait_until("no child is left", || children().is_empty());
    wait_until("the reaper thread ends", || !threads().iter().any(|name| name == "mcp-wire-reaper"));
}
