//! What the policy layer costs when no policy is on, against Burn's own single-device strategy: the same network, the
//! same batches, the same optimizer, on the CPU.
//!
//! `cargo bench --workspace --profile dev --bench strategy_overhead` prints the mean ratio of their times with its 95 %
//! interval, from [`PAIRS`] pairs of epochs. The two of a pair run one right after the other, in alternating order, so
//! that a machine that is slow for a while is slow for both. One epoch is [`STEPS`] steps, start and end of
//! `SupervisedTraining` included on both sides. The result goes to standard error, Burn's progress to standard output.

use std::sync::Arc;
use std::time::Instant;

use bench::stats::{mean_interval, median};
use burn::data::dataloader::DataLoader;
use burn::optim::SgdConfig;
use burn::tensor::Device;
use burn::train::logger::InMemoryMetricLogger;
use burn::train::metric::LossMetric;
use burn::train::{ExecutionStrategy, Learner, SupervisedTraining, TrainingStrategy};
use data::{DataConfig, Loader, LoaderConfig, SetId, SyntheticConfig};
use mem_policy::{Baseline, Environment, PolicySet, PolicyStrategy};
use models::{ClassificationBatch, ConvNet, ConvNetConfig};

const STEPS: usize = 20;
const BATCH: usize = 8;
const PAIRS: usize = 200;

fn main() {
    // `cargo test --benches` only wants to see that it runs.
    let pairs = if std::env::args().any(|argument| argument == "--bench") { PAIRS } else { 2 };
    let burn = || Run::new().time(ExecutionStrategy::SingleDevice(Device::flex()).into());
    let ours = || Run::new().time(without_policies().strategy());
    let (mut burns, mut our) = (Vec::new(), Vec::new());
    // The first pair warms up.
    for pair in 0..=pairs {
        let (a, b) = if pair % 2 == 0 {
            let a = burn();
            (a, ours())
        } else {
            let b = ours();
            (burn(), b)
        };
        if pair > 0 {
            burns.push(a);
            our.push(b);
        }
    }
    let ratios: Vec<f64> = burns.iter().zip(&our).map(|(burn, ours)| (ours / burn).ln()).collect();
    let step = |seconds: &[f64]| median(seconds.iter().copied()).unwrap_or(f64::NAN) / STEPS_F64 * 1e3;
    eprintln!("Burn's own strategy:            {:.3} ms a step (median of {} epochs)", step(&burns), burns.len());
    eprintln!("PolicyStrategy without policies: {:.3} ms a step", step(&our));
    eprintln!("middle ratio: {:+.2} %", (median(ratios.iter().copied()).unwrap_or(f64::NAN).exp() - 1.0) * 100.0);
    if let Some(interval) = mean_interval(&ratios) {
        let percent = |log: f64| (log.exp() - 1.0) * 100.0;
        let mean = f64::midpoint(interval.low, interval.high);
        eprintln!(
            "mean ratio:   {:+.2} %, 95 % interval {:+.2} % to {:+.2} %",
            percent(mean),
            percent(interval.low),
            percent(interval.high)
        );
    }
}

const STEPS_F64: f64 = 20.0;

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
    fn time(self, strategy: TrainingStrategy<ConvNet>) -> f64 {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let learner = Learner::new(self.model, SgdConfig::new().init(), 0.01);
        let started = Instant::now();
        let result = SupervisedTraining::new(scratch.path(), self.train, self.valid)
            .metrics((LossMetric::new(),))
            .with_metric_logger(InMemoryMetricLogger::default())
            .with_application_logger(None)
            .num_epochs(1)
            .with_training_strategy(strategy)
            .launch(learner);
        assert!(result.error.is_none(), "training failed: {:?}", result.error);
        started.elapsed().as_secs_f64()
    }
}
