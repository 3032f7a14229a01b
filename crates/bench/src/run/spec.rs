//! What a child is told, and what it answers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mem_policy::{Environment, PlanLine, PolicyEvent};
use serde::{Deserialize, Serialize};

/// Everything one measured run needs; the parent writes it, the child reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// What to compute on.
    pub device: DeviceChoice,
    /// The images.
    pub data: DataSpec,
    /// The network.
    pub model: ModelSpec,
    /// The training.
    pub train: TrainSpec,
    /// The policies that are on, by id, with their parameters.
    pub policies: toml::Table,
    /// Seeds the weights, the order of the data and every random choice.
    pub seed: u64,
    /// What the run is for.
    #[serde(default, skip_serializing_if = "Purpose::is_measure")]
    pub purpose: Purpose,
    /// Where the child may write (metrics logs, checkpoints). It is empty at the start.
    pub scratch: PathBuf,
}

/// What a run is for. All but [`Self::Measure`] train a few steps and validate one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To be measured.
    #[default]
    Measure,
    /// To choose kernels (`warm-autotune`).
    Tune,
    /// To see what memory it would take: nothing is computed on the device, and what is read from it means nothing.
    Predict,
}

impl Purpose {
    /// Whether it is the whole run.
    #[must_use]
    pub fn is_measure(&self) -> bool {
        *self == Self::Measure
    }
}

/// What to compute on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceChoice {
    /// A real GPU when there is one, else the CPU.
    #[default]
    Auto,
    /// Metal (macOS).
    Metal,
    /// Vulkan, software Vulkan included.
    Vulkan,
    /// Direct3D 12 (Windows).
    Dx12,
    /// Whatever wgpu finds first, software included.
    Wgpu,
    /// The CPU, through Burn's Flex backend.
    Cpu,
}

/// Which images, and in which form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSpec {
    /// The data set.
    pub set: data::SetId,
    /// The folder that holds `mnist/` and `caltech101/`. `None` for synthetic images.
    pub dir: Option<PathBuf>,
    /// Height and width in pixels.
    pub image_size: usize,
    /// 1 for grey, 3 for RGB.
    pub channels: usize,
    /// At most this many training images (before any policy). `None` is all.
    pub max_train: Option<usize>,
    /// At most this many test images. `None` is all.
    pub max_test: Option<usize>,
    /// What to do with files that cannot be read.
    pub on_bad_file: data::OnBadFile,
    /// Bytes of decoded images to keep. 0 keeps none.
    pub cache_bytes: u64,
}

/// The network before any policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// Channels of the convolution blocks, input channels not included.
    pub widths: Vec<usize>,
    /// Hidden units of the classifier.
    pub hidden: usize,
}

/// The training before any policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainSpec {
    /// Samples per optimizer step.
    pub batch_size: usize,
    /// Epochs.
    pub epochs: usize,
    /// At most this many micro-batches of `batch_size` samples per epoch. `None` is all.
    pub max_steps: Option<usize>,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// Learning rate.
    pub learning_rate: f64,
    /// Steps at the start whose time is not counted (shader compilation, caches).
    pub warmup_steps: usize,
    /// One step in so many is given to memory sampling and is not timed. 0 samples none.
    pub sample_every: usize,
}

/// The optimizers an experiment can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Optimizer {
    /// Stochastic gradient descent.
    #[default]
    Sgd,
    /// SGD with momentum 0.9.
    Momentum,
    /// Adam.
    Adam,
}

/// What a child writes when its run ends, and at each epoch's end before that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Whether the run went through all its epochs.
    pub complete: bool,
    /// Why it did not, if it ended by itself: an error of a policy, of the data, of the device.
    pub error: Option<RunError>,
    /// The machine, as the policies saw it.
    pub environment: Environment,
    /// The device and the software it ran on.
    pub device: DeviceInfo,
    /// The plan in force.
    pub plan: Vec<PlanLine>,
    /// Parameters of the network.
    pub parameters: u64,
    /// Training and test images used.
    pub train_images: usize,
    /// See [`Self::train_images`].
    pub test_images: usize,
    /// Files that could not be read and were skipped.
    pub skipped_files: usize,
    /// Every micro-batch.
    pub steps: Vec<StepSample>,
    /// Where the time of the sampled steps went, in order.
    #[serde(default)]
    pub phases: Vec<PhaseSample>,
    /// Every epoch.
    pub epochs: Vec<EpochSample>,
    /// Every memory reading: the peaks over the run, by counter.
    pub peaks: BTreeMap<String, PeakReading>,
    /// What the policies noted.
    pub events: Vec<PolicyEvent>,
    /// Seconds from the start of the process to the first step: opening the device, reading data, building the model.
    pub setup_s: f64,
    /// Seconds of training, validation not included.
    pub train_s: f64,
}

/// Why a run ended by itself before its last epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// What kind of error.
    pub kind: ErrorKind,
    /// For people.
    pub message: String,
}

/// The kinds of error a child can name. What it cannot name (a kill, a time-out) the parent sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The device or the process ran out of memory.
    OutOfMemory,
    /// A policy stopped the run (a memory limit).
    Policy,
    /// The policies, or one of them on this device, make no sense.
    Unsupported,
    /// The data could not be read.
    Data,
    /// The network cannot be trained on this device, or the device failed.
    Device,
    /// A panic.
    Panic,
    /// Anything else.
    Other,
}

/// What the hidden verb `__environment` prints as one line of JSON: what a child finds when it opens the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentReport {
    /// The machine, as the policies see it.
    pub environment: Environment,
    /// The device and the software.
    pub device: DeviceInfo,
}

/// The device and the software a run used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The device's name.
    pub name: String,
    /// `cpu`, `vulkan`, `metal`, `dx12`.
    pub backend: String,
    /// The driver and its version.
    pub driver: Option<String>,
    /// The shader language kernels are compiled from, or how the CPU computes.
    pub compiler: String,
    /// Whether kernels are chosen by measuring.
    pub autotune: bool,
    /// The float dtype in force.
    pub dtype: String,
    /// Burn's version.
    pub burn: String,
    /// `debug` or `release`: how this program was built.
    pub profile: String,
    /// Operating system and architecture.
    pub os: String,
}

/// One micro-batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepSample {
    /// The epoch, from 1.
    pub epoch: usize,
    /// Images in it.
    pub images: usize,
    /// Milliseconds waited for the batch.
    pub wait_ms: f64,
    /// Milliseconds from the batch's arrival until the device finished the step.
    pub step_ms: f64,
    /// What this step's time may be used for.
    pub role: StepRole,
}

/// What a step's time may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepRole {
    /// It belongs to the warm-up: kernels are compiled, caches fill.
    Warmup,
    /// Nothing but training happened in it.
    Timed,
    /// Memory was sampled in it.
    Sampled,
}

/// A part of a sampled step. The device finished its work before the next part began, so the parts add up to more than a
/// timed step, in which the device works while the next part is prepared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseSample {
    /// The step, from 1 over the whole run.
    pub step: usize,
    /// What ended.
    pub phase: StepPhase,
    /// The group of segments, from 0, whose backward pass it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
    /// Milliseconds.
    pub ms: f64,
    /// Bytes in use in Burn's pools when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_in_use: Option<u64>,
    /// Bytes that Burn's pools had reserved when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_reserved: Option<u64>,
}

/// The parts of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepPhase {
    /// The forward pass.
    Forward,
    /// The backward pass of one group of segments.
    Segment,
    /// The rest of the backward pass.
    Backward,
    /// The optimizer's update.
    Update,
}

/// One epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochSample {
    /// The epoch, from 1.
    pub epoch: usize,
    /// Seconds of training.
    pub train_s: f64,
    /// Mean training loss. `None` if no number came out.
    pub train_loss: Option<f64>,
    /// Mean validation loss.
    pub valid_loss: Option<f64>,
    /// Share of the test images classified correctly, from 0 to 1.
    pub accuracy: Option<f64>,
    /// Macro-averaged precision, from 0 to 1.
    pub precision: Option<f64>,
    /// Macro-averaged recall, from 0 to 1.
    pub recall: Option<f64>,
    /// Macro-averaged F1, from 0 to 1.
    pub f1: Option<f64>,
}

/// The largest value of one counter over a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum PeakReading {
    /// It could be read.
    Read {
        /// Bytes.
        bytes: u64,
        /// How the peak came about.
        how: PeakKind,
        /// The counter's source, for people: `Burn's wgpu memory pool`.
        source: String,
    },
    /// It could not, and why.
    Absent {
        /// Why.
        why: String,
    },
}

/// How a peak came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeakKind {
    /// The counter itself keeps its largest value, or every change of it was seen.
    Exact,
    /// The largest of some samples: the true peak may be higher.
    Sampled,
}
