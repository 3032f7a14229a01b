use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::plan::Precision;

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

impl Dtype {
    /// The precision for `env`, or why there is none.
    pub(super) fn choose(self, env: &Environment) -> Result<Precision, String> {
        let wanted: &[Precision] = match self {
            Self::Auto => &[Precision::Bf16, Precision::F16],
            Self::F16 => &[Precision::F16],
            Self::Bf16 => &[Precision::Bf16],
        };
        wanted.iter().copied().find(|precision| env.computes_in(*precision)).ok_or_else(|| {
            let names: Vec<String> = wanted.iter().map(ToString::to_string).collect();
            format!("{} on {} computes in no {}", env.device, env.backend, names.join(" or "))
        })
    }
}
