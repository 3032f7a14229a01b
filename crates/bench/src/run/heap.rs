//! The allocator of every program that links this crate: it counts, because Burn's CPU backend keeps no books.

use mps_probe::{AllocatorProbe, CountingAllocator};

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

/// Reads the counters.
pub(super) fn probe() -> AllocatorProbe {
    AllocatorProbe::new(&HEAP)
}

/// Starts the peak anew at what is in use now.
pub(super) fn reset_peak() {
    HEAP.reset_peak();
}
