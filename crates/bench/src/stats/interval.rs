//! How sure a mean is.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The confidence level of every interval.
pub const LEVEL: f64 = 0.95;

/// How intervals are made, for reports.
pub const METHOD: &str = "Student's t on the differences paired by repeat, 95 %";

/// Where a mean lies with confidence [`LEVEL`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether 0 is inside, ends included.
    #[must_use]
    pub fn contains_zero(&self) -> bool {
        self.low <= 0.0 && 0.0 <= self.high
    }
}

/// The interval of the mean of `samples`, by Student's t distribution. One sample has none, and neither has anything
/// that is not a finite number.
///
/// Repeats are few, so a bootstrap would resample two or three values and be far too narrow; t is exact for normal
/// differences and wide when there is little to go by. Samples that are all equal have an interval of no width.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "repeats are few")]
pub fn mean_interval(samples: &[f64]) -> Option<Interval> {
    if samples.len() < 2 || samples.iter().any(|sample| !sample.is_finite()) {
        return None;
    }
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(f64::midpoint(LEVEL, 1.0));
    let half = t * (variance / n).sqrt();
    Some(Interval { low: mean - half, high: mean + half })
}
