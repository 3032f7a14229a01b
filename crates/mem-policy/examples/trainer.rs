//! The mechanisms as policies, in Burn's own supervised training:
//!
//! ```sh
//! cargo run --example trainer
//! ```
//!
//! What a policy set asks for is planned first; then Burn's trainer runs with our strategy, and its metrics, logs and
//! checkpoints are as ever.

use std::sync::Arc;

use burn::data::dataloader::DataLoaderBuilder;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::InMemDataset;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::SgdConfig;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};
use burn::train::metric::LossMetric;
use burn::train::{InferenceStep, RegressionOutput, SupervisedTraining, TrainOutput, TrainStep};
use mem_policy::segment::{Activations, Segmented, SegmentedStep};
use mem_policy::{Baseline, Environment, PolicySet, PolicyStrategy};

#[derive(Module, Debug)]
struct Mlp {
    layers: Vec<Linear>,
}

impl Mlp {
    fn new(device: &Device) -> Self {
        let sizes = [(1, 32), (32, 32), (32, 1)];
        Self { layers: sizes.map(|(i, o)| LinearConfig::new(i, o).init(device)).to_vec() }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        (0..self.segments()).fold(Activations::from(x), |x, index| self.forward_segment(index, x)).only::<2>()
    }

    fn judge(output: Tensor<2>, targets: Tensor<2>) -> RegressionOutput {
        let loss = (output.clone() - targets.clone()).square().mean();
        RegressionOutput::new(loss, output, targets)
    }
}

/// Inputs and targets, both `[batch, 1]`.
#[derive(Debug, Clone)]
struct Pairs {
    x: Tensor<2>,
    y: Tensor<2>,
}

impl TrainStep for Mlp {
    type Input = Pairs;
    type Output = RegressionOutput;

    fn step(&self, pairs: Pairs) -> TrainOutput<RegressionOutput> {
        let output = Self::judge(self.forward(pairs.x), pairs.y);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Mlp {
    type Input = Pairs;
    type Output = RegressionOutput;

    fn step(&self, pairs: Pairs) -> RegressionOutput {
        Self::judge(self.forward(pairs.x), pairs.y)
    }
}

// What policies that work by segments need besides: where the model can be cut, and how a batch enters and leaves.
impl Segmented for Mlp {
    fn segments(&self) -> usize {
        self.layers.len()
    }

    fn forward_segment(&self, index: usize, input: Activations) -> Activations {
        let y = self.layers[index].forward(input.only::<2>());
        if index + 1 < self.layers.len() { relu(y).into() } else { y.into() }
    }
}

impl SegmentedStep for Mlp {
    fn enter(&self, batch: &Pairs) -> Activations {
        batch.x.clone().into()
    }

    fn leave(&self, output: Activations, batch: Pairs) -> (Tensor<1>, RegressionOutput) {
        let output = Self::judge(output.only::<2>(), batch.y);
        (output.loss.clone(), output)
    }
}

#[derive(Clone)]
struct Batches;

impl Batcher<(f32, f32), Pairs> for Batches {
    fn batch(&self, items: Vec<(f32, f32)>, device: &Device) -> Pairs {
        let column = |values: Vec<f32>| {
            let rows = values.len();
            Tensor::from_data(TensorData::new(values, [rows, 1]), device)
        };
        Pairs { x: column(items.iter().map(|i| i.0).collect()), y: column(items.iter().map(|i| i.1).collect()) }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policies = PolicySet::from_table(&toml::from_str(
        "
        [segment-checkpointing]
        [fused-optimizer]
        [monitor]
        ",
    )?)
    .map_err(|problems| format!("{problems:?}"))?;
    let device = Device::flex();
    let mut plan = policies.plan(&Baseline::new(16), &Environment::cpu()).map_err(|errors| format!("{errors:?}"))?;
    for line in plan.lines().iter().filter(|line| line.set_by.is_some()) {
        println!("{} = {} (by {})", line.field, line.value, line.set_by.as_deref().unwrap_or_default());
    }

    let items = |n: usize| (0..n).map(|i| i as f32 / n as f32).map(|x| (x, (6.0 * x).sin())).collect();
    let load = |n, seed| {
        DataLoaderBuilder::new(Batches).batch_size(16).shuffle(seed).set_device(device.clone()).build(InMemDataset::<(
            f32,
            f32,
        )>::new(
            items(n)
        ))
    };
    plan.batch_size.apply();
    plan.loader.apply();
    let strategy = Arc::new(PolicyStrategy::segmented(&device, &mut plan, policies));
    // A plan never says more than what happens.
    plan.ensure_applied().map_err(|errors| format!("{errors:?}"))?;

    let model = Mlp::new(strategy.device());
    let learner = strategy.learner(model, SgdConfig::new().init(), 0.1);
    let folder = tempfile::tempdir()?;
    let trained = SupervisedTraining::new(folder.path(), load(256, 1), load(64, 2))
        .metric_train_numeric(LossMetric::new())
        .metric_valid_numeric(LossMetric::new())
        .num_epochs(40)
        .with_training_strategy(strategy.segmented_strategy())
        .launch(learner);
    let (events, error) = strategy.outcome();
    if let Some(error) = error {
        return Err(error.into());
    }
    println!("{} readings of memory", events.len());
    let y: f32 = trained.model.forward(Tensor::from_floats([[0.25]], &device)).into_scalar();
    println!("sin(1.5) is {:.2}, the network says {y:.2}", 1.5f32.sin());
    Ok(())
}
