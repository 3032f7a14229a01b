use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use crate::context::{EventKind, StepCx};
use crate::environment::{Environment, Support};
use crate::error::PolicyError;
use crate::plan::{PoolReuse, TrainPlan};
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Holds what Burn's memory pools reserve close to what is in use.
///
/// **Saves** the reserve that grows in two ways. Parameters are drawn into pages of their exact size; an update gives the new
/// value the gradient's buffer, which lies in an ordinary page, and the old page stays reserved, empty. And ordinary pages
/// are as large as the largest allocation so far, are kept by anything small that lies in them, and are freed only when asked.
/// **Mechanism:** `reuse` is CubeCL's `memory.persistent_memory`: with `exact` every allocation has a page of its size, so that
/// all idle memory can be given back; with `size-match` only those of a parameter's size have. Besides, when more than
/// `percent` of what is in use lies idle after a backward pass, unused pages go back to the driver. **Acts** before
/// the device opens, and after backward passes. **Costs** allocating given-back pages anew in the next step; each time is in
/// the record with the bytes it freed. **Unchanged:** the gradients.
///
/// # Example
///
/// ```
/// use mem_policy::{Environment, MemoryPolicy, Support, policies::PoolSlack};
///
/// // The CPU backend has no pools.
/// assert!(matches!(PoolSlack::default().support(&Environment::cpu()), Support::No(_)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoolSlack {
    /// The most that may lie idle, in percent of what is in use.
    pub percent: u32,
    /// Which allocations take a freed parameter's page.
    pub reuse: PoolReuse,
}

impl Default for PoolSlack {
    fn default() -> Self {
        Self { percent: 10, reuse: PoolReuse::Exact }
    }
}

impl ConfiguredPolicy for PoolSlack {
    const SPEC: PolicySpec = PolicySpec::new(
        "pool-slack",
        "Little idle memory in the pools",
        "lets freed parameters' pages be taken again and gives idle pages back when there are too many",
        Stage::Process,
        Fidelity::Exact,
    )
    .with_params(&[
        ParamSpec::new("percent", "integer", "10", "0..", "the most that may lie idle, in percent of what is in use"),
        ParamSpec::new(
            "reuse",
            "string",
            "\"exact\"",
            "\"parameters-only\", \"size-match\", \"dynamic\", \"exact\"",
            "which allocations take pages of exact size: parameters, any of a parameter's size, none, or all",
        ),
    ]);
}

impl MemoryPolicy for PoolSlack {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn support(&self, env: &Environment) -> Support {
        if env.pooled_allocator {
            Support::Yes
        } else {
            Support::No(format!("the {} backend has no memory pools", env.backend))
        }
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        plan.pool_reuse.set(Self::SPEC.id, Some(self.reuse))
    }

    fn after_backward(&mut self, cx: &mut StepCx<'_>) -> Result<(), PolicyError> {
        let idle = |device: &burn::tensor::Device| {
            let usage = device.memory_pool_usage()?;
            Some((usage.bytes_reserved.saturating_sub(usage.bytes_in_use), usage.bytes_in_use))
        };
        let Some((before, in_use)) = idle(cx.device) else { return Ok(()) };
        if u128::from(before) * 100 <= u128::from(in_use) * u128::from(self.percent) {
            return Ok(());
        }
        // Only what the device has finished with can go.
        if let Err(error) = cx.device.sync() {
            tracing::warn!("the device failed before its idle pages could be given back: {error}");
            return Ok(());
        }
        cx.device.memory_cleanup();
        if let Err(error) = cx.device.sync() {
            tracing::warn!("the device failed while its idle pages were given back: {error}");
            return Ok(());
        }
        let (after, _) = idle(cx.device).unwrap_or((before, in_use));
        let message = format!(
            "gave {} of {} idle memory back, with {} in use",
            ByteSize(before.saturating_sub(after)),
            ByteSize(before),
            ByteSize(in_use)
        );
        cx.note(Self::SPEC.id, EventKind::Cleanup, message, None);
        Ok(())
    }
}
