//! Whoever reads standard output, on Windows, where a pipe's end that is written to does not tell whether it is read: nobody notices before the
//! next write. It must not know what is done once nobody reads.

use std::task::{Context, Poll};

/// Whoever reads standard output.
#[derive(Debug)]
pub(super) struct Reader;

impl Reader {
    pub(super) const fn watch() -> Self {
        Self
    }

    /// Ready once it is gone, if that can be seen.
    pub(super) const fn poll_gone(&self, _: &Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}
