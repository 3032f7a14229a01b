use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::plan::{LoaderPlan, TrainPlan};
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Decoding in worker threads, ahead of training, into memory prepared for the transfer.
///
/// **Saves** time that training would wait for data; it takes memory, for `prefetch` batches on the host. **Mechanism:**
/// worker threads with a bounded queue, and `Device::staging`, Burn's counterpart of pinned memory. **Acts** on every
/// batch. **Costs** the queue's host memory and the workers' share of the processor. **Unchanged:** the batches and
/// their order.
///
/// # Example
///
/// ```
/// use mem_policy::{Baseline, Environment, PolicySet, policies::Loader};
///
/// let plan = PolicySet::new().with(Loader { workers: 4, ..Loader::default() })
///     .plan(&Baseline::new(8), &Environment::cpu());
/// assert_eq!(plan.map_err(|errors| format!("{errors:?}"))?.loader.get().workers, 4);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Loader {
    /// Threads that decode.
    pub workers: usize,
    /// Batches kept ready.
    pub prefetch: usize,
    /// Whether to prepare host memory for the transfer.
    pub staging: bool,
}

impl Default for Loader {
    fn default() -> Self {
        Self { workers: 2, prefetch: 2, staging: true }
    }
}

impl ConfiguredPolicy for Loader {
    const SPEC: PolicySpec = PolicySpec::new(
        "loader",
        "Worker threads, prefetch and staging",
        "hides the time of decoding and transfer behind training, for some host memory",
        Stage::Data,
        Fidelity::Exact,
    )
    .with_params(&[
        ParamSpec::new("workers", "integer (threads)", "2", "0..=256", "threads that decode; 0: the training thread"),
        ParamSpec::new(
            "prefetch",
            "integer (batches)",
            "2",
            "1..=1024 with workers, else 0",
            "batches kept ready ahead of training",
        ),
        ParamSpec::new(
            "staging",
            "boolean",
            "true",
            "",
            "prepare host memory for the transfer (pinned where possible)",
        ),
    ]);

    fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        for (name, value, most) in [("workers", self.workers, 256), ("prefetch", self.prefetch, 1024)] {
            if value > most {
                wrong.push((name, format!("{value} is out of range: use at most {most}")));
            }
        }
        match (self.workers, self.prefetch) {
            (0, 1..) => {
                wrong.push(("prefetch", format!("{} needs a worker: set `workers` to at least 1", self.prefetch)));
            }
            (1.., 0) => wrong.push(("prefetch", "0 gives the workers nothing to do: use at least 1".to_owned())),
            _ => {}
        }
        wrong
    }
}

impl MemoryPolicy for Loader {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        let Self { workers, prefetch, staging } = *self;
        plan.loader.set(Self::SPEC.id, LoaderPlan { workers, prefetch, staging })
    }
}
