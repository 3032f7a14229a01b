use serde::{Deserialize, Serialize};

use super::dtype::Dtype;
use crate::environment::{Environment, Support};
use crate::error::PolicyError;
use crate::plan::{ComputePlan, Precision, TrainPlan};
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::precision::LossScalerConfig;
use crate::registry::ConfiguredPolicy;

/// 16-bit computation with 32-bit master weights.
///
/// **Saves** up to half of the bytes of activations; parameters, gradients and optimizer state stay in 32 bits.
/// **Mechanism:** [`precision`](crate::precision): activations enter the network in 16 bits, each layer casts its weight
/// where they meet, batch norm and the loss work in 32 bits, and a dynamic scale of the loss keeps small gradients from
/// vanishing; a step whose gradients are not finite is skipped and counted. For models that implement
/// [`SegmentedStep`](crate::segment::SegmentedStep), whose layers follow the dtype of their input. **Acts** in every step.
/// **Costs** the casts, and a wait for the device in every step to see whether the gradients are finite. **Unchanged:** the
/// data and the architecture; the loss curve up to 16-bit rounding. Technique: Micikevicius et al., *Mixed Precision
/// Training*, 2018.
///
/// `mode`: `input` converts batches on the host, so that they wait and travel in 16 bits, and computes in 32; `compute`
/// computes in 16 bits on 32-bit batches; `full` does both. `half-precision` is the other thing: no 32-bit weights at all.
///
/// Together with `fused-optimizer` the gradients of a group are checked when they come, so that a step may be applied in
/// part; that is counted apart.
///
/// A device counts as supporting a precision only if it stores, converts *and* computes in it
/// (`Device::supports_dtype`).
///
/// # Errors
///
/// Planning fails if the device does not compute in the wanted dtype.
///
/// # Example
///
/// ```
/// use mem_policy::{Environment, MemoryPolicy, Precision, Support, policies::MixedPrecision};
///
/// let mut env = Environment::cpu();
/// assert!(matches!(MixedPrecision::default().support(&env), Support::No(_)));
/// env.precisions.push(Precision::F16);
/// assert_eq!(MixedPrecision::default().support(&env), Support::Yes);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MixedPrecision {
    /// What is 16-bit.
    pub mode: Mode,
    /// The 16-bit type.
    pub dtype: Dtype,
    /// The first loss scale, for f16; bf16 has the range of f32 and is not scaled.
    pub loss_scale: f64,
    /// Good steps in a row before the scale doubles.
    pub growth_interval: usize,
}

/// What is 16-bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Batches, until they enter the network.
    Input,
    /// The network's activations and arithmetic.
    #[default]
    Compute,
    /// Both.
    Full,
}

impl Default for MixedPrecision {
    fn default() -> Self {
        let LossScalerConfig { initial, interval, .. } = LossScalerConfig::default();
        Self { mode: Mode::default(), dtype: Dtype::default(), loss_scale: initial, growth_interval: interval }
    }
}

impl ConfiguredPolicy for MixedPrecision {
    const SPEC: PolicySpec = PolicySpec::new(
        "mixed-precision",
        "16-bit computation, 32-bit weights",
        "halves the bytes of activations by computing in 16 bits, with 32-bit master weights and loss scaling",
        Stage::Step,
        Fidelity::DifferentRun,
    )
    .with_params(&[
        ParamSpec::new(
            "mode",
            "string",
            "\"compute\"",
            "\"input\", \"compute\", \"full\"",
            "what is 16-bit: batches until they enter the network, activations and arithmetic, or both",
        ),
        ParamSpec::new(
            "dtype",
            "string",
            "\"auto\"",
            "\"auto\", \"f16\", \"bf16\"",
            "the 16-bit type; auto takes bf16 where the device computes in it, else f16",
        ),
        ParamSpec::new("loss_scale", "number", "65536.0", "1 <= x <= 2^127", "the first loss scale, for f16"),
        ParamSpec::new("growth_interval", "integer (steps)", "2000", "1..", "good steps before the scale doubles"),
    ]);

    fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        if !(1.0..=2.0_f64.powi(127)).contains(&self.loss_scale) {
            wrong.push(("loss_scale", format!("{} is out of range: use 1 to 2^127", self.loss_scale)));
        }
        if self.growth_interval == 0 {
            wrong.push(("growth_interval", "0 is out of range: use at least 1".to_owned()));
        }
        wrong
    }
}

impl MemoryPolicy for MixedPrecision {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn support(&self, env: &Environment) -> Support {
        self.dtype.choose(env).map_or_else(Support::No, |_| Support::Yes)
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        let dtype = self
            .dtype
            .choose(plan.environment())
            .map_err(|why| PolicyError::Unplannable { policy: Self::SPEC.id, why })?;
        let compute = self.mode != Mode::Input;
        let scaler = LossScalerConfig {
            initial: self.loss_scale,
            interval: self.growth_interval,
            ..LossScalerConfig::default()
        };
        let compute = ComputePlan {
            dtype,
            inputs: self.mode != Mode::Compute,
            compute,
            scaler: (compute && dtype == Precision::F16).then_some(scaler),
        };
        plan.compute.set(Self::SPEC.id, Some(compute))
    }
}
