//! Data sets that tell their labels without decoding an image.

use crate::cache::PixelCache;
use crate::config::OnBadFile;
use crate::error::DataError;
use crate::sample::{ImageShape, Normalisation, Sample};
use crate::skipped::Skipped;
use burn::data::dataset::{Dataset, DatasetError};
use std::fmt::{self, Debug};
use std::path::PathBuf;
use std::sync::Arc;

/// A Burn [`Dataset`] of images that also knows every label at once, its images' shape, and what to do with a
/// file that cannot be read.
///
/// An `Arc<dyn LabelledDataset>` coerces to the `Arc<dyn Dataset<Sample>>` that Burn's own loaders take.
pub trait LabelledDataset: Dataset<Sample> + Debug {
    /// The class of every image, in order; as long as the data set. Reads and decodes nothing.
    fn labels(&self) -> &[usize];

    /// The shape of every image.
    fn shape(&self) -> ImageShape;

    /// How bytes become the numbers that a network sees.
    fn normalisation(&self) -> &Normalisation;

    /// What happens to an image that cannot be read.
    fn on_bad_file(&self) -> OnBadFile;

    /// The image at `index`, decoded now or taken from the cache; `None` if its file is bad and bad files are to
    /// be skipped (it is counted then). [`Dataset::get`] knows no "skipped" and gives the error instead.
    ///
    /// # Errors
    ///
    /// The file's [`DataError`], if bad files are errors.
    ///
    /// # Panics
    ///
    /// If `index` is not below the length, like [`Dataset::get`].
    fn load(&self, index: usize) -> Result<Option<Sample>, DatasetError>;
}

/// Where encoded or generated images come from: what differs from one set to the next.
pub(crate) trait Source: Send + Sync + Debug {
    fn labels(&self) -> &[usize];
    /// The pixels at `index`, CHW bytes of `shape`.
    fn decode(&self, index: usize, shape: ImageShape) -> Result<Vec<u8>, DataError>;
    /// A path that a person can act on.
    fn describe(&self, index: usize) -> PathBuf;
    /// Whether decoding costs enough for a cache to help.
    fn worth_caching(&self, shape: ImageShape) -> bool;
}

/// A source with a shape to decode to, a cache, and a rule for bad files.
#[derive(Debug)]
pub(crate) struct Decoded<S> {
    pub(crate) source: S,
    pub(crate) shape: ImageShape,
    pub(crate) normalisation: Normalisation,
    pub(crate) on_bad_file: OnBadFile,
    pub(crate) skipped: Skipped,
    pub(crate) cache: Option<PixelCache>,
}

impl<S: Source> Decoded<S> {
    fn sample(&self, index: usize) -> Result<Sample, DataError> {
        let label = self.source.labels()[index];
        if let Some(pixels) = self.cache.as_ref().and_then(|cache| cache.get(index)) {
            return Ok(Sample { pixels, label });
        }
        let pixels: Arc<[u8]> = self.source.decode(index, self.shape)?.into();
        debug_assert_eq!(pixels.len(), self.shape.elements());
        if let Some(cache) = &self.cache {
            cache.insert(index, Arc::clone(&pixels));
        }
        Ok(Sample { pixels, label })
    }
}

impl<S: Source> Dataset<Sample> for Decoded<S> {
    fn get(&self, index: usize) -> Result<Sample, DatasetError> {
        self.sample(index).map_err(DatasetError::new)
    }

    fn len(&self) -> usize {
        self.source.labels().len()
    }
}

impl<S: Source> LabelledDataset for Decoded<S> {
    fn labels(&self) -> &[usize] {
        self.source.labels()
    }

    fn shape(&self) -> ImageShape {
        self.shape
    }

    fn normalisation(&self) -> &Normalisation {
        &self.normalisation
    }

    fn on_bad_file(&self) -> OnBadFile {
        self.on_bad_file
    }

    fn load(&self, index: usize) -> Result<Option<Sample>, DatasetError> {
        match self.sample(index) {
            Ok(sample) => Ok(Some(sample)),
            Err(error) if self.on_bad_file == OnBadFile::Skip && error.is_bad_file() => {
                self.skipped.record(self.source.describe(index), &error);
                Ok(None)
            }
            Err(error) => Err(DatasetError::new(error)),
        }
    }
}

/// Some images of a data set, in an order of their own. Shares the images, cache and count of the whole.
pub struct View {
    base: Arc<dyn LabelledDataset>,
    indices: Vec<usize>,
    labels: Vec<usize>,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("images", &self.indices.len()).field("base", &self.base).finish_non_exhaustive()
    }
}

impl View {
    /// The images of `base` at `indices`, in that order.
    ///
    /// # Panics
    ///
    /// If an index is not below the length of `base`.
    pub fn new(base: Arc<dyn LabelledDataset>, indices: Vec<usize>) -> Self {
        let all = base.labels();
        let labels = indices.iter().map(|&index| all[index]).collect();
        Self { base, indices, labels }
    }

    /// The places in the underlying data set.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }
}

impl Dataset<Sample> for View {
    fn get(&self, index: usize) -> Result<Sample, DatasetError> {
        self.base.get(self.indices[index])
    }

    fn len(&self) -> usize {
        self.indices.len()
    }
}

impl LabelledDataset for View {
    fn labels(&self) -> &[usize] {
        &self.labels
    }

    fn shape(&self) -> ImageShape {
        self.base.shape()
    }

    fn normalisation(&self) -> &Normalisation {
        self.base.normalisation()
    }

    fn on_bad_file(&self) -> OnBadFile {
        self.base.on_bad_file()
    }

    fn load(&self, index: usize) -> Result<Option<Sample>, DatasetError> {
        self.base.load(self.indices[index])
    }
}
