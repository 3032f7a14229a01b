use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::plan::TrainPlan;
use crate::policy::{Fidelity, MemoryPolicy, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// The optimizer's update inside the backward pass.
///
/// **Saves** gradients: those of one group of segments exist at a time, instead of all. **Mechanism:** the `update`
/// callback of [`SegmentedBackward::run`](crate::segment::SegmentedBackward::run), which applies a group's gradients as
/// soon as they are there; the strategy owns the model, so the update is in place. **Acts** in every backward pass.
/// **Costs** nothing to speak of. **Unchanged:** the trained weights, for every optimizer of Burn, which all treat each
/// parameter by itself, and for its gradient clipping, by value or by norm, which does too (a shard of `shard-linear` is a
/// parameter, so its norm is taken by itself). Burn has no clipping by the norm over all parameters together, which needs all
/// gradients first; in a loop of your own,
/// [`SegmentedBackward::gradient_norm`](crate::segment::SegmentedBackward::gradient_norm) gives it before the first update,
/// for the time of another pass. Learning-rate schedules step before the backward
/// pass instead of after it, which is the same. Technique: Lv et al., *Full Parameter Fine-tuning for Large Language Models
/// with Limited Resources*, 2023.
///
/// Without `segment-checkpointing` every segment's graph is kept and nothing is run twice. Segments should be small
/// compared with the model: a layer that holds most of the parameters is one segment, unless `shard-linear` cuts it.
///
/// # Errors
///
/// Planning fails together with `gradient-accumulation`: the gradients of one micro-batch are gone when the next one's
/// come. `segment-slices` adds up gradients where they are.
///
/// # Example
///
/// ```
/// use mem_policy::policies::{FusedOptimizer, GradientAccumulation};
/// use mem_policy::{Baseline, Environment, PolicySet};
///
/// let both = PolicySet::new().with(FusedOptimizer::default()).with(GradientAccumulation { steps: 2 });
/// assert!(both.plan(&Baseline::new(8), &Environment::cpu()).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FusedOptimizer {}

impl ConfiguredPolicy for FusedOptimizer {
    const SPEC: PolicySpec = PolicySpec::new(
        "fused-optimizer",
        "Optimizer inside the backward pass",
        "applies and frees the gradients of one group of segments at a time",
        Stage::Step,
        Fidelity::Exact,
    );
}

impl MemoryPolicy for FusedOptimizer {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        plan.update_in_backward.set(Self::SPEC.id, true)?;
        plan.update_in_place.set(Self::SPEC.id, true)
    }
}
