use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::plan::TrainPlan;
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Convolutions by matrix multiplication, with a bounded workspace.
///
/// **Saves** time where Burn has no fast kernel for a convolution's forward pass (32-bit floats without matrix units: Vulkan,
/// Metal), and bounds the memory that convolutions work in, forward and backward, which otherwise grows with the batch.
/// **Mechanism:** `mem_policy::ops::conv2d_by_matmul` (feature `ops`): the input's patches ("im2col", Chellapilla et al.
/// 2006) times the weight, for as many samples at a time as fit. **Acts** in every convolution with enough input channels.
/// **Costs** the workspace, and time where Burn's own kernel is faster. **Unchanged:** the objective; sums are taken in
/// another order.
///
/// # Example
///
/// ```
/// use mem_policy::{Baseline, Environment, PolicySet, policies::MatmulConv};
///
/// let plan = PolicySet::new().with(MatmulConv::default()).plan(&Baseline::new(8), &Environment::cpu());
/// let plan = plan.map_err(|errors| format!("{errors:?}"))?;
/// assert_eq!(*plan.conv_workspace.get(), Some(256 << 20));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MatmulConv {
    /// Bytes of the patches that exist at a time. A single sample's may be more.
    pub workspace: ByteSize,
}

impl Default for MatmulConv {
    fn default() -> Self {
        Self { workspace: ByteSize::mib(256) }
    }
}

impl ConfiguredPolicy for MatmulConv {
    const SPEC: PolicySpec = PolicySpec::new(
        "matmul-conv",
        "Convolutions by matrix multiplication",
        "computes convolutions as matrix multiplications, in a bounded workspace",
        Stage::Model,
        Fidelity::SameObjective,
    )
    .with_params(&[ParamSpec::new(
        "workspace",
        "bytes",
        "\"256.0 MiB\"",
        "1 B..",
        "the patches that exist at a time; a single sample's may be more",
    )]);

    fn check(&self) -> Vec<(&'static str, String)> {
        if self.workspace.as_u64() == 0 {
            return vec![("workspace", "0 B is out of range: use at least 1 B".to_owned())];
        }
        Vec::new()
    }
}

impl MemoryPolicy for MatmulConv {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        plan.conv_workspace.set(Self::SPEC.id, Some(self.workspace.as_u64()))
    }
}
