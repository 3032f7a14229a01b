//! What the policy layer costs when no policy is on, against Burn's own single-device strategy: the same network, the
//! same batches, the same optimizer, on the CPU. `cargo bench --package bench` prints both; the claim is that the
//! medians are within 1 % of each other.
//!
//! One sample is one epoch of [`STEPS`] steps, start and end of `SupervisedTraining` included on both sides.

use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::optim::SgdConfig;
use burn::tensor::Device;
use burn::train::logger::InMemoryMetricLogger;
use burn::train::metric::LossMetric;
use burn::train::{ExecutionStrategy, Learner, SupervisedTraining, TrainingStrategy};
use data::{DataConfig, Loader, LoaderConfig, SetId, SyntheticConfig};
use divan::Bencher;
use mem_policy::{Baseline, Environment, PolicySet, PolicyStrategy};
use models::{ClassificationBatch, ConvNet, ConvNetConfig};

const STEPS: usize = 40;
const BATCH: usize = 8;

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 30, sample_size = 1)]
fn burns_own_strategy(bencher: Bencher<'_, '_>) {
    bencher
        .with_inputs(Run::new)
        .bench_local_values(|run| run.train(ExecutionStrategy::SingleDevice(Device::flex()).into()));
}

#[divan::bench(sample_count = 30, sample_size = 1)]
fn policy_strategy_without_policies(bencher: Bencher<'_, '_>) {
    bencher.with_inputs(Run::new).bench_local_values(|run| {
        let strategy = without_policies();
        run.train(strategy.strategy());
    });
}

#[expect(clippy::expect_used, reason = "a benchmark that cannot be set up has nothing to measure")]
fn without_policies() -> Arc<PolicyStrategy> {
    let policies = PolicySet::new();
    let mut plan =
        policies.plan(&Baseline::new(BATCH), &Environment::cpu()).expect("a plan without policies has no conflict");
    Arc::new(PolicyStrategy::new(&Device::flex(), &mut plan, policies))
}

/// A run, ready to start.
struct Run {
    model: ConvNet,
    train: Arc<dyn DataLoader<ClassificationBatch>>,
    valid: Arc<dyn DataLoader<ClassificationBatch>>,
}

impl Run {
    #[expect(clippy::expect_used, reason = "a benchmark that cannot be set up has nothing to measure")]
    fn new() -> Self {
        let device = Device::flex().autodiff();
        device.seed(1);
        let mut config = DataConfig::new(SetId::Synthetic);
        config.size = Some([16, 16]);
        config.synthetic = Some(SyntheticConfig { train: STEPS * BATCH, test: BATCH, classes: 10 });
        let split = data::open(&config).expect("synthetic data are always there");
        let network = ConvNetConfig {
            input: [3, 16, 16],
            widths: vec![8, 16],
            hidden: 32,
            classes: split.classes,
            ..ConvNetConfig::default()
        };
        let loader = |images| {
            let config = LoaderConfig { batch_size: BATCH, ..LoaderConfig::default() };
            Loader::new(images, config, &device, |batch: data::ImageBatch| ClassificationBatch {
                images: batch.images,
                targets: batch.targets,
            })
            .expect("a loader without threads always starts")
        };
        Self {
            model: network.init(&device).expect("two blocks fit 16 pixels"),
            train: Arc::new(loader(split.train)),
            valid: Arc::new(loader(split.test)),
        }
    }

    #[expect(clippy::expect_used, reason = "a benchmark whose training fails has nothing to measure")]
    fn train(self, strategy: TrainingStrategy<ConvNet>) {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let learner = Learner::new(self.model, SgdConfig::new().init(), 0.01);
        let result = SupervisedTraining::new(scratch.path(), self.train, self.valid)
            .metrics((LossMetric::new(),))
            .with_metric_logger(InMemoryMetricLogger::default())
            .with_application_logger(None)
            .num_epochs(1)
            .with_training_strategy(strategy)
            .launch(learner);
        assert!(result.error.is_none(), "training failed: {:?}", result.error);
    }
}
