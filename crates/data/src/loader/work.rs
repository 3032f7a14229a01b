//! Making one batch, in whichever thread.

use crate::batch::HostBatch;
use crate::dataset::LabelledDataset;
use crate::error::DataError;
use burn::data::dataset::DatasetError;
use burn::tensor::{Device, FloatDType};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A batch, or nothing if every image of it was skipped or nobody waits for it any more.
pub(super) type Made = Result<Option<HostBatch>, DatasetError>;

/// What all batches of an epoch share.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) dataset: Arc<dyn LabelledDataset>,
    pub(super) device: Device,
    pub(super) staging: bool,
    pub(super) dtype: Option<FloatDType>,
    /// Images in the order of this epoch.
    pub(super) order: Vec<usize>,
    pub(super) batch_size: usize,
    /// Set when the iterator is gone: what is still being made is abandoned at the next image.
    pub(super) abandoned: AtomicBool,
}

impl Work {
    pub(super) fn batches(&self) -> usize {
        self.order.len().div_ceil(self.batch_size)
    }

    /// Images up to the end of batch `number`.
    pub(super) fn end(&self, number: usize) -> usize {
        number.saturating_add(1).saturating_mul(self.batch_size).min(self.order.len())
    }

    /// Makes batch `number`; a panic becomes an error.
    pub(super) fn make(&self, number: usize) -> Made {
        // Whatever a panicking decoder left half-done is dropped with it; the data set guards what it shares.
        catch_unwind(AssertUnwindSafe(|| self.try_make(number))).unwrap_or_else(|panic| {
            Err(DatasetError::new(DataError::Panic { batch: number, message: message(&*panic) }))
        })
    }

    fn try_make(&self, number: usize) -> Made {
        let indices = &self.order[number.saturating_mul(self.batch_size).min(self.order.len())..self.end(number)];
        let mut samples = Vec::with_capacity(indices.len());
        for &index in indices {
            if self.abandoned.load(Ordering::Relaxed) {
                return Ok(None);
            }
            samples.extend(self.dataset.load(index)?);
        }
        if samples.is_empty() {
            return Ok(None);
        }
        let batch = HostBatch::collate(&samples, self.dataset.shape(), self.dataset.normalisation());
        Ok(Some(batch.prepare(&self.device, self.dtype, self.staging)))
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
