use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::plan::TrainPlan;
use crate::policy::{Fidelity, MemoryPolicy, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Parameters that are never held twice.
///
/// **Saves** the second copy of the parameters that exists while Burn's `Learner` updates a clone of the model. The *peak*
/// it lowers only where that copy is part of it: a plain step frees each gradient while the parameter's copy is made, so
/// parameters and gradients together remain the peak; with `fused-optimizer`, which turns this on by itself, the gradients
/// are gone and the copy would be what is left.
/// **Mechanism:** the strategy takes the model out of the learner and owns it alone, with the optimizer and the schedule
/// that [`PolicyStrategy::learner`](crate::PolicyStrategy::learner) keeps for it; an operation on a tensor that nobody
/// else holds writes into its memory. **Acts** in every optimizer step. **Costs** nothing. **Unchanged:** the trained
/// weights, checkpoints and resuming from them.
///
/// # Example
///
/// ```
/// use mem_policy::{Baseline, Environment, PolicySet, policies::UpdateInPlace};
///
/// let plan = PolicySet::new().with(UpdateInPlace::default()).plan(&Baseline::new(8), &Environment::cpu());
/// assert!(*plan.map_err(|errors| format!("{errors:?}"))?.update_in_place.get());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpdateInPlace {}

impl ConfiguredPolicy for UpdateInPlace {
    const SPEC: PolicySpec = PolicySpec::new(
        "update-in-place",
        "Updates in place",
        "lets the trainer own the model alone, so that no parameter exists twice during an update",
        Stage::Step,
        Fidelity::Exact,
    );
}

impl MemoryPolicy for UpdateInPlace {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        plan.update_in_place.set(Self::SPEC.id, true)
    }
}
