//! A stack of convolution blocks and a two-layer classifier.

mod config;
mod network;
mod segments;

pub use config::{ConvNetConfig, ModelError};
pub use network::{ClassificationBatch, ConvBlock, ConvNet};

#[cfg(test)]
mod tests;
