use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::plan::{Sampling, SubsetPlan, SubsetSize, TrainPlan};
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Training on a part of the data.
///
/// **Saves** time, and the host memory of whatever the loader keeps; the device's peak does not depend on it.
/// **Mechanism:** `TrainPlan::subset`, applied when the data are opened, after every limit on their number.
///
/// - `fraction`: `train_n = round(fraction * |train|)` samples are for training and `test_n = floor(train_n * |test| /
///   |train|)` for testing, at least one of each.
/// - `n` counts both: `test_n = floor(n * |test| / |train|)` samples are for testing and `train_n = n - test_n` for
///   training. It needs more training than test samples.
///
/// **Acts** once. **Costs** accuracy, which is measured on fewer test samples too. **Unchanged:** the network and the step,
/// as long as the samples that are left fill a batch.
///
/// # Errors
///
/// `n` and `fraction` together are refused, and so are an `n` below 2 and a fraction outside 0 to 1. That `n` is larger than
/// the data, or too small to test with, shows when they are opened.
///
/// # Example
///
/// ```
/// use mem_policy::{Baseline, Environment, PolicySet, policies::Subset};
///
/// let plan = PolicySet::new().with(Subset { fraction: Some(0.2), ..Subset::default() })
///     .plan(&Baseline::new(8), &Environment::cpu());
/// assert!(plan.map_err(|errors| format!("{errors:?}"))?.subset.get().is_some());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Subset {
    /// Samples to use, training and test together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<usize>,
    /// The share of the training samples to use. Absent, with `n` absent too: 0.2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// Which samples.
    pub sampling: SubsetSampling,
    /// Seeds `random` and `stratified`.
    pub seed: u64,
}

/// How samples are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubsetSampling {
    /// The first ones.
    #[default]
    FirstN,
    /// A seeded random choice.
    Random,
    /// A seeded random choice that keeps the classes' proportions.
    Stratified,
}

impl ConfiguredPolicy for Subset {
    const SPEC: PolicySpec = PolicySpec::new(
        "subset",
        "Subset of the data",
        "takes less time, and less host memory for data, by training on a part of them",
        Stage::Data,
        Fidelity::DifferentRun,
    )
    .with_params(&[
        ParamSpec::new(
            "n",
            "integer (samples)",
            "[as `fraction` says]",
            "2..",
            "training and test samples together: floor(n * test / train) to test on, the rest to train on",
        ),
        ParamSpec::new(
            "fraction",
            "number",
            "[0.2 without `n`]",
            "0 < x <= 1",
            "the share of the training samples to use; the test samples keep their proportion to them",
        ),
        ParamSpec::new(
            "sampling",
            "string",
            "\"first-n\"",
            "\"first-n\", \"random\", \"stratified\"",
            "which samples are used",
        ),
        ParamSpec::new("seed", "integer", "0", "0..", "seeds `random` and `stratified`"),
    ]);

    fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        if let Some(n @ 0..2) = self.n {
            wrong.push(("n", format!("{n} is out of range: use at least 2, one to train on and one to test on")));
        }
        if let Some(fraction) = self.fraction {
            if self.n.is_some() {
                wrong.push(("fraction", format!("{fraction} together with `n`: give one of the two")));
            }
            if !(fraction > 0.0 && fraction <= 1.0) {
                wrong.push(("fraction", format!("{fraction} is out of range: use a share above 0 and at most 1")));
            }
        }
        wrong
    }
}

impl MemoryPolicy for Subset {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        if let Some((name, why)) = self.check().into_iter().next() {
            return Err(PolicyError::Unplannable { policy: Self::SPEC.id, why: format!("{name}: {why}") });
        }
        let size = match (self.n, self.fraction) {
            (Some(n), _) => SubsetSize::Samples(n),
            (None, fraction) => SubsetSize::Fraction(fraction.unwrap_or(0.2)),
        };
        let sampling = match self.sampling {
            SubsetSampling::FirstN => Sampling::FirstN,
            SubsetSampling::Random => Sampling::Random { seed: self.seed },
            SubsetSampling::Stratified => Sampling::Stratified { seed: self.seed },
        };
        plan.subset.set(Self::SPEC.id, Some(SubsetPlan { size, sampling }))
    }
}
