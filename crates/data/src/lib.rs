//! Real images for experiments with memory: MNIST, Caltech101 and synthetic sets, subsets of them, and the loader
//! that feeds them to Burn.
//!
//! Three steps, each plain data until the next needs it:
//!
//! 1. [`open`] a [`DataConfig`]: a [`Split`] into train and test. Indices and labels are read, no image is decoded.
//! 2. [`Split::subset`], if a share of it will do.
//! 3. [`Loader::new`] for each part: batches, decoded ahead in threads, in an order that the seed alone decides.
//!
//! ```
//! use burn::data::dataloader::DataLoader;
//! use burn::tensor::Device;
//! use data::{DataConfig, Loader, LoaderConfig, Sampling, SetId};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let split = data::open(&DataConfig::new(SetId::Synthetic))?.subset(100, Sampling::Stratified { seed: 1 })?;
//! let config = LoaderConfig {
//!     batch_size: 16,
//!     workers: 2,
//!     shuffle: Some(42),
//!     ..LoaderConfig::default()
//! };
//! // The closure turns a batch into the caller's own type.
//! let loader = Loader::new(split.train, config, &Device::flex(), |batch| batch)?;
//!
//! let mut epoch = loader.iter();
//! while let Some(batch) = epoch.next() {
//!     let batch = batch?;
//!     let [n, channels, height, width] = batch.images.dims();
//!     assert_eq!([channels, height, width], [3, 32, 32]);
//!     assert_eq!(batch.targets.dims(), [n]);
//! }
//! assert!(epoch.progress().is_completed());
//! # Ok(())
//! # }
//! ```
//!
//! # What is not here
//!
//! Nothing opens a device or makes a tensor but the loader's iterator, in the thread that asks it for a batch. Nothing
//! writes a file but [`DataConfig::unpack_dir`] and the feature `fetch`, both below folders that the caller names. No
//! data is downloaded unless `fetch` is asked to.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test is a panic"))]

mod batch;
mod cache;
pub mod caltech101;
mod checksum;
mod config;
mod dataset;
mod error;
#[cfg(feature = "fetch")]
pub mod fetch;
pub mod idx;
pub mod loader;
pub mod manifest;
pub mod mnist;
mod pixels;
mod random;
mod sample;
mod skipped;
mod split;
pub mod subset;
mod synthetic;

pub use batch::{HostBatch, ImageBatch, ImageBatcher};
pub use checksum::{Checksum, ChecksumError};
pub use config::{DataConfig, OnBadFile, SetId, SyntheticConfig};
pub use dataset::{LabelledDataset, View};
pub use error::DataError;
pub use loader::{Loader, LoaderConfig};
pub use sample::{ImageShape, Normalisation, Sample};
pub use skipped::Skipped;
pub use split::{Split, open};
pub use subset::{Sampling, SubsetError, subset_counts};
