use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use crate::context::{EpochCx, EventKind, Verdict};
use crate::error::PolicyError;
use crate::plan::TrainPlan;
use crate::policy::{Fidelity, MemoryPolicy, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Reports memory at the end of every epoch.
///
/// **Saves** nothing: it shows bytes in use, the total and the share, with the counters they come from. **Mechanism:**
/// the trainer's [`MemorySource`](crate::MemorySource), an event per epoch and a `tracing` line. **Acts** after
/// validation. **Costs** one reading per epoch. **Unchanged:** everything. What it does not see: the peak inside a step.
///
/// # Example
///
/// ```
/// use mem_policy::{MemoryPolicy, policies::Monitor};
///
/// assert_eq!(Monitor::default().spec().id, "monitor");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Monitor {}

impl ConfiguredPolicy for Monitor {
    const SPEC: PolicySpec = PolicySpec::new(
        "monitor",
        "Monitor",
        "shows bytes in use, the total and the share at each epoch's end",
        Stage::Epoch,
        Fidelity::Exact,
    );
}

impl MemoryPolicy for Monitor {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, _plan: &mut TrainPlan) -> Result<(), PolicyError> {
        Ok(())
    }

    fn after_epoch(&mut self, cx: &mut EpochCx<'_>) -> Result<Verdict, PolicyError> {
        let usage = cx.memory.usage();
        let message = usage.as_ref().map_or_else(
            || "memory in use: unknown".to_owned(),
            |usage| {
                let used = format!("{} in use ({})", ByteSize(usage.used_bytes), usage.used_counter);
                match (usage.total_bytes, usage.share()) {
                    (Some(total), Some(share)) => format!(
                        "{used} of {} ({}): {:.1} %",
                        ByteSize(total),
                        usage.total_counter.as_deref().unwrap_or("unknown counter"),
                        share * 100.0
                    ),
                    _ => format!("{used}; total unknown"),
                }
            },
        );
        tracing::info!(epoch = cx.epoch, "{message}");
        cx.note(Self::SPEC.id, EventKind::Reading, message, usage);
        Ok(Verdict::Continue)
    }
}
