//! The network itself, and how Burn's trainer steps it.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::tensor::activation::{relu, softmax};
use burn::tensor::module::{conv2d, linear};
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Int, Tensor};
use burn::train::{ClassificationOutput, InferenceStep, TrainOutput, TrainStep};
use mem_policy::phase;
use mem_policy::precision::{in_default_dtype, in_dtype, like};
use mem_policy::shard::{ShardedLinear, ShardedLinearConfig};

use super::config::{ConvNetConfig, KERNEL, POOL, POOL_STRIDE};

/// The fewest input channels of a convolution that is computed by matrix multiplication.
const MATMUL_CHANNELS: usize = 16;

/// Images and their classes.
#[derive(Debug, Clone)]
pub struct ClassificationBatch {
    /// Shape `[batch, channels, height, width]`, float, normalised.
    pub images: Tensor<4>,
    /// Shape `[batch]`, class numbers from 0.
    pub targets: Tensor<1, Int>,
}

/// A convolution (3x3, no padding, no bias), batch norm, and max-pooling (2x2, stride 1).
#[derive(Module, Debug)]
pub struct ConvBlock {
    conv: Conv2d,
    norm: BatchNorm,
    pool: MaxPool2d,
    #[module(skip)]
    pub(super) workspace: Option<u64>,
}

impl ConvBlock {
    fn new(input: usize, output: usize, workspace: Option<u64>, device: &Device) -> Self {
        Self {
            conv: Conv2dConfig::new([input, output], [KERNEL, KERNEL]).with_bias(false).init(device),
            norm: BatchNormConfig::new(output).with_epsilon(1e-5).with_momentum(0.1).init(device),
            pool: MaxPool2dConfig::new([POOL, POOL]).with_strides([POOL_STRIDE, POOL_STRIDE]).init(),
            // Few input channels make narrow matrices, which Burn's own kernel beats.
            workspace: workspace.filter(|_| input >= MATMUL_CHANNELS),
        }
    }

    /// Output channels.
    pub(super) fn outputs(&self) -> usize {
        self.conv.weight.lazy_shape().dims::<4>()[0]
    }

    /// `[batch, input, h, w]` to `[batch, output, h - 2, w - 2]`, in the precision of `x`.
    pub(super) fn convolve(&self, x: Tensor<4>) -> Tensor<4> {
        let weight = like(self.conv.weight.val(), &x);
        let options = ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
        match self.workspace {
            #[cfg(feature = "ops")]
            Some(workspace) => mem_policy::ops::conv2d_by_matmul(x, weight, options, workspace),
            _ => conv2d(x, weight, None, options),
        }
    }

    /// Norm, in the precision of its gain, and a ReLU if `rectified`; the shape stays.
    pub(super) fn normalize(&self, x: Tensor<4>, rectified: bool) -> Tensor<4> {
        let x = in_dtype(x, self.norm.gamma.val().dtype(), |x| self.norm.forward(x));
        if rectified { relu(x) } else { x }
    }

    /// `[batch, output, h, w]` to `[batch, output, h - 1, w - 1]`.
    pub(super) fn pool(&self, x: Tensor<4>) -> Tensor<4> {
        self.pool.forward(x)
    }

    /// `[batch, input, h, w]` to `[batch, output, h - 3, w - 3]`.
    fn forward(&self, x: Tensor<4>, rectified: bool) -> Tensor<4> {
        self.pool(self.normalize(self.convolve(x), rectified))
    }
}

/// Convolution blocks, with a ReLU in the first one only, then flatten and two linear layers without biases.
///
/// The first linear layer is in as many shards as [`ConvNetConfig::shards`] says, one by default. To save or load it as
/// one tensor under the name `hidden.weight`, wrap the network in [`OnePiece`](mem_policy::shard::OnePiece).
#[derive(Module, Debug)]
pub struct ConvNet {
    pub(super) blocks: Vec<ConvBlock>,
    pub(super) hidden: ShardedLinear,
    pub(super) output: Linear,
}

impl ConvNet {
    pub(super) fn new(config: &ConvNetConfig, flat: usize, device: &Device) -> Self {
        let inputs = std::iter::once(&config.input[0]).chain(&config.widths);
        Self {
            blocks: inputs
                .zip(&config.widths)
                .map(|(i, o)| ConvBlock::new(*i, *o, config.conv_workspace, device))
                .collect(),
            hidden: ShardedLinearConfig::new(flat, config.hidden)
                .with_bias(false)
                .with_shards(config.shards)
                .with_axis(config.shard_axis)
                .init(device),
            output: LinearConfig::new(config.hidden, config.classes).with_bias(false).init(device),
        }
    }

    /// Logits for the loss: `[batch, channels, height, width]` to `[batch, classes]`.
    #[must_use]
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = (0..self.blocks.len()).fold(images, |x, index| self.forward_block(index, x));
        self.classify(self.hidden.forward(x.flatten(1, 3)))
    }

    /// The second linear layer: `[batch, hidden]` to logits `[batch, classes]`, in the precision of `x`.
    pub(super) fn classify(&self, x: Tensor<2>) -> Tensor<2> {
        let weight = like(self.output.weight.val(), &x);
        linear(x, weight, None)
    }

    /// The output of block `index`, counted from 0: `[batch, channels, h, w]` to `[batch, width, h - 3, w - 3]`.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    #[must_use]
    pub fn forward_block(&self, index: usize, x: Tensor<4>) -> Tensor<4> {
        self.blocks[index].forward(x, index == 0)
    }

    /// Class probabilities for inference: the softmax of [`forward`](Self::forward), shape `[batch, classes]`. For
    /// batch norm's running statistics, call it on `model.valid()`.
    #[must_use]
    pub fn predict(&self, images: Tensor<4>) -> Tensor<2> {
        softmax(self.forward(images), 1)
    }

    /// Logits and the mean cross-entropy over the batch.
    #[must_use]
    pub fn forward_classification(&self, batch: ClassificationBatch) -> ClassificationOutput {
        let ClassificationBatch { images, targets } = batch;
        Self::judge(self.forward(images), targets)
    }

    /// The mean cross-entropy of logits `[batch, classes]`, which are compared in at least 32 bits.
    pub(super) fn judge(logits: Tensor<2>, targets: Tensor<1, Int>) -> ClassificationOutput {
        let logits = in_default_dtype(logits);
        let loss = CrossEntropyLossConfig::new().init(&logits.device()).forward(logits.clone(), targets.clone());
        ClassificationOutput::new(loss, logits, targets)
    }
}

impl TrainStep for ConvNet {
    type Input = ClassificationBatch;
    type Output = ClassificationOutput;

    fn step(&self, batch: ClassificationBatch) -> TrainOutput<ClassificationOutput> {
        let output = self.forward_classification(batch);
        phase::forward_done();
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for ConvNet {
    type Input = ClassificationBatch;
    type Output = ClassificationOutput;

    fn step(&self, batch: ClassificationBatch) -> ClassificationOutput {
        self.forward_classification(batch)
    }
}
