//! Opening a set and splitting it into train and test.

use crate::cache::PixelCache;
use crate::caltech101::Photos;
use crate::config::{DataConfig, SetId};
use crate::dataset::{Decoded, LabelledDataset, Source, View};
use crate::error::DataError;
use crate::mnist::{self, Digits, Part};
use crate::random;
use crate::sample::{ImageShape, Normalisation};
use crate::skipped::Skipped;
use crate::subset::{self, Sampling, fraction_counts, subset_counts};
use crate::synthetic::Patterns;
use bytesize::ByteSize;
use std::path::Path;
use std::sync::Arc;

/// A set, split into images to train on and images to test on.
#[derive(Debug, Clone)]
pub struct Split {
    /// Images to train on.
    pub train: Arc<dyn LabelledDataset>,
    /// Images to test on; none of them is in `train`.
    pub test: Arc<dyn LabelledDataset>,
    /// How many classes there are; every label is below it.
    pub classes: usize,
    /// The classes' names, by label.
    pub class_names: Vec<String>,
    /// The set's name.
    pub name: &'static str,
    /// The shape of every image.
    pub shape: ImageShape,
    /// The bad files that were skipped so far, in either part.
    pub skipped: Skipped,
}

impl Split {
    /// `n` images of this split, in its proportion of train to test ([`subset_counts`]).
    ///
    /// # Errors
    ///
    /// [`DataError::Subset`] if `n` is 0, too small to test with, or more than there are.
    pub fn subset(&self, n: usize, sampling: Sampling) -> Result<Self, DataError> {
        Ok(self.take(subset_counts(n, self.train.len(), self.test.len())?, sampling))
    }

    /// A share of the training images, and the same part of the test images ([`fraction_counts`]).
    ///
    /// # Errors
    ///
    /// [`DataError::Subset`] if `share` is not above 0 and at most 1, or there is no training image.
    pub fn fraction(&self, share: f64, sampling: Sampling) -> Result<Self, DataError> {
        Ok(self.take(fraction_counts(share, self.train.len(), self.test.len())?, sampling))
    }

    fn take(&self, (train_n, test_n): (usize, usize), sampling: Sampling) -> Self {
        Self {
            train: subset::take(&self.train, train_n, sampling),
            test: subset::take(&self.test, test_n, sampling),
            ..self.clone()
        }
    }
}

/// Opens a set. Reads indices and labels, and decodes no image.
///
/// MNIST keeps its own split. Caltech101 has none: of each class, the seed chooses [`DataConfig::test_fraction`]
/// (rounded, and at least one image on either side) for testing, and then shuffles both parts, so that the first `n`
/// images are a random sample rather than the first classes.
///
/// # Errors
///
/// [`DataError`], with the path if a file is to blame.
pub fn open(config: &DataConfig) -> Result<Split, DataError> {
    config.validate()?;
    match (config.set, config.dir.as_deref()) {
        (SetId::Mnist, Some(dir)) => open_mnist(config, dir),
        (SetId::Caltech101, Some(dir)) => open_caltech101(config, dir),
        (SetId::Synthetic, _) => Ok(open_synthetic(config)),
        (set, None) => Err(DataError::Config(vec![format!("dir is missing for {set}")])),
    }
}

fn open_mnist(config: &DataConfig, dir: &Path) -> Result<Split, DataError> {
    let build = Build::new(config, Normalisation::uniform(Normalisation::MNIST, config.shape().channels));
    let (train, test) = (Digits::open(dir, Part::Train)?, Digits::open(dir, Part::Test)?);
    let class_names = (0..mnist::CLASSES).map(|digit| digit.to_string()).collect();
    Ok(build.pair(train, test, class_names))
}

fn open_caltech101(config: &DataConfig, dir: &Path) -> Result<Split, DataError> {
    let normalisation = match config.shape().channels {
        3 => Normalisation::per_channel(&Normalisation::IMAGENET),
        channels => Normalisation::uniform(Normalisation::IMAGENET_GREY, channels),
    };
    let build = Build::new(config, normalisation);
    let photos = Photos::open(dir, config.unpack_dir.as_deref())?.complete()?;
    let class_names = photos.class_names().to_vec();
    let fraction = config.test_fraction.unwrap_or(DataConfig::DEFAULT_TEST_FRACTION);
    let (train, test) = stratified(photos.labels(), fraction, config.seed);
    let all = build.decoded(photos, (1, 1));
    Ok(build.split(Arc::new(View::new(Arc::clone(&all), train)), Arc::new(View::new(all, test)), class_names))
}

fn open_synthetic(config: &DataConfig) -> Split {
    let build = Build::new(config, Normalisation::uniform(Normalisation::CENTRED, config.shape().channels));
    let how_much = config.synthetic.clone().unwrap_or_default();
    let (classes, channels) = (how_much.classes, config.shape().channels);
    let patterns = |stream, count| Patterns::new(config.seed, stream, count, classes, channels);
    let (train, test) = (patterns(0, how_much.train), patterns(1, how_much.test));
    build.pair(train, test, (0..classes).map(|class| format!("pattern {class}")).collect())
}

/// What the parts of a split have in common.
struct Build<'a> {
    config: &'a DataConfig,
    normalisation: Normalisation,
    skipped: Skipped,
}

impl<'a> Build<'a> {
    fn new(config: &'a DataConfig, normalisation: Normalisation) -> Self {
        Self { config, normalisation, skipped: Skipped::default() }
    }

    /// `source`, decoded to the configured shape, with its part of the cache: `part` images of `whole`. Two sources
    /// have two caches, which together must not exceed the bound.
    fn decoded<S: Source + 'static>(&self, source: S, (part, whole): (usize, usize)) -> Arc<dyn LabelledDataset> {
        let shape = self.config.shape();
        let bytes = u128::from(self.config.cache_bytes.as_u64()) * part as u128 / whole.max(1) as u128;
        let cache =
            source.worth_caching(shape).then(|| PixelCache::new(ByteSize(bytes as u64), shape.elements())).flatten();
        Arc::new(Decoded {
            source,
            shape,
            normalisation: self.normalisation.clone(),
            on_bad_file: self.config.on_bad_file,
            skipped: self.skipped.clone(),
            cache,
        })
    }

    /// A split of two sources.
    fn pair<S: Source + 'static>(&self, train: S, test: S, class_names: Vec<String>) -> Split {
        let (train_n, test_n) = (train.labels().len(), test.labels().len());
        let whole = train_n + test_n;
        self.split(self.decoded(train, (train_n, whole)), self.decoded(test, (test_n, whole)), class_names)
    }

    fn split(
        &self,
        train: Arc<dyn LabelledDataset>,
        test: Arc<dyn LabelledDataset>,
        class_names: Vec<String>,
    ) -> Split {
        Split {
            train,
            test,
            classes: class_names.len(),
            class_names,
            name: self.config.set.name(),
            shape: self.config.shape(),
            skipped: self.skipped.clone(),
        }
    }
}

/// The places of the images to train on and to test on, each shuffled. A class of a single image is trained on.
fn stratified(labels: &[usize], test_fraction: f64, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (class, mut members) in subset::by_class(labels).into_iter().enumerate() {
        random::shuffle(&mut members, random::mix(seed, class as u64));
        let wanted = (members.len() as f64 * test_fraction).round() as usize;
        let test_n = wanted.max(1).min(members.len().saturating_sub(1));
        test.extend_from_slice(&members[..test_n]);
        train.extend_from_slice(&members[test_n..]);
    }
    random::shuffle(&mut train, random::mix(seed, u64::MAX));
    random::shuffle(&mut test, random::mix(seed, u64::MAX - 1));
    (train, test)
}

#[cfg(test)]
mod tests;
