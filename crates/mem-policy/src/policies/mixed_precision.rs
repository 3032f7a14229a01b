use serde::{Deserialize, Serialize};

use crate::environment::{Environment, Support};
use crate::error::PolicyError;
use crate::plan::{Precision, TrainPlan};
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// 16-bit inputs and computation.
///
/// **Saves** up to half of the bytes of parameters, gradients and activations. **Mechanism:** the device's default float
/// dtype (`Device::configure`), set once per process before the first tensor, so parameters, inputs and every
/// intermediate are 16-bit. **Acts** before the device opens. **Costs** precision: this form keeps *no* 32-bit master
/// weights and does *no* loss scaling, so small updates and small gradients are lost and training may stall or
/// overflow; watch the loss in the record. Kernels without 16-bit arithmetic may be slower. **Unchanged:** the data and
/// the architecture.
///
/// A device counts as supporting a precision only if it stores, converts *and* computes in it
/// (`Device::supports_dtype`). Technique: Micikevicius et al., *Mixed Precision Training*, 2018, of which this is the
/// part without master weights.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MixedPrecision {
    /// The 16-bit type.
    pub dtype: Dtype,
}

/// Which 16-bit type to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// bf16 where the device computes in it, because it overflows less; else f16.
    #[default]
    Auto,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16.
    Bf16,
}

impl MixedPrecision {
    fn choose(self, env: &Environment) -> Result<Precision, String> {
        let wanted: &[Precision] = match self.dtype {
            Dtype::Auto => &[Precision::Bf16, Precision::F16],
            Dtype::F16 => &[Precision::F16],
            Dtype::Bf16 => &[Precision::Bf16],
        };
        wanted.iter().copied().find(|precision| env.computes_in(*precision)).ok_or_else(|| {
            let names: Vec<String> = wanted.iter().map(ToString::to_string).collect();
            format!("{} on {} computes in no {}", env.device, env.backend, names.join(" or "))
        })
    }
}

impl ConfiguredPolicy for MixedPrecision {
    const SPEC: PolicySpec = PolicySpec::new(
        "mixed-precision",
        "16-bit precision",
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

impl MemoryPolicy for MixedPrecision {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn support(&self, env: &Environment) -> Support {
        self.choose(env).map_or_else(Support::No, |_| Support::Yes)
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        let precision =
            self.choose(plan.environment()).map_err(|why| PolicyError::Unplannable { policy: Self::SPEC.id, why })?;
        plan.precision.set(Self::SPEC.id, precision)
    }
}
