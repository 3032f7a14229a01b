//! The strategy against Burn's own, on the CPU.

use std::sync::{Arc, Mutex};

use burn::data::dataloader::{DataLoader, DataLoaderBuilder, batcher::Batcher};
use burn::data::dataset::InMemDataset;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig, loss::MseLoss, loss::Reduction};
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use burn::train::metric::LossMetric;
use burn::train::{
    ExecutionStrategy, InferenceStep, Interrupter, Learner, LearningResult, RegressionOutput, SupervisedTraining,
    TrainOutput, TrainStep, TrainingStrategy,
};

use super::*;
use crate::policies::{GradientAccumulation, GradientCheckpointing, MemoryLimit};
use crate::{Baseline, Environment, MemoryUsage, phase};

mod owned;

const FEATURES: usize = 3;

#[derive(Module, Debug)]
struct Regression {
    linear: Linear,
}

#[derive(Clone, Debug)]
struct Pairs {
    x: Tensor<2>,
    y: Tensor<2>,
}

impl Regression {
    fn forward(&self, batch: Pairs) -> RegressionOutput {
        let y = self.linear.forward(batch.x);
        let loss = MseLoss::new().forward(y.clone(), batch.y.clone(), Reduction::Mean);
        RegressionOutput::new(loss, y, batch.y)
    }
}

impl TrainStep for Regression {
    type Input = Pairs;
    type Output = RegressionOutput;
    fn step(&self, batch: Pairs) -> TrainOutput<RegressionOutput> {
        let output = self.forward(batch);
        phase::forward_done();
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Regression {
    type Input = Pairs;
    type Output = RegressionOutput;
    fn step(&self, batch: Pairs) -> RegressionOutput {
        self.forward(batch)
    }
}

struct Stack;

impl Batcher<f32, Pairs> for Stack {
    fn batch(&self, items: Vec<f32>, device: &Device) -> Pairs {
        let n = items.len();
        let x: Vec<f32> = items.iter().flat_map(|a| [*a, a * a, 1.0 - a]).collect();
        let y: Vec<f32> = items.iter().map(|a| 2.0 * a - 1.0).collect();
        let tensor = |values: &[f32], columns| Tensor::<1>::from_floats(values, device).reshape([n, columns]);
        Pairs { x: tensor(&x, FEATURES), y: tensor(&y, 1) }
    }
}

fn loader(samples: usize, batch: usize) -> Arc<dyn DataLoader<Pairs>> {
    #[expect(clippy::cast_precision_loss, reason = "a few samples")]
    let items = (0..samples).map(|i| i as f32 / samples as f32).collect();
    DataLoaderBuilder::new(Stack).batch_size(batch).set_device(Device::flex()).build(InMemDataset::new(items))
}

fn model() -> Regression {
    model_on(&Device::flex().autodiff())
}

fn model_on(device: &Device) -> Regression {
    device.seed(3);
    // Parameters are drawn when they are first read: here, and not after the next model was seeded.
    let model = Regression { linear: LinearConfig::new(FEATURES, 1).with_bias(false).init(device) };
    let _ = weights(&model);
    model
}

fn weights(model: &Regression) -> Vec<f32> {
    model.linear.weight.val().into_data().try_to_vec().unwrap()
}

/// Trains for two epochs of `samples` samples.
fn train(
    model: Regression,
    samples: usize,
    batch: usize,
    strategy: TrainingStrategy<Regression>,
    build: impl FnOnce(SupervisedTraining<Regression>) -> SupervisedTraining<Regression>,
) -> LearningResult<Regression> {
    let directory = tempfile::tempdir().unwrap();
    let training = SupervisedTraining::new(directory.path(), loader(samples, batch), loader(4, 4))
        .metrics((LossMetric::new(),))
        .with_application_logger(None)
        .num_epochs(2)
        .with_training_strategy(strategy);
    build(training).launch(Learner::new(model, SgdConfig::new().init(), 0.1))
}

fn planned(policies: PolicySet, batch: usize) -> (Arc<PolicyStrategy>, TrainPlan) {
    let mut plan = policies.plan(&Baseline::new(batch), &Environment::cpu()).unwrap();
    (Arc::new(PolicyStrategy::new(&Device::flex(), &mut plan, policies)), plan)
}

#[test]
fn without_policies_the_weights_are_burns_own_bit_for_bit() {
    let start = model();
    let burn = train(start.clone(), 10, 4, ExecutionStrategy::SingleDevice(Device::flex()).into(), |training| training);
    let (ours, _) = planned(PolicySet::new(), 4);
    let result = train(start.clone(), 10, 4, ours.strategy(), |training| training);
    assert_ne!(weights(&result.model), weights(&start), "training moved the weights");
    assert_eq!(weights(&result.model), weights(&burn.model));
    assert!(result.error.is_none() && result.interrupted.is_none());
}

#[test]
fn accumulated_micro_batches_train_like_the_big_batch_and_the_last_window_counts() {
    // 10 samples in batches of 4: the last window of an epoch holds 2. In micro-batches of 2 that is one of two.
    let start = model();
    let (plain, _) = planned(PolicySet::new(), 4);
    let whole = train(start.clone(), 10, 4, plain.strategy(), |training| training);
    let (accumulating, plan) = planned(PolicySet::new().with(GradientAccumulation { steps: 2 }), 4);
    plan.ensure_applied().unwrap();
    let parts = train(start, 10, plan.micro_batch(), accumulating.strategy(), |training| training);
    for (a, b) in weights(&whole.model).iter().zip(weights(&parts.model)) {
        assert!((a - b).abs() < 1e-5, "{a} and {b}");
    }
}

#[test]
fn gradient_checkpointing_reaches_the_device_and_changes_no_weight() {
    let (plain, _) = planned(PolicySet::new(), 4);
    let (checkpointing, plan) = planned(PolicySet::new().with(GradientCheckpointing::default()), 4);
    plan.ensure_applied().unwrap();
    assert_ne!(
        plain.device().gradient_checkpointing_strategy(),
        checkpointing.device().gradient_checkpointing_strategy()
    );
    let start = [model_on(plain.device()), model_on(checkpointing.device())];
    assert_eq!(weights(&start[0]), weights(&start[1]));
    let [a, b] = start;
    let a = train(a, 10, 4, plain.strategy(), |training| training);
    let b = train(b, 10, 4, checkpointing.strategy(), |training| training);
    assert_eq!(weights(&a.model), weights(&b.model));
}

#[test]
fn a_model_built_with_other_checkpointing_is_refused_with_what_to_do() {
    for device in [Device::flex(), Device::flex().autodiff()] {
        let (checkpointing, _) = planned(PolicySet::new().with(GradientCheckpointing::default()), 4);
        train(model_on(&device), 10, 4, checkpointing.strategy(), |training| training);
        let (_, error) = checkpointing.outcome();
        assert!(error.unwrap().to_string().contains("PolicyStrategy::device()"));
    }

    let (checkpointing, _) = planned(PolicySet::new().with(GradientCheckpointing::default()), 4);
    let built_there = model_on(checkpointing.device());
    let result = train(built_there.clone(), 10, 4, checkpointing.strategy(), |training| training);
    assert_eq!(checkpointing.outcome().1, None);
    assert_ne!(weights(&result.model), weights(&built_there));
}

#[test]
fn a_policy_that_fails_ends_the_run_with_its_error() {
    struct Full;
    impl MemorySource for Full {
        fn usage(&self) -> Option<MemoryUsage> {
            Some(MemoryUsage::new(99, "full").of(100, "full"))
        }
    }
    let start = model();
    let policies = PolicySet::new().with(MemoryLimit::default());
    let mut plan = policies.plan(&Baseline::new(4), &Environment::cpu()).unwrap();
    let strategy = Arc::new(PolicyStrategy::new(&Device::flex(), &mut plan, policies).with_memory(Arc::new(Full)));
    let result = train(start.clone(), 10, 4, strategy.strategy(), |training| training);
    let (events, error) = strategy.outcome();
    assert!(matches!(error, Some(PolicyError::MemoryLimit { step: 1, used: 99, .. })), "{error:?}");
    assert_eq!(events.len(), 2);
    assert_eq!(result.interrupted.unwrap().reason.as_deref(), Some("a memory policy failed"));
    assert_eq!(weights(&result.model), weights(&start), "stopped before the first update");
}

#[test]
fn accumulation_on_the_builder_is_refused_not_ignored() {
    let (strategy, _) = planned(PolicySet::new(), 4);
    let start = model();
    let result = train(start.clone(), 10, 4, strategy.strategy(), |training| training.grads_accumulation(2));
    let (_, error) = strategy.outcome();
    assert!(error.unwrap().to_string().contains("grads_accumulation(2)"));
    assert_eq!(weights(&result.model), weights(&start));
}

#[test]
fn an_interrupter_stops_the_run() {
    let interrupter = Interrupter::new();
    interrupter.stop(Some("enough"));
    let (strategy, _) = planned(PolicySet::new(), 4);
    let marks = Arc::new(Marks::default());
    let strategy = Arc::new(Arc::into_inner(strategy).unwrap().with_observer(marks.clone()));
    train(model(), 10, 4, strategy.strategy(), |training| training.with_interrupter(interrupter));
    let updates = marks.0.lock().unwrap().iter().filter(|mark| **mark == Mark::UpdateDone).count();
    assert_eq!(updates, 1, "the step under way ends, and no other begins");
}

#[derive(Default)]
struct Marks(Mutex<Vec<Mark>>);

impl StepObserver for Marks {
    fn mark(&self, mark: Mark) {
        self.0.lock().unwrap().push(mark);
    }
}

#[test]
fn an_observer_sees_every_moment_in_order() {
    let policies = PolicySet::new().with(GradientAccumulation { steps: 2 });
    let mut plan = policies.plan(&Baseline::new(4), &Environment::cpu()).unwrap();
    let marks = Arc::new(Marks::default());
    let strategy = PolicyStrategy::new(&Device::flex(), &mut plan, policies).with_observer(marks.clone());
    train(model(), 6, 2, Arc::new(strategy).strategy(), |training| training.num_epochs(1));
    use Mark::{BackwardDone, DataReady, EpochStart, ForwardDone, StepEnd, StepStart, TrainEnd, UpdateDone};
    assert_eq!(
        *marks.0.lock().unwrap(),
        [
            EpochStart { epoch: 1 },
            StepStart { step: 1 },
            DataReady,
            ForwardDone,
            BackwardDone,
            StepEnd { samples: 2 },
            StepStart { step: 2 },
            DataReady,
            ForwardDone,
            BackwardDone,
            UpdateDone,
            StepEnd { samples: 2 },
            StepStart { step: 3 },
            DataReady,
            ForwardDone,
            BackwardDone,
            UpdateDone,
            StepEnd { samples: 2 },
            StepStart { step: 4 },
            TrainEnd { epoch: 1 },
        ]
    );
}
