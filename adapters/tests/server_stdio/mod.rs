//! A server on real standard streams of every kind: pipes, sockets, files, terminals, the null device. The test binary starts itself as the
//! server, so it has a `main` of its own: nothing but the server may write to the server's standard output.

#![cfg(target_os = "linux")]

mod child;
mod host;
mod streams;
mod tests;

pub(crate) fn main() -> std::process::ExitCode {
    if let Ok(role) = std::env::var(child::ROLE) {
        return child::run(&role);
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let exact = args.iter().any(|arg| arg == "--exact");
    let selected = tests::ALL.iter().filter(|(name, _)| {
        wanted.is_empty() || wanted.iter().any(|word| if exact { *word == name } else { name.contains(word.as_str()) })
    });
    if args.iter().any(|arg| arg == "--list") {
        selected.for_each(|(name, _)| println!("{name}: test"));
        return std::process::ExitCode::SUCCESS;
    }
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, test) in selected {
        match std::panic::catch_unwind(test) {
            Ok(()) => passed += 1,
            Err(_) => failed.push(*name),
        }
        println!("test {name} ... {}", if failed.last() == Some(name) { "FAILED" } else { "ok" });
    }
    println!("\ntest result: {passed} passed; {} failed {failed:?}", failed.len());
    if failed.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
