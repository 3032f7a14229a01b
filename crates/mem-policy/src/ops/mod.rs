//! Tensor operations that Burn has too, done in another way, with a backward pass of their own.
//!
//! They need the feature `ops`, which brings Burn's CPU backend (Flex) and its CubeCL backends (Vulkan, Metal, DX12,
//! CUDA). On any other backend they panic, as every backend extension of Burn does.

mod conv;
mod matmul;

use burn::backend::DispatchTensorKind;
use burn::tensor::Tensor;

pub use conv::{MatmulConv, conv2d_by_matmul};
pub use matmul::{UnfusedMatmul, matmul_unfused};

/// Whether these operations run on the backend that holds `x`.
#[must_use]
pub fn supported<const D: usize>(x: &Tensor<D>) -> bool {
    fn named(kind: &DispatchTensorKind) -> bool {
        match kind {
            DispatchTensorKind::Cube(_) | DispatchTensorKind::Flex(_) => true,
            DispatchTensorKind::Autodiff(inner) => named(inner),
            #[expect(unreachable_patterns, reason = "which backends there are depends on Burn's features")]
            _ => false,
        }
    }
    named(&x.clone().into_dispatch().kind)
}
