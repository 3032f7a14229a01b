//! Errors of planning and of running policies.

use bytesize::ByteSize;

/// A share as a percentage with three significant digits at least, so that a small one is not shown as 0.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = (0..12).find(|digits| percent.abs() >= 10f64.powi(2 - digits)).unwrap_or(12);
    let text = format!("{percent:.*}", usize::try_from(digits).unwrap_or_default());
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Why a policy cannot be planned or had to end a run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// Two policies set one field of the plan to different values.
    #[error(
        "`{second}` wants {field} = {second_value}, but `{first}` already set it to {first_value}; turn one of them off"
    )]
    Conflict {
        /// The field of the plan.
        field: &'static str,
        /// The policy that came first.
        first: &'static str,
        /// What it set.
        first_value: String,
        /// The policy that came second.
        second: &'static str,
        /// What it wanted.
        second_value: String,
    },
    /// A policy has no meaning for this plan.
    #[error("`{policy}` cannot be planned: {why}")]
    Unplannable {
        /// The policy.
        policy: &'static str,
        /// What is in the way, and what to do.
        why: String,
    },
    /// A plan field was set, and no mechanism applied it.
    #[error("`{policy}` set {field}, but nothing applied it: this program does not implement that mechanism")]
    Unapplied {
        /// The field of the plan.
        field: &'static str,
        /// The policy that set it.
        policy: &'static str,
    },
    /// More memory is in use than the hard limit allows.
    #[error(
        "`memory-limit` stopped the run at step {step}: {used} in use ({counter}) is over the hard limit of {limit} \
         ({share} % of {total}); use a smaller batch or model, or raise `hard`",
        used = ByteSize(*used), limit = ByteSize(*limit), total = ByteSize(*total), share = percent(*share)
    )]
    MemoryLimit {
        /// The micro-batch, counted from 1 over the whole run.
        step: usize,
        /// Bytes in use.
        used: u64,
        /// The limit in bytes.
        limit: u64,
        /// What the share is of, in bytes.
        total: u64,
        /// The configured share, from 0 to 1.
        share: f64,
        /// The counter that was read.
        counter: String,
    },
    /// A policy from another crate failed in its own way.
    #[error("`{policy}` failed: {message}")]
    Other {
        /// The policy.
        policy: &'static str,
        /// What happened, and what to do.
        message: String,
    },
}

/// One thing wrong with a configuration. All problems are reported together, before anything runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Problem {
    /// Where: `policies.batch-size.size`.
    pub place: String,
    /// What is wrong with which value, and what is accepted.
    pub message: String,
}

impl Problem {
    /// A problem at `place`.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}
