//! Batches, decoded ahead of the training step.
//!
//! [`Loader`] is a Burn [`DataLoader`], so Burn's trainer takes it as it is. What it adds to Burn's own:
//!
//! * **Order.** The batches of an epoch come in one order, decided by the seed and the epoch's number, however many
//!   threads there are. Burn's multi-threaded loader hands out whatever is ready first.
//! * **A bound.** At most `prefetch + workers` batches exist in host memory, and with at least one worker never more than
//!   `prefetch` wait or are worked on (one more if bad files are skipped). Burn's queue holds 100.
//! * **Where memory is allocated.** Threads decode and collate into host memory ([`HostBatch`](crate::HostBatch)) only. The
//!   tensor is created by the iterator's `next`, in the thread that trains: CubeCL gives each thread its own stream, and
//!   each stream its own memory pool, so a tensor made in a worker would keep a second pool alive on the device.
//! * **Errors in their place.** A file that cannot be read, or a panic while decoding, is an `Err` where its batch would
//!   have been, after all batches before it. The iterator ends there.
//!
//! The threads start with the loader and serve all its epochs: with staging, each thread has a staging pool of its own,
//! which a thread for each epoch would leak. Dropping an iterator early abandons its batches at the next image; dropping
//! the last clone of a loader ends the threads.

mod iter;
mod pool;
mod work;

use crate::batch::ImageBatch;
use crate::dataset::{LabelledDataset, View};
use crate::error::DataError;
use crate::random;
use burn::data::dataloader::{DataLoader, DataLoaderIterator};
use burn::tensor::{Device, FloatDType};
use iter::Batches;
use pool::Pool;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a [`Loader`] makes batches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoaderConfig {
    /// Images in a batch; the last may have fewer.
    pub batch_size: usize,
    /// Threads that decode and collate; 0 does it in the thread that asks for the batch, when it asks.
    pub workers: usize,
    /// Batches that are ready or being made ahead of the one in use. Workers beyond it have nothing to do; without
    /// workers there is nothing ahead and it has no effect.
    pub prefetch: usize,
    /// Whether a worker moves its batch to memory that the device can read directly ([`Device::staging`]).
    pub staging: bool,
    /// Seed of the order, which is another one each epoch; `None` keeps the data set's.
    pub shuffle: Option<u64>,
    /// Whether a last batch with fewer images is left out.
    pub drop_last: bool,
    /// The float type of the images, converted on the host, so that batches wait and travel in it. `None` is the device's
    /// own.
    pub dtype: Option<FloatDType>,
}

impl Default for LoaderConfig {
    fn default() -> Self {
        Self { batch_size: 32, workers: 0, prefetch: 2, staging: false, shuffle: None, drop_last: false, dtype: None }
    }
}

impl LoaderConfig {
    /// Checks every value.
    ///
    /// # Errors
    ///
    /// [`DataError::Loader`] with all problems.
    pub fn validate(&self) -> Result<(), DataError> {
        let mut problems = Vec::new();
        if self.batch_size == 0 {
            problems.push("batch_size = 0: must be at least 1".to_owned());
        }
        if self.workers > 0 && self.prefetch == 0 {
            problems.push(format!("prefetch = 0 gives {} workers nothing to do: must be at least 1", self.workers));
        }
        if self.workers > MAX_WORKERS {
            problems.push(format!("workers = {}: must be at most {MAX_WORKERS}", self.workers));
        }
        if problems.is_empty() { Ok(()) } else { Err(DataError::Loader(problems)) }
    }

    /// Batches that may be ready or in work: what bounds the loader's memory.
    fn ahead(&self) -> usize {
        self.prefetch.max(1)
    }
}

/// More threads than any machine has cores for: a mistyped number.
const MAX_WORKERS: usize = 1024;

type Map<O> = Arc<dyn Fn(ImageBatch) -> O + Send + Sync>;

/// A data loader that gives out `O`, made from an [`ImageBatch`]. See the [module](self) for what it promises.
pub struct Loader<O> {
    dataset: Arc<dyn LabelledDataset>,
    config: LoaderConfig,
    device: Device,
    map: Map<O>,
    /// Shared by the loaders that [`DataLoader::to_device`] and [`DataLoader::slice`] derive from one.
    pool: Option<Arc<Pool>>,
    epoch: AtomicU64,
}

impl<O> fmt::Debug for Loader<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("images", &self.dataset.len())
            .field("config", &self.config)
            .field("device", &self.device)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl<O: Send + 'static> Loader<O> {
    /// A loader of `dataset` to `device`. `map` makes the caller's kind of batch, in the thread that asks for it.
    ///
    /// # Errors
    ///
    /// [`DataError::Loader`] if the configuration cannot work, or its threads cannot start.
    pub fn new(
        dataset: Arc<dyn LabelledDataset>,
        config: LoaderConfig,
        device: &Device,
        map: impl Fn(ImageBatch) -> O + Send + Sync + 'static,
    ) -> Result<Self, DataError> {
        config.validate()?;
        let pool = match config.workers {
            0 => None,
            workers => Some(Arc::new(Pool::start(workers).map_err(|error| {
                DataError::Loader(vec![format!("workers = {workers}: cannot start a thread: {error}")])
            })?)),
        };
        Ok(Self { dataset, config, device: device.clone(), map: Arc::new(map), pool, epoch: AtomicU64::new(0) })
    }

    /// Goes on as if `epoch` epochs had been iterated, so that a resumed run sees the order of an uninterrupted one.
    #[must_use]
    pub fn from_epoch(self, epoch: u64) -> Self {
        self.epoch.store(epoch, Ordering::Relaxed);
        self
    }

    /// The data set.
    pub fn dataset(&self) -> &Arc<dyn LabelledDataset> {
        &self.dataset
    }

    /// The configuration.
    pub fn config(&self) -> &LoaderConfig {
        &self.config
    }

    /// Batches in an epoch, if no image is skipped.
    pub fn batches(&self) -> usize {
        self.items().div_ceil(self.config.batch_size)
    }

    /// Images in an epoch.
    fn items(&self) -> usize {
        let len = self.dataset.len();
        if self.config.drop_last { len - len % self.config.batch_size } else { len }
    }

    /// The order of the images in `epoch`.
    fn order(&self, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.dataset.len()).collect();
        if let Some(seed) = self.config.shuffle {
            random::shuffle(&mut order, random::mix(seed, epoch));
        }
        order.truncate(self.items());
        order
    }

    fn derive(&self, dataset: Arc<dyn LabelledDataset>, device: &Device) -> Arc<dyn DataLoader<O>> {
        Arc::new(Self {
            dataset,
            config: self.config.clone(),
            device: device.clone(),
            map: Arc::clone(&self.map),
            pool: self.pool.clone(),
            epoch: AtomicU64::new(self.epoch.load(Ordering::Relaxed)),
        })
    }
}

impl<O: Send + 'static> DataLoader<O> for Loader<O> {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<O> + 'a> {
        let epoch = self.epoch.fetch_add(1, Ordering::Relaxed);
        Box::new(Batches::new(self, self.order(epoch)))
    }

    fn num_items(&self) -> usize {
        self.items()
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<O>> {
        self.derive(Arc::clone(&self.dataset), device)
    }

    /// The images from `start` to before `end`, as far as there are so many. They are shuffled among themselves.
    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<O>> {
        let end = end.min(self.dataset.len());
        let part = View::new(Arc::clone(&self.dataset), (start.min(end)..end).collect());
        self.derive(Arc::new(part), &self.device)
    }
}

#[cfg(test)]
mod tests;
