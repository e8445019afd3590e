//! Owns the misbehaving child on Windows: a server that does, in order, the steps its arguments name. It must not know who tests what with
//! it.
//!
//! As on Unix, the child is the test binary itself, executed again with [`FLAG`] as its first argument: an entry among the initializers of the C
//! runtime looks for it before the test harness starts. After the last step it exits with 0. It ignores the end of its input unless a step reads.
//!
//! | step | what it does |
//! |---|---|
//! | `say:TEXT`, `stderr:TEXT` | writes a line to stdout, to stderr |
//! | `empty` | writes nothing to stdout, in one call |
//! | `flood:stdout`, `flood:stderr`, `flood:stdout:BYTES` | writes lines, for ever or so many bytes |
//! | `drain`, `count` | reads input until its end; and writes how many bytes it was and their sum |
//! | `serve`, `serve:COUNT` | answers `server/discover` and echoes other requests, until the end of input or so many of them |
//! | `helper:FILE:HOW` | starts a copy that holds the file, until one named [`END`] lies beside it; HOW is any of `i` `o` `e` (it keeps stdin, stdout, stderr open), `-` |
//! | `again:FILE` | makes the file; who finds it there goes on after the step `--` |
//! | `surroundings` | writes whether it has a console window, and whether it is in a job |
//! | `sleep`, `exit:CODE` | sleeps for ever, ends |
//! | `report` | writes its arguments, variables and directory to stdout; then `end` |

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsHandle;
use std::path::Path;
use std::process::{Command, Stdio, exit};
use std::time::Duration;

/// The first argument that makes a test binary the misbehaving child.
pub(crate) const FLAG: &str = "--misbehave";

/// The file whose appearance beside its own ends a helper, so that none outlives the test that it escapes from.
pub(crate) const END: &str = "end";

#[used]
// SAFETY: the section holds function pointers that the C runtime calls once before main.
#[unsafe(link_section = ".CRT$XCU")]
static ENTRY: extern "C" fn() = entry;

extern "C" fn entry() {
    let mut args = std::env::args_os().skip(1);
    if args.next().as_deref() != Some(OsStr::new(FLAG)) {
        return;
    }
    while let Some(step) = args.next() {
        let step = step.to_str().unwrap_or("report");
        match step.strip_prefix("again:") {
            Some(file) if OpenOptions::new().write(true).create_new(true).open(file).is_err() => {
                args.by_ref().find(|step| step == "--");
            }
            Some(_) => {}
            None => run(step),
        }
    }
    exit(0);
}

fn run(step: &str) {
    let (name, rest) = step.split_once(':').unwrap_or((step, ""));
    match name {
        "say" => write(&mut output(), format!("{rest}\n").as_bytes()),
        "stderr" => write(&mut error(), format!("{rest}\n").as_bytes()),
        "empty" => _ = output().write(&[]).unwrap_or_else(|_| exit(90)),
        "flood" => flood(rest),
        "drain" => _ = std::io::copy(&mut input(), &mut std::io::sink()),
        "count" => count(),
        "serve" => serve(rest.parse().unwrap_or(usize::MAX)),
        "helper" => start_helper(rest),
        "sleeping-helper" => helper(rest),
        "surroundings" => surroundings(),
        "sleep" => sleep(),
        "exit" => exit(rest.parse().unwrap_or(91)),
        "report" => report(),
        _ => {
            write(&mut error(), format!("no such step: {step}\n").as_bytes());
            exit(92);
        }
    }
}

/// Unbuffered, so that a later step finds the rest.
fn input() -> File {
    std::io::stdin().as_handle().try_clone_to_owned().unwrap_or_else(|_| exit(93)).into()
}

fn output() -> File {
    std::io::stdout().as_handle().try_clone_to_owned().unwrap_or_else(|_| exit(93)).into()
}

fn error() -> File {
    std::io::stderr().as_handle().try_clone_to_owned().unwrap_or_else(|_| exit(93)).into()
}

fn write(to: &mut File, bytes: &[u8]) {
    to.write_all(bytes).unwrap_or_else(|_| exit(94));
}

fn flood(what: &str) {
    let (stream, bytes) = what.split_once(':').unwrap_or((what, ""));
    let mut to = if stream == "stdout" { output() } else { error() };
    let chunk = "flooding, flooding, flooding, flooding, flooding, flooding, floo\n".repeat(64);
    let mut left: usize = bytes.parse().unwrap_or(usize::MAX);
    while left > 0 {
        let part = chunk.as_bytes().get(..left.min(chunk.len())).unwrap_or_default();
        write(&mut to, part);
        left = if left == usize::MAX { left } else { left - part.len() };
    }
}

fn count() {
    let mut all = Vec::new();
    input().read_to_end(&mut all).unwrap_or_else(|_| exit(95));
    let sum = all.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    write(&mut output(), format!("{} {sum}\n", all.len()).as_bytes());
}

/// The value of the member `name` in a frame as our client writes it, compact and in its order.
fn member<'a>(frame: &'a str, name: &str) -> Option<&'a str> {
    let rest = frame.split_once(&format!("\"{name}\":"))?.1;
    let end = if name == "params" { rest.rfind('}')? } else { rest.find([',', '}'])? };
    rest.get(..end)
}

fn serve(mut left: usize) {
    let (mut from, mut to) = (input(), output());
    while left > 0 {
        let mut frame = Vec::new();
        // Byte by byte: a buffer would swallow what a later step is to read.
        loop {
            let mut byte = [0];
            match from.read(&mut byte) {
                Ok(1) if byte == *b"\n" => break,
                Ok(1) => frame.push(byte[0]),
                _ => return,
            }
        }
        let frame = String::from_utf8_lossy(&frame);
        let (Some(id), Some(method)) = (member(&frame, "id"), member(&frame, "method")) else { continue };
        let result = if method == "\"server/discover\"" {
            r#""supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private""#.to_owned()
        } else {
            format!("\"echo\":{}", member(&frame, "params").unwrap_or("null"))
        };
        let answer =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",{result}}}}}\n");
        write(&mut to, answer.as_bytes());
        left -= 1;
    }
}

fn start_helper(what: &str) {
    // From the right: a path has a colon of its own.
    let (file, how) = what.rsplit_once(':').unwrap_or((what, ""));
    let keep = |stream| if how.contains(stream) { Stdio::inherit() } else { Stdio::null() };
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| exit(96)));
    command.args([FLAG, &format!("sleeping-helper:{file}")]).stdin(keep('i')).stdout(keep('o')).stderr(keep('e'));
    if command.spawn().is_err() {
        exit(97);
    }
    while !Path::new(file).exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn helper(file: &str) {
    // Nobody else can open it while this process lives.
    let _held = OpenOptions::new().write(true).create_new(true).share_mode(0).open(file).unwrap_or_else(|_| exit(98));
    let end = Path::new(file).with_file_name(END);
    while !end.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn surroundings() {
    use windows_sys::Win32::System::Console::GetConsoleWindow;
    use windows_sys::Win32::System::JobObjects::IsProcessInJob;
    use windows_sys::Win32::System::Threading::GetCurrentProcess;

    // SAFETY: it takes nothing.
    let window = unsafe { GetConsoleWindow() };
    let mut in_job = 0;
    // SAFETY: the handle of the own process is always open, no job is any job, and the result is written to a local.
    if unsafe { IsProcessInJob(GetCurrentProcess(), std::ptr::null_mut(), &raw mut in_job) } == 0 {
        exit(99);
    }
    let line = format!("window {}, job {}\n", !window.is_null(), in_job != 0);
    write(&mut output(), line.as_bytes());
}

fn sleep() {
    loop {
        std::thread::sleep(Duration::from_secs(1000));
    }
}

fn report() {
    let mut out = String::new();
    for arg in std::env::args_os().skip(2) {
        out += &format!("argument {}\n", arg.to_string_lossy());
    }
    for (name, value) in std::env::vars_os() {
        out += &format!("variable {}={}\n", name.to_string_lossy(), value.to_string_lossy());
    }
    out += &format!("directory {}\n", std::env::current_dir().unwrap_or_default().display());
    out += "end\n";
    write(&mut output(), out.as_bytes());
}
