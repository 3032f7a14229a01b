//! The mechanisms in a training loop of your own, without Burn's trainer or ours:
//!
//! ```sh
//! cargo run --example own_loop
//! ```
//!
//! A small convolutional network learns which of four bars an image shows. Its activations are recomputed segment by
//! segment, its large linear layer is in shards, 8-bit Adam is applied inside the backward pass, the convolution runs on
//! slices of the batch, what flows between segments waits in host memory, and gradients are clipped by their global norm.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{BatchNorm, BatchNormConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Distribution, Int, Tensor};
use mem_policy::offload::Offload;
use mem_policy::optim::Adam8bitConfig;
use mem_policy::segment::{Activations, SegmentPlan, Segmented, SegmentedBackward};
use mem_policy::shard::{ShardedLinear, ShardedLinearConfig};

const CLASSES: usize = 4;
const SIDE: usize = 12;

#[derive(Module, Debug)]
struct Net {
    conv: Conv2d,
    norm: BatchNorm,
    linear: ShardedLinear,
}

impl Net {
    fn new(device: &Device) -> Self {
        let features = 8 * (SIDE - 2) * (SIDE - 2);
        Self {
            conv: Conv2dConfig::new([1, 8], [3, 3]).init(device),
            norm: BatchNormConfig::new(8).init(device),
            linear: ShardedLinearConfig::new(features, CLASSES).with_shards(4).init(device),
        }
    }
}

/// Where the network can be cut.
impl Segmented for Net {
    fn segments(&self) -> usize {
        3
    }

    fn forward_segment(&self, index: usize, input: Activations) -> Activations {
        match index {
            0 => self.conv.forward(input.only::<4>()).into(),
            1 => relu(self.norm.forward(input.only::<4>())).into(),
            _ => {
                let features: Tensor<2> = input.only::<4>().flatten(1, 3);
                self.linear.forward(features).into()
            }
        }
    }

    /// Batch norm mixes the samples of a batch, so it cannot run on slices of one.
    fn independent_samples(&self, index: usize) -> bool {
        index != 1
    }
}

/// Noise with a bright bar in one of four rows: images `[n, 1, SIDE, SIDE]` and which row, `[n]`.
fn batch(n: usize, step: usize, device: &Device) -> (Tensor<4>, Tensor<1, Int>) {
    let classes: Vec<i64> = (0..n).map(|i| ((i * 7 + step) % CLASSES) as i64).collect();
    let mut images = Tensor::random([n, 1, SIDE, SIDE], Distribution::Normal(0.0, 1.5), device);
    for (i, class) in classes.iter().enumerate() {
        let row = 2 + 2 * usize::try_from(*class).unwrap_or(0);
        images = images.slice_fill([i..i + 1, 0..1, row..row + 1, 0..SIDE], 1.5);
    }
    (images, Tensor::from_data(classes.as_slice(), device))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    device.seed(1);
    let mut model = Net::new(&device);
    let mut optimizer = Adam8bitConfig::new().init();

    // Every segment by itself; the convolution on two slices of the batch.
    let plan = SegmentPlan::each(&model).sliced(&model, &(0..1), 2, false)?;
    let mut backward = SegmentedBackward::new(plan).with_seed(1).with_offload(Offload::new());

    for step in 1..=40 {
        let (images, classes) = batch(16, step, &device);
        let loss = |output: Activations| {
            let logits = output.only::<2>();
            CrossEntropyLossConfig::new().init(&logits.device()).forward(logits, classes.clone())
        };
        // The norm over all gradients, before the first of them is applied: another pass. Leave it out if you do not clip.
        let norm = backward.gradient_norm(&model, images.clone().into(), |_, output| loss(output));
        let factor = norm.recip().clamp_max(1.0).autodiff();
        let (updated, value) = backward.run(
            model,
            images.into(),
            |_, output| {
                let loss = loss(output);
                (loss.clone() * factor, loss)
            },
            // Called for each group of segments, last to first, with its gradients: they are gone when it returns.
            |model, gradients| optimizer.step(0.002, model, gradients),
        );
        model = updated;
        if step % 10 == 0 {
            println!("step {step}: loss {:.3}", value.into_scalar::<f32>());
        }
    }

    let (images, classes) = batch(64, 0, &device);
    let model = model.valid();
    let input = Activations::from(images.inner());
    let logits = (0..model.segments()).fold(input, |x, index| model.forward_segment(index, x)).only::<2>();
    let right = logits.argmax(1).reshape([64]).equal(classes.inner()).int().sum().into_scalar::<i32>();
    println!("{right} of 64 new images classified correctly");
    Ok(())
}
