//! The network's sizes, and what can be said of it without building it.

use burn::tensor::Device;
use mem_policy::shard::{DeviceLimits, LimitExceeded, ShardAxis, ShardedLinearConfig};
use mem_policy::{ModelScale, ShardPlan};
use serde::{Deserialize, Serialize};

use super::network::ConvNet;
use crate::summary::{LayerRow, Summary};

/// Side of the square convolution kernels, in pixels. No padding, stride 1.
pub(super) const KERNEL: usize = 3;
/// Side of the square pooling windows, in pixels. No padding.
pub(super) const POOL: usize = 2;
/// Step of the pooling windows, in pixels.
pub(super) const POOL_STRIDE: usize = 1;

/// The most elements of a tensor or a network: as many `f64` as a process can address. Sizes below it can be added and
/// turned into bytes without overflow.
const MOST: usize = isize::MAX as usize / 16;

/// The product of `sizes`, as the size of `what`.
fn product(what: &str, sizes: &[usize]) -> Result<usize, ModelError> {
    sizes
        .iter()
        .try_fold(1usize, |size, n| size.checked_mul(*n))
        .filter(|size| *size <= MOST)
        .ok_or_else(|| ModelError::TooLarge { what: what.to_owned() })
}

/// Why a network cannot be built or trained.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A size is zero.
    #[error("{what} is 0; use at least 1")]
    Zero {
        /// Which size.
        what: String,
    },
    /// The input is too small for the blocks.
    #[error(
        "a {height}x{width} input is used up by block {block} of {blocks}: every block takes 3 pixels off each side \
         length; use a larger input or fewer blocks"
    )]
    InputTooSmall {
        /// Rows of the input.
        height: usize,
        /// Columns of the input.
        width: usize,
        /// The block, from 1, whose output would be empty.
        block: usize,
        /// Blocks in all.
        blocks: usize,
    },
    /// A size is beyond what can be counted or addressed.
    #[error(
        "{what} has more than {MOST} elements; use a smaller input, fewer or narrower blocks, or fewer hidden units"
    )]
    TooLarge {
        /// What is too large.
        what: String,
    },
    /// The crate was built without a feature.
    #[error("`{wanted}` needs the crate `models` built with its feature `{feature}`")]
    WithoutFeature {
        /// What was wanted.
        wanted: &'static str,
        /// The feature.
        feature: &'static str,
    },
    /// A device cannot train a layer in one piece.
    #[error(
        "Burn cannot train Linear({inputs}, {outputs}) on this device in one piece: it needs {needed} {what}, and the \
         limit is {limit}; turn on `shard-linear`, or use a smaller image, fewer or narrower blocks, or the CPU"
    )]
    TooLargeInOnePiece {
        /// Input features.
        inputs: usize,
        /// Output features.
        outputs: usize,
        /// The limit's name.
        what: &'static str,
        /// What the layer needs.
        needed: u64,
        /// What the device allows.
        limit: u64,
    },
}

/// The sizes of a [`ConvNet`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConvNetConfig {
    /// Channels, height and width of the input.
    pub input: [usize; 3],
    /// Output channels of each block.
    pub widths: Vec<usize>,
    /// Hidden units of the classifier.
    pub hidden: usize,
    /// Classes.
    pub classes: usize,
    /// Shards of the first linear layer.
    pub shards: usize,
    /// The dimension along which it is cut.
    pub shard_axis: ShardAxis,
    /// Bytes of the workspace in which convolutions are computed by matrix multiplication. `None` leaves them to Burn.
    /// Needs this crate's feature `ops`.
    pub conv_workspace: Option<u64>,
}

impl Default for ConvNetConfig {
    /// 3x96x96 input, blocks of 64, 128, 256 and 512 channels, 512 hidden units, 101 classes.
    fn default() -> Self {
        Self {
            input: [3, 96, 96],
            widths: vec![64, 128, 256, 512],
            hidden: 512,
            classes: 101,
            shards: 1,
            shard_axis: ShardAxis::Input,
            conv_workspace: None,
        }
    }
}

impl ConvNetConfig {
    /// The same network with fewer or narrower layers. A `depth` beyond the blocks there are keeps all.
    #[must_use]
    pub fn scaled(&self, scale: &ModelScale) -> Self {
        let depth = scale.depth.unwrap_or(self.widths.len());
        Self {
            widths: self.widths.iter().take(depth).map(|width| ModelScale::scaled(*width, scale.width)).collect(),
            hidden: ModelScale::scaled(self.hidden, scale.hidden),
            ..self.clone()
        }
    }

    /// The same network with its first linear layer in shards, as `plan` says, for a device with `limits` and weights of
    /// `element_bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`ModelError::Zero`] and [`ModelError::InputTooSmall`].
    pub fn sharded(&self, plan: &ShardPlan, limits: &DeviceLimits, element_bytes: usize) -> Result<Self, ModelError> {
        let layer = ShardedLinearConfig::new(self.flat_features()?, self.hidden).with_axis(plan.axis);
        let shards = match plan.shards {
            Some(shards) => shards,
            None => layer.for_device(limits, element_bytes, plan.max_bytes).shards,
        };
        Ok(Self { shards, shard_axis: plan.axis, ..self.clone() })
    }

    /// Features that enter the classifier: channels x height x width of the last block's output.
    ///
    /// # Errors
    ///
    /// [`ModelError::Zero`], [`ModelError::InputTooSmall`] and [`ModelError::TooLarge`].
    pub fn flat_features(&self) -> Result<usize, ModelError> {
        let [channels, height, width] = self.block_outputs()?.last().copied().unwrap_or(self.input);
        product("the classifier's input", &[channels, height, width])
    }

    /// Shapes and parameters of every layer.
    ///
    /// # Errors
    ///
    /// [`ModelError::Zero`], [`ModelError::InputTooSmall`] and [`ModelError::TooLarge`].
    pub fn summary(&self) -> Result<Summary, ModelError> {
        let mut rows = Vec::new();
        let [mut channels, mut height, mut width] = self.input;
        let mut push = |layer: String, output: Vec<usize>, parameters: usize| {
            rows.push(LayerRow { layer, output, parameters: parameters as u64 });
        };
        for (index, output) in self.block_outputs()?.into_iter().enumerate() {
            let n = index + 1;
            let conv = vec![output[0], height - (KERNEL - 1), width - (KERNEL - 1)];
            let name = format!("block {n}");
            product(&name, &conv)?;
            let kernels = product(&name, &[channels, output[0], KERNEL, KERNEL])?;
            push(format!("{name} conv"), conv.clone(), kernels);
            push(format!("{name} norm"), conv.clone(), product(&name, &[2, output[0]])?);
            if index == 0 {
                push(format!("block {n} relu"), conv, 0);
            }
            push(format!("block {n} pool"), output.to_vec(), 0);
            [channels, height, width] = output;
        }
        let flat = product("the classifier's input", &[channels, height, width])?;
        push("flatten".to_owned(), vec![flat], 0);
        push("linear 1".to_owned(), vec![self.hidden], product("linear 1", &[flat, self.hidden])?);
        push("linear 2".to_owned(), vec![self.classes], product("linear 2", &[self.hidden, self.classes])?);
        let summary = Summary { rows };
        if summary.parameters() > MOST as u64 {
            return Err(ModelError::TooLarge { what: "the network".to_owned() });
        }
        Ok(summary)
    }

    /// Checks that a device with `limits` can train this network, with parameters of `element_bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`ModelError::TooLargeInOnePiece`] naming the limit, besides the errors of [`summary`](Self::summary).
    pub fn check_trainable(&self, limits: &DeviceLimits, element_bytes: usize) -> Result<(), ModelError> {
        let flat = self.flat_features()?;
        let shards = self.shards.max(1);
        let [inputs, outputs] = match self.shard_axis {
            ShardAxis::Input => [flat.div_ceil(shards), self.hidden],
            ShardAxis::Output => [flat, self.hidden.div_ceil(shards)],
        };
        for (inputs, outputs) in [(inputs, outputs), (self.hidden, self.classes)] {
            if let Some(LimitExceeded { what, needed, limit }) = limits.exceeded_by(inputs, outputs, element_bytes) {
                return Err(ModelError::TooLargeInOnePiece { inputs, outputs, what, needed, limit });
            }
        }
        Ok(())
    }

    /// Builds the network on `device`, with parameters in its default float dtype.
    ///
    /// # Errors
    ///
    /// [`ModelError::Zero`], [`ModelError::InputTooSmall`], [`ModelError::TooLarge`] and [`ModelError::WithoutFeature`].
    /// Whether the device can train it, ask [`check_trainable`](Self::check_trainable) first: a layer that is too large fails
    /// in the device's driver.
    pub fn init(&self, device: &Device) -> Result<ConvNet, ModelError> {
        // Names a layer that cannot be counted, which Burn's initialisers would panic on.
        self.summary()?;
        if self.conv_workspace.is_some() && cfg!(not(feature = "ops")) {
            return Err(ModelError::WithoutFeature { wanted: "conv_workspace", feature: "ops" });
        }
        let flat = self.flat_features()?;
        Ok(ConvNet::new(self, flat, device))
    }

    fn block_outputs(&self) -> Result<Vec<[usize; 3]>, ModelError> {
        let sizes = [
            ("the input's channels", self.input[0]),
            ("the input's height", self.input[1]),
            ("the input's width", self.input[2]),
            ("`widths`' number of blocks", self.widths.len()),
            ("`hidden`", self.hidden),
            ("`classes`", self.classes),
            ("`shards`", self.shards),
        ];
        let widths = self.widths.iter().enumerate().map(|(i, w)| (format!("the width of block {}", i + 1), *w));
        for (what, size) in sizes.map(|(what, size)| (what.to_owned(), size)).into_iter().chain(widths) {
            if size == 0 {
                return Err(ModelError::Zero { what });
            }
        }
        let mut side = [self.input[1], self.input[2]];
        let mut outputs = Vec::with_capacity(self.widths.len());
        for (index, channels) in self.widths.iter().enumerate() {
            let shrunk = side.map(|n| {
                let conv = n.checked_sub(KERNEL - 1).filter(|n| *n >= POOL)?;
                Some((conv - POOL) / POOL_STRIDE + 1)
            });
            let [Some(height), Some(width)] = shrunk else {
                return Err(ModelError::InputTooSmall {
                    height: self.input[1],
                    width: self.input[2],
                    block: index + 1,
                    blocks: self.widths.len(),
                });
            };
            side = [height, width];
            outputs.push([*channels, height, width]);
        }
        Ok(outputs)
    }
}
