//! The values a plan's fields take.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::optim::{BlockSize, StateCode};
use crate::precision::LossScalerConfig;
use crate::shard::ShardAxis;

/// A float dtype to store and compute in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Precision {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16.
    Bf16,
}

impl Precision {
    /// Bytes per element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        })
    }
}

/// How much of the network is built, relative to its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelScale {
    /// Factor on the channels of every block.
    pub width: f64,
    /// Blocks to keep, counted from the input. `None` keeps all.
    pub depth: Option<usize>,
    /// Factor on the hidden units of the classifier.
    pub hidden: f64,
}

impl ModelScale {
    /// `n` units scaled by `factor`: rounded to the nearest, at least 1.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "layer sizes are far below 2^52, and `max` keeps the product positive"
    )]
    pub fn scaled(n: usize, factor: f64) -> usize {
        ((n as f64 * factor).round().max(1.0)) as usize
    }
}

impl Default for ModelScale {
    fn default() -> Self {
        Self { width: 1.0, depth: None, hidden: 1.0 }
    }
}

/// How batches are decoded and reach the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoaderPlan {
    /// Threads that decode. 0 decodes in the training thread.
    pub workers: usize,
    /// Batches kept ready ahead of training.
    pub prefetch: usize,
    /// Whether host memory is prepared for the transfer (`Device::staging`; pinned memory where the backend has it).
    pub staging: bool,
}

/// Which part of the data a run uses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SubsetPlan {
    /// How many samples.
    pub size: SubsetSize,
    /// Which ones.
    pub sampling: Sampling,
}

/// How many samples a subset holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubsetSize {
    /// This many, training and test together.
    Samples(usize),
    /// This share of the training samples, above 0 and at most 1 (all); the test samples keep their proportion to them.
    Fraction(f64),
}

/// Which samples a subset holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// The first ones.
    #[default]
    FirstN,
    /// A seeded random choice.
    Random {
        /// The seed.
        seed: u64,
    },
    /// A seeded random choice that keeps the classes' proportions.
    Stratified {
        /// The seed.
        seed: u64,
    },
}

/// The page layout of Burn's wgpu memory pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PoolLayout {
    /// One page per allocation, in exponentially spaced size classes (`MemoryConfiguration::ExclusivePages`).
    Exclusive,
    /// Allocations carved out of pages as large as the largest one served (`MemoryConfiguration::Adaptive`).
    Adaptive,
}

/// Which allocations of Burn's memory pools get pages of exactly their size (CubeCL's `memory.persistent_memory`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PoolReuse {
    /// Parameters when they are drawn; CubeCL's default.
    ParametersOnly,
    /// Besides, any allocation as large as one of theirs that is free.
    SizeMatch,
    /// None.
    Dynamic,
    /// All.
    Exact,
}

/// How many kernels are tried when one is chosen by measuring (CubeCL's `autotune.level`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TuningLevel {
    /// The fewest.
    Minimal,
    /// CubeCL's default.
    #[default]
    Balanced,
    /// More.
    Extensive,
    /// All.
    Full,
}

/// Choosing kernels in a process of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TuningPlan {
    /// How many are tried.
    pub level: TuningLevel,
    /// Bytes that the process may take on the device. `None` is no cap.
    pub cap_bytes: Option<u64>,
}

/// How the segments of a model are grouped for activation checkpointing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Segmenting {
    /// Every segment by itself.
    Each,
    /// This many groups of as equal numbers of segments as possible.
    Groups(usize),
    /// Groups that start at the first segment and at each of these, counted from 0.
    Cuts(Vec<usize>),
    /// The grouping that recomputes least and keeps the activations within this many bytes.
    Budget(u64),
}

/// How large linear layers are cut into shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardPlan {
    /// Shards of the layer. `None` takes as few as the device's limits and `max_bytes` allow.
    pub shards: Option<usize>,
    /// Bytes of the largest shard. `None` leaves it to the device's limits.
    pub max_bytes: Option<u64>,
    /// Where to cut.
    pub axis: ShardAxis,
}

/// Which segments are run on slices of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlicePlan {
    /// Slices of the batch.
    pub slices: usize,
    /// The first segment, counted from 0.
    pub first: usize,
    /// The last segment. `None` takes every one from `first` on that treats samples independently, or, with
    /// `batch_norm_per_slice`, that is worth running twice.
    pub last: Option<usize>,
    /// Whether segments whose samples depend on each other may be sliced too, which normalises each slice by itself.
    pub batch_norm_per_slice: bool,
}

/// 16-bit computation with 32-bit master weights.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputePlan {
    /// The 16-bit type.
    pub dtype: Precision,
    /// Whether batches are converted on the host and reach the device in it.
    pub inputs: bool,
    /// Whether the network computes in it.
    pub compute: bool,
    /// How the loss is scaled. `None` does not scale it.
    pub scaler: Option<LossScalerConfig>,
}

/// Which optimizer updates the parameters; [`optim::build`](crate::optim::build) makes it.
///
/// Bytes of state are for f32 parameters; Burn's SGD, Adam and Lion keep the state in the parameter's dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OptimizerPlan {
    /// Stochastic gradient descent: no state.
    Sgd,
    /// SGD with momentum 0.9: 4 bytes an element.
    Momentum,
    /// Adam: 8 bytes an element.
    Adam,
    /// Adam with 8-bit states: 2 bytes an element and 8 bytes a block.
    Adam8bit {
        /// Elements that share one scale.
        block: BlockSize,
        /// Which values the codes stand for.
        code: StateCode,
    },
    /// Adafactor: 4 bytes a row and a column of a matrix, 4 bytes an element of a vector. Of a tensor with more dimensions
    /// the last two count as the matrix, so a 3x3 convolution takes 24 bytes for 9 elements.
    Adafactor,
    /// Lion: 4 bytes an element.
    Lion,
}
