//! What a server is started with: arguments, variables, directory, group.

#![cfg(target_os = "linux")]

mod support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use mcp_wire_driver::process::{Environment, ServerCommand, spawn};
use support::{TempDir, misbehaving, read_to_end, reported};

fn report(command: &ServerCommand) -> String {
    let mut server = spawn(command).expect("it can be spawned");
    String::from_utf8(read_to_end(&mut server.stdout)).expect("the report is ASCII")
}

// PRC-01: an argument vector, no shell: each argument arrives as it is
#[test]
fn arguments_arrive_as_they_are() {
    let command = misbehaving(&["report"]).arg("exit:0").args(["a b;c", "", "$(id) `id` \"*\" '"]).arg("two\nlines");
    let command = command.arg(OsStr::from_bytes(b"caf\xe9"));
    let report = report(&command);
    assert_eq!(
        reported(&report, "argument"),
        ["report", "exit:0", "a b;c", "", r#"$(id) `id` \"*\" \'"#, r"two\nlines", r"caf\xe9"]
    );
}

/// Two variables of this process that are on no allow list. Failures name variables and show no values: a host may hold secrets.
fn of_the_host() -> (String, String) {
    let listed = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "MINE"];
    let mut names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut next = || names.find(|name| !listed.contains(&name.as_str())).expect("tests run with some variables");
    (next(), next())
}

fn names(report: &str) -> Vec<&str> {
    reported(report, "variable").iter().filter_map(|variable| Some(variable.split_once('=')?.0)).collect()
}

// PRC-01: the allow list keeps a secret of the host from the server, own values are added
#[test]
fn the_minimal_environment_holds_no_secret_of_the_host() {
    let command = misbehaving(&["report"]).environment(Environment::Minimal).env("MINE", "1").env_remove("PATH");
    let report = report(&command);
    let names = names(&report);
    assert!(names.contains(&"MINE") && !names.contains(&of_the_host().0.as_str()), "{names:?}");
    assert!(names.iter().all(|n| ["HOME", "LOGNAME", "SHELL", "TERM", "USER", "MINE"].contains(n)), "{names:?}");
}

// PRC-01: inherited with changes: everything of the host, but for what was set and removed
#[test]
fn the_inherited_environment_can_be_changed() {
    let (kept, removed) = of_the_host();
    let command = misbehaving(&["report"]).env("MINE", "two\nlines").env("PATH", "/nowhere").env_remove(&removed);
    let report = report(&command);
    let (names, variables) = (names(&report), reported(&report, "variable"));
    assert!(names.contains(&kept.as_str()) && !names.contains(&removed.as_str()), "{names:?}");
    assert!(variables.contains(&r"MINE=two\nlines") && variables.contains(&"PATH=/nowhere"), "{names:?}");
}

// case 227: secrets passed on the command line: a variable is seen by the server and in no process list
#[test]
fn a_secret_in_a_variable_is_not_on_the_command_line() {
    let command = misbehaving(&["report", "first-byte"]).env("API_KEY", "S3CRET-227");
    let mut server = spawn(&command).expect("it can be spawned");
    let mut seen = false;
    loop {
        match support::read_line(&mut server.stdout).as_str() {
            "end" | "" => break,
            line => seen |= line == "variable API_KEY=S3CRET-227",
        }
    }
    let listed = std::fs::read(format!("/proc/{}/cmdline", server.child.pid())).expect("it lives");
    assert!(seen && !listed.is_empty());
    assert!(!String::from_utf8_lossy(&listed).contains("S3CRET-227"));
}

// PRC-01: the directory; a relative program starts there
#[test]
fn the_directory_is_the_servers() {
    let dir = TempDir::new();
    let report = report(&misbehaving(&["report"]).current_dir(dir.path()));
    assert_eq!(reported(&report, "directory"), [dir.path().to_str().expect("UTF-8")]);
    support::script(&dir, "here", "#!/bin/sh\npwd\n");
    let mut server = support::spawn_script(&ServerCommand::new("./here").current_dir(dir.path()));
    assert_eq!(read_to_end(&mut server.stdout), format!("{}\n", dir.path().display()).as_bytes());
}

// PRC-02: a group of its own, or the host's
#[test]
fn the_group_is_its_own_unless_switched_off() {
    let own = report(&misbehaving(&["report"]));
    assert_eq!(reported(&own, "group"), reported(&own, "pid"));
    let shared = report(&misbehaving(&["report"]).process_group(false));
    assert_eq!(reported(&shared, "group"), [rustix::process::getpgrp().as_raw_nonzero().to_string()]);
}
