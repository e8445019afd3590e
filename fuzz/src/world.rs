//! Owns the target for everything together: the simulated world, its decisions taken from the input as long as there is one.

// A fuzzer runs more than one history, and asks for less than the tests of the world do.
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../core/tests/support/world/mod.rs"]
mod simulated;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use simulated::{Trace, World};

/// A client, a supervisor and a server joined by faulty pipes.
pub fn world(data: &[u8]) {
    let trace = Trace::new(false);
    let history = catch_unwind(AssertUnwindSafe(|| World::given(data, &trace).run()));
    if let Err(panic) = history {
        trace.print();
        resume_unwind(panic);
    }
}
