//! The run itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use burn::train::SupervisedTraining;
use burn::train::logger::InMemoryMetricLogger;
use burn::train::metric::{
    AccuracyMetric, ClassReduction, FBetaScoreMetric, LossMetric, Metric, PrecisionMetric, RecallMetric,
};
use burn_cubecl::cubecl::dry_run::DryRun;
use data::{DataError, Split};
use mem_policy::{
    Baseline, Environment, EventKind, PolicyError, PolicyEvent, PolicySet, PolicyStrategy, Precision, Problem, Support,
    TrainPlan, TuningPlan,
};
use models::{ConvNetConfig, ModelError};

use super::device::{DeviceError, OpenDevice};
use super::memory::Source;
use super::recorder::{MetricNames, Recorder, Seen};
use super::runtime::{self, Choices};
use super::silent::Silent;
use super::spec::{ErrorKind, Purpose, RunError, RunResult, RunSpec};
use super::tuning;
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
    let early = plan_for_any_device(&policies, &baseline)?;
    let choices = runtime::configure(&early, &spec.scratch);
    let mut open = OpenDevice::open(spec.device, *early.pool_layout.get())?;
    refuse_unsupported(&policies, &open.environment)?;
    let mut plan = policies.plan(&baseline, &open.environment).map_err(TrainError::Plan)?;
    plan.pool_layout.apply();
    plan.pool_reuse.apply();
    let tuning_plan = plan.tuning.apply();
    if tuning_plan.is_some() {
        runtime::use_cache_of(&open.environment);
    }
    let precision = plan.precision.apply();
    open.set_precision(precision)?;

    let mut split = workload::open_data(&spec.data, &spec.train, plan.subset.apply(), spec.seed)?;
    if !spec.purpose.is_measure() {
        split = tuning::shortened(split, plan.micro_batch());
    }
    let mut network = workload::network(&spec.model, &split).scaled(&plan.model_scale.apply());
    if let Some(shards) = plan.linear_shards.apply() {
        network = network.sharded(&shards, &open.limits, precision.bytes())?;
    }
    network.conv_workspace = plan.conv_workspace.apply();
    network.check_trainable(&open.limits, precision.bytes())?;
    let result = empty_result(&open, &plan, precision, &network, &split)?;
    keep(&result);
    let kernels = tuning_plan.map(|plan| (choices, plan));
    train(spec, open, plan, policies, &split, &network, result, kernels, started, keep)
}

/// What the policies want for the pools and for choosing kernels. It has to be known before the device is open, and hence
/// before the environment is: no policy's wish for it depends on the environment.
fn plan_for_any_device(policies: &PolicySet, baseline: &Baseline) -> Result<TrainPlan, TrainError> {
    let mut anything = Environment::new(mem_policy::Backend::OtherWgpu, "any device");
    anything.precisions.extend([Precision::F16, Precision::Bf16]);
    policies.plan(baseline, &anything).map_err(TrainError::Plan)
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
        phases: Vec::new(),
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
    kernels: Option<(Choices, TuningPlan)>,
    started: Instant,
    keep: &Keep,
) -> Result<(), TrainError> {
    let OpenDevice { device, probes, .. } = open;
    let probes = Arc::new(probes);
    let epochs = if spec.purpose.is_measure() { spec.train.epochs } else { 1 };
    if let Some(cap) = kernels.as_ref().filter(|_| spec.purpose == Purpose::Tune).and_then(|(_, plan)| plan.cap_bytes) {
        let (mut result, keep) = (result.clone(), Arc::clone(keep));
        tuning::watch(cap, &probes, move |used| {
            result.error = Some(RunError { kind: ErrorKind::OutOfMemory, message: tuning::over_cap(used, cap) });
            keep(&result);
            std::process::exit(1);
        });
    }
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
        if spec.purpose.is_measure() { (spec.train.warmup_steps, spec.train.sample_every) } else { tuning::ROLES },
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

    // From the first parameter on, the pools keep their books and the device computes nothing.
    let dry = (spec.purpose == Purpose::Predict).then(DryRun::new);
    device.seed(spec.seed);
    let model = network.init(strategy.device())?;
    let learner = strategy.learner(model, optimizer, spec.train.learning_rate);
    let mut training = SupervisedTraining::new(Path::new(&spec.scratch), train, valid)
        .metric_train_numeric(loss.clone())
        .metric_valid_numeric(loss)
        .metric_valid_numeric(accuracy);
    if dry.is_none() {
        // These three refuse a class that does not exist, and what a dry run reads is no class.
        training = training.metric_valid_numeric(precision).metric_valid_numeric(recall).metric_valid_numeric(f1);
    }
    let outcome = training
        .with_metric_logger(InMemoryMetricLogger::default())
        .with_application_logger(None)
        .renderer(Box::new(Silent))
        .num_epochs(epochs)
        .with_training_strategy(strategy.segmented_strategy())
        .launch(learner);
    drop(dry);

    let (mut events, policy_error) = strategy.outcome();
    events.extend(kernels.as_ref().map(|(choices, _)| tuning::event(choices, spec.purpose)));
    let seen = recorder.finish();
    fill(&mut result, &seen, &events, split.skipped.count());
    let error = policy_error
        .map(TrainError::Policy)
        .or_else(|| seen.device_error.clone().map(TrainError::Execution))
        .or_else(|| outcome.error.map(|error| TrainError::Training(error.to_string())));
    result.complete = error.is_none() && result.epochs.len() == epochs;
    result.error = error.as_ref().map(RunError::from);
    keep(&result);
    error.map_or(Ok(()), Err)
}

fn fill(result: &mut RunResult, seen: &Seen, events: &[PolicyEvent], skipped_files: usize) {
    let gave_back = events.iter().any(|event| matches!(event.kind, EventKind::Cleanup | EventKind::Warning));
    result.steps.clone_from(&seen.steps);
    result.phases.clone_from(&seen.phases);
    result.epochs.clone_from(&seen.epochs);
    result.peaks = seen.peaks.readings(!gave_back);
    result.events = events.to_vec();
    result.skipped_files = skipped_files;
    result.train_s = seen.epochs.iter().map(|epoch| epoch.train_s).sum();
}
