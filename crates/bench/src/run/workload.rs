//! Data, network and optimizer of a run.

use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, ModuleOptimizer, SgdConfig};
use burn::tensor::{Device, FloatDType};
use bytesize::ByteSize;
use data::{DataConfig, DataError, LabelledDataset, Loader, LoaderConfig, SetId, Split, View};
use mem_policy::{LoaderPlan, OptimizerPlan, Sampling, SubsetPlan, SubsetSize};
use models::{ClassificationBatch, ConvNetConfig};

use super::spec::{DataSpec, ModelSpec, Optimizer, RunSpec, TrainSpec};

/// Opens the images of `spec`: at most as many as it and `train` say, then the part that a policy wants.
pub(super) fn open_data(
    spec: &DataSpec,
    train: &TrainSpec,
    subset: Option<SubsetPlan>,
    seed: u64,
) -> Result<Split, DataError> {
    let mut config = DataConfig::new(spec.set);
    config.dir = if spec.set == SetId::Synthetic { None } else { spec.dir.clone() };
    config.size = Some([spec.image_size, spec.image_size]);
    config.channels = Some(spec.channels);
    config.seed = seed;
    config.on_bad_file = spec.on_bad_file;
    config.cache_bytes = ByteSize(spec.cache_bytes);
    let mut split = data::open(&config)?;
    // Steps are counted at the baseline's batch size, so that every arm sees the same images.
    let of_steps = train.max_steps.map(|steps| steps.saturating_mul(train.batch_size));
    split.train = first(split.train, [spec.max_train, of_steps]);
    split.test = first(split.test, [spec.max_test, None]);
    match subset {
        None => Ok(split),
        Some(SubsetPlan { size, sampling }) => {
            let sampling = match sampling {
                Sampling::FirstN => data::Sampling::FirstN,
                Sampling::Random { seed } => data::Sampling::Random { seed },
                Sampling::Stratified { seed } => data::Sampling::Stratified { seed },
            };
            match size {
                SubsetSize::Samples(n) => split.subset(n, sampling),
                SubsetSize::Fraction(share) => split.fraction(share, sampling),
            }
        }
    }
}

/// Opens the images of `spec` and lets go of them.
pub(super) fn check_data(spec: &RunSpec) -> Result<(), DataError> {
    open_data(&spec.data, &spec.train, None, spec.seed).map(drop)
}

/// What is wrong with `subset` for the images of `spec`, before anything runs; `None` also if they cannot be opened, which
/// the run itself reports. Reads indices and labels, and decodes nothing.
#[must_use]
pub fn subset_problem(spec: &RunSpec, subset: SubsetPlan) -> Option<String> {
    match open_data(&spec.data, &spec.train, Some(subset), spec.seed) {
        Err(DataError::Subset(error)) => Some(error.to_string()),
        _ => None,
    }
}

fn first(images: Arc<dyn LabelledDataset>, limits: [Option<usize>; 2]) -> Arc<dyn LabelledDataset> {
    match limits.into_iter().flatten().min() {
        Some(limit) if limit < images.len() => Arc::new(View::new(images, (0..limit).collect())),
        _ => images,
    }
}

/// The network before any policy.
pub(super) fn network(model: &ModelSpec, split: &Split) -> ConvNetConfig {
    ConvNetConfig {
        input: [split.shape.channels, split.shape.height, split.shape.width],
        widths: model.widths.clone(),
        hidden: model.hidden,
        classes: split.classes,
        ..ConvNetConfig::default()
    }
}

type Batches = Arc<dyn DataLoader<ClassificationBatch>>;

/// The loaders for training, in an order that `seed` decides and with images in `dtype`, and for validation.
pub(super) fn loaders(
    split: &Split,
    plan: LoaderPlan,
    dtype: Option<FloatDType>,
    micro_batch: usize,
    device: &Device,
    seed: u64,
) -> Result<(Batches, Batches), DataError> {
    let LoaderPlan { workers, prefetch, staging } = plan;
    let load = |images: &Arc<dyn LabelledDataset>, shuffle, dtype| {
        let config =
            LoaderConfig { batch_size: micro_batch, workers, prefetch, staging, shuffle, drop_last: false, dtype };
        let loader = Loader::new(Arc::clone(images), config, device, |batch: data::ImageBatch| ClassificationBatch {
            images: batch.images,
            targets: batch.targets,
        });
        loader.map(|loader| Arc::new(loader) as Batches)
    };
    Ok((load(&split.train, Some(seed), dtype)?, load(&split.test, None, None)?))
}

/// The optimizer, without state yet: the plan's, or else the experiment's.
pub(super) fn optimizer(plan: Option<&OptimizerPlan>, choice: Optimizer) -> ModuleOptimizer {
    if let Some(plan) = plan {
        return mem_policy::optim::build(plan);
    }
    match choice {
        Optimizer::Sgd => SgdConfig::new().init(),
        Optimizer::Momentum => {
            SgdConfig::new().with_momentum(Some(MomentumConfig::new().with_momentum(0.9).with_dampening(0.0))).init()
        }
        Optimizer::Adam => AdamConfig::new().init(),
    }
}
