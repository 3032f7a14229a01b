//! Computing in 16 bits with 32-bit master weights.
//!
//! The parameters, their gradients and the optimizer stay in 32 bits. The activations are cast to 16 bits where they
//! enter the model, and each weight is cast where it meets them ([`like`]), one layer at a time, so that no second copy
//! of all weights exists. Batch norm and the loss work in 32 bits ([`in_dtype`], [`in_default_dtype`]). [`LossScaler`] keeps small gradients
//! from vanishing in 16 bits.
//!
//! Technique: Micikevicius et al., *Mixed Precision Training*, 2018.

mod scaler;

pub use scaler::{LossScaler, LossScalerConfig};

use burn::tensor::{DType, FloatDType, Tensor};

use crate::plan::Precision;

impl Precision {
    /// Burn's name for it.
    #[must_use]
    pub const fn dtype(self) -> FloatDType {
        match self {
            Self::F32 => FloatDType::F32,
            Self::F16 => FloatDType::F16,
            Self::Bf16 => FloatDType::BF16,
        }
    }
}

/// `weight` in the dtype of `x`, so that a layer computes in the precision of its input. The gradient of `weight` keeps
/// its own dtype. Nothing happens if the dtypes agree.
///
/// ```
/// use burn::tensor::{Device, FloatDType, Tensor};
/// use mem_policy::precision::like;
///
/// let device = Device::flex();
/// let weight = Tensor::<2>::ones([4, 4], &device);
/// let x = Tensor::<2>::ones([1, 4], &device).cast(FloatDType::F16);
/// assert_eq!(x.clone().matmul(like(weight, &x)).dtype(), x.dtype());
/// ```
#[must_use]
pub fn like<const D: usize, const E: usize>(weight: Tensor<D>, x: &Tensor<E>) -> Tensor<D> {
    if weight.dtype() == x.dtype() { weight } else { weight.cast(FloatDType::from(x.dtype())) }
}

/// Runs `f` on `x` in `dtype` and gives its result in the dtype of `x`. For layers whose parameters stay in 32 bits because
/// they lose too much in 16: batch norm, whose sums go over the whole batch, takes the dtype of its gain.
///
/// Nothing is cast if the dtypes agree.
#[must_use]
pub fn in_dtype<const D: usize, const E: usize>(
    x: Tensor<D>,
    dtype: DType,
    f: impl FnOnce(Tensor<D>) -> Tensor<E>,
) -> Tensor<E> {
    let own = x.dtype();
    if own == dtype { f(x) } else { f(x.cast(FloatDType::from(dtype))).cast(FloatDType::from(own)) }
}

/// `x` in its device's default float dtype: what losses and metrics expect, 32 bits unless the whole process is 16-bit.
#[must_use]
pub fn in_default_dtype<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let dtype = x.device().settings().float_dtype;
    if x.dtype() == DType::from(dtype) { x } else { x.cast(dtype) }
}

#[cfg(test)]
mod tests;
