use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::plan::{ModelScale, TrainPlan};
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Narrower layers, fewer layers, fewer hidden units.
///
/// **Saves** parameters, gradients, optimizer state and activations. **Mechanism:** `TrainPlan::model_scale`, applied
/// when the network is built. **Acts** once. **Costs** capacity: it is another network, and what it can learn differs.
/// **Unchanged:** the data, the input and output shapes.
///
/// # Errors
///
/// A factor that is not positive, or a depth of 0, is refused with the configuration.
///
/// # Example
///
/// ```
/// use mem_policy::{Baseline, Environment, ModelScale, PolicySet, policies::ModelScaling};
///
/// let plan = PolicySet::new().with(ModelScaling { width: 0.5, depth: Some(2), hidden: 1.0 })
///     .plan(&Baseline::new(8), &Environment::cpu());
/// let scale = *plan.map_err(|errors| format!("{errors:?}"))?.model_scale.get();
/// assert_eq!(ModelScale::scaled(64, scale.width), 32);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelScaling {
    /// Factor on the channels of every block.
    pub width: f64,
    /// Blocks to keep, counted from the input. Absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<usize>,
    /// Factor on the hidden units.
    pub hidden: f64,
}

impl Default for ModelScaling {
    fn default() -> Self {
        Self { width: 0.5, depth: None, hidden: 0.5 }
    }
}

impl ConfiguredPolicy for ModelScaling {
    const SPEC: PolicySpec = PolicySpec::new(
        "model-scale",
        "Smaller model",
        "keeps fewer parameters, gradients and activations by building a narrower or shallower network",
        Stage::Model,
        Fidelity::DifferentRun,
    )
    .with_params(&[
        ParamSpec::new("width", "number", "0.5", "0 < x <= 16", "factor on the channels of every block"),
        ParamSpec::new("depth", "integer (blocks)", "[all]", "1..", "blocks to keep, counted from the input"),
        ParamSpec::new("hidden", "number", "0.5", "0 < x <= 16", "factor on the hidden units"),
    ]);

    fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        for (name, factor) in [("width", self.width), ("hidden", self.hidden)] {
            if !(factor > 0.0 && factor <= 16.0) {
                wrong.push((name, format!("{factor} is out of range: use a factor above 0 and at most 16")));
            }
        }
        if self.depth == Some(0) {
            wrong.push(("depth", "0 is out of range: keep at least 1 block".to_owned()));
        }
        wrong
    }
}

impl MemoryPolicy for ModelScaling {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        plan.model_scale.set(Self::SPEC.id, ModelScale { width: self.width, depth: self.depth, hidden: self.hidden })
    }
}
