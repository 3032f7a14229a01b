//! One quantity of an arm against the baseline's.

use serde::{Deserialize, Serialize};

use super::{Interval, mean_interval, median};

/// The unit of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Milliseconds for each image.
    MillisecondsPerImage,
    /// A share from 0 to 1.
    Share,
    /// A loss.
    Loss,
}

/// What an arm and the baseline measured in the same repeat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// The arm's value.
    pub arm: f64,
    /// The baseline's value.
    pub baseline: f64,
}

/// One quantity of an arm against the baseline's, over the repeats that both completed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The unit of `arm`, `baseline` and `difference`.
    pub unit: Unit,
    /// The arm's median over the pairs.
    pub arm: f64,
    /// The baseline's median over the pairs.
    pub baseline: f64,
    /// The mean difference, arm minus baseline.
    pub difference: f64,
    /// The interval of `difference`. `None` with one pair.
    pub difference_interval: Option<Interval>,
    /// The mean of `(arm - baseline) / baseline`. `None` if a baseline is 0.
    pub relative: Option<f64>,
    /// The interval of `relative`. `None` with one pair.
    pub relative_interval: Option<Interval>,
    /// How many pairs.
    pub pairs: usize,
}

impl Change {
    /// The change over `pairs`. `None` if there are none.
    #[must_use]
    pub fn of(unit: Unit, pairs: &[Side]) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|pair| pair.arm - pair.baseline).collect();
        let ratios: Option<Vec<f64>> = pairs
            .iter()
            .map(|pair| (pair.baseline != 0.0).then(|| (pair.arm - pair.baseline) / pair.baseline))
            .collect();
        Some(Self {
            unit,
            arm: median(pairs.iter().map(|pair| pair.arm))?,
            baseline: median(pairs.iter().map(|pair| pair.baseline))?,
            difference: mean(&differences)?,
            difference_interval: mean_interval(&differences),
            relative: ratios.as_deref().and_then(mean),
            relative_interval: ratios.as_deref().and_then(mean_interval),
            pairs: pairs.len(),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "repeats are few")]
fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}
