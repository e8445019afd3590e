//! Owns the misbehaving child: a server that does, in order, the steps its arguments name. It must not know who tests what with it.
//!
//! The child is the test binary itself, executed again with [`FLAG`] as its first argument: an entry of the init array looks for it before the
//! test harness starts, so that nothing but the steps writes to the standard streams. That needs no extra build step and works in each
//! crate whose tests include this file. After the last step it exits with 0. It ignores the end of its input unless a step reads.
//!
//! | step | what it does |
//! |---|---|
//! | `say:TEXT`, `stderr:TEXT` | writes a line to stdout, to stderr |
//! | `half` | writes half a frame to stdout, without a line end |
//! | `flood:stdout`, `flood:stderr`, `flood:stdout:BYTES` | writes lines, for ever or so many bytes |
//! | `close:stdin`, `close:stdout`, `close:stderr` | closes it and goes on |
//! | `first-byte` | waits for a byte of input |
//! | `drain` | reads and ignores input until its end |
//! | `serve`, `serve:N` | answers `server/discover` and echoes other requests, until the end of input or N times |
//! | `deaf` | ignores SIGTERM |
//! | `on-term:FILE` | at SIGTERM appends `term` to the file and exits with 0 |
//! | `note:FILE:TEXT` | appends a line to the file |
//! | `stop` | stops itself by SIGSTOP |
//! | `helper:FILE:HOW` | starts a copy that sleeps and writes its pid to the file; HOW is any of `i` `o` `e` (it keeps stdin, stdout, stderr open), `x` (outside of the group), `d` (deaf), `-` |
//! | `once:FILE:STEP` | a step for the first process only that finds no such file, which it makes |
//! | `pause:MS`, `sleep` | sleeps so long, for ever |
//! | `exit:CODE`, `crash:SIGNAL` | ends |
//! | `report` | writes what it was started with to stdout: arguments, variables, directory, descriptors, signals, group; then `end` |

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio, exit};
use std::time::Duration;

use nix::sys::signal::{SigHandler, SigSet, Signal, raise, signal};

/// The first argument that makes a test binary the misbehaving child.
pub(crate) const FLAG: &str = "--misbehave";

#[used]
// SAFETY: the section holds function pointers that are called once before main; std's own entry of it, which finds the arguments, comes first.
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
static ENTRY: extern "C" fn() = entry;

extern "C" fn entry() {
    let mut args = std::env::args_os().skip(1);
    if args.next().as_deref() != Some(OsStr::new(FLAG)) {
        return;
    }
    for step in args {
        run(step.as_bytes());
    }
    exit(0);
}

fn run(step: &[u8]) {
    let text = std::str::from_utf8(step).unwrap_or("report");
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    match name {
        "say" => line(rustix::stdio::stdout(), rest),
        "stderr" => line(rustix::stdio::stderr(), rest),
        "half" => write(rustix::stdio::stdout(), br#"{"jsonrpc":"2.0","id":1,"resu"#),
        "flood" => flood(rest),
        "close" => close(number(rest)),
        "first-byte" => read_byte(),
        "drain" => _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink()),
        "serve" => serve(rest.parse().unwrap_or(u64::MAX)),
        "deaf" => deaf(),
        "on-term" => on_term(rest.to_owned()),
        "note" => note(rest),
        "stop" => raise(Signal::SIGSTOP).unwrap_or_else(|_| exit(90)),
        "helper" => start_helper(rest),
        "sleeping-helper" => helper(rest),
        "once" => once(rest),
        "pause" => std::thread::sleep(Duration::from_millis(rest.parse().unwrap_or(0))),
        "sleep" => sleep(),
        "exit" => exit(rest.parse().unwrap_or(91)),
        "crash" => crash(rest.parse().unwrap_or(11)),
        "report" => report(),
        _ => {
            line(rustix::stdio::stderr(), &format!("no such step: {text}"));
            exit(92);
        }
    }
}

fn write(fd: BorrowedFd<'_>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => exit(93),
        }
    }
}

fn line(fd: BorrowedFd<'_>, text: &str) {
    write(fd, format!("{text}\n").as_bytes());
}

fn number(stream: &str) -> i32 {
    match stream {
        "stdin" => 0,
        "stdout" => 1,
        _ => 2,
    }
}

fn flood(what: &str) {
    let (stream, bytes) = what.split_once(':').unwrap_or((what, ""));
    let fd = if stream == "stdout" { rustix::stdio::stdout() } else { rustix::stdio::stderr() };
    let chunk = "flooding, flooding, flooding, flooding, flooding, flooding, floo\n".repeat(64);
    let mut left: usize = bytes.parse().unwrap_or(usize::MAX);
    while left > 0 {
        let part = chunk.as_bytes().get(..left.min(chunk.len())).unwrap_or_default();
        write(fd, part);
        left = if left == usize::MAX { left } else { left - part.len() };
    }
}

fn close(fd: i32) {
    // SAFETY: it is open, and nothing in this process uses it afterwards but to fail.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
}

fn read_byte() {
    // Unbuffered, so that a later step finds the rest.
    let _ = rustix::io::read(rustix::stdio::stdin(), &mut [0; 1]);
}

/// The value of the member `name` in a frame as our client writes it, compact and in its order.
fn member<'a>(frame: &'a str, name: &str) -> Option<&'a str> {
    let rest = frame.split_once(&format!("\"{name}\":"))?.1;
    let end = if name == "params" { rest.rfind('}')? } else { rest.find([',', '}'])? };
    rest.get(..end)
}

fn serve(requests: u64) {
    let mut answered = 0;
    let mut frame = String::new();
    while answered < requests {
        frame.clear();
        // Byte by byte: a buffer would swallow what a later step is to read.
        loop {
            let mut byte = [0];
            match rustix::io::read(rustix::stdio::stdin(), &mut byte) {
                Ok(1) if byte == *b"\n" => break,
                Ok(1) => frame.push(char::from(byte[0])),
                Err(rustix::io::Errno::INTR) => {}
                _ => return,
            }
        }
        let (Some(id), Some(method)) = (member(&frame, "id"), member(&frame, "method")) else { continue };
        let result = if method == "\"server/discover\"" {
            r#""supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private""#.to_owned()
        } else {
            format!("\"echo\":{}", member(&frame, "params").unwrap_or("null"))
        };
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete",{result}}}}}"#);
        // The frame was read as one character a byte; this gives the bytes back.
        let bytes: Vec<u8> = answer.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).chain([b'\n']).collect();
        write(rustix::stdio::stdout(), &bytes);
        answered += 1;
    }
}

fn deaf() {
    // SAFETY: no handler is installed.
    unsafe { signal(Signal::SIGTERM, SigHandler::SigIgn) }.unwrap_or_else(|_| exit(94));
}

fn on_term(file: String) {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.thread_block().unwrap_or_else(|_| exit(95));
    std::thread::spawn(move || {
        let _ = set.wait();
        append(Path::new(&file), "term");
        exit(0);
    });
}

fn note(what: &str) {
    if let Some((file, text)) = what.split_once(':') {
        append(Path::new(file), text);
    }
}

fn append(file: &Path, text: &str) {
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened.and_then(|mut file| writeln!(file, "{text}")).unwrap_or_else(|_| exit(96));
}

fn start_helper(what: &str) {
    let (file, how) = what.split_once(':').unwrap_or((what, ""));
    let keep = |stream| if how.contains(stream) { Stdio::inherit() } else { Stdio::null() };
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| exit(97)));
    command.args([FLAG, &format!("sleeping-helper:{what}")]).stdin(keep('i')).stdout(keep('o')).stderr(keep('e'));
    if how.contains('x') {
        command.process_group(0);
    }
    // It is never waited for; whoever inherits it does that.
    let started = command.spawn();
    if started.is_err() {
        exit(98);
    }
    while !Path::new(file).exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn helper(what: &str) {
    let (file, how) = what.split_once(':').unwrap_or((what, ""));
    if how.contains('d') {
        deaf();
    }
    // Renamed into place, so that nobody reads half a number.
    let part = format!("{file}.part");
    std::fs::write(&part, std::process::id().to_string()).unwrap_or_else(|_| exit(99));
    std::fs::rename(part, file).unwrap_or_else(|_| exit(99));
    sleep();
}

fn once(what: &str) {
    if let Some((file, step)) = what.split_once(':') {
        if OpenOptions::new().write(true).create_new(true).open(file).is_ok() {
            run(step.as_bytes());
        }
    }
}

fn sleep() {
    loop {
        std::thread::sleep(Duration::from_secs(1000));
    }
}

fn crash(number: i32) {
    if let Ok(signal) = Signal::try_from(number) {
        let _ = raise(signal);
    }
    exit(100);
}

fn report() {
    let mut out = String::new();
    let shown = |text: &OsStr| text.as_bytes().escape_ascii().to_string();
    for arg in std::env::args_os().skip(2) {
        out += &format!("argument {}\n", shown(&arg));
    }
    for (name, value) in std::env::vars_os() {
        out += &format!("variable {}={}\n", shown(&name), shown(&value));
    }
    out += &format!(
        "directory {}\n",
        std::env::current_dir().map_or_else(|_| String::new(), |dir| shown(dir.as_os_str()))
    );
    out += &format!("pid {}\n", std::process::id());
    out += &format!("group {}\n", rustix::process::getpgrp().as_raw_nonzero());
    for line in std::fs::read_to_string("/proc/self/status").unwrap_or_default().lines() {
        if let Some((name @ ("SigBlk" | "SigIgn"), mask)) = line.split_once(':') {
            out += &format!("{name} {}\n", mask.trim());
        }
    }
    for fd in descriptors() {
        let target = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
        out += &format!("descriptor {fd} {}\n", shown(target.as_os_str()));
    }
    write(rustix::stdio::stdout(), out.as_bytes());
    line(rustix::stdio::stdout(), "end");
}

/// The open descriptors of this process, without the one that looks.
pub(crate) fn descriptors() -> Vec<i32> {
    let Ok(dir) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let names: Vec<OsString> = dir.flatten().map(|entry| entry.file_name()).collect();
    let open = |fd: &i32| std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok();
    let mut all: Vec<i32> = names.iter().filter_map(|name| name.to_str()?.parse().ok()).filter(open).collect();
    all.sort_unstable();
    all
}
