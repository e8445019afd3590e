//! The lifecycle machine from outside: start, ladder, group, restarts, idle stop. It knows no connection.

mod any_order;
mod group;
mod idle;
mod ladder;
mod restarts;
mod starts;
mod support;
