//! How a run ended.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a run ended. Whatever it is, it is a line in the records and a row in the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Outcome {
    /// It went through all its epochs.
    Completed,
    /// It ran out of memory.
    OutOfMemory {
        /// How one knows.
        why: String,
    },
    /// It panicked.
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// It took longer than allowed and was ended.
    TimedOut {
        /// The limit in seconds.
        after_s: u64,
    },
    /// A signal ended it, and not for memory as far as one can see.
    Killed {
        /// The signal's number.
        signal: i32,
    },
    /// A policy ended it.
    Stopped {
        /// What the policy said.
        message: String,
    },
    /// It was not run: a policy cannot do anything on this device, or is known to fail there.
    Unsupported {
        /// Why.
        why: String,
    },
    /// It ended with an error.
    Failed {
        /// The error.
        message: String,
    },
    /// The user ended the experiment while it ran. It runs again when the experiment is resumed.
    Interrupted,
}

impl Outcome {
    /// Whether the run is over for good; an interrupted one is not.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Interrupted)
    }

    /// Two or three words, without the reason.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::OutOfMemory { .. } => "out of memory",
            Self::Panicked { .. } => "panicked",
            Self::TimedOut { .. } => "timed out",
            Self::Killed { .. } => "killed",
            Self::Stopped { .. } => "stopped by a policy",
            Self::Unsupported { .. } => "unsupported",
            Self::Failed { .. } => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.label();
        match self {
            Self::Completed | Self::Interrupted => f.write_str(label),
            Self::OutOfMemory { why } | Self::Unsupported { why } => write!(f, "{label}: {why}"),
            Self::Panicked { message } | Self::Stopped { message } | Self::Failed { message } => {
                write!(f, "{label}: {message}")
            }
            Self::TimedOut { after_s } => write!(f, "{label} after {after_s} s"),
            Self::Killed { signal } => write!(f, "{label} (signal {signal})"),
        }
    }
}
