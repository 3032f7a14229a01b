use serde::{Deserialize, Serialize};

use crate::context::{EventKind, MemoryUsage, StepCx};
use crate::environment::{Environment, Support};
use crate::error::{PolicyError, percent};
use crate::plan::TrainPlan;
use crate::policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
use crate::registry::ConfiguredPolicy;

/// Ends a run with a clear error before the system swaps or the driver fails.
///
/// **Saves** nothing by itself: it bounds. **Mechanism:** the trainer's [`MemorySource`](crate::MemorySource), held
/// against shares of the device's recommended working set (Metal), memory budget (Vulkan) or the system's limit (CPU).
/// **Acts** after the backward pass of every `every`th micro-batch. Over the soft limit it warns, once per crossing, and
/// gives unused pages back (`Device::memory_cleanup`); over the hard limit it does the same, reads again, and stops.
/// **Costs** one reading per check. **Unchanged:** everything. What it does not see: a peak between two checks.
///
/// # Errors
///
/// [`PolicyError::MemoryLimit`] over the hard limit, with the counter, the value and the limit.
///
/// # Example
///
/// ```
/// use mem_policy::{Environment, MemoryPolicy, Support, policies::MemoryLimit};
///
/// let mut env = Environment::cpu();
/// assert!(matches!(MemoryLimit::default().support(&env), Support::No(_)));
/// env.memory_budget = Some(8 << 30);
/// assert_eq!(MemoryLimit::default().support(&env), Support::Yes);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryLimit {
    /// The share of the budget above which to warn and clean up. Absent: 0.8, or `hard` if that is lower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft: Option<f64>,
    /// The share of the budget above which to stop.
    pub hard: f64,
    /// Micro-batches between two checks.
    pub every: usize,
    #[serde(skip)]
    over_soft: bool,
    #[serde(skip)]
    blind: bool,
}

/// The soft limit unless one is given.
const SOFT: f64 = 0.8;

impl Default for MemoryLimit {
    fn default() -> Self {
        Self { soft: None, hard: 0.95, every: 1, over_soft: false, blind: false }
    }
}

impl MemoryLimit {
    /// Limits at shares of the budget, checked after every micro-batch.
    #[must_use]
    pub fn new(soft: f64, hard: f64) -> Self {
        Self { soft: Some(soft), hard, every: 1, over_soft: false, blind: false }
    }

    fn soft(&self) -> f64 {
        self.soft.unwrap_or(SOFT.min(self.hard))
    }

    fn read(&mut self, cx: &mut StepCx<'_>) -> Option<(MemoryUsage, f64)> {
        let usage = cx.memory.usage();
        let read = usage.and_then(|usage| usage.share().map(|share| (usage, share)));
        if read.is_none() && !self.blind {
            self.blind = true;
            tracing::warn!("memory-limit cannot read memory in use and its total: nothing is limited");
            cx.note(
                Self::SPEC.id,
                EventKind::Warning,
                "memory in use and its total cannot be read: nothing is limited",
                None,
            );
        }
        read
    }
}

impl ConfiguredPolicy for MemoryLimit {
    const SPEC: PolicySpec = PolicySpec::new(
        "memory-limit",
        "Memory limit",
        "stops with a clear error before the system swaps, and warns and cleans up before that",
        Stage::Step,
        Fidelity::Exact,
    )
    .with_params(&[
        ParamSpec::new(
            "soft",
            "number (share of the budget)",
            "[0.8, or `hard` if lower]",
            "0 < x <= hard",
            "warn and clean up above it",
        ),
        ParamSpec::new("hard", "number (share of the budget)", "0.95", "soft <= x <= 2", "stop above it"),
        ParamSpec::new("every", "integer (micro-batches)", "1", "1..", "check after every n-th micro-batch"),
    ]);

    fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        if let Some(soft) = self.soft {
            if !(soft > 0.0 && soft.is_finite()) {
                wrong.push(("soft", format!("{soft} is out of range: use a share above 0")));
            } else if soft > self.hard {
                wrong.push((
                    "soft",
                    format!("{soft} is above `hard` ({}): use at most that, or raise `hard`", self.hard),
                ));
            }
        }
        if !(self.hard > 0.0 && self.hard <= 2.0) {
            wrong.push(("hard", format!("{} is out of range: use a share above 0 and at most 2", self.hard)));
        }
        if self.every == 0 {
            wrong.push(("every", "0 is out of range: use at least 1".to_owned()));
        }
        wrong
    }
}

impl MemoryPolicy for MemoryLimit {
    fn spec(&self) -> &'static PolicySpec {
        &Self::SPEC
    }

    fn support(&self, env: &Environment) -> Support {
        if env.memory_budget.is_some() {
            Support::Yes
        } else {
            Support::No(format!("nothing says how much memory {} on {} may use", env.device, env.backend))
        }
    }

    fn plan(&self, _plan: &mut TrainPlan) -> Result<(), PolicyError> {
        Ok(())
    }

    fn after_backward(&mut self, cx: &mut StepCx<'_>) -> Result<(), PolicyError> {
        if !cx.step.is_multiple_of(self.every.max(1)) {
            return Ok(());
        }
        let Some((usage, share)) = self.read(cx) else { return Ok(()) };
        if share <= self.soft() {
            self.over_soft = false;
            return Ok(());
        }
        cx.device.memory_cleanup();
        if !self.over_soft {
            self.over_soft = true;
            let message = format!(
                "{} % of the memory budget is in use, over the soft limit of {} %; gave unused pages back",
                percent(share),
                percent(self.soft())
            );
            tracing::warn!(step = cx.step, "{message}");
            cx.note(Self::SPEC.id, EventKind::Warning, message, Some(usage));
        }
        let Some((usage, share)) = self.read(cx) else { return Ok(()) };
        let total = usage.total_bytes.unwrap_or_default();
        if share <= self.hard {
            return Ok(());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a positive share of a byte count, for a message"
        )]
        let error = PolicyError::MemoryLimit {
            step: cx.step,
            used: usage.used_bytes,
            limit: (total as f64 * self.hard) as u64,
            total,
            share: self.hard,
            counter: usage.used_counter.clone(),
        };
        cx.note(Self::SPEC.id, EventKind::Stop, error.to_string(), Some(usage));
        Err(error)
    }
}
