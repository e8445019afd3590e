//! Owns the word after `--runtime`, which both programs have. It must not know how any of them is driven.

/// What drives the core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Runtime {
    #[default]
    Tokio,
    Smol,
    /// A loop around poll(2), with no runtime.
    #[cfg(unix)]
    Poll,
}

impl Runtime {
    /// Reads the word. A mistake is one sentence.
    pub(crate) fn parse(word: &str) -> Result<Self, String> {
        match word {
            "tokio" => Ok(Self::Tokio),
            "smol" => Ok(Self::Smol),
            #[cfg(unix)]
            "poll" => Ok(Self::Poll),
            #[cfg(not(unix))]
            "poll" => {
                Err("--runtime poll needs poll(2), which this system does not have; use tokio or smol".to_owned())
            }
            other => Err(format!("--runtime is tokio, smol or poll, not {other:?}")),
        }
    }
}
