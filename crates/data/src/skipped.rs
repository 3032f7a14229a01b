//! The count of files that were skipped as unreadable.

use crate::error::DataError;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which files were skipped so far. Clones share one record; each file counts once, however many epochs meet it.
///
/// Files are decoded when a batch needs them, so read it after an epoch, not after opening.
#[derive(Debug, Clone, Default)]
pub struct Skipped(Arc<Mutex<BTreeSet<PathBuf>>>);

impl Skipped {
    /// How many different files were skipped.
    pub fn count(&self) -> usize {
        self.files().len()
    }

    /// Their paths, sorted; an image in an archive has the archive's path with the entry's name appended.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.files().iter().cloned().collect()
    }

    pub(crate) fn record(&self, path: PathBuf, error: &DataError) {
        let first_time = self.files().insert(path);
        if first_time {
            tracing::warn!(%error, "skipped an unreadable file");
        }
    }

    fn files(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        // A set of paths is whole whenever the lock is free, even after a panic elsewhere.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
