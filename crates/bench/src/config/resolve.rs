//! Decides every value and finds every problem.

use std::fmt::Display;
use std::path::Path;

use data::SetId;
use mem_policy::{Backend, Environment, PolicySet, Problem, registry};

use super::settings::{DatasetChoice, Preset, Settings};
use super::{Experiment, set};
use crate::defaults::{self, Defaults};
use crate::experiment::{arms, reference_policies};
use crate::run::spec::DeviceChoice;

/// Decides every value for `environment` and checks them as a whole.
///
/// # Errors
///
/// Every problem, by name: out-of-range values, unknown policies and parameters, policies that conflict, folders that
/// are not there.
pub fn resolve(settings: Settings, environment: &Environment) -> Result<Experiment, Vec<Problem>> {
    let experiment = fill_in(settings, environment);
    let mut problems = ranges(&experiment);
    problems.extend(folders(&experiment));
    problems.extend(policies(&experiment));
    if problems.is_empty() {
        problems.extend(arms(&experiment, environment).err().unwrap_or_default());
    }
    if problems.is_empty() { Ok(experiment) } else { Err(problems) }
}

fn fill_in(settings: Settings, environment: &Environment) -> Experiment {
    let sizes = Defaults::of(environment);
    let mut dataset: Vec<SetId> = Vec::new();
    for choice in settings.dataset.unwrap_or_else(|| vec![DatasetChoice::All]) {
        for set in choice.sets() {
            if !dataset.contains(set) {
                dataset.push(*set);
            }
        }
    }
    let preset = settings.preset.unwrap_or_default();
    let always = settings.always.unwrap_or_default();
    let data_dir = dataset
        .iter()
        .any(|set| *set != SetId::Synthetic)
        .then(|| settings.data_dir.unwrap_or_else(defaults::data_dir))
        // Absolute, so that the record says where the images came from, and a resume elsewhere finds them.
        .map(|dir| std::path::absolute(&dir).unwrap_or(dir));
    Experiment {
        dataset,
        data_dir,
        device: match settings.device.unwrap_or_default() {
            DeviceChoice::Auto => opened(environment),
            chosen => chosen,
        },
        preset,
        policies: settings.policies.unwrap_or_else(|| {
            let ids: Vec<&str> = match preset {
                Preset::Default => registry().iter().map(|entry| entry.spec.id).collect(),
                Preset::Reference => reference_policies().to_vec(),
            };
            ids.into_iter().filter(|id| !always.iter().any(|on| on == id)).map(str::to_owned).collect()
        }),
        always,
        repeats: settings.repeats.unwrap_or(sizes.repeats),
        seed: settings.seed.unwrap_or(defaults::SEED),
        epochs: settings.epochs.unwrap_or(sizes.epochs),
        max_steps: settings.max_steps.unwrap_or(sizes.max_steps),
        max_train: settings.max_train.unwrap_or(sizes.max_train),
        max_test: settings.max_test.unwrap_or(sizes.max_test),
        batch_size: settings.batch_size.unwrap_or(sizes.batch_size),
        image_size: settings.image_size.unwrap_or(sizes.image_size),
        channels: settings.channels.unwrap_or(defaults::CHANNELS),
        widths: settings.widths.unwrap_or_else(|| sizes.widths.to_vec()),
        hidden: settings.hidden.unwrap_or(sizes.hidden),
        optimizer: settings.optimizer.unwrap_or(defaults::OPTIMIZER),
        learning_rate: settings.learning_rate.unwrap_or(defaults::LEARNING_RATE),
        warmup_steps: settings.warmup_steps.unwrap_or(sizes.warmup_steps),
        sample_every: settings.sample_every.unwrap_or(sizes.sample_every),
        cache_bytes: settings.cache_bytes.unwrap_or(defaults::CACHE_BYTES),
        timeout: settings.timeout.unwrap_or(sizes.timeout),
        set: set::to_table(&settings.set.unwrap_or_default()),
    }
}

/// The device that `auto` opened.
fn opened(environment: &Environment) -> DeviceChoice {
    match environment.backend {
        Backend::Cpu => DeviceChoice::Cpu,
        Backend::Metal => DeviceChoice::Metal,
        Backend::Vulkan => DeviceChoice::Vulkan,
        Backend::Dx12 => DeviceChoice::Dx12,
        _ => DeviceChoice::Wgpu,
    }
}

fn ranges(experiment: &Experiment) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut require = |key: &str, value: &dyn Display, ok: bool, accepted: &str| {
        if !ok {
            problems.push(Problem::new(key, format!("{value} is out of range: use {accepted}")));
        }
    };
    let Experiment { widths, image_size, channels, learning_rate, .. } = experiment;
    require("repeats", &experiment.repeats, (1..=1000).contains(&experiment.repeats), "1 to 1000");
    require("seed", &experiment.seed, i64::try_from(experiment.seed).is_ok(), "at most 2^63 - 1");
    // The upper bounds are far beyond what anybody trains; what is above is a slip, and would overflow somewhere.
    for (key, value, range) in [
        ("epochs", experiment.epochs, 1..=1_000_000),
        ("batch-size", experiment.batch_size, 1..=1_000_000),
        ("hidden", experiment.hidden, 1..=1_000_000),
        ("max-steps", experiment.max_steps.get().unwrap_or(1), 1..=1_000_000_000),
        ("max-train", experiment.max_train.get().unwrap_or(1), 1..=1_000_000_000),
        ("max-test", experiment.max_test.get().unwrap_or(1), 1..=1_000_000_000),
        ("warmup-steps", experiment.warmup_steps, 0..=1_000_000_000),
        ("sample-every", experiment.sample_every, 0..=1_000_000_000),
    ] {
        require(key, &value, range.contains(&value), &format!("{} to {}", range.start(), range.end()));
    }
    let year = 366 * 24 * 60 * 60;
    let accepted = format!("1 to {year} (seconds)");
    require("timeout", &experiment.timeout, (1..=year).contains(&experiment.timeout), &accepted);
    let most = 1_u64 << 50;
    let accepted = format!("0 to {most} (bytes)");
    require("cache-bytes", &experiment.cache_bytes, experiment.cache_bytes <= most, &accepted);
    require("dataset", &"an empty list", !experiment.dataset.is_empty(), "mnist, caltech101, synthetic or all");
    require("policies", &"an empty list", !experiment.policies.is_empty(), "at least one policy to measure");
    require("channels", channels, [1, 3].contains(channels), "1 (grey) or 3 (RGB)");
    require("learning-rate", learning_rate, learning_rate.is_finite() && *learning_rate > 0.0, "a positive number");
    let shown = format!("{widths:?}");
    let fits = (1..=64).contains(&widths.len()) && widths.iter().all(|width| (1..=65_536).contains(width));
    require("widths", &shown, fits, "1 to 64 blocks, each of 1 to 65536 channels");
    // A block's convolution takes 2 pixels off a side and its pooling 1.
    let least = 3 * widths.len() + 1;
    let accepted = format!("{least} (for {} blocks) to 4096", widths.len());
    require("image-size", image_size, (least..=4096).contains(image_size), &accepted);
    problems
}

fn folders(experiment: &Experiment) -> Vec<Problem> {
    let Some(dir) = &experiment.data_dir else { return Vec::new() };
    if !dir.is_dir() {
        return vec![Problem::new("data-dir", format!("{} is not a folder", dir.display()))];
    }
    let missing = |set: &&SetId| **set != SetId::Synthetic && !holds(dir, **set);
    experiment
        .dataset
        .iter()
        .filter(missing)
        .map(|set| {
            let message = format!(
                "{} has no folder `{set}`; `cargo xtask datasets fetch {set}` downloads it, \
                 or leave {set} out of --dataset",
                dir.display()
            );
            Problem::new("data-dir", message)
        })
        .collect()
}

fn holds(dir: &Path, set: SetId) -> bool {
    dir.join(set.name()).is_dir()
}

fn policies(experiment: &Experiment) -> Vec<Problem> {
    let known: Vec<&str> = registry().iter().map(|entry| entry.spec.id).collect();
    let mut problems: Vec<Problem> = experiment
        .policies
        .iter()
        .filter(|id| !known.contains(&id.as_str()) && !id.is_empty())
        .map(|id| Problem::new("policies", format!("unknown policy `{id}`; known: {}", known.join(", "))))
        .collect();
    if experiment.policies.iter().any(String::is_empty) {
        problems.push(Problem::new("policies", "an empty name; separate names by single commas"));
    }
    for (index, id) in experiment.policies.iter().enumerate() {
        if experiment.policies[..index].contains(id) && !id.is_empty() {
            problems.push(Problem::new("policies", format!("`{id}` is listed twice")));
        }
    }
    for id in &experiment.always {
        if !known.contains(&id.as_str()) {
            problems.push(Problem::new("always", format!("unknown policy `{id}`; known: {}", known.join(", "))));
        }
        if experiment.policies.contains(id) {
            problems.push(Problem::new("always", format!("`{id}` is on in every arm, so it cannot be measured too")));
        }
    }
    for id in experiment.set.keys() {
        let used = experiment.policies.contains(id) || experiment.always.contains(id);
        if known.contains(&id.as_str()) && !used {
            problems.push(Problem::new(
                format!("set.{id}"),
                "the policy is not measured, so its parameters would be ignored; add it to policies",
            ));
        }
    }
    // Built from the parameters alone: what they are is checked even if the list of policies is wrong.
    if let Err(found) = PolicySet::from_table(&experiment.set) {
        problems.extend(found.into_iter().map(in_set));
    }
    problems
}

/// The same problem at the place where an experiment has the parameters of policies.
fn in_set(problem: Problem) -> Problem {
    let place = problem.place.strip_prefix("policies.").map_or(problem.place.clone(), |rest| format!("set.{rest}"));
    Problem::new(place, problem.message)
}
