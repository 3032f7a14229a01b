use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::plan::TrainPlan;
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Fewer samples per optimizer step.
///
/// **Saves** activations, which grow in proportion to the batch; parameters, gradients and optimizer state stay.
/// **Mechanism:** `TrainPlan::batch_size`, applied by the loader. **Acts** on every step. **Costs** more steps per
/// epoch, each with less parallel work, and noisier gradients: the run is a different one. **Unchanged:** the network
/// and the data.
///
/// # Errors
///
/// Planning fails if `divide_by` leaves less than one sample.
///
/// # Example
///
/// ```
/// use mem_policy::{Baseline, Environment, PolicySet, policies::BatchSize};
///
/// let plan = PolicySet::new().with(BatchSize { size: Some(16), ..BatchSize::default() })
///     .plan(&Baseline::new(64), &Environment::cpu());
/// assert_eq!(*plan.map_err(|errors| format!("{errors:?}"))?.batch_size.get(), 16);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatchSize {
    /// Samples per optimizer step. Absent: the baseline's divided by `divide_by`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    /// What to divide the baseline's batch size by, when `size` is absent.
    pub divide_by: usize,
}

impl Default for BatchSize {
    fn default() -> Self {
        Self { size: None, divide_by: 2 }
    }
}

impl ConfiguredPolicy for BatchSize {
    const SPEC: PolicySpec = PolicySpec::new(
        "batch-size",
        "Smaller batch",
        "keeps fewer activations alive by training on fewer samples at a time",
        Stage::Data,
        Fidelity::DifferentRun,
    )
    .with_params(&[
        ParamSpec::new("size", "integer (samples)", "[baseline / divide_by]", "1..", "samples per optimizer step"),
        ParamSpec::new("divide_by", "integer", "2", "1..", "divides the baseline's batch size when `size` is absent"),
    ]);

    fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        if self.size == Some(0) {
            wrong.push(("size", "0 is out of range: use at least 1".to_owned()));
        }
        if self.divide_by == 0 {
            wrong.push(("divide_by", "0 is out of range: use at least 1".to_owned()));
        }
        wrong
    }
}

impl MemoryPolicy for BatchSize {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        let baseline = *plan.batch_size.baseline();
        let size = self.size.unwrap_or(baseline / self.divide_by.max(1));
        if size == 0 {
            return Err(PolicyError::Unplannable {
                policy: Self::SPEC.id,
                why: format!("a batch of {baseline} divided by {} leaves no sample; lower `divide_by`", self.divide_by),
            });
        }
        plan.batch_size.set(Self::SPEC.id, size)
    }
}
