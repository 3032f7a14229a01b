//! Order statistics.

use serde::{Deserialize, Serialize};

/// The middle of some samples and how far they spread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many samples.
    pub n: usize,
    /// The median.
    pub median: f64,
    /// The first quartile.
    pub q1: f64,
    /// The third quartile.
    pub q3: f64,
}

impl Spread {
    /// The spread of `samples`, `None` if there are none. Quantiles are interpolated linearly.
    #[must_use]
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            n: sorted.len(),
            median: quantile(&sorted, 0.5)?,
            q1: quantile(&sorted, 0.25)?,
            q3: quantile(&sorted, 0.75)?,
        })
    }
}

/// The median of `samples`, `None` if there are none.
#[must_use]
pub fn median(samples: impl IntoIterator<Item = f64>) -> Option<f64> {
    Spread::of(samples).map(|spread| spread.median)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an index into samples is small and not negative"
)]
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share * last as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let (low, high) = (sorted.get(below)?, sorted.get(above)?);
    Some(low + (high - low) * (place - place.floor()))
}
