use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::plan::{Segmenting, TrainPlan};
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Activation checkpointing by segments.
///
/// **Saves** the activations inside the segments: only what flows between groups of segments is kept, and one group at a
/// time is run again for its backward pass. **Mechanism:** [`SegmentedBackward`](crate::segment::SegmentedBackward), for
/// models that implement [`Segmented`](crate::segment::Segmented). **Acts** in every forward and backward pass. **Costs**
/// a second forward pass of every group that is run again. **Unchanged:** the gradients, bit for bit on a deterministic
/// backend; batch norm's statistics move once; dropout repeats its mask. Technique: Chen et al., *Training Deep Nets with
/// Sublinear Memory Cost*, 2016.
///
/// # Errors
///
/// Training fails at its first step if `groups` or `cuts` do not fit the model, or no grouping keeps within `budget`.
///
/// # Example
///
/// ```
/// use mem_policy::{Baseline, Environment, PolicySet, Segmenting, policies::SegmentCheckpointing};
///
/// let plan = PolicySet::new().with(SegmentCheckpointing { groups: Some(3), ..SegmentCheckpointing::default() })
///     .plan(&Baseline::new(8), &Environment::cpu());
/// assert_eq!(*plan.map_err(|errors| format!("{errors:?}"))?.segments.get(), Some(Segmenting::Groups(3)));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SegmentCheckpointing {
    /// Groups of as equal numbers of segments as possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<usize>,
    /// The first segments of the groups after the first one, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuts: Option<Vec<usize>>,
    /// Bytes that the activations may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<ByteSize>,
}

impl ConfiguredPolicy for SegmentCheckpointing {
    const SPEC: PolicySpec = PolicySpec::new(
        "segment-checkpointing",
        "Activation checkpointing by segments",
        "keeps only what flows between segments and runs each segment again in the backward pass",
        Stage::Step,
        Fidelity::Exact,
    )
    .with_params(&[
        ParamSpec::new("groups", "integer", "[every segment by itself]", "1..segments", "groups of equal size"),
        ParamSpec::new("cuts", "list of integers", "[none]", "rising, 1..segments", "where groups start, instead"),
        ParamSpec::new(
            "budget",
            "bytes (\"256 MiB\")",
            "[none]",
            "1 B..",
            "recompute as little as keeps the activations within this, instead",
        ),
    ]);

    fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        if self.groups == Some(0) {
            wrong.push(("groups", "0 is out of range: use at least 1".to_owned()));
        }
        if let Some(cuts) = &self.cuts
            && (cuts.first() == Some(&0) || cuts.windows(2).any(|pair| pair[0] >= pair[1]))
        {
            wrong.push(("cuts", format!("{cuts:?} is not accepted: use rising numbers from 1 on")));
        }
        if self.budget.is_some_and(|budget| budget.as_u64() == 0) {
            wrong.push(("budget", "0 B is out of range: use at least 1 B".to_owned()));
        }
        let given = [self.groups.is_some(), self.cuts.is_some(), self.budget.is_some()];
        if given.iter().filter(|given| **given).count() > 1 {
            wrong.push(("groups", "groups, cuts and budget exclude each other: use one of them".to_owned()));
        }
        wrong
    }
}

impl MemoryPolicy for SegmentCheckpointing {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        let segmenting = match (self.groups, &self.cuts, self.budget) {
            (Some(groups), ..) => Segmenting::Groups(groups),
            (_, Some(cuts), _) => Segmenting::Cuts(cuts.clone()),
            (_, _, Some(budget)) => Segmenting::Budget(budget.as_u64()),
            _ => Segmenting::Each,
        };
        plan.segments.set(Self::SPEC.id, Some(segmenting))
    }
}
