//! What can go wrong between a file and a batch.

use crate::subset::SubsetError;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why data could not be opened, read or batched. Whatever concerns a file carries its path.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file or folder could not be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// None of the places where a set may lie holds it.
    #[error("no {set} in {}: expected {}; fetch the full set, or name the folder that holds it", dir.display(), list(tried))]
    NotFound {
        /// The set that was asked for.
        set: &'static str,
        /// The folder that was searched.
        dir: PathBuf,
        /// What would have been accepted there.
        tried: Vec<PathBuf>,
    },
    /// An IDX file is not what its header says, or not IDX at all.
    #[error("{} is no valid IDX file: {problem}", path.display())]
    Idx {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the values found and expected.
        problem: String,
    },
    /// A `tar.gz` could not be read to its end.
    #[error("{} is damaged or no tar.gz: {source}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// The reader's reason.
        source: std::io::Error,
    },
    /// An image file is not a whole JPEG.
    #[error("cannot decode {}: {problem}; restore the file, or skip bad files", path.display())]
    Image {
        /// The image; for an image in an archive, the archive's path with the entry's name appended.
        path: PathBuf,
        /// The decoder's reason.
        problem: String,
    },
    /// A folder or archive of images does not hold the classes it should.
    #[error("{} holds {found} classes of images, expected {expected}: the copy is incomplete or another set", path.display())]
    Classes {
        /// The folder or archive.
        path: PathBuf,
        /// Classes found, background excluded.
        found: usize,
        /// Classes of the set.
        expected: usize,
    },
    /// The configuration is refused; every problem is listed.
    #[error("the data configuration is refused: {}", .0.join("; "))]
    Config(Vec<String>),
    /// A subset was refused.
    #[error(transparent)]
    Subset(#[from] SubsetError),
    /// A loader was configured with values that cannot work; every problem is listed.
    #[error("the loader configuration is refused: {}", .0.join("; "))]
    Loader(Vec<String>),
    /// Decoding panicked; the loader's thread survived.
    #[error("batch {batch} of the loader panicked: {message}")]
    Panic {
        /// The batch's place in the epoch, from 0.
        batch: usize,
        /// The panic's message.
        message: String,
    },
    /// The loader's threads are gone, which no decode error explains.
    #[error("the loader's threads stopped before batch {batch} was ready")]
    WorkersGone {
        /// The batch that was waited for, from 0.
        batch: usize,
    },
    /// Every image of an epoch was skipped.
    #[error("all {0} images were skipped as unreadable: check the data folder")]
    AllSkipped(usize),
    /// The manifest does not parse.
    #[error("the data manifest is invalid: {0}")]
    Manifest(String),
}

impl DataError {
    /// For `map_err` on reads of `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// Whether one damaged or missing file is to blame, so that skipping it makes sense.
    pub(crate) fn is_bad_file(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Image { .. })
    }
}

fn list(paths: &[PathBuf]) -> String {
    let shown: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    shown.join(" or ")
}
