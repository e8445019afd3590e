//! Owns descriptors 0 to 2 of a host that has closed them, for the time of a spawn (case 125). It must not know what is spawned.
//!
//! A new pipe takes the lowest free number. One that landed on 0 to 2 would be overwritten while the child's own standard streams are put in place,
//! and a stray print of the host would be written into it.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;

/// Keeps 0 to 2 taken while it lives. Costs one open and close where they are open, as nearly everywhere.
#[derive(Debug)]
pub(super) struct Held(Vec<File>);

impl Held {
    pub(super) fn new() -> Self {
        let mut held = Vec::new();
        // Without a null device there is nothing to hold them with, and the spawn goes on as it would have.
        while let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
            if null.as_raw_fd() > 2 {
                break;
            }
            held.push(null);
        }
        Self(held)
    }

    /// The host has no standard error that could be inherited.
    pub(super) fn stderr_is_closed(&self) -> bool {
        self.0.iter().any(|file| file.as_raw_fd() == 2)
    }
}
