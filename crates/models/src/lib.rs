//! The networks the experiments train.
//!
//! [`ConvNet`] is a stack of convolution blocks and a two-layer classifier; [`ConvNetConfig::default`] is the
//! 1.85-billion-parameter network this project is about.
//!
//! # Example
//!
//! ```
//! use models::ConvNetConfig;
//!
//! let config = ConvNetConfig::default();
//! assert_eq!(config.summary()?.parameters(), 1_851_291_712);
//! let small = ConvNetConfig { input: [1, 28, 28], widths: vec![8, 16], hidden: 32, classes: 10, ..config };
//! println!("{}", small.summary()?);
//! # Ok::<(), models::ModelError>(())
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking"))]

mod convnet;
mod summary;

pub use convnet::{ClassificationBatch, ConvBlock, ConvNet, ConvNetConfig, ModelError};
pub use mem_policy::shard::DeviceLimits;
pub use summary::{LayerRow, Summary};
