//! Owns the target for tapes: whatever stands in one, its replay comes to an end, and to the same end each time.

use mcp_wire_examples::call::replay_tape;

/// A tape, or what somebody takes for one.
pub fn tape(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    assert_eq!(replay_tape(&text), replay_tape(&text), "TMO-05: the core has no clock and no chance of its own");
}
