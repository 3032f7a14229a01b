//! What one run took.

use crate::run::spec::{RunResult, StepRole, StepSample};

use super::Spread;

/// What one run took, derived from its samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunStats {
    /// Milliseconds of a timed step, waiting not included.
    pub step_ms: Option<Spread>,
    /// Milliseconds for each image over all timed steps, waiting included.
    ///
    /// A quotient of sums, not a median of steps: what happens in some steps only (an optimizer step after several
    /// micro-batches, a clean-up in every fourth) counts with its share.
    pub image_ms: Option<f64>,
    /// Images in a second of timed steps.
    pub images_per_s: Option<f64>,
    /// The share of timed steps that was spent waiting for the batch, from 0 to 1.
    pub wait_share: Option<f64>,
    /// Seconds of the warm-up steps: compilation, caches.
    pub warmup_s: Option<f64>,
    /// Seconds before the first step.
    pub setup_s: f64,
    /// The last epoch's training loss.
    pub train_loss: Option<f64>,
    /// The last epoch's validation loss.
    pub valid_loss: Option<f64>,
    /// The last epoch's accuracy, from 0 to 1.
    pub accuracy: Option<f64>,
    /// The last epoch's macro-averaged F1, from 0 to 1.
    pub f1: Option<f64>,
}

impl RunStats {
    /// What `result` shows.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "numbers of images are far below 2^52")]
    pub fn of(result: &RunResult) -> Self {
        let with = |role| result.steps.iter().filter(move |step: &&StepSample| step.role == role);
        let timed = || with(StepRole::Timed);
        let wait: f64 = timed().map(|step| step.wait_ms).sum();
        let total = wait + timed().map(|step| step.step_ms).sum::<f64>();
        let images = timed().map(|step| step.images).sum::<usize>() as f64;
        let image_ms = (images > 0.0).then(|| total / images);
        let warmup: f64 = with(StepRole::Warmup).map(|step| step.wait_ms + step.step_ms).sum();
        let last = result.epochs.last();
        Self {
            step_ms: Spread::of(timed().map(|step| step.step_ms)),
            image_ms,
            images_per_s: image_ms.filter(|ms| *ms > 0.0).map(|ms| 1000.0 / ms),
            wait_share: (total > 0.0).then(|| wait / total),
            warmup_s: with(StepRole::Warmup).next().map(|_| warmup / 1000.0),
            setup_s: result.setup_s,
            train_loss: last.and_then(|epoch| epoch.train_loss),
            valid_loss: last.and_then(|epoch| epoch.valid_loss),
            accuracy: last.and_then(|epoch| epoch.accuracy),
            f1: last.and_then(|epoch| epoch.f1),
        }
    }
}
