use serde::{Deserialize, Serialize};

use crate::context::{EventKind, StepCx};
use crate::environment::{Environment, Support};
use crate::error::PolicyError;
use crate::plan::TrainPlan;
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Gives the allocator's unused pages back to the driver every few batches.
///
/// **Saves** what the allocator reserved and does not use at that moment; never what is in use. **Mechanism:**
/// `Device::memory_cleanup`, which the allocator may honour or not. **Acts** after the backward pass of every `every`th
/// micro-batch. **Costs** allocating those pages anew in the next step. The peak of a steady run hardly moves, because
/// the next step needs the pages again: it helps when shapes change, or when others need the memory in between.
/// **Unchanged:** the gradients.
///
/// # Example
///
/// ```
/// use mem_policy::{Environment, MemoryPolicy, Support, policies::EmptyCache};
///
/// // The CPU backend keeps no cache.
/// assert!(matches!(EmptyCache::default().support(&Environment::cpu()), Support::No(_)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmptyCache {
    /// Micro-batches between two clean-ups.
    pub every: usize,
}

impl Default for EmptyCache {
    fn default() -> Self {
        Self { every: 4 }
    }
}

impl ConfiguredPolicy for EmptyCache {
    const SPEC: PolicySpec = PolicySpec::new(
        "empty-cache",
        "Empty the allocator's cache",
        "gives pages that the allocator reserved and does not use back to the driver",
        Stage::Step,
        Fidelity::Exact,
    )
    .with_params(&[ParamSpec::new(
        "every",
        "integer (micro-batches)",
        "4",
        "1..",
        "clean up after the backward pass of every n-th micro-batch",
    )]);

    fn check(&self) -> Vec<(&'static str, String)> {
        if self.every == 0 { vec![("every", "0 is out of range: use at least 1".to_owned())] } else { Vec::new() }
    }
}

impl MemoryPolicy for EmptyCache {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn support(&self, env: &Environment) -> Support {
        if env.pooled_allocator {
            Support::Yes
        } else {
            Support::No(format!("the {} backend keeps no cache of freed memory", env.backend))
        }
    }

    fn plan(&self, _plan: &mut TrainPlan) -> Result<(), PolicyError> {
        Ok(())
    }

    fn after_backward(&mut self, cx: &mut StepCx<'_>) -> Result<(), PolicyError> {
        if cx.step.is_multiple_of(self.every.max(1)) {
            cx.device.memory_cleanup();
            cx.note(Self::SPEC.id, EventKind::Cleanup, "gave unused pages back to the driver", None);
        }
        Ok(())
    }
}
