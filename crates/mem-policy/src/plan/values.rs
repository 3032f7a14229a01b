//! The values a plan's fields take.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::optim::{BlockSize, StateCode};

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

/// How many samples a subset holds, training and test together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubsetSize {
    /// This many.
    Samples(usize),
    /// This share of the training set, from 0 (none) to 1 (all).
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
