use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::plan::{ShardPlan, TrainPlan};
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;
use crate::shard::ShardAxis;

/// Large linear layers in shards.
///
/// **Saves** nothing by itself; it makes layers trainable whose weight passes a limit of the device (workgroups of a
/// dispatch, bytes of a buffer or of a binding), and lets `fused-optimizer` hold the gradient of one shard instead of the
/// whole layer's. **Mechanism:** [`ShardedLinear`](crate::shard::ShardedLinear). **Acts** when the network is built.
/// **Costs** one matrix product a shard instead of one. **Unchanged:** the distribution of the initial weights, and outputs
/// and gradients up to rounding, since the sum over the input is taken in another order; records interchange through
/// [`OnePiece`](crate::shard::OnePiece).
///
/// # Example
///
/// ```
/// use mem_policy::{Baseline, Environment, PolicySet, policies::ShardLinear};
///
/// let plan = PolicySet::new().with(ShardLinear { shards: Some(8), ..ShardLinear::default() })
///     .plan(&Baseline::new(8), &Environment::cpu());
/// let shards = plan.map_err(|errors| format!("{errors:?}"))?.linear_shards.get().and_then(|plan| plan.shards);
/// assert_eq!(shards, Some(8));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShardLinear {
    /// Shards of a layer. Absent: as few as the device's limits and `max_bytes` allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<usize>,
    /// Bytes of the largest shard, when `shards` is absent.
    pub max_bytes: ByteSize,
    /// The dimension along which to cut.
    pub axis: ShardAxis,
}

impl Default for ShardLinear {
    fn default() -> Self {
        Self { shards: None, max_bytes: ByteSize::mib(256), axis: ShardAxis::Input }
    }
}

impl ConfiguredPolicy for ShardLinear {
    const SPEC: PolicySpec = PolicySpec::new(
        "shard-linear",
        "Linear layers in shards",
        "cuts linear layers that are too large for the device, or whose gradients are, into shards",
        Stage::Model,
        Fidelity::SameObjective,
    )
    .with_params(&[
        ParamSpec::new("shards", "integer", "[as few as limits and max_bytes allow]", "1..", "shards of the layer"),
        ParamSpec::new("max_bytes", "bytes", "\"256.0 MiB\"", "1 B..", "the largest shard, when `shards` is absent"),
        ParamSpec::new("axis", "string", "\"input\"", "\"input\", \"output\"", "the dimension along which to cut"),
    ]);

    fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        if self.shards.is_some_and(|shards| !(1..=65_536).contains(&shards)) {
            wrong.push(("shards", format!("{} is out of range: use 1 to 65536", self.shards.unwrap_or(0))));
        }
        if self.max_bytes.as_u64() == 0 {
            wrong.push(("max_bytes", "0 B is out of range: use at least 1 B".to_owned()));
        }
        wrong
    }
}

impl MemoryPolicy for ShardLinear {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        let Self { shards, max_bytes, axis } = *self;
        let max_bytes = shards.is_none().then(|| max_bytes.as_u64());
        plan.linear_shards.set(Self::SPEC.id, Some(ShardPlan { shards, max_bytes, axis }))
    }
}
