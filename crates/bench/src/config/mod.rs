//! What an experiment is asked to do: flags over a file over defaults, checked as a whole before anything runs.

mod file;
mod limit;
mod resolve;
mod set;
mod settings;

use std::path::PathBuf;

use data::SetId;
use mem_policy::Problem;
use serde::Serialize;

use crate::run::spec::{DataSpec, DeviceChoice, ModelSpec, Optimizer, Purpose, RunSpec, TrainSpec};

pub use limit::Limit;
pub use resolve::resolve;
pub use settings::{DatasetChoice, Preset, Settings};

/// An experiment with every value decided: what `experiment.toml` holds, and what a resumed run must agree with.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Experiment {
    /// The data sets, in order.
    pub dataset: Vec<SetId>,
    /// The folder that holds `mnist/` and `caltech101/`. `None` if all sets are synthetic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<PathBuf>,
    /// What to compute on; never [`DeviceChoice::Auto`].
    pub device: DeviceChoice,
    /// Which arms there are.
    pub preset: Preset,
    /// The policies to measure, by id.
    pub policies: Vec<String>,
    /// Policies that are on in every arm, the baseline included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub always: Vec<String>,
    /// Runs of each arm.
    pub repeats: usize,
    /// Seeds the schedule and, with the repeat added, the runs.
    pub seed: u64,
    /// Epochs of a run.
    pub epochs: usize,
    /// Micro-batches of an epoch, at most.
    pub max_steps: Limit,
    /// Training images, at most, before any policy.
    pub max_train: Limit,
    /// Test images, at most.
    pub max_test: Limit,
    /// Samples per optimizer step, before any policy.
    pub batch_size: usize,
    /// Height and width in pixels.
    pub image_size: usize,
    /// 1 for grey, 3 for RGB.
    pub channels: usize,
    /// Channels of the convolution blocks, before any policy.
    pub widths: Vec<usize>,
    /// Hidden units of the classifier, before any policy.
    pub hidden: usize,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// Its learning rate.
    pub learning_rate: f64,
    /// Steps at the start of a run whose time is not counted.
    pub warmup_steps: usize,
    /// One step in so many is given to memory sampling and not timed.
    pub sample_every: usize,
    /// Bytes of decoded images to keep.
    pub cache_bytes: u64,
    /// Seconds after which a run is ended.
    pub timeout: u64,
    /// Parameters of policies, by policy and name.
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    pub set: toml::Table,
}

impl Experiment {
    /// What the child of one run is told.
    #[must_use]
    pub fn run_spec(&self, set: SetId, policies: &toml::Table, seed: u64, scratch: PathBuf) -> RunSpec {
        RunSpec {
            device: self.device,
            data: DataSpec {
                set,
                dir: if set == SetId::Synthetic { None } else { self.data_dir.clone() },
                image_size: self.image_size,
                channels: self.channels,
                max_train: self.max_train.get(),
                max_test: self.max_test.get(),
                on_bad_file: data::OnBadFile::default(),
                cache_bytes: self.cache_bytes,
            },
            model: ModelSpec { widths: self.widths.clone(), hidden: self.hidden },
            train: TrainSpec {
                batch_size: self.batch_size,
                epochs: self.epochs,
                max_steps: self.max_steps.get(),
                optimizer: self.optimizer,
                learning_rate: self.learning_rate,
                warmup_steps: self.warmup_steps,
                sample_every: self.sample_every,
            },
            policies: policies.clone(),
            seed,
            purpose: Purpose::Measure,
            scratch,
        }
    }

    /// As `experiment.toml`, which `--config` reads.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if a value has no TOML form, such as a seed above 2^63.
    pub fn to_toml(&self) -> Result<String, Problem> {
        toml::to_string_pretty(self).map_err(|error| Problem::new("experiment.toml", error.to_string()))
    }

    /// The keys whose values differ from those of `other`, with both values, for people.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Problem> {
        let table = |experiment: &Self| toml::Table::try_from(experiment).unwrap_or_default();
        let (here, there) = (table(self), table(other));
        let mut keys: Vec<&String> = here.keys().chain(there.keys()).collect();
        keys.sort();
        keys.dedup();
        let show = |value: Option<&toml::Value>| value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
        keys.into_iter()
            .filter(|key| here.get(*key) != there.get(*key))
            .map(|key| {
                let (asked, recorded) = (show(here.get(key)), show(there.get(key)));
                Problem::new(key.clone(), format!("{asked} is asked for, but the records were made with {recorded}"))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
