//! Tensor operations that Burn has too, done in another way, with a backward pass of their own.
//!
//! They need the feature `ops`, which brings Burn's CPU backend (Flex) and its CubeCL backends (Vulkan, Metal, DX12,
//! CUDA). On any other backend they panic, as every backend extension of Burn does.

mod conv;

pub use conv::{MatmulConv, conv2d_by_matmul};
