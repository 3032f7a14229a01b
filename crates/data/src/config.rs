//! What to open, and how: plain data that serialises.

use crate::error::DataError;
use crate::sample::ImageShape;
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SetId {
    /// Handwritten digits: 60,000 + 10,000 grey images of 28x28 pixels, 10 classes.
    Mnist,
    /// Photographs of objects: 8,677 images of about 300x200 pixels, 101 classes.
    Caltech101,
    /// Seeded patterns of any shape, one family for each class; needs no file.
    Synthetic,
}

impl SetId {
    /// Every set.
    pub const ALL: [Self; 3] = [Self::Mnist, Self::Caltech101, Self::Synthetic];

    /// The name used in configurations, folders and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mnist => "mnist",
            Self::Caltech101 => "caltech101",
            Self::Synthetic => "synthetic",
        }
    }

    /// The shape of an image when none is asked for. Caltech101's photographs have no common size.
    pub const fn default_shape(self) -> ImageShape {
        match self {
            Self::Mnist => ImageShape::new(1, 28, 28),
            Self::Caltech101 => ImageShape::new(3, 96, 96),
            Self::Synthetic => ImageShape::new(3, 32, 32),
        }
    }
}

impl std::fmt::Display for SetId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What to do with a file that is missing or cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnBadFile {
    /// Stop with an error that names it.
    #[default]
    Error,
    /// Leave the image out, count it, and warn once. Its batch is smaller by one.
    Skip,
}

/// How much synthetic data to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SyntheticConfig {
    /// Images to train on.
    pub train: usize,
    /// Images to test on.
    pub test: usize,
    /// Classes, in turn: image `i` is of class `i % classes`.
    pub classes: usize,
}

impl Default for SyntheticConfig {
    fn default() -> Self {
        Self { train: 512, test: 128, classes: 10 }
    }
}

/// What [`open`](crate::open) opens.
///
/// What a set would ignore is refused: a test fraction for MNIST, which comes split, or a folder for synthetic data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// The set.
    pub set: SetId,
    /// The folder that holds `mnist/` or `caltech101/`: the sample that ships, or a full copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// Where an archive may be unpacked once, to read single files from then on. Without it, an archive's JPEGs
    /// are held in memory, compressed; nothing is written anywhere else. See [`caltech101`](crate::caltech101).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpack_dir: Option<PathBuf>,
    /// Height and width in pixels; images are resized (bilinear, without keeping the aspect ratio). Without it,
    /// [`SetId::default_shape`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<[usize; 2]>,
    /// 1 (grey) or 3 (colour); images are converted. Without it, [`SetId::default_shape`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<usize>,
    /// Decides the split into train and test, and what synthetic images look like.
    #[serde(default)]
    pub seed: u64,
    /// Share of each class that is kept for testing, for a set that does not come split; 0.2 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_fraction: Option<f64>,
    /// What to do with a bad file.
    #[serde(default)]
    pub on_bad_file: OnBadFile,
    /// Memory for decoded images, at most; 0 keeps none. Images that cost nothing to decode are not kept.
    #[serde(default)]
    pub cache_bytes: ByteSize,
    /// How much synthetic data to make; only for [`SetId::Synthetic`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<SyntheticConfig>,
}

impl DataConfig {
    /// The test fraction of a set that does not come split, unless another is asked for.
    pub const DEFAULT_TEST_FRACTION: f64 = 0.2;

    /// `set` with the defaults: its own shape, seed 0, bad files are errors, no cache.
    pub fn new(set: SetId) -> Self {
        Self {
            set,
            dir: None,
            unpack_dir: None,
            size: None,
            channels: None,
            seed: 0,
            test_fraction: None,
            on_bad_file: OnBadFile::default(),
            cache_bytes: ByteSize(0),
            synthetic: None,
        }
    }

    /// The shape of the images that these settings give.
    pub fn shape(&self) -> ImageShape {
        let default = self.set.default_shape();
        let [height, width] = self.size.unwrap_or([default.height, default.width]);
        ImageShape::new(self.channels.unwrap_or(default.channels), height, width)
    }

    /// Checks every value without reading a file.
    ///
    /// # Errors
    ///
    /// [`DataError::Config`] with all problems.
    pub fn validate(&self) -> Result<(), DataError> {
        let mut problems = Vec::new();
        let shape = self.shape();
        if shape.channels != 1 && shape.channels != 3 {
            problems.push(format!("channels = {}: must be 1 or 3", shape.channels));
        }
        for (name, value) in [("height", shape.height), ("width", shape.width)] {
            if !(1..=MAX_SIDE).contains(&value) {
                problems.push(format!("{name} = {value}: must be 1 to {MAX_SIDE}"));
            }
        }
        if let Some(fraction) = self.test_fraction {
            if self.set != SetId::Caltech101 {
                problems.push(format!("test_fraction = {fraction}: {} comes split; leave it out", self.set));
            } else if !(fraction > 0.0 && fraction < 1.0) {
                problems.push(format!("test_fraction = {fraction}: must be above 0 and below 1"));
            }
        }
        if self.set == SetId::Synthetic {
            if let Some(dir) = self.dir.as_ref().or(self.unpack_dir.as_ref()) {
                problems.push(format!("{}: synthetic data reads no folder; leave it out", dir.display()));
            }
            let SyntheticConfig { train, test, classes } = self.synthetic.clone().unwrap_or_default();
            for (name, value, most) in
                [("train", train, MAX_IMAGES), ("test", test, MAX_IMAGES), ("classes", classes, MAX_CLASSES)]
            {
                if !(1..=most).contains(&value) {
                    problems.push(format!("synthetic.{name} = {value}: must be 1 to {most}"));
                }
            }
        } else {
            if self.dir.is_none() {
                problems.push(format!("dir is missing: name the folder that holds {}/", self.set));
            }
            if self.synthetic.is_some() {
                problems.push(format!("synthetic: {} is real data; leave it out", self.set));
            }
        }
        if self.unpack_dir.is_some() && self.set == SetId::Mnist {
            problems.push("unpack_dir: mnist has no archive to unpack; leave it out".to_owned());
        }
        if problems.is_empty() { Ok(()) } else { Err(DataError::Config(problems)) }
    }
}

/// Longest side of an image, in pixels: far beyond any use here, and safe from overflow.
const MAX_SIDE: usize = 8192;
/// Most synthetic images of a part: their labels are kept in memory.
const MAX_IMAGES: usize = 100_000_000;
/// Most classes of synthetic images: their patterns are kept in memory.
const MAX_CLASSES: usize = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_of_a_configuration_are_named_at_once() {
        let config = DataConfig {
            channels: Some(2),
            size: Some([0, 9000]),
            test_fraction: Some(0.5),
            synthetic: Some(SyntheticConfig::default()),
            unpack_dir: Some("x".into()),
            ..DataConfig::new(SetId::Mnist)
        };
        let message = config.validate().unwrap_err().to_string();
        for part in [
            "channels = 2",
            "height = 0",
            "width = 9000",
            "test_fraction = 0.5",
            "dir is missing",
            "synthetic:",
            "unpack_dir",
        ] {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
    }

    #[test]
    fn more_synthetic_images_than_memory_can_hold_are_refused() {
        let huge = SyntheticConfig { train: usize::MAX, test: usize::MAX, classes: usize::MAX };
        let config = DataConfig { synthetic: Some(huge), ..DataConfig::new(SetId::Synthetic) };
        let message = config.validate().unwrap_err().to_string();
        for part in ["synthetic.train", "synthetic.test", "synthetic.classes"] {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let error = serde_json::from_str::<DataConfig>(r#"{"set": "mnist", "colour": 3}"#).unwrap_err();
        assert!(error.to_string().contains("colour"), "{error}");
    }

    #[test]
    fn a_configuration_survives_serialisation() {
        let config = DataConfig {
            dir: Some("d".into()),
            size: Some([20, 30]),
            cache_bytes: ByteSize::mib(3),
            on_bad_file: OnBadFile::Skip,
            ..DataConfig::new(SetId::Caltech101)
        };
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<DataConfig>(&text).unwrap(), config);
    }

    #[test]
    fn a_test_fraction_must_leave_both_parts() {
        for fraction in [0.0, 1.0, -0.1, f64::NAN] {
            let config = DataConfig {
                dir: Some("d".into()),
                test_fraction: Some(fraction),
                ..DataConfig::new(SetId::Caltech101)
            };
            assert!(config.validate().is_err(), "{fraction} was accepted");
        }
    }
}
