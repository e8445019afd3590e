//! The tests that both adapters share: one file an edge, compiled once for each runtime. They take what depends on it from `crate::rt`.
//! (What needs a process of its own, because it looks at all of it, is a test program of its own beside this one.)

mod client_calls;
mod client_delivery;
mod client_endings;
mod client_faults;
mod client_listen;
mod client_many;
mod client_process;
mod client_stderr;
mod client_streams;
mod client_tape;
mod server_calls;
mod server_ends;
mod server_faults;
mod server_slow_clients;
mod server_streams;
