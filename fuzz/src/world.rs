//! Owns the target for everything together: the simulated world, its decisions taken from the input as long as there is one.

// A fuzzer runs more than one history, and asks for less than the tests of the world do.
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../core/tests/support/world/mod.rs"]
mod simulated;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use simulated::{Record, Trace, World};

/// A client, a supervisor and a server joined by faulty pipes.
pub fn world(data: &[u8]) {
    let history = |record| {
        let trace = Trace::new(record);
        let end = catch_unwind(AssertUnwindSafe(|| World::given(data, &trace).run()));
        (trace, end)
    };
    if history(Record::Nothing).1.is_err() {
        // The same bytes are the same history: the second time it is written down.
        let (trace, end) = history(Record::End);
        let panic = end.expect_err("the same bytes, the same history");
        trace.print();
        resume_unwind(panic);
    }
}
