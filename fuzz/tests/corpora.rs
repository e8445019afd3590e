//! Replays the committed corpora, and a few thousand inputs grown from them with a seed: the targets as tests on any compiler.

use std::fs;
use std::path::Path;

/// Each input and so many that are grown from it.
const GROWN: usize = 200;

fn replay(target: &str, check: fn(&[u8])) {
    replay_grown(target, GROWN, check);
}

fn replay_grown(target: &str, grown: usize, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 33) as usize % below.max(1)
    };
    let mut inputs = 0;
    for entry in fs::read_dir(&folder).expect("the corpus is committed") {
        let input = fs::read(entry.expect("an entry").path()).expect("a file");
        check(&input);
        inputs += 1;
        for _ in 0..grown {
            let mut input = input.clone();
            for _ in 0..=random(3) {
                let at = random(input.len());
                match random(3) {
                    0 if !input.is_empty() => input[at] = random(256) as u8,
                    1 if !input.is_empty() => drop(input.remove(at)),
                    _ => input.insert(at, b"\n\"{}[],:\\\xff\xc3 "[random(12)]),
                }
            }
            check(&input);
        }
    }
    assert!(inputs > 0, "no inputs in {}", folder.display());
}

#[test]
fn frames() {
    // FRM-04 to FRM-06, FRM-08, FRM-09, LIM-01
    replay("frames", mcp_wire_fuzz::frames);
}

#[test]
fn envelope() {
    // MSG-01 to MSG-03, MSG-09, UNR-08
    replay("envelope", mcp_wire_fuzz::envelope);
}

#[test]
fn salvage() {
    // UNR-02, LIM-01
    replay("salvage", mcp_wire_fuzz::salvage);
}

#[test]
fn round_trip() {
    // FRM-01, MSG-04, META-06
    replay("round_trip", mcp_wire_fuzz::round_trip);
}

#[test]
fn client() {
    // MSG-06, CAN-02, SHD-03, LIM-04
    replay("client", mcp_wire_fuzz::client);
}

#[test]
fn server() {
    // MSG-07, CAN-06, LIM-04, RTE-09
    replay("server", mcp_wire_fuzz::server);
}

#[test]
fn lifecycle() {
    // PRC-04, SHD-01
    replay("lifecycle", mcp_wire_fuzz::lifecycle);
}

#[test]
fn world() {
    // LIM-06, RST-02
    // A history is long, and the tests of the core run hundreds of others.
    replay_grown("world", 10, mcp_wire_fuzz::world);
}

#[test]
fn tape() {
    // TMO-05
    replay("tape", mcp_wire_fuzz::tape);
}
