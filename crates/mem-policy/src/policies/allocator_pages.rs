use serde::{Deserialize, Serialize};

use crate::environment::{Environment, Support};
use crate::error::PolicyError;
use crate::plan::{PoolLayout, TrainPlan};
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Another page layout for Burn's memory pools.
///
/// **Saves** reserved memory that the default layout wastes: with `exclusive` pages an allocation never shares a page,
/// so nothing keeps a half-empty large page alive; with `adaptive` ones (the default where the device can slice
/// buffers) small allocations share pages. **Mechanism:** `Device::wgpu_options().memory_config`, once per process.
/// **Acts** before the device opens. **Costs** more, smaller driver allocations (`exclusive`) or more slack
/// (`adaptive`). **Unchanged:** the gradients.
///
/// # Example
///
/// ```
/// use mem_policy::{Environment, MemoryPolicy, Support, policies::AllocatorPages};
///
/// // The CPU backend has no pools.
/// assert!(matches!(AllocatorPages::default().support(&Environment::cpu()), Support::No(_)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AllocatorPages {
    /// The layout.
    pub layout: PoolLayout,
}

impl Default for AllocatorPages {
    fn default() -> Self {
        Self { layout: PoolLayout::Exclusive }
    }
}

impl ConfiguredPolicy for AllocatorPages {
    const SPEC: PolicySpec = PolicySpec::new(
        "allocator-pages",
        "Allocator page layout",
        "chooses how Burn's pools cut device memory into pages, which decides how much of it lies idle",
        Stage::Process,
        Fidelity::Exact,
    )
    .with_params(&[ParamSpec::new(
        "layout",
        "string",
        "\"exclusive\"",
        "\"exclusive\", \"adaptive\"",
        "one page per allocation, or allocations carved out of large pages",
    )]);
}

impl MemoryPolicy for AllocatorPages {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn support(&self, env: &Environment) -> Support {
        if env.pool_layouts {
            Support::Yes
        } else {
            Support::No(format!("the {} backend has no memory pools to lay out", env.backend))
        }
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        plan.pool_layout.set(Self::SPEC.id, Some(self.layout))
    }
}
