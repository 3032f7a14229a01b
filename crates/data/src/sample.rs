//! One image with its label, its shape, and how its bytes become numbers around zero.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The shape of every image of a split, in the order in which its bytes lie (CHW).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageShape {
    /// Colour planes: 1 (grey) or 3 (red, green, blue).
    pub channels: usize,
    /// Rows of pixels.
    pub height: usize,
    /// Pixels in a row.
    pub width: usize,
}

impl ImageShape {
    /// A shape of `channels` planes of `height` by `width` pixels.
    pub const fn new(channels: usize, height: usize, width: usize) -> Self {
        Self { channels, height, width }
    }

    /// Values of one image: `channels * height * width`, at most `usize::MAX`.
    pub const fn elements(&self) -> usize {
        self.channels.saturating_mul(self.height).saturating_mul(self.width)
    }
}

/// One decoded image and its class.
///
/// Pixels stay bytes until a batch is put together: a quarter of the memory of `f32` in caches and queues. They
/// are shared, so that a cache hit copies nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Brightness from 0 to 255, plane by plane and row by row (CHW); as many as [`ImageShape::elements`].
    pub pixels: Arc<[u8]>,
    /// The class, from 0.
    pub label: usize,
}

/// Per-channel mean and standard deviation, on the scale where a byte of 255 is 1.0.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalisation {
    channels: Vec<(f32, f32)>,
}

impl Normalisation {
    /// MNIST's own statistics over its 60,000 training digits, as PyTorch's MNIST example uses them.
    pub const MNIST: (f32, f32) = (0.1307, 0.3081);
    /// ImageNet's red, green and blue, as torchvision's documentation of its pre-trained models gives them. For
    /// photographs of objects, like Caltech101's.
    pub const IMAGENET: [(f32, f32); 3] = [(0.485, 0.229), (0.456, 0.224), (0.406, 0.225)];
    /// The averages of [`IMAGENET`](Self::IMAGENET) over the three colours, for grey images.
    pub const IMAGENET_GREY: (f32, f32) = (0.449, 0.226);
    /// Maps bytes to -1.0 ..= 1.0.
    pub const CENTRED: (f32, f32) = (0.5, 0.5);

    /// The same mean and deviation for each of `channels` planes.
    pub fn uniform(mean_std: (f32, f32), channels: usize) -> Self {
        Self { channels: vec![mean_std; channels] }
    }

    /// A mean and deviation for each plane.
    pub fn per_channel(mean_std: &[(f32, f32)]) -> Self {
        Self { channels: mean_std.to_vec() }
    }

    /// Mean and deviation of each plane.
    pub fn channels(&self) -> &[(f32, f32)] {
        &self.channels
    }

    /// Appends `pixels` (CHW, as many planes as this has) to `out` as `(byte / 255 - mean) / std`.
    pub fn apply(&self, pixels: &[u8], out: &mut Vec<f32>) {
        if self.channels.is_empty() {
            return;
        }
        let plane = (pixels.len() / self.channels.len()).max(1);
        for (bytes, &(mean, std)) in pixels.chunks(plane).zip(&self.channels) {
            // One multiplication and one addition a pixel.
            let (scale, shift) = (1.0 / (255.0 * std), -mean / std);
            out.extend(bytes.iter().map(|&byte| f32::from(byte) * scale + shift));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalising_gives_each_channel_its_own_mean_and_deviation() {
        let mut out = Vec::new();
        Normalisation::per_channel(&[(0.5, 0.5), (0.0, 1.0)]).apply(&[0, 255, 0, 51], &mut out);
        let expected = [-1.0, 1.0, 0.0, 0.2];
        assert_eq!(out.len(), expected.len());
        for (got, want) in out.iter().zip(expected) {
            assert!((got - want).abs() < 1e-6, "{out:?}");
        }
    }

    #[test]
    fn the_grey_statistics_are_the_averages_of_the_colours() {
        let mean = Normalisation::IMAGENET.iter().map(|c| c.0).sum::<f32>() / 3.0;
        let std = Normalisation::IMAGENET.iter().map(|c| c.1).sum::<f32>() / 3.0;
        assert!((mean - Normalisation::IMAGENET_GREY.0).abs() < 1e-3);
        assert!((std - Normalisation::IMAGENET_GREY.1).abs() < 1e-3);
    }
}
