//! What the fuzz targets check, apart from the engine that feeds them, so that `cargo test` can replay a corpus.

#[path = "../../core/tests/support/chunks.rs"]
mod chunks;
#[path = "../../core/tests/support/envelope_model.rs"]
mod envelope_model;
#[path = "../../core/tests/support/json.rs"]
mod json;

mod choices;
mod client;
mod lifecycle;
mod lines;
mod round_trip;
mod salvage;
mod server;
mod tape;
mod world;

pub use client::client;
pub use lifecycle::lifecycle;
pub use lines::{envelope, frames};
pub use round_trip::round_trip;
pub use salvage::salvage;
pub use server::server;
pub use tape::tape;
pub use world::world;

/// A target: its name and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 9] = [
    ("frames", frames),
    ("envelope", envelope),
    ("salvage", salvage),
    ("round_trip", round_trip),
    ("client", client),
    ("server", server),
    ("lifecycle", lifecycle),
    ("world", world),
    ("tape", tape),
];
