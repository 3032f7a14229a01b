//! What the numbers say of a policy, in a word.

use serde::{Deserialize, Serialize};

use super::Change;

/// The least that counts, as shares of the baseline.
pub mod rules {
    /// Memory is saved if it goes down by at least this much.
    pub const SAVES_MEMORY: f64 = 0.02;
    /// A policy costs if memory goes up by at least this much.
    pub const COSTS_MEMORY: f64 = 0.05;
    /// A policy costs if the time for an image goes up by at least this much.
    pub const COSTS_TIME: f64 = 0.05;
}

/// What the numbers say of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// Less memory, beyond noise.
    Saves,
    /// Not less memory, and more memory or more time, beyond noise.
    Costs,
    /// Neither.
    NoEffect,
    /// It was not run.
    Unsupported {
        /// Why.
        why: String,
    },
    /// No run completed.
    Failed {
        /// How the runs ended.
        how: String,
    },
    /// It ran, but there is nothing to compare it with.
    NotCompared {
        /// Why.
        why: String,
    },
}

impl Verdict {
    /// The word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Saves => "saves",
            Self::Costs => "costs",
            Self::NoEffect => "no effect",
            Self::Unsupported { .. } => "unsupported",
            Self::Failed { .. } => "failed",
            Self::NotCompared { .. } => "not compared",
        }
    }

    /// What the word leaves out.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::Saves | Self::Costs | Self::NoEffect => None,
            Self::Unsupported { why } | Self::NotCompared { why } => Some(why),
            Self::Failed { how } => Some(how),
        }
    }
}

/// A verdict and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What a reader should know beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Verdict {
    /// Judges by the primary memory counter and the time for an image; `docs/measuring.md` has the rules.
    ///
    /// A change counts if it is large enough and its interval excludes 0. Without an interval (one repeat) its size
    /// alone decides.
    #[must_use]
    pub fn by(memory: &Change, time: Option<&Change>) -> Self {
        let over = |change: &Change, least: f64| change.relative.is_some_and(|by| by >= least) && beyond_noise(change);
        let down = |change: &Change, least: f64| change.relative.is_some_and(|by| by <= -least) && beyond_noise(change);
        if down(memory, rules::SAVES_MEMORY) {
            Self::Saves
        } else if over(memory, rules::COSTS_MEMORY) || time.is_some_and(|time| over(time, rules::COSTS_TIME)) {
            Self::Costs
        } else {
            Self::NoEffect
        }
    }
}

fn beyond_noise(change: &Change) -> bool {
    change.relative_interval.is_none_or(|interval| !interval.contains_zero())
}
