use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::plan::TrainPlan;
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// One optimizer step out of several smaller batches.
///
/// **Saves** activations: a batch of `B` samples runs as `steps` micro-batches of `B / steps`. **Mechanism:**
/// [`accumulate::MeanGradients`](crate::accumulate::MeanGradients), which weights every micro-batch by its samples, so
/// that the sum is the gradient of the whole batch's mean loss (Burn's `GradientsAccumulator` sums, which multiplies the
/// learning rate). The last, partial window of an epoch is applied with its own weights, not dropped. **Acts** on every
/// step. **Costs** a second set of gradients while accumulating, and less parallel work per launch. **Unchanged:** the
/// objective and the number of optimizer steps; batch norm sees the micro-batches, so its statistics differ.
///
/// # Errors
///
/// Planning fails if `steps` does not divide the batch size.
///
/// # Example
///
/// ```
/// use mem_policy::{Baseline, Environment, PolicySet, policies::GradientAccumulation};
///
/// let policies = PolicySet::new().with(GradientAccumulation { steps: 3 });
/// assert!(policies.plan(&Baseline::new(32), &Environment::cpu()).is_err());
/// let plan = policies.plan(&Baseline::new(33), &Environment::cpu());
/// assert_eq!(plan.map_err(|errors| format!("{errors:?}"))?.micro_batch(), 11);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GradientAccumulation {
    /// Micro-batches per optimizer step.
    pub steps: usize,
}

impl Default for GradientAccumulation {
    fn default() -> Self {
        Self { steps: 4 }
    }
}

impl ConfiguredPolicy for GradientAccumulation {
    const SPEC: PolicySpec = PolicySpec::new(
        "gradient-accumulation",
        "Gradient accumulation",
        "keeps the activations of one micro-batch alive instead of the whole batch's",
        Stage::Step,
        Fidelity::SameObjective,
    )
    .with_params(&[ParamSpec::new(
        "steps",
        "integer (micro-batches)",
        "4",
        "1..",
        "micro-batches per optimizer step; must divide the batch size",
    )]);

    fn check(&self) -> Vec<(&'static str, String)> {
        if self.steps == 0 { vec![("steps", "0 is out of range: use at least 1".to_owned())] } else { Vec::new() }
    }
}

impl MemoryPolicy for GradientAccumulation {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        plan.accumulation.set(Self::SPEC.id, self.steps)
    }
}
