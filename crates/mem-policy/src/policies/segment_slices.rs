use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::plan::{SlicePlan, TrainPlan};
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Micro-batches inside a segment.
///
/// **Saves** the activations inside the sliced segments: those of one slice of the batch exist at a time. The other
/// segments see the whole batch once, so a large linear layer is read, and with `fused-optimizer` updated, once a step.
/// **Mechanism:** [`SegmentPlan::sliced`](crate::segment::SegmentPlan::sliced): the segment is run on one slice after the
/// other and the gradients are added up. **Acts** in every forward and backward pass. **Costs** smaller kernels, and the
/// second forward pass of `segment-checkpointing` for the sliced segments. **Unchanged:** the objective, for segments that
/// treat samples independently. Batch norm does not: with `batch_norm_per_slice` each slice is normalised by itself
/// (Hoffer et al., *Train longer, generalize better*, 2017, call it ghost batch norm), which is another objective; its
/// running statistics move once, by the mean over the slices.
///
/// # Errors
///
/// Training fails at its first step if the segments do not exist, or do not treat samples independently and that is not
/// allowed.
///
/// # Example
///
/// ```
/// use mem_policy::{Baseline, Environment, PolicySet, policies::SegmentSlices};
///
/// let plan = PolicySet::new().with(SegmentSlices::default()).plan(&Baseline::new(8), &Environment::cpu());
/// let slices = plan.map_err(|errors| format!("{errors:?}"))?.slices.get().map(|plan| plan.slices);
/// assert_eq!(slices, Some(4));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SegmentSlices {
    /// Slices of the batch.
    pub slices: usize,
    /// The first segment to slice, counted from 0.
    pub first: usize,
    /// The last segment to slice. Absent: every one from `first` on that can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<usize>,
    /// Whether batch norm may normalise each slice by itself.
    pub batch_norm_per_slice: bool,
}

impl Default for SegmentSlices {
    fn default() -> Self {
        Self { slices: 4, first: 0, last: None, batch_norm_per_slice: true }
    }
}

impl ConfiguredPolicy for SegmentSlices {
    const SPEC: PolicySpec = PolicySpec::new(
        "segment-slices",
        "Micro-batches inside segments",
        "runs segments on one slice of the batch after the other and adds up their gradients",
        Stage::Step,
        Fidelity::DifferentRun,
    )
    .with_params(&[
        ParamSpec::new("slices", "integer", "4", "2..", "slices of the batch"),
        ParamSpec::new("first", "integer", "0", "0..segments", "the first segment to slice"),
        ParamSpec::new("last", "integer", "[every one that can be]", "first..segments", "the last segment to slice"),
        ParamSpec::new(
            "batch_norm_per_slice",
            "boolean",
            "true",
            "true, false",
            "whether batch norm may normalise each slice by itself, which is another objective",
        ),
    ]);

    fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        if !(2..=65_536).contains(&self.slices) {
            wrong.push(("slices", format!("{} is out of range: use 2 to 65536", self.slices)));
        }
        if let Some(last) = self.last.filter(|last| *last < self.first || *last > 65_535) {
            wrong.push(("last", format!("{last} is out of range: use {} (`first`) to 65535", self.first)));
        }
        wrong
    }
}

impl MemoryPolicy for SegmentSlices {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        let Self { slices, first, last, batch_norm_per_slice } = *self;
        plan.slices.set(Self::SPEC.id, Some(SlicePlan { slices, first, last, batch_norm_per_slice }))
    }
}
