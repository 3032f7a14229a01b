//! Burn's allocator pools on a device.

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::{Counter, Measurement, Probe, Quality};

/// Reads the pools in which Burn's allocator keeps the device's memory.
///
/// Bytes in use, padding and reserved come from `Device::memory_pool_usage`, pages and their largest number from
/// `Device::memory_pool_report`.
///
/// ```
/// use burn::tensor::Device;
/// use mps_probe::{BurnPoolProbe, Probe};
///
/// let probe = BurnPoolProbe::new(Device::flex());
/// assert!(probe.read().iter().all(|measurement| measurement.bytes().is_none()), "the CPU backend has no pools");
/// ```
///
/// # What it does not see
///
/// * Backends that do not report pools, such as the CPU backend Flex: everything is absent there.
/// * A peak within a step: bytes in use are those of the moment. Pools only grow until memory is cleaned up, so what a
///   fresh process that never cleaned up has *reserved* is its high-water mark.
/// * Pools whose allocations own their page have no page size and are missing from the pages, but not from the bytes.
///   So are allocations made in persistent mode.
/// * Which model or tensor uses the memory, and what the driver adds to it: see `WgpuProbe`.
///
/// Pools belong to streams, and Burn gives every thread a stream of its own. The figures cover all streams of the device,
/// so a prefetching loader's pools are in them.
///
/// # How it perturbs
///
/// A read queues a task on the device's command channel and waits for it, so it waits for what was queued before it and
/// delays what comes after. With operator fusion it first executes the operations that the calling thread has recorded
/// but not yet run, which may split a fusion that would have been larger. Read between steps, or in a run that is not
/// timed. It does not wait for the GPU to finish and does not allocate device memory.
#[derive(Debug, Clone)]
pub struct BurnPoolProbe {
    device: Device,
}

/// One paged pool of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PoolPages {
    /// Size of one page.
    pub page_size_bytes: u64,
    /// Pages held now.
    pub pages: u64,
    /// The most pages ever held at once.
    pub pages_peak: u64,
    /// The largest allocation that the pool served, in requested bytes.
    pub largest_alloc_bytes: u64,
}

impl BurnPoolProbe {
    /// Reads the pools of `device`.
    pub fn new(device: Device) -> Self {
        Self { device }
    }

    /// The paged pools, in the order allocations are routed through them, stream after stream; `None` on a backend that
    /// does not report them. Perturbs as a read does.
    pub fn pages(&self) -> Option<Vec<PoolPages>> {
        let pools = self.device.memory_pool_report()?;
        Some(
            pools
                .into_iter()
                .map(|pool| PoolPages {
                    page_size_bytes: pool.page_size,
                    pages: pool.pages,
                    pages_peak: pool.pages_peak,
                    largest_alloc_bytes: pool.largest_alloc,
                })
                .collect(),
        )
    }

    /// Live allocations in the pools; `None` on a backend that does not report them. Perturbs as a read does.
    pub fn live_allocations(&self) -> Option<u64> {
        self.device.memory_pool_usage().map(|usage| usage.number_allocs)
    }
}

impl Probe for BurnPoolProbe {
    fn id(&self) -> &'static str {
        "pools"
    }

    fn read(&self) -> Vec<Measurement> {
        let absent = |counter| Measurement::absent(counter, "the backend of this device does not report its pools");
        let usage = match self.device.memory_pool_usage() {
            Some(usage) => [
                (Counter::PoolInUse, usage.bytes_in_use, "memory_pool_usage bytes_in_use"),
                (Counter::PoolPadding, usage.bytes_padding, "memory_pool_usage bytes_padding"),
                (Counter::PoolReserved, usage.bytes_reserved, "memory_pool_usage bytes_reserved"),
            ]
            .map(|(counter, bytes, source)| Measurement::present(counter, bytes, source, Quality::Exact)),
            None => [Counter::PoolInUse, Counter::PoolPadding, Counter::PoolReserved].map(absent),
        };
        let pages = match self.pages() {
            Some(pools) => {
                let sum = |count: fn(&PoolPages) -> u64| {
                    pools.iter().map(|pool| pool.page_size_bytes.saturating_mul(count(pool))).sum::<u64>()
                };
                [
                    Measurement::present(
                        Counter::PoolPages,
                        sum(|pool| pool.pages),
                        "memory_pool_report pages * page_size",
                        Quality::Exact,
                    ),
                    Measurement::present(
                        Counter::PoolPagesPeak,
                        sum(|pool| pool.pages_peak),
                        "memory_pool_report pages_peak * page_size",
                        Quality::UpperBound,
                    ),
                ]
            }
            None => [Counter::PoolPages, Counter::PoolPagesPeak].map(absent),
        };
        usage.into_iter().chain(pages).collect()
    }
}
