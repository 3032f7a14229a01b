use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use crate::environment::{Environment, Support};
use crate::error::PolicyError;
use crate::plan::{TrainPlan, TuningLevel, TuningPlan};
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Kernels chosen in a process of their own, before training.
///
/// **Saves** the memory that choosing kernels takes: candidates run one after the other on real sizes, each with a workspace
/// of its own, and the pools keep what the largest one took. **Mechanism:** CubeCL's autotune cache. A process of its own
/// trains a few steps and validates one batch, which chooses all kernels of these shapes, and ends; its choices are on disk, in
/// an environment named after the GPU and its driver, where the training run finds them. **Acts** before the run.
/// **Costs** that process's time, once for each network, batch size and GPU. **Unchanged:** the objective; a kernel chosen
/// at another moment may add in another order.
///
/// The tuning process watches what it takes and ends itself over `cap`; what it chose until then is kept. The training run
/// then chooses the rest itself, and says how many.
///
/// # Example
///
/// ```
/// use mem_policy::{Environment, MemoryPolicy, Support, policies::WarmAutotune};
///
/// // On the CPU there is nothing to choose.
/// assert!(matches!(WarmAutotune::default().support(&Environment::cpu()), Support::No(_)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WarmAutotune {
    /// How many candidates are tried.
    pub level: TuningLevel,
    /// Bytes that the tuning process may take on the device. Absent: no cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<ByteSize>,
}

impl ConfiguredPolicy for WarmAutotune {
    const SPEC: PolicySpec = PolicySpec::new(
        "warm-autotune",
        "Kernels chosen beforehand",
        "chooses kernels in a process of its own, whose memory is not the run's",
        Stage::Process,
        Fidelity::SameObjective,
    )
    .with_params(&[
        ParamSpec::new(
            "level",
            "string",
            "\"balanced\"",
            "\"minimal\", \"balanced\", \"extensive\", \"full\"",
            "how many candidates are tried",
        ),
        ParamSpec::new("cap", "bytes", "[no cap]", "1 B..", "the most that the tuning process may take on the device"),
    ]);

    fn check(&self) -> Vec<(&'static str, String)> {
        match self.cap {
            Some(cap) if cap.as_u64() == 0 => vec![("cap", "0 B is out of range: use at least 1 B".to_owned())],
            _ => Vec::new(),
        }
    }
}

impl MemoryPolicy for WarmAutotune {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn support(&self, env: &Environment) -> Support {
        if env.autotune {
            Support::Yes
        } else {
            Support::No(format!("kernels are not chosen by measuring on this {} device in this build", env.backend))
        }
    }

    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError> {
        let Self { level, cap } = *self;
        plan.tuning.set(Self::SPEC.id, Some(TuningPlan { level, cap_bytes: cap.map(|cap| cap.as_u64()) }))
    }
}
