//! Facts of a wgpu device.

use crate::{DeviceFacts, DeviceLimits, DeviceType};

impl DeviceFacts {
    /// The facts of `device`, which was opened on `adapter`.
    ///
    /// The limits are the device's: those it was opened with, which may be below what the adapter could do.
    pub fn of(adapter: &wgpu::Adapter, device: &wgpu::Device) -> Self {
        let info = adapter.get_info();
        let device_type = info.device_type.into();
        Self {
            name: info.name,
            vendor: (info.vendor != 0).then_some(info.vendor),
            driver: info.driver,
            driver_info: info.driver_info,
            backend: info.backend.to_string(),
            device_type,
            unified_memory: unified_memory(device).or(device_type.shares_host_memory()),
            limits: Some(device.limits().into()),
        }
    }
}

#[cfg(target_os = "macos")]
fn unified_memory(device: &wgpu::Device) -> Option<bool> {
    super::metal::has_unified_memory(device)
}

#[cfg(not(target_os = "macos"))]
fn unified_memory(_: &wgpu::Device) -> Option<bool> {
    None
}

impl From<wgpu::DeviceType> for DeviceType {
    fn from(device_type: wgpu::DeviceType) -> Self {
        match device_type {
            wgpu::DeviceType::Other => DeviceType::Other,
            wgpu::DeviceType::IntegratedGpu => DeviceType::IntegratedGpu,
            wgpu::DeviceType::DiscreteGpu => DeviceType::DiscreteGpu,
            wgpu::DeviceType::VirtualGpu => DeviceType::VirtualGpu,
            wgpu::DeviceType::Cpu => DeviceType::Cpu,
        }
    }
}

impl From<wgpu::Limits> for DeviceLimits {
    fn from(limits: wgpu::Limits) -> Self {
        Self {
            max_buffer_size_bytes: limits.max_buffer_size,
            max_storage_buffer_binding_size_bytes: limits.max_storage_buffer_binding_size,
            max_compute_workgroups_per_dimension: limits.max_compute_workgroups_per_dimension,
            max_compute_invocations_per_workgroup: limits.max_compute_invocations_per_workgroup,
            max_compute_workgroup_storage_size_bytes: limits.max_compute_workgroup_storage_size,
            min_storage_buffer_offset_alignment_bytes: limits.min_storage_buffer_offset_alignment,
        }
    }
}
