//! The run itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use burn::train::SupervisedTraining;
use burn::train::logger::InMemoryMetricLogger;
use burn::train::metric::{
    AccuracyMetric, ClassReduction, FBetaScoreMetric, LossMetric, Metric, PrecisionMetric, RecallMetric,
};
use data::{DataError, Split};
use mem_policy::{
    Baseline, Environment, EventKind, PolicyError, PolicyEvent, PolicySet, PolicyStrategy, Precision, Problem, Support,
    TrainPlan,
};
use models::{ConvNetConfig, ModelError};

use super::device::{DeviceError, OpenDevice};
use super::memory::Source;
use super::recorder::{MetricNames, Recorder, Seen};
use super::silent::Silent;
use super::spec::{ErrorKind, RunError, RunResult, RunSpec};
use super::workload;

/// Why a run ended before its last epoch.
#[derive(Debug, thiserror::Error)]
pub(super) enum TrainError {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("{}", list(.0))]
    Configuration(Vec<Problem>),
    #[error("{}", list(.0))]
    Plan(Vec<PolicyError>),
    #[error("`{0}` is not supported here: {1}")]
    Unsupported(&'static str, String),
    #[error(transparent)]
    Policy(PolicyError),
    #[error("training stopped: {0}")]
    Training(String),
    #[error("the device failed: {0}")]
    Execution(String),
}

fn list<E: ToString>(errors: &[E]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl TrainError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Self::Device(_) | Self::Model(_) => ErrorKind::Device,
            Self::Data(_) => ErrorKind::Data,
            Self::Configuration(_) | Self::Plan(_) | Self::Unsupported(..) => ErrorKind::Unsupported,
            Self::Policy(_) => ErrorKind::Policy,
            Self::Training(message) | Self::Execution(message) => kind_of_message(message),
        }
    }
}

/// The kind of an error of which there is only text: a panic, or what a driver said.
pub(super) fn kind_of_message(message: &str) -> ErrorKind {
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if says(&["out of memory", "outofmemory", "out_of_device_memory", "out_of_host_memory", "memory allocation of"]) {
        ErrorKind::OutOfMemory
    } else if says(&["dataset error"]) {
        ErrorKind::Data
    } else {
        ErrorKind::Device
    }
}

impl From<&TrainError> for RunError {
    fn from(error: &TrainError) -> Self {
        Self { kind: error.kind(), message: error.to_string() }
    }
}

/// Keeps what there is of a result.
pub(super) type Keep = Arc<dyn Fn(&RunResult) + Send + Sync>;

/// Runs `spec` and calls `keep` with what there is: before the first step, at each epoch's end, and when the run is over.
pub(super) fn run(spec: &RunSpec, started: Instant, keep: &Keep) -> Result<(), TrainError> {
    let policies = PolicySet::from_table(&spec.policies).map_err(TrainError::Configuration)?;
    let baseline = Baseline::new(spec.train.batch_size);
    let layout = layout_wanted(&policies, &baseline)?;
    let mut open = OpenDevice::open(spec.device, layout)?;
    refuse_unsupported(&policies, &open.environment)?;
    let mut plan = policies.plan(&baseline, &open.environment).map_err(TrainError::Plan)?;
    plan.pool_layout.apply();
    let precision = plan.precision.apply();
    open.set_precision(precision)?;

    let split = workload::open_data(&spec.data, &spec.train, plan.subset.apply(), spec.seed)?;
    let mut network = workload::network(&spec.model, &split).scaled(&plan.model_scale.apply());
    if let Some(shards) = plan.linear_shards.apply() {
        network = network.sharded(&shards, &open.limits, precision.bytes())?;
    }
    network.check_trainable(&open.limits, precision.bytes())?;
    let result = empty_result(&open, &plan, precision, &network, &split)?;
    keep(&result);
    train(spec, open, plan, policies, &split, &network, result, started, keep)
}

/// The pool layout that the policies want. It has to be known before the device is open, and hence before the
/// environment is: no policy's wish for it depends on the environment.
fn layout_wanted(policies: &PolicySet, baseline: &Baseline) -> Result<Option<mem_policy::PoolLayout>, TrainError> {
    let mut anything = Environment::new(mem_policy::Backend::OtherWgpu, "any device");
    anything.precisions.extend([Precision::F16, Precision::Bf16]);
    let plan = policies.plan(baseline, &anything).map_err(TrainError::Plan)?;
    Ok(*plan.pool_layout.get())
}

fn refuse_unsupported(policies: &PolicySet, environment: &Environment) -> Result<(), TrainError> {
    match policies.unsupported(environment).into_iter().next() {
        Some((id, Support::No(why) | Support::KnownBad(why))) => Err(TrainError::Unsupported(id, why)),
        _ => Ok(()),
    }
}

fn empty_result(
    open: &OpenDevice,
    plan: &TrainPlan,
    precision: Precision,
    network: &ConvNetConfig,
    split: &Split,
) -> Result<RunResult, TrainError> {
    Ok(RunResult {
        complete: false,
        error: None,
        environment: open.environment.clone(),
        device: open.info(precision),
        plan: plan.lines(),
        parameters: network.summary()?.parameters(),
        train_images: split.train.len(),
        test_images: split.test.len(),
        skipped_files: 0,
        steps: Vec::new(),
        epochs: Vec::new(),
        peaks: std::collections::BTreeMap::new(),
        events: Vec::new(),
        setup_s: 0.0,
        train_s: 0.0,
    })
}

#[expect(clippy::too_many_arguments, reason = "everything a run consists of, put together once")]
fn train(
    spec: &RunSpec,
    open: OpenDevice,
    mut plan: TrainPlan,
    policies: PolicySet,
    split: &Split,
    network: &ConvNetConfig,
    mut result: RunResult,
    started: Instant,
    keep: &Keep,
) -> Result<(), TrainError> {
    let OpenDevice { device, probes, .. } = open;
    let probes = Arc::new(probes);
    let micro_batch = plan.micro_batch();
    plan.batch_size.apply();
    let half = plan.compute.get().filter(|compute| compute.inputs).map(|compute| compute.dtype.dtype());
    let (train, valid) = workload::loaders(split, plan.loader.apply(), half, micro_batch, &device, spec.seed)?;

    let loss = LossMetric::new();
    let accuracy = AccuracyMetric::new();
    let precision = PrecisionMetric::multiclass(1, ClassReduction::Macro);
    let recall = RecallMetric::multiclass(1, ClassReduction::Macro);
    let f1 = FBetaScoreMetric::multiclass(1.0, 1, ClassReduction::Macro);
    let names = MetricNames {
        loss: loss.name().to_string(),
        accuracy: accuracy.name().to_string(),
        precision: precision.name().to_string(),
        recall: recall.name().to_string(),
        f1: f1.name().to_string(),
    };

    result.setup_s = started.elapsed().as_secs_f64();
    let partial = (result.clone(), Arc::clone(keep), split.skipped.clone());
    let recorder = Arc::new(Recorder::new(
        &device,
        Arc::clone(&probes),
        names,
        (spec.train.warmup_steps, spec.train.sample_every),
        Box::new(move |seen| {
            let (result, keep, skipped) = &partial;
            let mut result = result.clone();
            fill(&mut result, seen, &[], skipped.count());
            keep(&result);
        }),
    ));
    let strategy = Arc::new(
        PolicyStrategy::segmented(&device, &mut plan, policies)
            .with_seed(spec.seed)
            .with_memory(Arc::new(Source(probes)))
            .with_observer(recorder.clone()),
    );
    let optimizer = workload::optimizer(plan.optimizer.apply().as_ref(), spec.train.optimizer);
    plan.ensure_applied().map_err(TrainError::Plan)?;

    device.seed(spec.seed);
    let model = network.init(strategy.device())?;
    let learner = strategy.learner(model, optimizer, spec.train.learning_rate);
    let outcome = SupervisedTraining::new(Path::new(&spec.scratch), train, valid)
        .metric_train_numeric(loss.clone())
        .metric_valid_numeric(loss)
        .metric_valid_numeric(accuracy)
        .metric_valid_numeric(precision)
        .metric_valid_numeric(recall)
        .metric_valid_numeric(f1)
        .with_metric_logger(InMemoryMetricLogger::default())
        .with_application_logger(None)
        .renderer(Box::new(Silent))
        .num_epochs(spec.train.epochs)
        .with_training_strategy(strategy.segmented_strategy())
        .launch(learner);

    let (events, policy_error) = strategy.outcome();
    let seen = recorder.finish();
    fill(&mut result, &seen, &events, split.skipped.count());
    let error = policy_error
        .map(TrainError::Policy)
        .or_else(|| seen.device_error.clone().map(TrainError::Execution))
        .or_else(|| outcome.error.map(|error| TrainError::Training(error.to_string())));
    result.complete = error.is_none() && result.epochs.len() == spec.train.epochs;
    result.error = error.as_ref().map(RunError::from);
    keep(&result);
    error.map_or(Ok(()), Err)
}

fn fill(result: &mut RunResult, seen: &Seen, events: &[PolicyEvent], skipped_files: usize) {
    let gave_back = events.iter().any(|event| matches!(event.kind, EventKind::Cleanup | EventKind::Warning));
    result.steps.clone_from(&seen.steps);
    result.epochs.clone_from(&seen.epochs);
    result.peaks = seen.peaks.readings(!gave_back);
    result.events = events.to_vec();
    result.skipped_files = skipped_files;
    result.train_s = seen.epochs.iter().map(|epoch| epoch.train_s).sum();
}
