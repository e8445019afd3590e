//! `adapters/tests/server_stdio`, on smol. Its `main` is its own, as nothing else may write to the standard output that it checks.

#[cfg(target_os = "linux")]
#[path = "../../tests/server_stdio/mod.rs"]
mod on_smol;
#[cfg(target_os = "linux")]
#[path = "../../tests/rt_smol.rs"]
mod rt;
#[cfg(target_os = "linux")]
#[path = "../../tests/support/mod.rs"]
mod support;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    on_smol::main()
}
