use burn::tensor::{DType, Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

/// How a level becomes a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rounding {
    /// To the nearest code, as in bitsandbytes. A moving average that changes by less than half a step stays where it
    /// is.
    Nearest,
    /// Up or down, each as often as its distance says, in an order that depends only on the step and the place in the
    /// block. Small changes add up, and nothing random has to be stored for a run to resume bit for bit.
    #[default]
    Dithered,
}

/// The offsets that one step's rounding adds before it rounds down: `[1, elements]`, f32, from 0 to 1.
#[derive(Debug, Clone)]
pub(super) struct Dither(Tensor<2>);

/// The golden ratio's fraction, and the plastic number's inverse: multiples of either spread evenly over 0 to 1.
const ALONG_BLOCK: f64 = 0.618_033_988_749_894_9;
const ALONG_TIME: f64 = 0.754_877_666_246_692_7;
/// The largest f32 below 1.
const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;

impl Dither {
    /// The offsets for blocks of `elements` at step `time`; `shift` tells two states apart.
    pub(super) fn new(rounding: Rounding, elements: usize, time: usize, shift: f64, device: &Device) -> Self {
        let offset = |i: usize| match rounding {
            Rounding::Nearest => 0.5,
            Rounding::Dithered => {
                let place = (i + 1) as f64 * ALONG_BLOCK + time as f64 * ALONG_TIME + shift;
                (place.fract() as f32).min(BELOW_ONE)
            }
        };
        let offsets: Vec<f32> = (0..elements).map(offset).collect();
        Self(Tensor::from_data(TensorData::new(offsets, [1, elements]), (device, DType::F32)))
    }

    /// Rounds `levels` (`[blocks, elements]`) to integers.
    pub(super) fn round(&self, levels: Tensor<2>) -> Tensor<2> {
        levels.add(self.0.clone()).floor()
    }
}
