//! A linear layer in shards.
//!
//! A layer whose weight is too large for one buffer, one binding or one dispatch of the device, or whose gradient is too
//! large to exist as a whole, is cut into shards along its input (or its output). Each shard is a matrix product of its
//! own. Outputs and gradients are those of the whole layer up to the rounding of a sum in another order; with shards
//! along the output they are the same sums.
//!
//! Technique: the tensor parallelism of Shoeybi et al., *Megatron-LM*, 2019, on one device and one after the other.

mod limits;
mod one_piece;

pub use limits::{DeviceLimits, LimitExceeded};
pub use one_piece::OnePiece;

use std::ops::Range;

use burn::module::{Module, Param};
use burn::nn::{Initializer, LinearConfig};
use burn::tensor::module::linear;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::precision::like;

/// The dimension of the weight along which a layer is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShardAxis {
    /// Every shard takes a part of the input and gives a summand of the output.
    #[default]
    Input,
    /// Every shard takes the whole input and gives a part of the output.
    Output,
}

/// The sizes of a [`ShardedLinear`].
#[derive(Debug, Clone, PartialEq)]
pub struct ShardedLinearConfig {
    /// Input features.
    pub inputs: usize,
    /// Output features.
    pub outputs: usize,
    /// Whether a bias is added.
    pub bias: bool,
    /// How many shards; as equal as possible, none empty, so at most as many as features along `axis`.
    pub shards: usize,
    /// Where to cut.
    pub axis: ShardAxis,
    /// How the weights are drawn, by the fan of the whole layer.
    pub initializer: Initializer,
}

impl ShardedLinearConfig {
    /// One shard, with a bias, cut along the input, drawn like Burn's `Linear`.
    #[must_use]
    pub fn new(inputs: usize, outputs: usize) -> Self {
        let LinearConfig { bias, initializer, .. } = LinearConfig::new(inputs, outputs);
        Self { inputs, outputs, bias, shards: 1, axis: ShardAxis::Input, initializer }
    }

    /// The same with or without a bias.
    #[must_use]
    pub fn with_bias(mut self, bias: bool) -> Self {
        self.bias = bias;
        self
    }

    /// The same in `shards` shards.
    #[must_use]
    pub fn with_shards(mut self, shards: usize) -> Self {
        self.shards = shards;
        self
    }

    /// The same, cut along `axis`.
    #[must_use]
    pub fn with_axis(mut self, axis: ShardAxis) -> Self {
        self.axis = axis;
        self
    }

    /// The same in as few shards as a device with `limits` can train, each of at most `shard_bytes` bytes, with weights
    /// of `element_bytes` bytes.
    #[must_use]
    pub fn for_device(mut self, limits: &DeviceLimits, element_bytes: usize, shard_bytes: Option<u64>) -> Self {
        let limit = DeviceLimits { buffer_bytes: limits.buffer_bytes.into_iter().chain(shard_bytes).min(), ..*limits };
        self.shards = limit.shards(self.inputs, self.outputs, self.axis, element_bytes);
        self
    }

    /// Draws the layer on `device`.
    #[must_use]
    pub fn init(&self, device: &Device) -> ShardedLinear {
        let (fan_in, fan_out) = (Some(self.inputs), Some(self.outputs));
        let shards = self.parts().into_iter().map(|part| {
            let shape = match self.axis {
                ShardAxis::Input => [part.len(), self.outputs],
                ShardAxis::Output => [self.inputs, part.len()],
            };
            self.initializer.init_with(shape, fan_in, fan_out, device)
        });
        let shards: Vec<_> = shards.collect();
        let (input_shards, output_shards) = match self.axis {
            ShardAxis::Input => (shards, Vec::new()),
            ShardAxis::Output => (Vec::new(), shards),
        };
        let bias = self.bias.then(|| self.initializer.init_with([self.outputs], fan_in, fan_out, device));
        ShardedLinear { input_shards, output_shards, bias }
    }

    fn parts(&self) -> Vec<Range<usize>> {
        let features = match self.axis {
            ShardAxis::Input => self.inputs,
            ShardAxis::Output => self.outputs,
        };
        let shards = self.shards.clamp(1, features.max(1));
        // Sizes are multiplied in 128 bits: features times shards may pass 64.
        let at = |i: usize| usize::try_from(i as u128 * features as u128 / shards as u128).unwrap_or(features);
        (0..shards).map(|i| at(i)..at(i + 1)).collect()
    }
}

/// A linear layer in shards: `x W + b`, with `W` of shape `[inputs, outputs]`.
///
/// One of the two lists of shards is empty. To save or load it as one tensor, under the names of Burn's `Linear`, wrap
/// the model in [`OnePiece`].
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use mem_policy::shard::ShardedLinearConfig;
///
/// let device = Device::flex();
/// let layer = ShardedLinearConfig::new(1000, 8).with_shards(3).init(&device);
/// let y = layer.forward(Tensor::<2>::ones([4, 1000], &device));
/// assert_eq!(y.dims(), [4, 8]);
/// ```
#[derive(Module, Debug)]
pub struct ShardedLinear {
    /// Shards along the input: shapes `[part of inputs, outputs]`.
    pub input_shards: Vec<Param<Tensor<2>>>,
    /// Shards along the output: shapes `[inputs, part of outputs]`.
    pub output_shards: Vec<Param<Tensor<2>>>,
    /// The bias, shape `[outputs]`.
    pub bias: Option<Param<Tensor<1>>>,
}

impl ShardedLinear {
    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.input_shards.len().max(self.output_shards.len())
    }

    /// Input and output features.
    #[must_use]
    pub fn features(&self) -> [usize; 2] {
        let shapes = |shards: &[Param<Tensor<2>>]| -> Vec<[usize; 2]> {
            shards.iter().map(|shard| shard.lazy_shape().dims()).collect()
        };
        match (shapes(&self.input_shards), shapes(&self.output_shards)) {
            (input, _) if !input.is_empty() => [input.iter().map(|s| s[0]).sum(), input[0][1]],
            (_, output) => [output.first().map_or(0, |s| s[0]), output.iter().map(|s| s[1]).sum()],
        }
    }

    /// `[.., inputs]` to `[.., outputs]`.
    ///
    /// # Panics
    ///
    /// If the last dimension is not `inputs`.
    #[must_use]
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let y = if self.output_shards.is_empty() {
            let parts = self.split(&x);
            drop(x);
            Self::sum(self.input_shards.iter().zip(parts).map(|(w, x)| product(x, w)).collect())
        } else {
            Tensor::cat(self.output_shards.iter().map(|w| product(x.clone(), w)).collect(), D - 1)
        };
        self.add_bias(y)
    }

    /// The parts of `x`, shape `[.., inputs]`, that the shards along the input take.
    ///
    /// # Panics
    ///
    /// If the last dimension is not `inputs`.
    #[must_use]
    pub fn split<const D: usize>(&self, x: &Tensor<D>) -> Vec<Tensor<D>> {
        let inputs = x.dims()[D - 1];
        assert_eq!(inputs, self.features()[0], "the last dimension of the input is not the layer's number of inputs");
        if self.input_shards.len() < 2 {
            return vec![x.clone()];
        }
        let mut start = 0;
        let lengths = self.input_shards.iter().map(|shard| shard.lazy_shape().dims::<2>()[0]);
        lengths
            .map(|length| {
                start += length;
                x.clone().narrow(D - 1, start - length, length)
            })
            .collect()
    }

    /// The summand that shard `index` along the input makes of its part of the input.
    ///
    /// # Panics
    ///
    /// If there is no such shard.
    #[must_use]
    pub fn forward_shard<const D: usize>(&self, index: usize, part: Tensor<D>) -> Tensor<D> {
        product(part, &self.input_shards[index])
    }

    /// The sum of the outputs of all shards along the input, which is the layer's but for its bias. All at once: a backend
    /// that fuses operations would make each addition part of the matrix product before it, for which it has slower kernels.
    ///
    /// # Panics
    ///
    /// If there are none.
    #[must_use]
    pub fn sum<const D: usize>(mut outputs: Vec<Tensor<D>>) -> Tensor<D> {
        if outputs.len() == 1 {
            return outputs.swap_remove(0);
        }
        assert!(!outputs.is_empty(), "a layer has at least one shard");
        let shape = outputs[0].dims();
        let elements: usize = shape.iter().product();
        let rows: Vec<Tensor<2>> = outputs.into_iter().map(|y| y.reshape([1, elements])).collect();
        Tensor::cat(rows, 0).sum_dim(0).reshape(shape)
    }

    /// Adds the bias, if there is one, to a sum of shards.
    #[must_use]
    pub fn add_bias<const D: usize>(&self, y: Tensor<D>) -> Tensor<D> {
        match &self.bias {
            Some(bias) => {
                let bias = like(bias.val(), &y);
                y + bias.unsqueeze()
            }
            None => y,
        }
    }
}

/// `x W`, in the precision of `x`.
fn product<const D: usize>(x: Tensor<D>, weight: &Param<Tensor<2>>) -> Tensor<D> {
    let weight = like(weight.val(), &x);
    #[cfg(feature = "ops")]
    if crate::ops::supported(&x) {
        let mut shape = x.dims();
        let inputs = shape[D - 1];
        let rows = shape.iter().product::<usize>() / inputs.max(1);
        shape[D - 1] = weight.dims()[1];
        return crate::ops::matmul_unfused(x.reshape([rows, inputs]), weight).reshape(shape);
    }
    linear(x, weight, None)
}

#[cfg(test)]
mod tests;
