//! The settings of an experiment as a user gives them: the flags of `experiment` and the keys of its file are one list.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use data::SetId;
use serde::{Deserialize, Serialize};

use super::limit::Limit;
use super::set::SetParam;
use crate::run::spec::{DeviceChoice, Optimizer};

/// What a user asked for; `None` was not mentioned.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Settings {
    /// Data sets to train on, separated by commas; `all` is mnist and caltech101
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SET", help_heading = "What is measured")]
    pub dataset: Option<Vec<DatasetChoice>>,
    /// Which arms there are [default: default]
    #[arg(long, value_enum, value_name = "NAME", help_heading = "What is measured")]
    pub preset: Option<Preset>,
    /// Policies to measure, separated by commas; the baseline always runs [default: those of the preset]
    #[arg(long, value_delimiter = ',', value_name = "ID,..", help_heading = "What is measured")]
    pub policies: Option<Vec<String>>,
    /// Policies that are on in every arm, the baseline included: what is measured comes on top of them
    #[arg(long, value_delimiter = ',', value_name = "POLICY,..", help_heading = "What is measured")]
    pub always: Option<Vec<String>>,
    /// Sets a parameter of a policy, such as `batch-size.size=16`; can be repeated
    #[arg(long, value_name = "POLICY.PARAM=VALUE", help_heading = "What is measured")]
    pub set: Option<Vec<SetParam>>,
    /// Runs of each arm; with one there are no intervals
    #[arg(long, value_name = "N", help_heading = "What is measured")]
    pub repeats: Option<usize>,
    /// Seeds the order of the runs, the weights and the order of the data
    #[arg(long, value_name = "N", help_heading = "What is measured")]
    pub seed: Option<u64>,

    /// The folder that holds `mnist/` and `caltech101/` [default: the sample that ships]
    #[arg(long, env = "MEM_POLICY_DATA", hide_env_values = true, value_name = "DIR", help_heading = "Data")]
    pub data_dir: Option<PathBuf>,
    /// Training images at most, before any policy, or `all`
    #[arg(long, value_name = "N|all", help_heading = "Data")]
    pub max_train: Option<Limit>,
    /// Test images at most, or `all`
    #[arg(long, value_name = "N|all", help_heading = "Data")]
    pub max_test: Option<Limit>,
    /// Height and width in pixels
    #[arg(long, value_name = "PIXELS", help_heading = "Data")]
    pub image_size: Option<usize>,
    /// 1 for grey images, 3 for RGB
    #[arg(long, value_name = "1|3", help_heading = "Data")]
    pub channels: Option<usize>,
    /// Bytes of decoded images to keep in memory; 0 keeps none
    #[arg(long, value_name = "BYTES", help_heading = "Data")]
    pub cache_bytes: Option<u64>,

    /// What to compute on: `auto` is a real GPU when there is one, else the CPU [default: auto]
    #[arg(long, value_enum, value_name = "DEVICE", help_heading = "Training")]
    pub device: Option<DeviceChoice>,
    /// Epochs of a run
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub epochs: Option<usize>,
    /// Micro-batches of an epoch at most, or `all`
    #[arg(long, value_name = "N|all", help_heading = "Training")]
    pub max_steps: Option<Limit>,
    /// Samples per optimizer step, before any policy
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub batch_size: Option<usize>,
    /// Channels of the convolution blocks, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "N,..", help_heading = "Training")]
    pub widths: Option<Vec<usize>>,
    /// Hidden units of the classifier
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub hidden: Option<usize>,
    /// The optimizer
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Training")]
    pub optimizer: Option<Optimizer>,
    /// The optimizer's learning rate
    #[arg(long, value_name = "RATE", help_heading = "Training")]
    pub learning_rate: Option<f64>,
    /// Steps at the start of a run whose time is not counted
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub warmup_steps: Option<usize>,
    /// One step in so many is given to memory sampling and not timed; 0 samples none
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub sample_every: Option<usize>,
    /// Seconds after which a run is ended
    #[arg(long, value_name = "SECONDS", help_heading = "Training")]
    pub timeout: Option<u64>,
}

impl Settings {
    /// These settings, and where they are silent those of `below`. Parameters of policies are merged one by one.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        let set = match (self.set, below.set) {
            (Some(mut above), Some(below)) => {
                above.splice(0..0, below);
                Some(above)
            }
            (above, below) => above.or(below),
        };
        Self {
            dataset: self.dataset.or(below.dataset),
            preset: self.preset.or(below.preset),
            policies: self.policies.or(below.policies),
            always: self.always.or(below.always),
            set,
            repeats: self.repeats.or(below.repeats),
            seed: self.seed.or(below.seed),
            data_dir: self.data_dir.or(below.data_dir),
            max_train: self.max_train.or(below.max_train),
            max_test: self.max_test.or(below.max_test),
            image_size: self.image_size.or(below.image_size),
            channels: self.channels.or(below.channels),
            cache_bytes: self.cache_bytes.or(below.cache_bytes),
            device: self.device.or(below.device),
            epochs: self.epochs.or(below.epochs),
            max_steps: self.max_steps.or(below.max_steps),
            batch_size: self.batch_size.or(below.batch_size),
            widths: self.widths.or(below.widths),
            hidden: self.hidden.or(below.hidden),
            optimizer: self.optimizer.or(below.optimizer),
            learning_rate: self.learning_rate.or(below.learning_rate),
            warmup_steps: self.warmup_steps.or(below.warmup_steps),
            sample_every: self.sample_every.or(below.sample_every),
            timeout: self.timeout.or(below.timeout),
        }
    }
}

/// Data sets as flags name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DatasetChoice {
    /// Handwritten digits
    Mnist,
    /// Photographs of objects in 101 classes
    Caltech101,
    /// Generated images; needs no files
    Synthetic,
    /// mnist and caltech101
    All,
}

impl DatasetChoice {
    /// The sets it stands for.
    #[must_use]
    pub fn sets(self) -> &'static [SetId] {
        match self {
            Self::Mnist => &[SetId::Mnist],
            Self::Caltech101 => &[SetId::Caltech101],
            Self::Synthetic => &[SetId::Synthetic],
            Self::All => &[SetId::Mnist, SetId::Caltech101],
        }
    }
}

/// Which arms an experiment has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The baseline, and every policy alone
    #[default]
    Default,
    /// The baseline; 20 % of the data, staging, 16-bit, cache clearing and accumulation alone; and all of them together
    Reference,
}
