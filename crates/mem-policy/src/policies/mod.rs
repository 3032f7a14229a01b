//! The built-in policies, one file each.

mod allocator_pages;
mod batch_size;
mod empty_cache;
mod gradient_accumulation;
mod gradient_checkpointing;
mod loader;
mod memory_limit;
mod mixed_precision;
mod model_scale;
mod monitor;
mod optimizer_state;
mod subset;

pub use allocator_pages::AllocatorPages;
pub use batch_size::BatchSize;
pub use empty_cache::EmptyCache;
pub use gradient_accumulation::GradientAccumulation;
pub use gradient_checkpointing::GradientCheckpointing;
pub use loader::Loader;
pub use memory_limit::MemoryLimit;
pub use mixed_precision::{Dtype, MixedPrecision};
pub use model_scale::ModelScaling;
pub use monitor::Monitor;
pub use optimizer_state::{OptimizerKind, OptimizerState};
pub use subset::{Subset, SubsetSampling};

#[cfg(test)]
mod tests;
