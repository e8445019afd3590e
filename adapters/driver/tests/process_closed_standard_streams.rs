//! A host whose descriptors 0 to 2 are closed. Alone in its file, because it closes them.

#![cfg(target_os = "linux")]

mod support;

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use mcp_wire::lifecycle::ExitStatus;
use mcp_wire_driver::process::{Spawned, Stderr, spawn};
use support::{exit_of, misbehaving, reported};

// case 125: standard descriptors of the host are closed: the pipes are not mixed up, and none of them lands on 0 to 2
#[test]
fn pipes_are_not_mixed_up_when_the_host_has_no_standard_streams() {
    for closed in [&[0][..], &[1], &[2], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2]] {
        for stderr in [Stderr::Inherit, Stderr::Null, Stderr::Tee, Stderr::Lines] {
            without(closed, || talk(closed, stderr))
                .unwrap_or_else(|wrong| panic!("{closed:?} closed, {stderr:?}: {wrong}"));
        }
    }
}

/// Runs this with the standard descriptors closed. Panics print, so what runs meanwhile must not.
fn without<T>(closed: &[i32], run: impl FnOnce() -> T) -> T {
    let saved: Vec<OwnedFd> = closed
        .iter()
        .map(|fd| {
            // SAFETY: it is open, and it is restored below before anybody else uses it.
            let fd = unsafe { OwnedFd::from_raw_fd(*fd) };
            fd.try_clone().expect("there are descriptors left")
        })
        .collect();
    let result = run();
    for (fd, saved) in closed.iter().zip(saved) {
        match fd {
            0 => rustix::stdio::dup2_stdin(saved),
            1 => rustix::stdio::dup2_stdout(saved),
            _ => rustix::stdio::dup2_stderr(saved),
        }
        .expect("it can be restored");
    }
    result
}

/// A whole conversation with a server.
fn talk(closed: &[i32], stderr: Stderr) -> Result<(), String> {
    let command = misbehaving(&["serve:1", "stderr:complaint", "report", "exit:3"]).stderr(stderr);
    let Spawned { child, mut stdin, mut stdout, stderr: complaints, .. } =
        spawn(&command).map_err(|e| e.to_string())?;
    let notice = child.exit_notice().map_err(|e| e.to_string())?;
    let ours = [stdin.as_raw_fd(), stdout.as_raw_fd(), notice.as_raw_fd()];
    if let Some(low) = ours.iter().chain(complaints.as_ref().map(AsRawFd::as_raw_fd).iter()).find(|fd| **fd <= 2) {
        return Err(format!("one of ours is {low}"));
    }
    stdin
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{}}\n")
        .map_err(|e| e.to_string())?;
    let mut output = String::new();
    stdout.read_to_string(&mut output).map_err(|e| e.to_string())?;
    if !output.starts_with("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":") || !output.ends_with("\nend\n") {
        return Err(output);
    }
    if let Some(mut complaints) = complaints {
        let mut text = String::new();
        complaints.read_to_string(&mut text).map_err(|e| e.to_string())?;
        if text != "complaint\n" {
            return Err(format!("stderr was {text:?}"));
        }
    }
    let theirs = reported(&output, "descriptor");
    let open = |number: &str| theirs.iter().any(|fd| fd.starts_with(number));
    if !(open("0 pipe:") && open("1 pipe:") && open("2 ")) {
        return Err(format!("its descriptors: {theirs:?}"));
    }
    if closed.contains(&2) && stderr == Stderr::Inherit && !open("2 /dev/null") {
        return Err(format!("what it inherits as stderr: {theirs:?}"));
    }
    if exit_of(&child) != ExitStatus::Code(3) {
        return Err("its exit".to_owned());
    }
    Ok(())
}
