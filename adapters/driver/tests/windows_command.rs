//! What is executed on Windows, with which arguments, variables and directory, and why a spawn fails.

#![cfg(windows)]

mod windows_support;

use mcp_wire::lifecycle::SpawnFailure;
use mcp_wire_driver::process::{Environment, ServerCommand, SpawnError, spawn};
use windows_support::{TempDir, misbehaving, output_of};

fn run(command: &ServerCommand) -> String {
    output_of(spawn(command).expect("it can be spawned"))
}

fn failure(command: &ServerCommand) -> SpawnError {
    spawn(command).expect_err("it cannot be spawned")
}

// PRC-01: an argument stays one argument, as it is
#[test]
fn arguments_arrive_as_they_are() {
    let arguments = ["report", "a b;c", "", "\"quoted\"", "tail\\", "x\\\"y z\\\\", "%PATH%", "é—\u{1f600}", "^&|<>"];
    let told = run(&misbehaving(&arguments[..1]).args(&arguments[1..]));
    let got: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("argument ")).collect();
    assert_eq!(got, arguments);
}

// PRC-01: with the allow list a secret is absent in the child, what is set is there, and what a program cannot do without too
#[test]
fn the_minimal_environment_keeps_secrets_out() {
    let command = misbehaving(&["report"]).environment(Environment::Minimal).env("MINE", "1");
    let told = run(&command);
    let names: Vec<String> = (told.lines().filter_map(|line| line.strip_prefix("variable ")?.split_once('=')))
        .map(|(name, _)| name.to_ascii_uppercase())
        .collect();
    assert!(names.iter().any(|name| name == "MINE") && names.iter().any(|name| name == "SYSTEMROOT"), "{names:?}");
    // The test harness sets this one.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
}

// PRC-01: the server starts in its directory
#[test]
fn the_server_starts_in_its_directory() {
    let dir = TempDir::new();
    let told = run(&misbehaving(&["report"]).current_dir(dir.path()));
    let name = dir.path().file_name().and_then(|name| name.to_str()).expect("it has a name");
    let directory = told.lines().find_map(|line| line.strip_prefix("directory ")).expect("it tells it");
    assert!(directory.trim_end_matches('\\').ends_with(name), "{directory}");
}

// case 181: .cmd and .bat shims are not found or refused: `shim` is shim.cmd, not the file without an extension beside it
#[test]
fn a_shim_is_found_by_its_name() {
    let dir = TempDir::new();
    dir.write("shim", "#!/bin/sh\necho the wrong one\n");
    dir.write("shim.cmd", "@echo off\r\necho shim %1 %2\r\n");
    for command in [
        ServerCommand::new("shim").env("Path", dir.path()),
        ServerCommand::new("SHIM.CMD").env("PATH", dir.path()),
        ServerCommand::new(dir.path().join("shim")),
        ServerCommand::new(".\\shim").current_dir(dir.path()),
    ] {
        let told = run(&command.args(["one", "two"]));
        let words: Vec<&str> = told.split_whitespace().map(|word| word.trim_matches('"')).collect();
        assert_eq!(words, ["shim", "one", "two"], "{told}");
    }
}

// case 181: the order of the extensions is PATHEXT's, the server's own
#[test]
fn the_servers_pathext_decides() {
    let dir = TempDir::new();
    dir.write("twin.bat", "@echo bat\r\n");
    dir.write("twin.cmd", "@echo cmd\r\n");
    for (extensions, expected) in [(".BAT;.CMD", "bat"), (".CMD;.BAT", "cmd"), (".JS;.CMD", "cmd")] {
        let command = ServerCommand::new("twin").env("PATH", dir.path()).env("PATHEXT", extensions);
        assert_eq!(run(&command).trim(), expected, "{extensions}");
    }
}

// SEC-02: what no quoting makes safe for a batch file is refused, and nothing of it is executed
#[test]
fn a_batch_file_gets_no_argument_that_cannot_be_quoted() {
    let dir = TempDir::new();
    let shim = dir.write("shim.cmd", "@echo off\r\nexit /b 0\r\n");
    let noted = dir.file("noted");
    for argument in [format!("a\r\necho x>{noted}"), format!("a\necho x>{noted}")] {
        let error = failure(&ServerCommand::new(&shim).arg(argument));
        assert!(matches!(error, SpawnError::Other { .. }), "{error:?}");
    }
    for argument in [format!("\" & echo x>{noted}"), format!("& echo x>{noted}"), format!("\"\" | echo x>{noted}")] {
        run(&ServerCommand::new(&shim).arg(argument));
    }
    assert!(!std::path::Path::new(&noted).exists(), "an argument was executed");
}

// PRC-05, case 118: command not found because a GUI host has a short PATH; case 181: the error names the candidates
#[test]
fn a_command_that_is_nowhere_names_what_was_looked_for() {
    let command = ServerCommand::new("npx-181").env("PATH", "C:\\nowhere-181").env("PATHEXT", ".EXE;.CMD");
    let error = failure(&command);
    assert_eq!(error.failure(), SpawnFailure::NotFound);
    let text = error.to_string();
    for part in ["npx-181", "npx-181.exe", "npx-181.cmd", "nowhere-181"] {
        assert!(text.contains(part), "{text}");
    }
}

// PRC-05: failures are told apart
#[test]
fn failures_are_told_apart() {
    let dir = TempDir::new();
    let text = dir.write("no-program.exe", "this is no program");
    assert!(matches!(failure(&ServerCommand::new(dir.path().join("gone.exe"))), SpawnError::NotFound { .. }));
    assert!(
        matches!(failure(&ServerCommand::new(dir.path())), SpawnError::NotFound { .. }),
        "a directory is no program"
    );
    assert!(matches!(failure(&ServerCommand::new(&text)), SpawnError::Other { .. }));
    for nowhere in [dir.path().join("gone"), text] {
        let error = failure(&misbehaving(&["exit:0"]).current_dir(&nowhere));
        assert!(matches!(&error, SpawnError::Directory { directory, .. } if *directory == nowhere), "{error:?}");
    }
}
