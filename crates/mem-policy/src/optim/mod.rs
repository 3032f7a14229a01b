//! Optimizers with small states, and how an [`OptimizerPlan`] becomes one of Burn's `ModuleOptimizer`s.
//!
//! [`BlockwiseAdam`] is an optimizer of Burn's like any other: usable in a `ModuleOptimizer`, for one parameter group, in
//! a training loop of your own, and in records. [`build`] makes the optimizer of a plan.

mod adam8bit;
mod block;
mod code;
mod packed;
mod rounding;
mod state;

pub use adam8bit::{Adam8bitConfig, BlockwiseAdam};
pub use block::{BlockSize, BlockSizeError};
pub use code::StateCode;
pub use rounding::Rounding;
pub use state::Adam8bitState;

use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdafactorConfig, AdamConfig, LionConfig, ModuleOptimizer, SgdConfig};

use crate::plan::OptimizerPlan;

/// The optimizer of `plan`, without state yet; what the plan does not say is Burn's default.
#[must_use]
pub fn build(plan: &OptimizerPlan) -> ModuleOptimizer {
    match *plan {
        OptimizerPlan::Sgd => SgdConfig::new().init(),
        OptimizerPlan::Momentum => {
            SgdConfig::new().with_momentum(Some(MomentumConfig::new().with_momentum(0.9).with_dampening(0.0))).init()
        }
        OptimizerPlan::Adam => AdamConfig::new().init(),
        OptimizerPlan::Adam8bit { block, code } => Adam8bitConfig::new().with_block(block).with_code(code).init(),
        OptimizerPlan::Adafactor => AdafactorConfig::new().init(),
        OptimizerPlan::Lion => LionConfig::new().init(),
    }
}

#[cfg(test)]
mod tests;
