//! The built-in policies, one file each.

mod activation_offload;
mod allocator_pages;
mod batch_size;
mod dtype;
mod empty_cache;
mod fused_optimizer;
mod gradient_accumulation;
mod gradient_checkpointing;
mod half_precision;
mod loader;
mod matmul_conv;
mod memory_limit;
mod mixed_precision;
mod model_scale;
mod monitor;
mod optimizer_state;
mod pool_slack;
mod segment_checkpointing;
mod segment_slices;
mod shard_linear;
mod subset;
mod update_in_place;
mod warm_autotune;

pub use activation_offload::ActivationOffload;
pub use allocator_pages::AllocatorPages;
pub use batch_size::BatchSize;
pub use dtype::Dtype;
pub use empty_cache::EmptyCache;
pub use fused_optimizer::FusedOptimizer;
pub use gradient_accumulation::GradientAccumulation;
pub use gradient_checkpointing::GradientCheckpointing;
pub use half_precision::HalfPrecision;
pub use loader::Loader;
pub use matmul_conv::MatmulConv;
pub use memory_limit::MemoryLimit;
pub use mixed_precision::{MixedPrecision, Mode};
pub use model_scale::ModelScaling;
pub use monitor::Monitor;
pub use optimizer_state::{OptimizerKind, OptimizerState};
pub use pool_slack::PoolSlack;
pub use segment_checkpointing::SegmentCheckpointing;
pub use segment_slices::SegmentSlices;
pub use shard_linear::ShardLinear;
pub use subset::{Subset, SubsetSampling};
pub use update_in_place::UpdateInPlace;
pub use warm_autotune::WarmAutotune;

#[cfg(test)]
mod tests;
