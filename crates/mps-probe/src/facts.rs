//! What a device is, apart from its memory counters.

use serde::{Deserialize, Serialize};
use sysinfo::{CpuRefreshKind, RefreshKind, System};

/// What a device is and how large one buffer, binding or dispatch may be.
///
/// Belongs beside every record: figures of two devices or drivers are not comparable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceFacts {
    /// The device's name, as the driver gives it.
    pub name: String,
    /// The vendor's identifier (a PCI identifier on most backends), if there is one.
    pub vendor: Option<u32>,
    /// The driver's name, empty if it has none.
    pub driver: String,
    /// The driver's version and build, empty if it tells none.
    pub driver_info: String,
    /// The API: `vulkan`, `metal`, `dx12`, `gl`, or a CPU backend's name.
    pub backend: String,
    /// What kind of device it is.
    pub device_type: DeviceType,
    /// Whether the device works in the host's memory. `None`: unknown.
    ///
    /// Metal tells (`hasUnifiedMemory`). Elsewhere it follows from the device type: integrated GPUs and CPUs do,
    /// discrete GPUs do not, and of others it is unknown.
    pub unified_memory: Option<bool>,
    /// The limits the device was opened with. `None` for a CPU.
    pub limits: Option<DeviceLimits>,
}

/// What kind of device computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeviceType {
    /// A GPU with its own memory.
    DiscreteGpu,
    /// A GPU that shares the host's memory.
    IntegratedGpu,
    /// A virtual GPU.
    VirtualGpu,
    /// A CPU, also one that pretends to be a GPU.
    Cpu,
    /// Something else, or unknown.
    Other,
}

impl DeviceType {
    /// Whether devices of this type work in the host's memory, if the type alone tells.
    pub fn shares_host_memory(self) -> Option<bool> {
        match self {
            DeviceType::IntegratedGpu | DeviceType::Cpu => Some(true),
            DeviceType::DiscreteGpu => Some(false),
            DeviceType::VirtualGpu | DeviceType::Other => None,
        }
    }
}

/// Limits of an open device that decide whether a model can run on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceLimits {
    /// The largest buffer, in bytes.
    pub max_buffer_size_bytes: u64,
    /// The largest part of a buffer that one kernel argument can see, in bytes.
    pub max_storage_buffer_binding_size_bytes: u64,
    /// The largest number of workgroups along one dimension of a dispatch.
    pub max_compute_workgroups_per_dimension: u32,
    /// The largest number of invocations in a workgroup.
    pub max_compute_invocations_per_workgroup: u32,
    /// The most memory that a workgroup can share, in bytes.
    pub max_compute_workgroup_storage_size_bytes: u32,
    /// The required alignment of a storage buffer's offset, in bytes.
    pub min_storage_buffer_offset_alignment_bytes: u32,
}

impl DeviceFacts {
    /// The host's CPU as the device of a CPU backend called `backend`.
    ///
    /// The name is the processor's brand, or its architecture where the system does not tell the brand.
    pub fn cpu(backend: impl Into<String>) -> Self {
        let system = System::new_with_specifics(RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing()));
        let brand = system.cpus().first().map(|cpu| cpu.brand().trim()).filter(|brand| !brand.is_empty());
        Self {
            name: brand.unwrap_or(std::env::consts::ARCH).to_owned(),
            vendor: None,
            driver: String::new(),
            driver_info: String::new(),
            backend: backend.into(),
            device_type: DeviceType::Cpu,
            unified_memory: Some(true),
            limits: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_has_a_name_and_the_facts_survive_json() {
        let facts = DeviceFacts::cpu("flex");
        assert!(!facts.name.is_empty());
        let json = serde_json::to_value(&facts).unwrap();
        assert_eq!((&json["device_type"], &json["backend"]), (&"cpu".into(), &"flex".into()));
        assert_eq!(serde_json::from_value::<DeviceFacts>(json).unwrap(), facts);
    }
}
