use serde::{Deserialize, Serialize};

use super::dtype::Dtype;
use crate::environment::{Environment, Support};
use crate::error::PolicyError;
use crate::plan::TrainPlan;
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Everything in 16 bits, the weights included.
///
/// **Saves** up to half of the bytes of parameters, gradients and activations. **Mechanism:** the device's default float
/// dtype (`Device::configure`), set once per process before the first tensor, so parameters, inputs and every
/// intermediate are 16-bit. **Acts** before the device opens. **Costs** precision: there are *no* 32-bit master weights
/// and there is *no* loss scaling, so small updates and small gradients are lost and training may stall or overflow;
/// watch the loss in the record. `mixed-precision` keeps both. Kernels without 16-bit arithmetic may be slower.
/// **Unchanged:** the data and the architecture.
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
/// use mem_policy::{Environment, MemoryPolicy, Precision, Support, policies::HalfPrecision};
///
/// let mut env = Environment::cpu();
/// assert!(matches!(HalfPrecision::default().support(&env), Support::No(_)));
/// env.precisions.push(Precision::F16);
/// assert_eq!(HalfPrecision::default().support(&env), Support::Yes);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HalfPrecision {
    /// The 16-bit type.
    pub dtype: Dtype,
}

impl ConfiguredPolicy for HalfPrecision {
    const SPEC: PolicySpec = PolicySpec::new(
        "half-precision",
        "16-bit weights",
        "halves the bytes of parameters, gradients and activations by storing and computing in 16 bits",
        Stage::Process,
        Fidelity::DifferentRun,
    )
    .with_params(&[ParamSpec::new(
        "dtype",
        "string",
        "\"auto\"",
        "\"auto\", \"f16\", \"bf16\"",
        "the 16-bit type; auto takes bf16 where the device computes in it, else f16",
    )]);
}

impl MemoryPolicy for HalfPrecision {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn support(&self, env: &Environment) -> Support {
        self.dtype.choose(env).map_or_else(Support::No, |_| Support::Yes)
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        let precision = self
            .dtype
            .choose(plan.environment())
            .map_err(|why| PolicyError::Unplannable { policy: Self::SPEC.id, why })?;
        plan.precision.set(Self::SPEC.id, precision)
    }
}
