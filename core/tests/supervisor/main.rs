//! The supervisor from outside: one connection over many lives of a process, the order of its signals, what waits and what ends.

mod closing;
mod idle;
mod lives;
mod second_start;
mod starts;
mod streams;
mod support;
