//! The list of built-in policies, and how a policy is built from its configuration.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Problem;
use crate::policies;
use crate::policy::{MemoryPolicy, PolicySpec};

/// A policy whose parameters come from a configuration: a serde struct with a default for every field.
///
/// Implement it for a policy of your own to give it the same configuration, checks and documentation as the built-in
/// ones; [`PolicyEntry::of`] makes the registry line.
pub trait ConfiguredPolicy: MemoryPolicy + Serialize + DeserializeOwned + Default + 'static {
    /// Identity, parameters and documentation. [`MemoryPolicy::spec`] returns a reference to it.
    const SPEC: PolicySpec;

    /// What is wrong with the parameters: pairs of a parameter's name and a sentence that names the value and what is
    /// accepted. Empty if nothing is.
    fn check(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// Builds a policy from its parameters, or says everything that is wrong with them.
type BuildPolicy = fn(&toml::Table) -> Result<Box<dyn MemoryPolicy>, Vec<Problem>>;

/// A registry line: a policy's description and how to build it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PolicyEntry {
    /// Identity, parameters and documentation.
    pub spec: &'static PolicySpec,
    build: BuildPolicy,
    defaults: fn() -> toml::Table,
}

impl PolicyEntry {
    /// The line of the policy `P`.
    #[must_use]
    pub const fn of<P: ConfiguredPolicy>() -> Self {
        Self { spec: &P::SPEC, build: build::<P>, defaults: defaults::<P> }
    }

    /// Builds the policy from its parameters; absent ones take their defaults.
    ///
    /// # Errors
    ///
    /// Every unknown key, wrong type and out-of-range value, together.
    pub fn build(&self, parameters: &toml::Table) -> Result<Box<dyn MemoryPolicy>, Vec<Problem>> {
        (self.build)(parameters)
    }

    /// The default parameters, as they would stand in a configuration. Parameters that are absent by default are
    /// absent here.
    #[must_use]
    pub fn defaults(&self) -> toml::Table {
        (self.defaults)()
    }
}

impl fmt::Debug for PolicyEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyEntry").field("spec", self.spec).finish_non_exhaustive()
    }
}

/// The built-in policies, in the order in which a configuration applies them.
#[must_use]
pub fn registry() -> &'static [PolicyEntry] {
    const REGISTRY: &[PolicyEntry] = &[
        PolicyEntry::of::<policies::BatchSize>(),
        PolicyEntry::of::<policies::MixedPrecision>(),
        PolicyEntry::of::<policies::HalfPrecision>(),
        PolicyEntry::of::<policies::GradientCheckpointing>(),
        PolicyEntry::of::<policies::SegmentCheckpointing>(),
        PolicyEntry::of::<policies::SegmentSlices>(),
        PolicyEntry::of::<policies::ActivationOffload>(),
        PolicyEntry::of::<policies::UpdateInPlace>(),
        PolicyEntry::of::<policies::FusedOptimizer>(),
        PolicyEntry::of::<policies::ShardLinear>(),
        PolicyEntry::of::<policies::MatmulConv>(),
        PolicyEntry::of::<policies::ModelScaling>(),
        PolicyEntry::of::<policies::EmptyCache>(),
        PolicyEntry::of::<policies::Loader>(),
        PolicyEntry::of::<policies::GradientAccumulation>(),
        PolicyEntry::of::<policies::MemoryLimit>(),
        PolicyEntry::of::<policies::Subset>(),
        PolicyEntry::of::<policies::Monitor>(),
        PolicyEntry::of::<policies::AllocatorPages>(),
        PolicyEntry::of::<policies::PoolSlack>(),
        PolicyEntry::of::<policies::WarmAutotune>(),
        PolicyEntry::of::<policies::OptimizerState>(),
    ];
    REGISTRY
}

fn build<P: ConfiguredPolicy>(parameters: &toml::Table) -> Result<Box<dyn MemoryPolicy>, Vec<Problem>> {
    let place = |key: &str| format!("policies.{}.{key}", P::SPEC.id);
    let known: Vec<&str> = P::SPEC.params.iter().map(|param| param.name).collect();
    let mut problems = Vec::new();
    for (key, value) in parameters {
        if !known.contains(&key.as_str()) {
            let accepted = if known.is_empty() { "it takes no parameters".to_owned() } else { known.join(", ") };
            problems.push(Problem::new(place(key), format!("unknown key; accepted: {accepted}")));
            continue;
        }
        // One key at a time, so that one wrong type does not hide another.
        let alone = toml::Table::from_iter([(key.clone(), value.clone())]);
        if let Err(error) = alone.try_into::<P>() {
            problems.push(Problem::new(place(key), format!("{value} is not accepted: {}", error.message().trim())));
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let policy: P = parameters
        .clone()
        .try_into()
        .map_err(|error: toml::de::Error| vec![Problem::new(place("*"), error.message().trim().to_owned())])?;
    let problems: Vec<Problem> =
        policy.check().into_iter().map(|(key, message)| Problem::new(place(key), message)).collect();
    if problems.is_empty() { Ok(Box::new(policy)) } else { Err(problems) }
}

fn defaults<P: ConfiguredPolicy>() -> toml::Table {
    toml::Table::try_from(P::default()).unwrap_or_default()
}
