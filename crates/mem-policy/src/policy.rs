//! The [`MemoryPolicy`] trait and the words that describe a policy.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::context::{EpochCx, StepCx, Verdict};
use crate::environment::{Environment, Support};
use crate::error::PolicyError;
use crate::plan::TrainPlan;

/// A way to train with less memory, or to see and bound what training takes.
///
/// A policy *decides*: [`plan`](Self::plan) writes plain data into a [`TrainPlan`] and touches no device, file, clock
/// or environment variable. A mechanism (the trainer, the loader, the device set-up) *does* what the plan says. Two
/// callbacks exist for what can only happen while training runs.
///
/// The trait has no model and no backend parameter and is object-safe, so that policies from several crates compose
/// in one list.
///
/// # Order
///
/// [`plan`](Self::plan) is called on every policy of a list, first to last, before anything runs; two policies that
/// want different values for one field are a conflict whatever their order. The callbacks run first to last too, and
/// there the order is visible: with `[empty-cache, memory-limit]` the limit is checked after the cache went back to
/// the driver; with `[memory-limit, empty-cache]` it is checked before, and stops a run that the other order lets
/// live. A configuration file applies the registry's order; a program may choose its own.
pub trait MemoryPolicy: fmt::Debug + Send {
    /// Identity, parameters and documentation.
    fn spec(&self) -> &'static PolicySpec;

    /// Whether this policy can do anything on `env`.
    fn support(&self, env: &Environment) -> Support {
        let _ = env;
        Support::Yes
    }

    /// Writes what this policy wants into `plan`.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Conflict`] if another policy set the same field to another value,
    /// [`PolicyError::Unplannable`] if the plan so far makes this policy meaningless.
    fn plan(&self, plan: &mut TrainPlan) -> Result<(), PolicyError>;

    /// Called after every backward pass, when parameters, gradients and whatever the allocator cached are alive, and
    /// before the optimizer runs.
    ///
    /// # Errors
    ///
    /// Any error ends the run; [`PolicyError::MemoryLimit`] says which limit was passed.
    fn after_backward(&mut self, cx: &mut StepCx<'_>) -> Result<(), PolicyError> {
        let _ = cx;
        Ok(())
    }

    /// Called after every epoch, validation included.
    ///
    /// # Errors
    ///
    /// Any error ends the run.
    fn after_epoch(&mut self, cx: &mut EpochCx<'_>) -> Result<Verdict, PolicyError> {
        let _ = cx;
        Ok(Verdict::Continue)
    }
}

// Object safety is part of the contract.
const _: Option<&dyn MemoryPolicy> = None;

/// What a policy is, as data: help texts, generated pages and contract tests read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PolicySpec {
    /// The name in configuration files, flags and records, in kebab case.
    pub id: &'static str,
    /// A title for people.
    pub title: &'static str,
    /// One sentence: what it saves and by which means.
    pub summary: &'static str,
    /// Where in a run it acts.
    pub stage: Stage,
    /// What stays the same when it is on.
    pub fidelity: Fidelity,
    /// Its parameters.
    pub params: &'static [ParamSpec],
}

impl PolicySpec {
    /// A specification without parameters.
    #[must_use]
    pub const fn new(
        id: &'static str,
        title: &'static str,
        summary: &'static str,
        stage: Stage,
        fidelity: Fidelity,
    ) -> Self {
        Self { id, title, summary, stage, fidelity, params: &[] }
    }

    /// The same with parameters.
    #[must_use]
    pub const fn with_params(mut self, params: &'static [ParamSpec]) -> Self {
        self.params = params;
        self
    }
}

/// One parameter of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ParamSpec {
    /// The key in the configuration file.
    pub name: &'static str,
    /// Its type and unit, for people: `integer (samples)`.
    pub kind: &'static str,
    /// The value when the key is absent, as it would be written in TOML, or a sentence in brackets.
    pub default: &'static str,
    /// The accepted values, for people: `1..`, `0 < x <= 1`.
    pub range: &'static str,
    /// One sentence.
    pub help: &'static str,
}

impl ParamSpec {
    /// A parameter.
    #[must_use]
    pub const fn new(
        name: &'static str,
        kind: &'static str,
        default: &'static str,
        range: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, kind, default, range, help }
    }
}

/// Where in a run a policy acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Stage {
    /// Once per process, before the device opens: default dtypes, pool layout.
    Process,
    /// On the data and how they reach the device.
    Data,
    /// On the network.
    Model,
    /// In every training step.
    Step,
    /// At the end of every epoch.
    Epoch,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Process => "process",
            Self::Data => "data",
            Self::Model => "model",
            Self::Step => "step",
            Self::Epoch => "epoch",
        })
    }
}

/// What stays the same when a policy is on. Each class has a test of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Fidelity {
    /// The same gradients, bit for bit on a deterministic backend.
    Exact,
    /// The same objective, equal up to rounding (and batch statistics, where the policy says so).
    SameObjective,
    /// Another run: other data, another model, another precision or another schedule.
    DifferentRun,
}

impl fmt::Display for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Exact => "exact",
            Self::SameObjective => "same objective",
            Self::DifferentRun => "different run",
        })
    }
}
