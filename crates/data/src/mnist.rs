//! MNIST: four IDX files, gzip-compressed or not.
//!
//! `Y. LeCun, C. Cortes, C. Burges: The MNIST database of handwritten digits.` The digits lie in memory as bytes (47 MB
//! for the full training set); resizing, if asked for, happens when a batch needs them. A damaged file is always an
//! error, whatever [`OnBadFile`](crate::OnBadFile) says: it is the whole set.

use crate::dataset::Source;
use crate::error::DataError;
use crate::idx::{Idx, invalid};
use crate::pixels;
use crate::sample::ImageShape;
use std::fmt;
use std::path::{Path, PathBuf};

/// Classes: the ten digits.
pub const CLASSES: usize = 10;

/// The digits of one pair of files.
pub(crate) struct Digits {
    path: PathBuf,
    height: usize,
    width: usize,
    pixels: Vec<u8>,
    labels: Vec<usize>,
}

impl fmt::Debug for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Digits").field("path", &self.path).field("digits", &self.labels.len()).finish_non_exhaustive()
    }
}

impl Digits {
    /// Reads `<part>-images-idx3-ubyte` and `<part>-labels-idx1-ubyte` (or `.gz`) in `<dir>/mnist`.
    pub(crate) fn open(dir: &Path, part: Part) -> Result<Self, DataError> {
        let images_path = find(dir, part, "images-idx3-ubyte")?;
        let labels_path = find(dir, part, "labels-idx1-ubyte")?;
        let images = Idx::read_with_dims(&images_path, 3)?;
        let labels = Idx::read_with_dims(&labels_path, 1)?;
        let [count, height, width] = [images.dims[0], images.dims[1], images.dims[2]];
        if height == 0 || width == 0 || count == 0 {
            return Err(invalid(&images_path, format!("it holds {count} images of {height}x{width} pixels")));
        }
        if labels.values.len() != count {
            return Err(invalid(
                &labels_path,
                format!("it has {} labels for the {count} images of {}", labels.values.len(), images_path.display()),
            ));
        }
        if let Some((index, label)) =
            labels.values.iter().enumerate().find(|&(_, &label)| usize::from(label) >= CLASSES)
        {
            return Err(invalid(&labels_path, format!("label {index} is {label}, expected 0 to 9")));
        }
        Ok(Self {
            path: images_path,
            height,
            width,
            pixels: images.values,
            labels: labels.values.into_iter().map(usize::from).collect(),
        })
    }
}

impl Source for Digits {
    fn labels(&self) -> &[usize] {
        &self.labels
    }

    fn decode(&self, index: usize, shape: ImageShape) -> Result<Vec<u8>, DataError> {
        let size = self.height * self.width;
        let digit = &self.pixels[index * size..(index + 1) * size];
        pixels::from_grey(digit, self.height, self.width, shape)
            .map_err(|problem| DataError::Image { path: self.describe(index), problem })
    }

    fn describe(&self, index: usize) -> PathBuf {
        self.path.join(index.to_string())
    }

    fn worth_caching(&self, shape: ImageShape) -> bool {
        (shape.height, shape.width) != (self.height, self.width)
    }
}

/// Half of the set.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Train,
    Test,
}

/// The file of `part` and `kind`, uncompressed before compressed.
fn find(dir: &Path, part: Part, kind: &str) -> Result<PathBuf, DataError> {
    let part = match part {
        Part::Train => "train",
        Part::Test => "t10k",
    };
    let folder = dir.join("mnist");
    let tried = vec![folder.join(format!("{part}-{kind}")), folder.join(format!("{part}-{kind}.gz"))];
    match tried.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => Err(DataError::NotFound { set: "mnist", dir: dir.to_owned(), tried }),
    }
}
