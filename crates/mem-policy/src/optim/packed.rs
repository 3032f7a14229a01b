use burn::tensor::{Device, FloatDType, Int, IntDType, Tensor};

use super::code::{Levels, StateCode};
use super::rounding::Dither;

/// Below this, a block's largest value counts as this: what is smaller changes no parameter, and dividing by it would
/// overflow, or divide by zero where a GPU flushes denormal numbers.
const SMALLEST_SCALE: f64 = 1e-30;
/// Above this, a moment counts as this, so that its square is finite.
const LARGEST: f64 = 1e19;

/// A matrix of moments, one row a block, in 8 bits an element and one scale a row.
///
/// Four codes share one 32-bit word, because neither WGSL nor every GPU has 8-bit integers: the word in column `c`
/// holds the codes of the columns `c`, `c + w`, `c + 2 w` and `c + 3 w`, from the lowest byte up.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    /// `[blocks, elements / 4]`, i32.
    pub(super) words: Tensor<2, Int>,
    /// `[blocks, 1]`, f32: the largest magnitude of each block.
    pub(super) scales: Tensor<2>,
}

/// What the codes of a state may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Positive and negative values.
    Signed,
    /// Values that are never negative, and that are never rounded to zero: something is divided by them.
    Positive,
}

impl Packed {
    /// Encodes `values` (`[blocks, elements]`, f32; `elements` divisible by 4). NaN counts as zero, infinity as the
    /// largest number that can be squared.
    pub(super) fn encode(values: Tensor<2>, kind: Kind, code: StateCode, dither: &Dither) -> Self {
        let nan = values.clone().is_nan();
        let values = values.mask_fill(nan, 0.0).clamp(-LARGEST, LARGEST);
        let scales = values.clone().abs().max_dim(1).clamp_min(SMALLEST_SCALE);
        let values = values.div(scales.clone());
        let codes = match kind {
            Kind::Signed => {
                let levels = Levels::signed(code);
                let sign = values.clone().sign();
                dither.round(levels.of(values.abs()).mul(sign)).clamp(-levels.top(), levels.top()).add_scalar(128.0)
            }
            Kind::Positive => {
                let levels = Levels::unsigned(code);
                dither.round(levels.of(values.abs())).clamp(1.0, levels.top())
            }
        };
        Self { words: pack(codes), scales }
    }

    /// The values again: `[blocks, elements]`, f32.
    pub(super) fn decode(&self, kind: Kind, code: StateCode) -> Tensor<2> {
        let codes = unpack(self.words.clone());
        let values = match kind {
            Kind::Signed => {
                let levels = codes.sub_scalar(128.0);
                Levels::signed(code).values(levels.clone().abs()).mul(levels.sign())
            }
            Kind::Positive => Levels::unsigned(code).values(codes),
        };
        values.mul(self.scales.clone())
    }

    pub(super) fn to_device(&self, device: &Device) -> Self {
        Self { words: self.words.clone().to_device(device), scales: self.scales.clone().to_device(device) }
    }
}

/// Integers from 0 to 255 (f32, `[blocks, 4 w]`) into words (`[blocks, w]`).
fn pack(codes: Tensor<2>) -> Tensor<2, Int> {
    let [blocks, elements] = codes.dims();
    let width = elements / 4;
    let quarter = |k: usize| codes.clone().slice([0..blocks, k * width..(k + 1) * width]).cast(IntDType::I32);
    (1..4).fold(quarter(0), |words, k| words.bitwise_or(quarter(k).bitwise_left_shift_scalar(8 * k as i32)))
}

/// The inverse of [`pack`].
fn unpack(words: Tensor<2, Int>) -> Tensor<2> {
    let quarter = |k: i32| {
        // The shift copies the sign bit; the mask drops the copies.
        words.clone().bitwise_right_shift_scalar(8 * k).bitwise_and_scalar(0xff).cast(FloatDType::F32)
    };
    Tensor::cat(vec![quarter(0), quarter(1), quarter(2), quarter(3)], 1)
}
