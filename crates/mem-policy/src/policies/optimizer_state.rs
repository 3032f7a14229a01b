use serde::{Deserialize, Serialize};

use crate::error::PolicyError;
use crate::optim::{BlockSize, StateCode};
use crate::plan::{OptimizerPlan, TrainPlan};
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// An optimizer with a smaller state than Adam's.
///
/// **Saves** optimizer state. Bytes per f32 parameter element: `sgd` 0, `momentum` and `lion` 4, `adam` 8, `adam8bit`
/// 2 and 8 per block (8 for parameters below 4096 elements), `adafactor` 4 per row and column of a matrix (4 for
/// vectors, 24 for the 9 of a 3x3 kernel). **Mechanism:** [`optim::build`](crate::optim::build), which gives Burn's
/// own optimizers and [`BlockwiseAdam`](crate::optim::BlockwiseAdam). **Acts** in every optimizer step. **Costs** the
/// time to decode and encode the state (`adam8bit`), or another course of training with other learning rates (`lion`
/// wants one a few times smaller than Adam's; `adafactor` takes the given one as a cap of a relative step).
/// **Unchanged:** the gradients.
///
/// The saving is against Adam: against plain SGD, which has no state, every other kind *costs*. An experiment compares
/// with its own baseline, so run it with `--optimizer adam`.
///
/// Techniques: Dettmers et al., *8-bit Optimizers via Block-wise Quantization*, 2022; Shazeer and Stern, *Adafactor*, 2018;
/// Chen et al., *Symbolic Discovery of Optimization Algorithms* (Lion), 2023.
///
/// # Example
///
/// ```
/// use mem_policy::{Baseline, Environment, OptimizerPlan, PolicySet, policies::{OptimizerKind, OptimizerState}};
///
/// let plan = PolicySet::new().with(OptimizerState { kind: OptimizerKind::Lion, ..OptimizerState::default() })
///     .plan(&Baseline::new(8), &Environment::cpu());
/// assert_eq!(*plan.map_err(|errors| format!("{errors:?}"))?.optimizer.get(), Some(OptimizerPlan::Lion));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerState {
    /// The optimizer.
    pub kind: OptimizerKind,
    /// Elements of an 8-bit state that share one scale.
    pub block: usize,
    /// Which values the 8-bit codes stand for.
    pub code: StateCode,
}

/// Which optimizer to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// Stochastic gradient descent.
    Sgd,
    /// SGD with momentum 0.9.
    Momentum,
    /// Burn's Adam.
    Adam,
    /// Adam with 8-bit states.
    #[default]
    Adam8bit,
    /// Burn's Adafactor.
    Adafactor,
    /// Burn's Lion.
    Lion,
}

impl Default for OptimizerState {
    fn default() -> Self {
        Self { kind: OptimizerKind::default(), block: BlockSize::default().elements(), code: StateCode::default() }
    }
}

impl ConfiguredPolicy for OptimizerState {
    const SPEC: PolicySpec = PolicySpec::new(
        "optimizer-state",
        "Smaller optimizer state",
        "stores less than Adam's two f32 moments per parameter; compare with `--optimizer adam`, not with plain SGD",
        Stage::Step,
        Fidelity::DifferentRun,
    )
    .with_params(&[
        ParamSpec::new(
            "kind",
            "string",
            "\"adam8bit\"",
            "\"sgd\", \"momentum\", \"adam\", \"adam8bit\", \"adafactor\", \"lion\"",
            "the optimizer; bytes of state per f32 parameter: sgd 0, momentum and lion 4, adam 8, adam8bit 2 and 8 per \
             block, adafactor 4 per row and column",
        ),
        ParamSpec::new(
            "block",
            "integer (elements)",
            "256",
            "256, 512, 1024, 2048",
            "elements of an 8-bit state that share one scale",
        ),
        ParamSpec::new(
            "code",
            "string",
            "\"dynamic\"",
            "\"dynamic\", \"linear\"",
            "the values of an 8-bit state: finer towards zero, or equally spaced",
        ),
    ]);

    fn check(&self) -> Vec<(&'static str, String)> {
        BlockSize::new(self.block).err().map(|error| ("block", error.to_string())).into_iter().collect()
    }
}

impl MemoryPolicy for OptimizerState {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        let optimizer = match self.kind {
            OptimizerKind::Sgd => OptimizerPlan::Sgd,
            OptimizerKind::Momentum => OptimizerPlan::Momentum,
            OptimizerKind::Adam => OptimizerPlan::Adam,
            OptimizerKind::Adam8bit => {
                let block = BlockSize::new(self.block)
                    .map_err(|error| PolicyError::Unplannable { policy: Self::SPEC.id, why: error.to_string() })?;
                OptimizerPlan::Adam8bit { block, code: self.code }
            }
            OptimizerKind::Adafactor => OptimizerPlan::Adafactor,
            OptimizerKind::Lion => OptimizerPlan::Lion,
        };
        plan.optimizer.set(Self::SPEC.id, Some(optimizer))
    }
}
