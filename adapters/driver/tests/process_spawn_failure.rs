//! Why a spawn fails, told apart, and that nothing is left of it.

#![cfg(target_os = "linux")]

mod support;

use std::error::Error;
use std::io;
use std::path::Path;

use mcp_wire::lifecycle::{ExitStatus, SpawnFailure};
use mcp_wire_driver::process::{Environment, ServerCommand, SpawnError, Stderr, StderrTail, spawn};
use support::{TempDir, exit_of, read_to_end, script, spawn_script};

fn failure(command: &ServerCommand) -> SpawnError {
    spawn(command).expect_err("it cannot be spawned")
}

fn os_error(error: &SpawnError) -> Option<i32> {
    error.source()?.downcast_ref::<io::Error>()?.raw_os_error()
}

// PRC-05, case 118: command not found because a GUI host has a short PATH: the error names the command and the PATH that was searched
#[test]
fn a_command_that_is_nowhere_names_the_path_that_was_searched() {
    let error = failure(&ServerCommand::new("npx-118").env("PATH", "/nowhere-118:/bin"));
    let SpawnError::NotFound { program, path: Some(path), script: None, .. } = &error else { panic!("{error:?}") };
    assert!(program == "npx-118" && path == "/nowhere-118:/bin");
    assert_eq!((error.failure(), os_error(&error)), (SpawnFailure::NotFound, Some(2)));
    let text = error.to_string();
    assert!(text.contains("npx-118") && text.contains("/nowhere-118:/bin"), "{text}");
}

// case 118: the look-up uses the server's PATH, not the host's
#[test]
fn the_servers_own_path_is_searched() {
    let dir = TempDir::new();
    script(&dir, "tool-118", "#!/bin/sh\necho found\n");
    let command = ServerCommand::new("tool-118");
    assert!(matches!(failure(&command), SpawnError::NotFound { .. }));
    let mut server = spawn_script(&command.clone().env("PATH", format!("/nowhere:{}", dir.path().display())));
    assert_eq!(read_to_end(&mut server.stdout), b"found\n");
    // And nothing else: `sh` is in the host's PATH.
    assert!(matches!(failure(&ServerCommand::new("sh").env("PATH", dir.path())), SpawnError::NotFound { .. }));
}

// case 118: an entry of PATH that is relative, or empty, starts at the server's directory
#[test]
fn relative_entries_of_the_path_start_at_the_servers_directory() {
    let dir = TempDir::new();
    std::fs::create_dir(dir.path().join("bin")).expect("a directory");
    script(&dir, "bin/tool", "#!/bin/sh\necho in bin\n");
    script(&dir, "other", "#!/bin/sh\necho here\n");
    let command = |name: &str, path: &str| ServerCommand::new(name).current_dir(dir.path()).env("PATH", path);
    assert_eq!(read_to_end(&mut spawn_script(&command("tool", "/nowhere:bin")).stdout), b"in bin\n");
    assert_eq!(read_to_end(&mut spawn_script(&command("other", "/nowhere:")).stdout), b"here\n");
}

// A server without PATH is looked up where exec would
#[test]
fn without_a_path_the_systems_default_is_searched() {
    let bare = |name: &str| ServerCommand::new(name).environment(Environment::Minimal).env_remove("PATH");
    let mut server = spawn(&bare("sh").args(["-c", "echo ok"])).expect("/bin is searched");
    assert_eq!(read_to_end(&mut server.stdout), b"ok\n");
    let error = failure(&bare("no-such-program"));
    assert!(matches!(&error, SpawnError::NotFound { path: Some(path), .. } if path == "/bin:/usr/bin"), "{error:?}");
}

// PRC-05: found and not executable is another kind, also behind an entry of PATH that holds nothing
#[test]
fn a_file_that_may_not_be_executed_is_a_question_of_permission() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("plain"), "no program").expect("a file");
    for command in [
        ServerCommand::new(dir.path().join("plain")),
        ServerCommand::new("plain").env("PATH", format!("/nowhere:{}:/bin", dir.path().display())),
        ServerCommand::new(dir.path()),
    ] {
        let error = failure(&command);
        assert!(matches!(error, SpawnError::Permission { .. }), "{error:?}");
        assert_eq!((error.failure(), os_error(&error)), (SpawnFailure::Permission, Some(13)));
    }
}

// PRC-05: the directory is told apart from the program, which is fine
#[test]
fn a_directory_that_cannot_be_used_is_not_a_missing_program() {
    let dir = TempDir::new();
    std::fs::write(dir.path().join("file"), "").expect("a file");
    for (bad, errno) in [("missing", 2), ("file", 20)] {
        let bad = dir.path().join(bad);
        let error = failure(&ServerCommand::new("sh").current_dir(&bad));
        let SpawnError::Directory { directory, .. } = &error else { panic!("{error:?}") };
        assert_eq!(
            (directory.as_path(), error.failure(), os_error(&error)),
            (bad.as_path(), SpawnFailure::Directory, Some(errno))
        );
        assert!(error.to_string().contains(bad.to_str().expect("UTF-8")), "{error}");
    }
}

// PRC-05: a path that leads nowhere names no PATH, and one whose first line names a missing interpreter says so
#[test]
fn a_missing_interpreter_is_told_from_a_missing_program() {
    let dir = TempDir::new();
    for missing in [dir.path().join("missing"), dir.path().join("bad/missing"), Path::new("/dev/null/x").to_owned()] {
        let error = failure(&ServerCommand::new(&missing));
        assert!(matches!(error, SpawnError::NotFound { path: None, script: None, .. }), "{error:?}");
    }
    let file = script(&dir, "bad-first-line", "#!/no/such/interpreter\n");
    for command in [ServerCommand::new(&file), ServerCommand::new("bad-first-line").env("PATH", dir.path())] {
        let error = loop {
            match failure(&command) {
                SpawnError::Other { source, .. } if source.kind() == io::ErrorKind::ExecutableFileBusy => {}
                error => break error,
            }
        };
        assert!(matches!(&error, SpawnError::NotFound { script: Some(script), .. } if *script == file), "{error:?}");
        assert!(error.to_string().contains("bad-first-line") && error.to_string().contains("interpreter"), "{error}");
    }
}

// case 119: absolute path of the launcher, but its interpreter is not on PATH: it exits with 127 and says why on stderr
#[test]
fn a_launcher_that_does_not_find_its_interpreter_exits_and_explains() {
    let dir = TempDir::new();
    let file = script(&dir, "npx", "#!/usr/bin/env no-such-interpreter-119\n");
    let mut server = spawn_script(&ServerCommand::new(file).stderr(Stderr::Tee));
    let mut tail = StderrTail::default();
    tail.push(&read_to_end(server.stderr.as_mut().expect("it is piped")), |_| {});
    assert_eq!(exit_of(&server.child), ExitStatus::Code(127));
    assert!(tail.text().contains("no-such-interpreter-119"), "{}", tail.text());
}

// case 126: "text file busy" right after writing the server: the kind is passed on unchanged
#[test]
fn a_busy_file_keeps_its_kind() {
    let dir = TempDir::new();
    let file = script(&dir, "busy", "#!/bin/sh\n");
    let _writing = std::fs::OpenOptions::new().append(true).open(&file).expect("it can be written to");
    let error = failure(&ServerCommand::new(&file));
    assert!(
        matches!(&error, SpawnError::Other { source, .. } if source.kind() == io::ErrorKind::ExecutableFileBusy),
        "{error:?}"
    );
    assert_eq!(error.failure(), SpawnFailure::Other);
}

// PRC-05: a failed spawn leaves no process and no descriptor
#[test]
fn a_failed_spawn_leaves_nothing() {
    let dir = TempDir::new();
    let file = script(&dir, "bad", "#!/no/such/interpreter\n");
    let own = || support::children().iter().filter(|(pid, _)| stat_names(*pid, "bad")).count();
    for _ in 0..100 {
        failure(&ServerCommand::new(&file));
        failure(&ServerCommand::new("with\0nul"));
    }
    support::wait_until("no child is left of the failures", || own() == 0);
}

fn stat_names(pid: i32, name: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
}
