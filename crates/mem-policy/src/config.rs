//! A list of policies, from a configuration or from Rust.

use crate::context::{EpochCx, StepCx, Verdict};
use crate::environment::{Environment, Support};
use crate::error::{PolicyError, Problem};
use crate::plan::{Baseline, TrainPlan};
use crate::policy::MemoryPolicy;
use crate::registry::{PolicyEntry, registry};

/// A list of policies. Their order is the order of their callbacks; see [`MemoryPolicy`].
#[derive(Debug, Default)]
pub struct PolicySet {
    policies: Vec<Box<dyn MemoryPolicy>>,
}

impl PolicySet {
    /// No policies.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The built-in policies that `table` turns on, in the registry's order.
    ///
    /// `table` maps ids to tables of parameters; a policy is on if its id is there (`[empty-cache]` alone turns it on
    /// with its defaults), and `false` turns it off without deleting it.
    ///
    /// # Errors
    ///
    /// Every unknown policy, unknown key, wrong type and out-of-range value, together.
    pub fn from_table(table: &toml::Table) -> Result<Self, Vec<Problem>> {
        Self::from_table_with(table, registry())
    }

    /// [`from_table`](Self::from_table) with another registry, for policies of your own.
    ///
    /// # Errors
    ///
    /// See [`from_table`](Self::from_table).
    pub fn from_table_with(table: &toml::Table, entries: &[PolicyEntry]) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        for id in table.keys() {
            if !entries.iter().any(|entry| entry.spec.id == id) {
                let known: Vec<&str> = entries.iter().map(|entry| entry.spec.id).collect();
                problems.push(Problem::new(
                    format!("policies.{id}"),
                    format!("unknown policy; known: {}", known.join(", ")),
                ));
            }
        }
        let mut set = Self::new();
        for entry in entries {
            let built = match table.get(entry.spec.id) {
                None | Some(toml::Value::Boolean(false)) => continue,
                Some(toml::Value::Boolean(true)) => entry.build(&toml::Table::new()),
                Some(toml::Value::Table(parameters)) => entry.build(parameters),
                Some(other) => Err(vec![Problem::new(
                    format!("policies.{}", entry.spec.id),
                    format!("{other} is not accepted: write a table of parameters, true or false"),
                )]),
            };
            match built {
                Ok(policy) => set.policies.push(policy),
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() { Ok(set) } else { Err(problems) }
    }

    /// Adds a policy at the end.
    #[must_use]
    pub fn with(mut self, policy: impl MemoryPolicy + 'static) -> Self {
        self.policies.push(Box::new(policy));
        self
    }

    /// The policies in order.
    pub fn iter(&self) -> impl Iterator<Item = &dyn MemoryPolicy> {
        self.policies.iter().map(|policy| &**policy)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.policies.len()
    }

    /// The policies that cannot do anything on `env`, with their answers.
    #[must_use]
    pub fn unsupported(&self, env: &Environment) -> Vec<(&'static str, Support)> {
        self.iter()
            .map(|policy| (policy.spec().id, policy.support(env)))
            .filter(|(_, support)| !support.is_yes())
            .collect()
    }

    /// Plans a run.
    ///
    /// # Errors
    ///
    /// Every conflict and every policy that makes no sense here, together.
    pub fn plan(&self, baseline: &Baseline, env: &Environment) -> Result<TrainPlan, Vec<PolicyError>> {
        TrainPlan::build(baseline, env, self.iter())
    }

    /// Calls [`MemoryPolicy::after_backward`] on each policy in order.
    ///
    /// # Errors
    ///
    /// The first error; later policies are not called.
    pub fn after_backward(&mut self, cx: &mut StepCx<'_>) -> Result<(), PolicyError> {
        self.policies.iter_mut().try_for_each(|policy| policy.after_backward(cx))
    }

    /// Calls [`MemoryPolicy::after_epoch`] on each policy in order. Every policy is asked; the first that wants to stop
    /// is answered.
    ///
    /// # Errors
    ///
    /// The first error; later policies are not called.
    pub fn after_epoch(&mut self, cx: &mut EpochCx<'_>) -> Result<Verdict, PolicyError> {
        let mut verdict = Verdict::Continue;
        for policy in &mut self.policies {
            let said = policy.after_epoch(cx)?;
            if verdict == Verdict::Continue {
                verdict = said;
            }
        }
        Ok(verdict)
    }
}

impl FromIterator<Box<dyn MemoryPolicy>> for PolicySet {
    fn from_iter<I: IntoIterator<Item = Box<dyn MemoryPolicy>>>(policies: I) -> Self {
        Self { policies: policies.into_iter().collect() }
    }
}
