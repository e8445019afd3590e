//! `adapters/tests/server_stdio`, on tokio. Its `main` is its own, as nothing else may write to the standard output that it checks.

#[cfg(target_os = "linux")]
#[path = "../../tests/server_stdio/mod.rs"]
mod on_tokio;
#[cfg(target_os = "linux")]
#[path = "../../tests/rt_tokio.rs"]
mod rt;
#[cfg(target_os = "linux")]
#[path = "../../tests/support/mod.rs"]
mod support;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    on_tokio::main()
}
