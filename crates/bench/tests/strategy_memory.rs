//! What the policy layer needs when no policy is on, against Burn's own single-device strategy: the same network, the
//! same batches, the same optimizer, on the CPU. A program of its own, since its allocator counts.

#![allow(clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::optim::SgdConfig;
use burn::tensor::Device;
use burn::train::logger::InMemoryMetricLogger;
use burn::train::metric::LossMetric;
use burn::train::{ExecutionStrategy, Learner, SupervisedTraining, TrainingStrategy};
use data::{DataConfig, Loader, LoaderConfig, SetId, SyntheticConfig};
use mem_policy::{Baseline, Environment, PolicySet, PolicyStrategy};
use models::{ClassificationBatch, ConvNet, ConvNetConfig};
use mps_probe::CountingAllocator;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

const STEPS: usize = 10;
const BATCH: usize = 8;

/// The peak of `training` above what is in use when it starts.
fn peak(strategy: impl FnOnce() -> TrainingStrategy<ConvNet>) -> u64 {
    let run = Run::new();
    let before = HEAP.stats().in_use_bytes;
    HEAP.reset_peak();
    run.train(strategy());
    HEAP.stats().peak_bytes - before
}

#[test]
fn without_policies_the_strategy_needs_no_more_memory_than_burns_own() {
    let burns = || peak(|| ExecutionStrategy::SingleDevice(Device::flex()).into());
    let ours = || peak(|| without_policies().strategy());
    // The first run of a process also pays for what is made once.
    burns();
    ours();
    // Threads of the trainer overlap a little differently each time: the least of a few is what is needed.
    let least = |of: &dyn Fn() -> u64| (0..5).map(|_| of()).min().expect("five runs");
    let (ours, burns) = (least(&ours), least(&burns));
    assert!(burns > 100_000, "{burns} bytes: the allocator did not see the training");
    assert!(ours <= burns + burns / 100, "{ours} bytes, Burn's own strategy needs {burns}");
}

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
    fn new() -> Self {
        let device = Device::flex().autodiff();
        device.seed(1);
        let mut config = DataConfig::new(SetId::Synthetic);
        config.size = Some([16, 16]);
        config.synthetic = Some(SyntheticConfig { train: STEPS * BATCH, test: BATCH, classes: 10 });
        let split = data::open(&config).expect("synthetic data are always there");
        let (input, widths) = ([3, 16, 16], vec![8, 16]);
        let network = ConvNetConfig { input, widths, hidden: 32, classes: split.classes, ..ConvNetConfig::default() };
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
