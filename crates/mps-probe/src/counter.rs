//! The closed list of what can be read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a figure counts. Two figures may be compared only if both sides name their counter.
///
/// The names are part of the record format: they serialise in `snake_case` and are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Counter {
    /// The process's resident set: its pages in physical memory, shared ones included.
    ProcessResident,
    /// The largest resident set the process has had.
    ProcessResidentPeak,
    /// macOS `phys_footprint`: what the kernel charges the process for, compressed and GPU memory included.
    ProcessFootprint,
    /// The largest `phys_footprint` the process has had.
    ProcessFootprintPeak,
    /// The largest resident set among the children that the process has waited for.
    ChildrenResidentPeak,
    /// Physical memory of the machine.
    SystemTotal,
    /// Memory that can be given to processes without swapping.
    SystemAvailable,
    /// Physical memory that is not available: total minus available.
    SystemInUse,
    /// Swap space in use.
    SystemSwapInUse,
    /// The tightest memory limit of the process's Linux control group and its ancestors.
    CgroupLimit,
    /// What the control group with that limit uses, without file cache that can be dropped.
    CgroupInUse,
    /// Bytes requested from the counting global allocator and not freed.
    HeapInUse,
    /// The largest [`HeapInUse`](Counter::HeapInUse) since the last reset.
    HeapPeak,
    /// Bytes that live allocations use in Burn's device pools, without padding.
    PoolInUse,
    /// Alignment padding inside those allocations.
    PoolPadding,
    /// Bytes that Burn's device pools hold, in use or kept for reuse.
    PoolReserved,
    /// Bytes of the pages that Burn's paged device pools hold now.
    PoolPages,
    /// An upper bound of [`PoolPages`](Counter::PoolPages): every pool at its own largest, not at one moment.
    PoolPagesPeak,
    /// Device memory in use by the process, as the graphics API counts it.
    DeviceInUse,
    /// Device memory that the process may use before it is slowed down or refused.
    DeviceBudget,
    /// Bytes that wgpu's sub-allocator has handed out (Vulkan, DirectX 12).
    WgpuInUse,
    /// Bytes of the blocks that wgpu's sub-allocator holds, free parts included.
    WgpuReserved,
}

impl Counter {
    /// Every counter, in the order of presentation.
    pub const ALL: [Counter; 22] = [
        Counter::ProcessResident,
        Counter::ProcessResidentPeak,
        Counter::ProcessFootprint,
        Counter::ProcessFootprintPeak,
        Counter::ChildrenResidentPeak,
        Counter::SystemTotal,
        Counter::SystemAvailable,
        Counter::SystemInUse,
        Counter::SystemSwapInUse,
        Counter::CgroupLimit,
        Counter::CgroupInUse,
        Counter::HeapInUse,
        Counter::HeapPeak,
        Counter::PoolInUse,
        Counter::PoolPadding,
        Counter::PoolReserved,
        Counter::PoolPages,
        Counter::PoolPagesPeak,
        Counter::DeviceInUse,
        Counter::DeviceBudget,
        Counter::WgpuInUse,
        Counter::WgpuReserved,
    ];

    /// The identifier used in records: equal to the serialised form.
    pub fn id(self) -> &'static str {
        match self {
            Counter::ProcessResident => "process_resident",
            Counter::ProcessResidentPeak => "process_resident_peak",
            Counter::ProcessFootprint => "process_footprint",
            Counter::ProcessFootprintPeak => "process_footprint_peak",
            Counter::ChildrenResidentPeak => "children_resident_peak",
            Counter::SystemTotal => "system_total",
            Counter::SystemAvailable => "system_available",
            Counter::SystemInUse => "system_in_use",
            Counter::SystemSwapInUse => "system_swap_in_use",
            Counter::CgroupLimit => "cgroup_limit",
            Counter::CgroupInUse => "cgroup_in_use",
            Counter::HeapInUse => "heap_in_use",
            Counter::HeapPeak => "heap_peak",
            Counter::PoolInUse => "pool_in_use",
            Counter::PoolPadding => "pool_padding",
            Counter::PoolReserved => "pool_reserved",
            Counter::PoolPages => "pool_pages",
            Counter::PoolPagesPeak => "pool_pages_peak",
            Counter::DeviceInUse => "device_in_use",
            Counter::DeviceBudget => "device_budget",
            Counter::WgpuInUse => "wgpu_in_use",
            Counter::WgpuReserved => "wgpu_reserved",
        }
    }

    /// A short name for people.
    pub fn label(self) -> &'static str {
        match self {
            Counter::ProcessResident => "process resident set",
            Counter::ProcessResidentPeak => "process resident set, peak",
            Counter::ProcessFootprint => "process physical footprint",
            Counter::ProcessFootprintPeak => "process physical footprint, peak",
            Counter::ChildrenResidentPeak => "children's resident set, peak",
            Counter::SystemTotal => "system memory",
            Counter::SystemAvailable => "system memory available",
            Counter::SystemInUse => "system memory in use",
            Counter::SystemSwapInUse => "swap in use",
            Counter::CgroupLimit => "control group limit",
            Counter::CgroupInUse => "control group in use",
            Counter::HeapInUse => "heap in use",
            Counter::HeapPeak => "heap in use, peak",
            Counter::PoolInUse => "pools in use",
            Counter::PoolPadding => "pools, padding",
            Counter::PoolReserved => "pools reserved",
            Counter::PoolPages => "pool pages",
            Counter::PoolPagesPeak => "pool pages, peak",
            Counter::DeviceInUse => "device memory in use",
            Counter::DeviceBudget => "device memory budget",
            Counter::WgpuInUse => "wgpu allocator in use",
            Counter::WgpuReserved => "wgpu allocator reserved",
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_counter_serialises_as_its_id_and_back() {
        for counter in Counter::ALL {
            let json = serde_json::to_value(counter).unwrap();
            assert_eq!(json, counter.id(), "{counter:?}");
            assert_eq!(serde_json::from_value::<Counter>(json).unwrap(), counter);
        }
    }

    #[test]
    fn ids_and_labels_are_distinct() {
        let ids: BTreeSet<_> = Counter::ALL.iter().map(|c| c.id()).collect();
        let labels: BTreeSet<_> = Counter::ALL.iter().map(|c| c.label()).collect();
        assert_eq!((ids.len(), labels.len()), (Counter::ALL.len(), Counter::ALL.len()));
    }
}
