use std::f64::consts::{LN_2, LN_10};

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// Which values the 256 codes of a state stand for.
///
/// Both codes are monotone: a value maps to a *level*, a real number, and the code is that level rounded to an integer.
/// Signed states use the levels -127 to 127, states that are never negative 1 to 255.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateCode {
    /// Equal steps from the negative to the positive largest value of the block: the finest for the large values, and
    /// nothing between zero and 1/127 (or 1/255) of the largest.
    Linear,
    /// The dynamic code of Dettmers et al., *8-bit Optimizers via Block-wise Quantization*, 2022: the largest decade
    /// gets half of the levels, the next a quarter, and so on down to 1e-7 (1e-8 unsigned) of the largest value. Within
    /// a decade the levels are equally spaced.
    #[default]
    Dynamic,
}

/// The levels of a code's magnitudes: `2^(bits - 1)` for the top decade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Levels {
    code: StateCode,
    bits: i32,
}

impl Levels {
    /// The levels 0 to 127: a sign takes the eighth bit.
    pub(super) const fn signed(code: StateCode) -> Self {
        Self { code, bits: 7 }
    }

    /// The levels 0 to 255.
    pub(super) const fn unsigned(code: StateCode) -> Self {
        Self { code, bits: 8 }
    }

    /// The highest level, that of the magnitude 1.
    pub(super) fn top(self) -> f64 {
        2f64.powi(self.bits) - 1.0
    }

    /// The fraction of a decade's end that the highest dynamic level stands for: with it as 1, the largest value of a
    /// block is stored exactly.
    fn top_of_decade(self) -> f64 {
        1.0 - 0.9 * 2f64.powi(1 - self.bits)
    }

    /// The levels (real numbers) of the magnitudes `x` (f32, 0 to 1).
    pub(super) fn of<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        if self.code == StateCode::Linear {
            return x.mul_scalar(self.top());
        }
        let highest = f64::from(self.bits - 1);
        let lowest = 10f64.powi(-self.bits);
        let x = x.mul_scalar(self.top_of_decade());
        // Below the lowest decade the levels go linearly to zero.
        let below = x.clone().div_scalar(lowest).clamp_max(1.0);
        let x = x.clamp_min(lowest);
        // A logarithm that rounds across a decade's border is harmless: the two formulas meet there.
        let exponent =
            x.clone().log().mul_scalar(1.0 / LN_10).floor().add_scalar(f64::from(self.bits)).clamp(0.0, highest);
        let decade = exponent.clone().sub_scalar(highest).mul_scalar(-LN_10).exp();
        let first = exponent.mul_scalar(LN_2).exp();
        x.mul(decade).sub_scalar(0.1).div_scalar(0.9).add_scalar(1.0).mul(first).mul(below)
    }

    /// The magnitudes (0 to 1) of the integer `levels` (f32): the inverse of [`of`](Self::of).
    pub(super) fn values<const D: usize>(self, levels: Tensor<D>) -> Tensor<D> {
        if self.code == StateCode::Linear {
            return levels.div_scalar(self.top());
        }
        let highest = f64::from(self.bits - 1);
        let below = levels.clone().clamp_max(1.0);
        let levels = levels.clamp_min(1.0);
        let exponent = levels.clone().log().mul_scalar(1.0 / LN_2).floor().clamp(0.0, highest);
        let decade = exponent.clone().sub_scalar(highest).mul_scalar(LN_10).exp();
        let first = exponent.mul_scalar(LN_2).exp();
        levels
            .div(first)
            .sub_scalar(1.0)
            .mul_scalar(0.9)
            .add_scalar(0.1)
            .mul(decade)
            .mul(below)
            .div_scalar(self.top_of_decade())
    }
}
