//! What is compared with what.

use std::collections::BTreeMap;

use mem_policy::{Baseline, Environment, PolicySet, Problem, Support};
use toml::{Table, Value};

use crate::config::{Experiment, Preset};
use crate::record::BASELINE;

/// One side of a comparison: a set of policies that is on.
#[derive(Debug, Clone, PartialEq)]
pub struct Arm {
    /// [`BASELINE`], a policy's id, or several joined by `+`.
    pub id: String,
    /// The policies that are on, with their parameters.
    pub policies: Table,
    /// Policies a combination goes without because the device does not support them, with the reason.
    pub left_out: BTreeMap<String, String>,
    /// Why the arm is not run at all.
    pub unsupported: Option<String>,
}

/// The policies of the reference comparison, with the parameters it gives them.
const REFERENCE: [(&str, &[(&str, Param)]); 5] = [
    ("subset", &[("fraction", Param::Number(0.2))]),
    ("loader", &[("staging", Param::Flag(true))]),
    ("mixed-precision", &[]),
    ("empty-cache", &[]),
    ("gradient-accumulation", &[]),
];

enum Param {
    Number(f64),
    Flag(bool),
}

/// The ids of the policies of the reference comparison.
#[must_use]
pub fn reference_policies() -> [&'static str; REFERENCE.len()] {
    REFERENCE.map(|(id, _)| id)
}

/// The arms of an experiment: the baseline first, then each policy alone; with [`Preset::Reference`] also all of them
/// together.
///
/// A policy that the device does not support is an arm that says so.
///
/// # Errors
///
/// Every policy that cannot be built or planned, by name.
pub fn arms(experiment: &Experiment, environment: &Environment) -> Result<Vec<Arm>, Vec<Problem>> {
    let mut problems = Vec::new();
    // On in every arm, also where another policy could not do without it.
    let always: Table =
        experiment.always.iter().map(|id| (id.clone(), Value::Table(parameters(experiment, id)))).collect();
    let mut arms = Vec::new();
    match unsupported(&always, environment) {
        Ok(reasons) => arms.push(Arm {
            id: BASELINE.to_owned(),
            policies: always.clone(),
            left_out: BTreeMap::new(),
            unsupported: reasons.into_values().next(),
        }),
        Err(found) => problems.extend(found),
    }
    let alone: Vec<(&str, Table)> =
        experiment.policies.iter().map(|id| (id.as_str(), parameters(experiment, id))).collect();
    for (id, parameters) in &alone {
        let mut policies = always.clone();
        policies.insert((*id).to_owned(), Value::Table(parameters.clone()));
        match unsupported(&policies, environment) {
            Ok(reasons) => arms.push(Arm {
                id: (*id).to_owned(),
                policies,
                left_out: BTreeMap::new(),
                unsupported: reasons.into_values().next(),
            }),
            Err(found) => problems.extend(found),
        }
    }
    if experiment.preset == Preset::Reference && alone.len() > 1 && problems.is_empty() {
        arms.push(together(&alone, &arms, &always));
    }
    for arm in &arms {
        if arm.unsupported.is_none() {
            problems.extend(plan_problems(arm, experiment, environment));
        }
    }
    if problems.is_empty() { Ok(arms) } else { Err(problems) }
}

fn parameters(experiment: &Experiment, id: &str) -> Table {
    let mut parameters = Table::new();
    if experiment.preset == Preset::Reference {
        for (_, preset) in REFERENCE.iter().filter(|(preset, _)| *preset == id) {
            parameters.extend(preset.iter().map(|(name, value)| {
                let value = match value {
                    Param::Number(number) => Value::Float(*number),
                    Param::Flag(flag) => Value::Boolean(*flag),
                };
                ((*name).to_owned(), value)
            }));
        }
    }
    if let Some(Value::Table(set)) = experiment.set.get(id) {
        parameters.extend(set.clone());
    }
    parameters
}

fn unsupported(policies: &Table, environment: &Environment) -> Result<BTreeMap<String, String>, Vec<Problem>> {
    let set = PolicySet::from_table(policies)?;
    let reasons = set.unsupported(environment).into_iter().filter_map(|(id, support)| {
        let why = match support {
            Support::Yes => return None,
            Support::No(why) => why,
            Support::KnownBad(how) => format!("known to fail here: {how}"),
        };
        Some((id.to_owned(), why))
    });
    Ok(reasons.collect())
}

/// All policies that the device supports, in one arm.
fn together(alone: &[(&str, Table)], arms: &[Arm], always: &Table) -> Arm {
    let reason = |id: &str| arms.iter().find(|arm| arm.id == id).and_then(|arm| arm.unsupported.clone());
    let left_out: BTreeMap<String, String> =
        alone.iter().filter_map(|(id, _)| reason(id).map(|why| ((*id).to_owned(), why))).collect();
    let on: Vec<&(&str, Table)> = alone.iter().filter(|(id, _)| !left_out.contains_key(*id)).collect();
    Arm {
        // Named by all of it, so that the same comparison has the same name on every device.
        id: alone.iter().map(|(id, _)| *id).collect::<Vec<_>>().join("+"),
        policies: always
            .clone()
            .into_iter()
            .chain(on.iter().map(|(id, parameters)| ((*id).to_owned(), Value::Table(parameters.clone()))))
            .collect(),
        left_out,
        unsupported: (on.len() < 2)
            .then(|| "fewer than two of its policies are supported here, so there is nothing to combine".to_owned()),
    }
}

fn plan_problems(arm: &Arm, experiment: &Experiment, environment: &Environment) -> Vec<Problem> {
    let place = |error: &dyn std::fmt::Display| Problem::new(format!("arm `{}`", arm.id), error.to_string());
    match PolicySet::from_table(&arm.policies) {
        Ok(set) => match set.plan(&Baseline::new(experiment.batch_size), environment) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.iter().map(|error| place(error)).collect(),
        },
        Err(found) => found,
    }
}
