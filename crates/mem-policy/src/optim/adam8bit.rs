use burn::config::Config;
use burn::grad_clipping::GradientClippingConfig;

use burn::optim::{LearningRate, ModuleOptimizer, Optimizer};
use burn::tensor::{DType, Device, FloatDType, Tensor};

use super::block::BlockSize;
use super::code::StateCode;
use super::packed::{Kind, Packed};
use super::rounding::{Dither, Rounding};
use super::state::{Adam8bitState, Chunk, Moments};

/// Configuration of [`BlockwiseAdam`]. The defaults are those of Burn's `AdamConfig`, and bitsandbytes' for the state.
#[derive(Config, Debug)]
pub struct Adam8bitConfig {
    /// Decay of the first moment, from 0 to below 1.
    #[config(default = 0.9)]
    pub beta_1: f32,
    /// Decay of the second moment, from 0 to below 1.
    #[config(default = 0.999)]
    pub beta_2: f32,
    /// Added to the root of the second moment.
    #[config(default = 1e-5)]
    pub epsilon: f32,
    /// Decoupled weight decay, as in AdamW: each step shrinks the parameters by this share of the learning rate.
    #[config(default = 0.0)]
    pub weight_decay: f32,
    /// Elements that share one scale.
    #[config(default = "BlockSize::SMALLEST")]
    pub block: BlockSize,
    /// Which values the 256 codes stand for.
    #[config(default = "StateCode::Dynamic")]
    pub code: StateCode,
    /// How a moment is rounded to a code.
    #[config(default = "Rounding::Dithered")]
    pub rounding: Rounding,
    /// The state of a parameter with fewer elements stays f32.
    #[config(default = 4096)]
    pub min_elements: usize,
    /// Elements that a step works on at a time, rounded down to whole blocks, at least one. Applies to states that are
    /// new; a loaded state keeps its division.
    #[config(default = "1 << 20")]
    pub chunk_elements: usize,
    /// Gradient clipping, parameter by parameter; [`init`](Adam8bitConfig::init) applies it.
    pub grad_clipping: Option<GradientClippingConfig>,
}

impl Adam8bitConfig {
    /// The optimizer for one parameter at a time, without clipping.
    #[must_use]
    pub fn build(&self) -> BlockwiseAdam {
        BlockwiseAdam { config: self.clone() }
    }

    /// The optimizer for a module.
    #[must_use]
    pub fn init(&self) -> ModuleOptimizer {
        let optimizer = ModuleOptimizer::from(self.build());
        match &self.grad_clipping {
            Some(clipping) => optimizer.with_grad_clipping(clipping.init()),
            None => optimizer,
        }
    }
}

/// Adam (AdamW with a weight decay) whose moments are stored in 8 bits, block by block.
///
/// **State:** for a parameter of `n` elements, `2 n` bytes of codes and `8 / block` bytes an element of scales, against
/// `8 n` bytes of Burn's `Adam` in f32; the last block is padded. Parameters with fewer than `min_elements` elements
/// keep an f32 state (`8 n` bytes): they are most of a network's parameters by number, and few of its bytes.
///
/// **How:** a step takes the parameter in chunks of `chunk_elements`; it decodes the chunk's moments to f32, takes
/// Adam's step with them, and encodes them again, each block relative to its largest magnitude. All arithmetic is f32,
/// also for 16-bit parameters. Of the second moment it stores the square root, which needs half of the decades, and
/// never as zero: a root that is too large makes a step too small, a root of zero would make it far too large.
/// Four codes are packed into an i32, which every backend can store, shift and mask. (Burn's quantized tensors
/// have no dynamic code, and blocks of at most 255 elements a dimension.)
///
/// **Transient:** 24 bytes for each of `chunk_elements` (16 with the linear code) where every operation makes a tensor, as
/// `tests/optim_memory.rs` counts them; less where kernels are fused. A parameter of several chunks is updated in
/// place; if something else holds it too, it is copied first, which no optimizer of Burn's avoids.
///
/// **Non-finite gradients** make their own elements of the parameter NaN, as in Adam, and leave the states of all
/// others as they were.
///
/// Technique: Dettmers et al., *8-bit Optimizers via Block-wise Quantization*, 2022. Here the root is stored instead of
/// the second moment, and rounding is dithered by default ([`Rounding`]).
///
/// # Example
///
/// ```
/// use burn::nn::LinearConfig;
/// use burn::optim::GradientsParams;
/// use burn::tensor::{Device, Distribution, Tensor};
/// use mem_policy::optim::{Adam8bitConfig, StateCode};
///
/// let device = Device::flex().autodiff();
/// let layer = LinearConfig::new(64, 128).init(&device);
/// let mut optimizer = Adam8bitConfig::new().with_code(StateCode::Linear).with_weight_decay(0.01).init();
///
/// let x = Tensor::<2>::random([8, 64], Distribution::Default, &device);
/// let grads = GradientsParams::from_grads(layer.forward(x).mean().backward(), &layer);
/// let layer = optimizer.step(1e-3, layer, grads);
/// # let _ = layer;
/// ```
#[derive(Debug, Clone)]
pub struct BlockwiseAdam {
    config: Adam8bitConfig,
}

impl Optimizer for BlockwiseAdam {
    type State<const D: usize> = Adam8bitState;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<Adam8bitState>,
    ) -> (Tensor<D>, Option<Adam8bitState>) {
        let shape = tensor.shape();
        let elements = shape.num_elements();
        if elements == 0 {
            return (tensor, state);
        }
        let (tensor, grad) = (tensor.reshape([elements]), grad.reshape([elements]));
        let state = state.filter(|state| state.fits(elements));
        let (time, moments) = state.map_or((0, None), |state| (state.time, Some(state.moments)));
        let step = AdamStep::new(&self.config, lr, time + 1);
        let (tensor, moments) = match moments {
            None if elements < self.config.min_elements => step.full(tensor, grad, None),
            Some(Moments::Full { first, second }) => step.full(tensor, grad, Some((first, second))),
            None => step.quantized(tensor, grad, None),
            Some(Moments::Quantized { code, chunks }) => step.quantized(tensor, grad, Some((code, chunks))),
        };
        (tensor.reshape(shape), Some(Adam8bitState { time: time + 1, moments }))
    }

    fn to_device<const D: usize>(state: Adam8bitState, device: &Device) -> Adam8bitState {
        state.to_device(device)
    }
}

/// One step of Adam, with what depends on the step alone worked out.
struct AdamStep<'a> {
    config: &'a Adam8bitConfig,
    time: usize,
    decay: f64,
    /// The learning rate over the first moment's bias.
    rate: f64,
    /// The root of the second moment's bias.
    root_bias: f64,
}

impl<'a> AdamStep<'a> {
    fn new(config: &'a Adam8bitConfig, lr: LearningRate, time: usize) -> Self {
        let bias = |beta: f32| 1.0 - f64::from(beta).powf(time as f64);
        Self {
            config,
            time,
            decay: 1.0 - lr * f64::from(config.weight_decay),
            rate: lr / bias(config.beta_1),
            root_bias: bias(config.beta_2).sqrt(),
        }
    }

    fn first<const D: usize>(&self, old: Option<Tensor<D>>, grad: Tensor<D>) -> Tensor<D> {
        let new = grad.mul_scalar(1.0 - self.config.beta_1);
        match old {
            Some(old) => old.mul_scalar(self.config.beta_1).add(new),
            None => new,
        }
    }

    fn second<const D: usize>(&self, old: Option<Tensor<D>>, grad: Tensor<D>) -> Tensor<D> {
        let new = grad.square().mul_scalar(1.0 - self.config.beta_2);
        match old {
            Some(old) => old.mul_scalar(self.config.beta_2).add(new),
            None => new,
        }
    }

    /// What to subtract from a parameter.
    fn delta<const D: usize>(&self, first: Tensor<D>, root: Tensor<D>) -> Tensor<D> {
        first.mul_scalar(self.rate).div(root.div_scalar(self.root_bias).add_scalar(self.config.epsilon))
    }

    /// The parameter (any float dtype) less `delta` (f32).
    fn apply(&self, parameter: Tensor<1>, delta: Tensor<1>) -> Tensor<1> {
        let dtype = parameter.dtype();
        let parameter = parameter.cast(FloatDType::F32);
        let parameter = if self.decay == 1.0 { parameter } else { parameter.mul_scalar(self.decay) };
        parameter.sub(delta).cast(dtype)
    }

    fn full(&self, parameter: Tensor<1>, grad: Tensor<1>, old: Option<(Tensor<1>, Tensor<1>)>) -> (Tensor<1>, Moments) {
        let (first, second) = old.unzip();
        let grad = grad.cast(FloatDType::F32);
        let first = self.first(first, grad.clone());
        let second = self.second(second, grad);
        let parameter = self.apply(parameter, self.delta(first.clone(), second.clone().sqrt()));
        (parameter, Moments::Full { first, second })
    }

    fn quantized(
        &self,
        mut parameter: Tensor<1>,
        grad: Tensor<1>,
        old: Option<(StateCode, Vec<Chunk>)>,
    ) -> (Tensor<1>, Moments) {
        let [elements] = parameter.dims();
        let new_code = self.config.code;
        let (old_code, old) = match old {
            Some((code, chunks)) => (code, chunks.into_iter().map(|chunk| (chunk.dims(), Some(chunk))).collect()),
            None => (new_code, self.division(elements)),
        };
        let device = parameter.device();
        let block = old.first().map_or(0, |([_, block], _)| *block);
        let dither = |shift| Dither::new(self.config.rounding, block, self.time, shift, &device);
        let dithers = [dither(0.0), dither(0.5)];

        let mut chunks = Vec::with_capacity(old.len());
        let mut start = 0;
        for (dims, old) in old {
            let end = (start + dims[0] * dims[1]).min(elements);
            let part = grad.clone().slice(start..end);
            let (delta, chunk) = self.chunk(part, dims, old.map(|chunk| (old_code, chunk)), &dithers);
            if end - start == elements {
                parameter = self.apply(parameter, delta);
            } else {
                let part = self.apply(parameter.clone().slice(start..end), delta);
                parameter = parameter.slice_assign(start..end, part);
            }
            chunks.push(chunk);
            start = end;
        }
        (parameter, Moments::Quantized { code: new_code, chunks })
    }

    /// The blocks of a parameter without state, as dimensions of chunks.
    fn division(&self, elements: usize) -> Vec<([usize; 2], Option<Chunk>)> {
        let block = self.config.block.elements();
        let (blocks, most) = (elements.div_ceil(block), (self.config.chunk_elements / block).max(1));
        (0..blocks).step_by(most).map(|first| ([most.min(blocks - first), block], None)).collect()
    }

    /// What to subtract from the part of a parameter whose gradient is `grad`, and that part's new state.
    fn chunk(
        &self,
        grad: Tensor<1>,
        [blocks, block]: [usize; 2],
        old: Option<(StateCode, Chunk)>,
        [for_first, for_root]: &[Dither; 2],
    ) -> (Tensor<1>, Chunk) {
        let code = self.config.code;
        let grad = grad.cast(FloatDType::F32);
        let ([elements], padded) = (grad.dims(), blocks * block);
        let grad = if elements == padded {
            grad
        } else {
            let padding = Tensor::zeros([padded - elements], (&grad.device(), DType::F32));
            Tensor::cat(vec![grad, padding], 0)
        };
        let grad = grad.reshape([blocks, block]);

        let (old_first, old_root) = old.map(|(code, chunk)| ((code, chunk.first), (code, chunk.root))).unzip();
        let first = self.first(old_first.map(|(code, first)| first.decode(Kind::Signed, code)), grad.clone());
        let packed_first = Packed::encode(first.clone(), Kind::Signed, code, for_first);
        let second = old_root.map(|(code, root)| root.decode(Kind::Positive, code).square());
        let root = self.second(second, grad).sqrt();
        let packed_root = Packed::encode(root.clone(), Kind::Positive, code, for_root);

        let delta = self.delta(first, root).reshape([padded]);
        let delta = if elements == padded { delta } else { delta.slice(0..elements) };
        (delta, Chunk { first: packed_first, root: packed_root })
    }
}
