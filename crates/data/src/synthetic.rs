//! Images made from a seed: any shape, any number of classes, no files, and something to learn.
//!
//! Each class has a coarse pattern of 4x4 fields with a brightness of their own; an image is its class's pattern and
//! noise. Image `i` depends on the seed and `i` alone, so images need not be kept, and every run sees the same ones.

use crate::dataset::Source;
use crate::error::DataError;
use crate::sample::ImageShape;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::fmt;
use std::path::PathBuf;

const FIELDS: usize = 4;
const NOISE: i16 = 48;

pub(crate) struct Patterns {
    seed: u64,
    /// Brightness by class, channel and field.
    fields: Vec<u8>,
    labels: Vec<usize>,
    channels: usize,
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patterns").field("images", &self.labels.len()).finish_non_exhaustive()
    }
}

impl Patterns {
    /// `count` images of `classes` classes; `stream` tells train from test.
    pub(crate) fn new(seed: u64, stream: u64, count: usize, classes: usize, channels: usize) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let fields = (0..classes * channels * FIELDS * FIELDS)
            .map(|_| rng.random_range(NOISE as u8..=255 - NOISE as u8))
            .collect();
        Self {
            // The stream's high bit keeps it apart from the indices that are mixed in below.
            seed: crate::random::mix(seed, stream | 1 << 63),
            fields,
            labels: (0..count).map(|index| index % classes).collect(),
            channels,
        }
    }
}

impl Source for Patterns {
    fn labels(&self) -> &[usize] {
        &self.labels
    }

    fn decode(&self, index: usize, shape: ImageShape) -> Result<Vec<u8>, DataError> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(crate::random::mix(self.seed, index as u64));
        let per_class = self.channels * FIELDS * FIELDS;
        let pattern = &self.fields[self.labels[index] * per_class..][..per_class];
        let mut pixels = Vec::with_capacity(shape.elements());
        for channel in pattern.chunks(FIELDS * FIELDS) {
            for y in 0..shape.height {
                let row = &channel[y * FIELDS / shape.height * FIELDS..][..FIELDS];
                for x in 0..shape.width {
                    let noise = rng.random_range(-NOISE..=NOISE);
                    // Fields keep NOISE from both ends, so this stays a byte.
                    pixels.push((i16::from(row[x * FIELDS / shape.width]) + noise) as u8);
                }
            }
        }
        Ok(pixels)
    }

    fn describe(&self, index: usize) -> PathBuf {
        PathBuf::from(format!("synthetic/{index}"))
    }

    fn worth_caching(&self, _shape: ImageShape) -> bool {
        true
    }
}
