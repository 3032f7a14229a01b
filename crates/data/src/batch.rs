//! From samples to one tensor of images and one of classes.

use crate::sample::{ImageShape, Normalisation, Sample};
use burn::data::dataloader::batcher::Batcher;
use burn::tensor::{Device, FloatDType, Int, Tensor, TensorData};

/// A batch in host memory: what a loader's thread makes.
#[derive(Debug, Clone, PartialEq)]
pub struct HostBatch {
    /// Normalised images, `[N, C, H, W]`; `f32`, until [`prepare`](Self::prepare) converts them.
    pub images: TensorData,
    /// Classes, `[N]`, `i32`.
    pub targets: TensorData,
}

impl HostBatch {
    /// Normalises `samples`, each of `shape`, and puts them one after the other.
    pub fn collate(samples: &[Sample], shape: ImageShape, normalisation: &Normalisation) -> Self {
        let mut images = Vec::with_capacity(samples.len() * shape.elements());
        for sample in samples {
            normalisation.apply(&sample.pixels, &mut images);
        }
        // A class number is far below 2^31: it was counted in memory.
        let targets: Vec<i32> = samples.iter().map(|sample| sample.label as i32).collect();
        let dims = [samples.len(), shape.channels, shape.height, shape.width];
        Self { images: TensorData::new(images, dims), targets: TensorData::new(targets, [samples.len()]) }
    }

    /// Images in the batch.
    pub fn len(&self) -> usize {
        self.targets.num_elements()
    }

    /// Whether there is no image in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Converts to the number formats that `device` computes in, or the images to `dtype`, so that a transfer needs no
    /// copy of its own, and with
    /// `staging` moves the bytes to memory that the device can read directly ([`Device::staging`], pinned memory where
    /// the backend has it, nothing elsewhere).
    #[must_use]
    pub fn prepare(self, device: &Device, dtype: Option<FloatDType>, staging: bool) -> Self {
        let settings = device.settings();
        let mut images = self.images.convert_dtype(dtype.unwrap_or(settings.float_dtype).into());
        let mut targets = self.targets.convert_dtype(settings.int_dtype.into());
        if staging {
            device.staging([&mut images, &mut targets].into_iter());
        }
        Self { images, targets }
    }

    /// Moves the batch to `device`, in the number formats that [`prepare`](Self::prepare) gave it, in the calling thread's stream and memory pool.
    pub fn to_device(self, device: &Device) -> ImageBatch {
        let dtype = self.images.dtype();
        ImageBatch {
            images: Tensor::from_data(self.images, (device, dtype)),
            targets: Tensor::from_data(self.targets, device),
        }
    }
}

/// A batch on a device.
#[derive(Debug, Clone)]
pub struct ImageBatch {
    /// Normalised images, `[N, C, H, W]`, in the device's default float format.
    pub images: Tensor<4>,
    /// Classes, `[N]`.
    pub targets: Tensor<1, Int>,
}

impl ImageBatch {
    /// Images in the batch.
    pub fn len(&self) -> usize {
        self.targets.dims()[0]
    }

    /// Whether there is no image in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The same batches for Burn's own loaders, to compare with.
#[derive(Debug, Clone)]
pub struct ImageBatcher {
    /// The shape of every sample.
    pub shape: ImageShape,
    /// How bytes become numbers.
    pub normalisation: Normalisation,
}

impl Batcher<Sample, ImageBatch> for ImageBatcher {
    fn batch(&self, items: Vec<Sample>, device: &Device) -> ImageBatch {
        HostBatch::collate(&items, self.shape, &self.normalisation).to_device(device)
    }
}
