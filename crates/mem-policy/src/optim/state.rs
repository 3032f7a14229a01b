use burn::optim::{RecordState, StateSink, StateSource};
use burn::tensor::kind::Basic;
use burn::tensor::{Device, Tensor, TensorData};

use super::code::StateCode;
use super::packed::Packed;

/// The state of [`BlockwiseAdam`](super::BlockwiseAdam) for one parameter.
#[derive(Debug, Clone)]
pub struct Adam8bitState {
    pub(super) time: usize,
    pub(super) moments: Moments,
}

#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "one a parameter, against tensors of kilobytes")]
pub(super) enum Moments {
    /// Flat, f32: the first moment, and the second.
    Full { first: Tensor<1>, second: Tensor<1> },
    /// In the order of the parameter's elements.
    Quantized { code: StateCode, chunks: Vec<Chunk> },
}

/// The moments of some of a parameter's blocks.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    /// The first moment.
    pub(super) first: Packed,
    /// The square root of the second moment.
    pub(super) root: Packed,
}

impl Chunk {
    /// Blocks and elements of a block.
    pub(super) fn dims(&self) -> [usize; 2] {
        let [blocks, width] = self.first.words.dims();
        [blocks, 4 * width]
    }

    fn elements(&self) -> usize {
        self.dims().iter().product()
    }
}

impl Adam8bitState {
    /// Steps taken.
    #[must_use]
    pub fn time(&self) -> usize {
        self.time
    }

    /// Whether the moments are stored in 8 bits.
    #[must_use]
    pub fn is_quantized(&self) -> bool {
        matches!(self.moments, Moments::Quantized { .. })
    }

    /// Bytes of the tensors of this state.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.moments {
            Moments::Full { first, second } => 4 * (first.dims()[0] + second.dims()[0]),
            Moments::Quantized { chunks, .. } => {
                chunks.iter().map(|chunk| 2 * (chunk.elements() + 4 * chunk.dims()[0])).sum()
            }
        }
    }

    /// Whether this is the state of a parameter of `elements`.
    pub(super) fn fits(&self, elements: usize) -> bool {
        match &self.moments {
            Moments::Full { first, second } => first.dims() == [elements] && second.dims() == [elements],
            Moments::Quantized { chunks, .. } => {
                let padded: usize = chunks.iter().map(Chunk::elements).sum();
                let block = chunks.last().map_or(1, |chunk| chunk.dims()[1]);
                (elements..elements + block).contains(&padded)
            }
        }
    }

    pub(super) fn to_device(&self, device: &Device) -> Self {
        let moments = match &self.moments {
            Moments::Full { first, second } => {
                Moments::Full { first: first.clone().to_device(device), second: second.clone().to_device(device) }
            }
            Moments::Quantized { code, chunks } => {
                let moved =
                    |chunk: &Chunk| Chunk { first: chunk.first.to_device(device), root: chunk.root.to_device(device) };
                Moments::Quantized { code: *code, chunks: chunks.iter().map(moved).collect() }
            }
        };
        Self { time: self.time, moments }
    }
}

/// Written by hand, because the derived one reads every tensor in the device's default dtype, and knows no integers.
impl RecordState for Adam8bitState {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        out.push_scalar(prefix, "time", self.time.into());
        match &self.moments {
            Moments::Full { first, second } => {
                out.push_tensor(prefix, "first", first.clone().into_data());
                out.push_tensor(prefix, "second", second.clone().into_data());
            }
            Moments::Quantized { code, chunks } => {
                out.push_scalar(prefix, "dynamic", (*code == StateCode::Dynamic).into());
                out.push_scalar(prefix, "chunks", chunks.len().into());
                for (i, Chunk { first, root }) in chunks.iter().enumerate() {
                    for (name, packed) in [("first", first), ("root", root)] {
                        out.push_tensor(prefix, &format!("{name}.{i}.words"), packed.words.clone().into_data());
                        out.push_tensor(prefix, &format!("{name}.{i}.scales"), packed.scales.clone().into_data());
                    }
                }
            }
        }
    }

    fn state_unflatten(prefix: &str, src: &mut StateSource, device: &Device) -> Option<Self> {
        let time = src.take_scalar(prefix, "time")?.try_into().ok()?;
        let Some(chunks) = src.take_scalar(prefix, "chunks") else {
            let first = tensor(src.take_tensor(prefix, "first")?, device);
            let second = tensor(src.take_tensor(prefix, "second")?, device);
            return Some(Self { time, moments: Moments::Full { first, second } });
        };
        let chunks: usize = chunks.try_into().ok()?;
        let dynamic: bool = src.take_scalar(prefix, "dynamic")?.try_into().ok()?;
        let code = if dynamic { StateCode::Dynamic } else { StateCode::Linear };
        let mut packed = |name: &str, i: usize| {
            let words = tensor(src.take_tensor(prefix, &format!("{name}.{i}.words"))?, device);
            let scales = tensor(src.take_tensor(prefix, &format!("{name}.{i}.scales"))?, device);
            Some(Packed { words, scales })
        };
        let chunks = (0..chunks)
            .map(|i| Some(Chunk { first: packed("first", i)?, root: packed("root", i)? }))
            .collect::<Option<_>>()?;
        Some(Self { time, moments: Moments::Quantized { code, chunks } })
    }
}

/// A tensor of the dtype that the data have.
fn tensor<const D: usize, K: Basic>(data: TensorData, device: &Device) -> Tensor<D, K> {
    let dtype = data.dtype();
    Tensor::from_data(data, (device, dtype))
}
