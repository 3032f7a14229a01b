//! 8-bit states against f32 ones, in training.

use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Distribution, Int, Tensor};

use crate::OptimizerPlan;
use crate::optim::{Adam8bitConfig, BlockSize, Rounding, StateCode, build};

const FEATURES: usize = 32;
const CLASSES: usize = 10;
const BATCH: usize = 64;

/// 4096, 16384 and 1280 weights: the last layer and the biases are small tensors.
#[derive(Module, Debug)]
pub(super) struct Network {
    layers: [Linear; 3],
}

impl Network {
    pub(super) fn new(device: &Device) -> Self {
        device.seed(5);
        let layer = |from, to| LinearConfig::new(from, to).init(device);
        let network = Self { layers: [layer(FEATURES, 128), layer(128, 128), layer(128, CLASSES)] };
        // Drawn now, and not when they are first read.
        network.layers.iter().for_each(|layer| drop(layer.weight.val()));
        network
    }

    pub(super) fn loss(&self, images: &Tensor<2>, classes: &Tensor<1, Int>) -> Tensor<1> {
        let [first, second, third] = &self.layers;
        let hidden = relu(second.forward(relu(first.forward(images.clone()))));
        CrossEntropyLossConfig::new().init(&hidden.device()).forward(third.forward(hidden), classes.clone())
    }

    pub(super) fn weights(&self) -> Vec<f32> {
        self.layers.iter().flat_map(|layer| layer.weight.val().into_data().try_to_vec::<f32>().unwrap()).collect()
    }
}

/// Ten overlapping clouds of points, in batches: what a network can learn of them, and no more, is how they overlap.
pub(super) fn batches(device: &Device, count: usize) -> Vec<(Tensor<2>, Tensor<1, Int>)> {
    device.seed(11);
    let centres = Tensor::<2>::random([CLASSES, FEATURES], Distribution::Normal(0.0, 0.35), device);
    (0..count)
        .map(|batch| {
            let classes: Vec<i32> = (0..BATCH).map(|i| ((i * 7 + batch * 3) % CLASSES) as i32).collect();
            let classes = Tensor::<1, Int>::from_data(classes.as_slice(), device);
            let noise = Tensor::random([BATCH, FEATURES], Distribution::Normal(0.0, 1.0), device);
            (centres.clone().select(0, classes.clone()) + noise, classes)
        })
        .collect()
}

/// The loss of each step.
fn curve(mut optimizer: ModuleOptimizer, rate: f64, steps: usize) -> Vec<f32> {
    let device = Device::flex().autodiff();
    let (mut network, batches) = (Network::new(&device), batches(&device, steps));
    let step = |(images, classes): &(Tensor<2>, Tensor<1, Int>)| {
        let loss = network.loss(images, classes);
        let value = loss.clone().into_scalar::<f32>();
        let grads = GradientsParams::from_grads(loss.backward(), &network);
        network = optimizer.step(rate, network.clone(), grads);
        value
    };
    batches.iter().map(step).collect()
}

fn means(curve: &[f32], window: usize) -> Vec<f32> {
    curve.chunks(window).map(|losses| losses.iter().sum::<f32>() / losses.len() as f32).collect()
}

/// The largest distance of two curves' means over ten steps, relative to the second.
fn distance(curve: &[f32], reference: &[f32]) -> f32 {
    means(curve, 10).iter().zip(means(reference, 10)).map(|(a, b)| ((a - b) / b).abs()).fold(0.0, f32::max)
}

#[test]
fn the_loss_curve_is_that_of_f32_adam_within_2_percent() {
    let (rate, steps) = (1e-3, 120);
    let adam = curve(AdamConfig::new().init(), rate, steps);
    let (first, last) = (means(&adam, 20)[0], means(&adam, 20)[5]);
    assert!(last < 0.8 * first, "Adam learns: {first} to {last}");
    for code in [StateCode::Linear, StateCode::Dynamic] {
        for (block, rounding) in [(256, Rounding::Nearest), (256, Rounding::Dithered), (2048, Rounding::Dithered)] {
            let config = Adam8bitConfig::new()
                .with_code(code)
                .with_rounding(rounding)
                .with_block(BlockSize::new(block).unwrap());
            let distance = distance(&curve(config.init(), rate, steps), &adam);
            eprintln!("{code:?} {rounding:?} blocks of {block}: within {:.3} %", 100.0 * distance);
            assert!(distance < 0.02, "{code:?} {rounding:?} {block}: {distance}");
        }
    }
}

#[test]
fn with_states_that_stay_f32_it_is_burns_adam_and_adamw() {
    let config = Adam8bitConfig::new().with_min_elements(usize::MAX);
    let ours = curve(config.init(), 1e-2, 30);
    assert!(distance(&ours, &curve(AdamConfig::new().init(), 1e-2, 30)) < 1e-4);
    let ours = curve(config.with_weight_decay(0.5).init(), 1e-2, 30);
    assert!(distance(&ours, &curve(AdamWConfig::new().with_weight_decay(0.5).init(), 1e-2, 30)) < 1e-4);
}

#[test]
fn every_kind_trains() {
    let adam8bit = |code| OptimizerPlan::Adam8bit { block: BlockSize::default(), code };
    let kinds = [
        (OptimizerPlan::Sgd, 0.1),
        (OptimizerPlan::Momentum, 0.02),
        (OptimizerPlan::Adam, 2e-3),
        (adam8bit(StateCode::Linear), 2e-3),
        (adam8bit(StateCode::Dynamic), 2e-3),
        (OptimizerPlan::Adafactor, 2e-2),
        (OptimizerPlan::Lion, 4e-4),
    ];
    for (kind, rate) in kinds {
        let means = means(&curve(build(&kind), rate, 120), 20);
        eprintln!("{kind:?}: {means:?}");
        assert!(means[5] < 0.85 * means[0], "{kind:?}: {means:?}");
    }
}
