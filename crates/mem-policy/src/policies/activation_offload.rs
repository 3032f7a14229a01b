use serde::{Deserialize, Serialize};

use crate::environment::{Environment, Support};
use crate::error::PolicyError;
use crate::plan::TrainPlan;
use crate::policy::{Fidelity, MemoryPolicy, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Activations that wait in host memory.
///
/// **Saves** device memory: what flows between groups of segments waits for the backward pass in the host's memory.
/// **Mechanism:** [`Offload`](crate::offload::Offload), double-buffered. **Acts** in every forward and backward pass.
/// **Costs** a copy to the host and one back for each group. **Unchanged:** the gradients, bit for bit on a deterministic
/// backend. On unified memory, and on the CPU, device and host memory are the same and nothing is gained. Technique: Rhu et
/// al., *vDNN*, 2016.
///
/// Without `segment-checkpointing` every segment is a group of its own and is run again.
///
/// # Example
///
/// ```
/// use mem_policy::{Environment, MemoryPolicy, Support, policies::ActivationOffload};
///
/// let support = ActivationOffload::default().support(&Environment::cpu());
/// assert!(matches!(support, Support::No(why) if why.contains("same memory")));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActivationOffload {}

impl ConfiguredPolicy for ActivationOffload {
    const SPEC: PolicySpec = PolicySpec::new(
        "activation-offload",
        "Activations in host memory",
        "keeps what flows between segments in the host's memory until the backward pass needs it",
        Stage::Step,
        Fidelity::Exact,
    );
}

impl MemoryPolicy for ActivationOffload {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn support(&self, env: &Environment) -> Support {
        if env.unified_memory == Some(true) {
            Support::No(format!("no effect: {} and the host share the same memory", env.device))
        } else {
            Support::Yes
        }
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        plan.offload.set(Self::SPEC.id, true)
    }
}
