//! One epoch: hands out work ahead, and batches in order.

use super::Loader;
use super::pool::Pool;
use super::work::{Made, Work};
use crate::batch::HostBatch;
use crate::config::OnBadFile;
use crate::error::DataError;
use burn::data::dataloader::{DataLoaderIterator, Progress};
use burn::data::dataset::DatasetError;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// The batches of one epoch.
pub(super) struct Batches<'a, O> {
    loader: &'a Loader<O>,
    work: Arc<Work>,
    /// Batches taken so far, in order.
    taken: usize,
    /// Where the batches after those will arrive, in order; one for each that the pool was asked for.
    ahead: VecDeque<Receiver<Made>>,
    /// With skipping, the batch before the one that was taken last: it is given out once it is known whether another
    /// follows, since the batches after it may turn out to be skipped altogether.
    held: Option<(HostBatch, usize)>,
    /// An error to give out after the batch that was held before it.
    failure: Option<DatasetError>,
    /// Images up to the end of the batch that was given out last.
    processed: usize,
    ended: bool,
}

impl<'a, O: Send + 'static> Batches<'a, O> {
    pub(super) fn new(loader: &'a Loader<O>, order: Vec<usize>) -> Self {
        let mut batches = Self {
            loader,
            work: Arc::new(Work {
                dataset: Arc::clone(&loader.dataset),
                device: loader.device.clone(),
                staging: loader.config.staging,
                dtype: loader.config.dtype,
                order,
                batch_size: loader.config.batch_size,
                abandoned: AtomicBool::new(false),
            }),
            taken: 0,
            ahead: VecDeque::new(),
            held: None,
            failure: None,
            processed: 0,
            ended: false,
        };
        batches.start_ahead();
        batches
    }

    /// Hands out work until as many batches are ahead as may be.
    fn start_ahead(&mut self) {
        let Some(pool) = &self.loader.pool else {
            return;
        };
        let from = self.taken + self.ahead.len();
        let until = self.work.batches().min(self.taken.saturating_add(self.loader.config.ahead()));
        for number in from..until {
            self.ahead.push_back(start(pool, &self.work, number));
        }
    }

    /// Waits for the next batch in order; `None` after the last.
    fn take(&mut self) -> Option<Made> {
        let number = self.taken;
        if number == self.work.batches() {
            return None;
        }
        self.start_ahead();
        let made = match self.ahead.pop_front() {
            Some(arriving) => {
                arriving.recv().unwrap_or_else(|_| Err(DatasetError::new(DataError::WorkersGone { batch: number })))
            }
            // Without workers.
            None => self.work.make(number),
        };
        self.taken += 1;
        Some(made)
    }

    /// The next batch that has images, and the number of images up to its end.
    fn take_filled(&mut self) -> Option<Result<(HostBatch, usize), DatasetError>> {
        loop {
            let end = self.work.end(self.taken);
            match self.take()? {
                Ok(Some(batch)) => return Some(Ok((batch, end))),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// The batch to give out now. Its count of images is the total if and only if it is the last.
    fn next_host(&mut self) -> Option<Result<(HostBatch, usize), DatasetError>> {
        if self.loader.dataset.on_bad_file() == OnBadFile::Error {
            return self.take_filled();
        }
        if let Some(error) = self.failure.take() {
            return Some(Err(error));
        }
        let total = self.work.order.len();
        if self.held.is_none() {
            match self.take_filled() {
                Some(Ok(first)) => self.held = Some(first),
                None if total > 0 && self.processed == 0 => {
                    return Some(Err(DatasetError::new(DataError::AllSkipped(total))));
                }
                other => return other,
            }
        }
        match self.take_filled() {
            Some(Ok(next)) => self.held.replace(next).map(Ok),
            Some(Err(error)) => {
                self.failure = Some(error);
                self.held.take().map(Ok)
            }
            None => self.held.take().map(|(batch, _)| Ok((batch, total))),
        }
    }
}

/// Asks the pool for batch `number`.
fn start(pool: &Pool, work: &Arc<Work>, number: usize) -> Receiver<Made> {
    let work = Arc::clone(work);
    let (answer, arriving) = channel();
    pool.run(Box::new(move || {
        // Nobody listens once the iterator is gone.
        let _ = answer.send(work.make(number));
    }));
    arriving
}

impl<O: Send + 'static> Iterator for Batches<'_, O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        match self.next_host() {
            Some(Ok((batch, processed))) => {
                self.processed = processed;
                let batch = (self.loader.map)(batch.to_device(&self.loader.device));
                // The host's copy is gone: there is room for another.
                self.start_ahead();
                Some(Ok(batch))
            }
            Some(Err(error)) => {
                self.ended = true;
                self.work.abandoned.store(true, Ordering::Relaxed);
                Some(Err(error))
            }
            None => {
                self.ended = true;
                None
            }
        }
    }
}

impl<O: Send + 'static> DataLoaderIterator<O> for Batches<'_, O> {
    fn progress(&self) -> Progress {
        Progress::new(self.processed, self.work.order.len(), Some("items".to_owned()))
    }
}

impl<O> Drop for Batches<'_, O> {
    fn drop(&mut self) {
        self.work.abandoned.store(true, Ordering::Relaxed);
    }
}
