use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::plan::TrainPlan;
use crate::policy::{Fidelity, MemoryPolicy, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Burn's own gradient checkpointing.
///
/// **Saves** the stored outputs of element-wise operations, which Burn marks as memory-bound. **Mechanism:**
/// `Device::gradient_checkpointing`, a property of the autodiff device. **Acts** in every forward and backward pass.
/// **Costs** recomputing those operations in the backward pass. Convolution, pooling, batch norm and matrix products
/// stay stored, so a convolutional network saves little. **Unchanged:** the gradients, since the same operations run on
/// the same inputs. Technique: Chen et al., *Training Deep Nets with Sublinear Memory Cost*, 2016.
///
/// # Example
///
/// ```
/// use mem_policy::{Baseline, Environment, PolicySet, policies::GradientCheckpointing};
///
/// let plan = PolicySet::new().with(GradientCheckpointing::default())
///     .plan(&Baseline::new(8), &Environment::cpu());
/// assert!(*plan.map_err(|errors| format!("{errors:?}"))?.gradient_checkpointing.get());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GradientCheckpointing {}

impl ConfiguredPolicy for GradientCheckpointing {
    const SPEC: PolicySpec = PolicySpec::new(
        "gradient-checkpointing",
        "Gradient checkpointing (Burn's)",
        "recomputes element-wise operations in the backward pass instead of storing their outputs",
        Stage::Step,
        Fidelity::Exact,
    );
}

impl MemoryPolicy for GradientCheckpointing {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        plan.gradient_checkpointing.set(Self::SPEC.id, true)
    }
}
