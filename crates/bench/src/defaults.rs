//! The sizes of an experiment that nobody sized: the one place that knows them.
//!
//! They depend on what computes, so that `experiment` without flags ends within minutes on two CPU cores and yet gives
//! a GPU enough to do. Whatever they are, `experiment.toml` records them.

use std::path::PathBuf;

use mem_policy::{Backend, Environment};

use crate::config::Limit;
use crate::run::spec::Optimizer;

/// Sizes that follow from the device.
#[derive(Debug, Clone, PartialEq)]
pub struct Defaults {
    /// Runs of each arm.
    pub repeats: usize,
    /// Epochs of a run.
    pub epochs: usize,
    /// Micro-batches of an epoch.
    pub max_steps: Limit,
    /// Training images.
    pub max_train: Limit,
    /// Test images.
    pub max_test: Limit,
    /// Samples per optimizer step.
    pub batch_size: usize,
    /// Height and width in pixels.
    pub image_size: usize,
    /// Channels of the convolution blocks.
    pub widths: &'static [usize],
    /// Hidden units of the classifier.
    pub hidden: usize,
    /// Steps that are not timed.
    pub warmup_steps: usize,
    /// One step in so many is sampled.
    pub sample_every: usize,
    /// Seconds.
    pub timeout: u64,
}

/// Images are in colour, grey ones repeated: the network under study takes RGB.
pub const CHANNELS: usize = 3;
/// The optimizer.
pub const OPTIMIZER: Optimizer = Optimizer::Sgd;
/// Its learning rate.
pub const LEARNING_RATE: f64 = 0.01;
/// No decoded image is kept: a cache is memory too, and would blur what a policy saves.
pub const CACHE_BYTES: u64 = 0;
/// Seeds the experiment.
pub const SEED: u64 = 42;

/// A CPU, or a GPU made of one: seconds per run.
const SMALL: Defaults = Defaults {
    repeats: 3,
    epochs: 1,
    max_steps: Limit::ALL,
    max_train: Limit::at_most(416),
    max_test: Limit::at_most(96),
    batch_size: 32,
    image_size: 32,
    widths: &[8, 16],
    hidden: 64,
    warmup_steps: 2,
    sample_every: 5,
    timeout: 300,
};

/// A real GPU: the network at a quarter of its widths, at its own image size.
const LARGE: Defaults = Defaults {
    repeats: 5,
    epochs: 2,
    max_steps: Limit::ALL,
    max_train: Limit::ALL,
    max_test: Limit::ALL,
    batch_size: 64,
    image_size: 96,
    widths: &[16, 32, 64, 128],
    hidden: 128,
    warmup_steps: 5,
    sample_every: 7,
    timeout: 1800,
};

impl Defaults {
    /// The sizes for `environment`.
    #[must_use]
    pub fn of(environment: &Environment) -> Self {
        if environment.backend == Backend::Cpu || environment.software { SMALL } else { LARGE }
    }
}

/// The sample that ships with the sources, if this program runs where it was built; else `datasets` in the current
/// folder.
#[must_use]
pub fn data_dir() -> PathBuf {
    let shipped = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets"));
    shipped.canonicalize().unwrap_or_else(|_| PathBuf::from("datasets"))
}
