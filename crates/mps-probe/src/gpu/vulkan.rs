//! `VK_EXT_memory_budget`.

use ash::vk;

use crate::{Counter, Measurement, Quality};

const NOT_VULKAN: &str = "the wgpu adapter gives no Vulkan physical device";

/// Whether the adapter's driver can be asked for its memory budget.
///
/// # Errors
///
/// Why not.
pub(super) fn supports_memory_budget(adapter: &wgpu::Adapter) -> Result<(), String> {
    // SAFETY: the handles are only queried, while the guard keeps them alive; none is destroyed or kept.
    let adapter = unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }.ok_or(NOT_VULKAN)?;
    let instance = adapter.shared_instance();
    let raw = instance.raw_instance();
    let physical = adapter.raw_physical_device();
    // SAFETY: `physical` belongs to the instance `raw`, and both are alive.
    let device_version = unsafe { raw.get_physical_device_properties(physical) }.api_version;
    // vkGetPhysicalDeviceMemoryProperties2 is part of Vulkan 1.1, of the instance and of the device.
    let version = instance.instance_api_version().min(device_version);
    if version < vk::API_VERSION_1_1 {
        let (major, minor) = (vk::api_version_major(version), vk::api_version_minor(version));
        return Err(format!("the memory budget needs Vulkan 1.1, and the driver has {major}.{minor}"));
    }
    // SAFETY: as above.
    let extensions = unsafe { raw.enumerate_device_extension_properties(physical) }
        .map_err(|error| format!("the driver's extensions cannot be listed: {error}"))?;
    extensions
        .iter()
        .any(|extension| extension.extension_name_as_c_str() == Ok(ash::ext::memory_budget::NAME))
        .then_some(())
        .ok_or_else(|| "the Vulkan driver does not offer VK_EXT_memory_budget".to_owned())
}

/// Use and budget of the device-local heaps. Only after [`supports_memory_budget`] said yes.
///
/// # Errors
///
/// Why there is nothing to ask.
pub(super) fn read(adapter: &wgpu::Adapter) -> Result<[Measurement; 2], String> {
    // SAFETY: as in `supports_memory_budget`.
    let adapter = unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }.ok_or(NOT_VULKAN)?;
    let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    let mut properties = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
    // SAFETY: the physical device belongs to the instance, both support Vulkan 1.1 and the driver offers the extension
    // whose structure is chained: checked by `supports_memory_budget`.
    unsafe {
        adapter
            .shared_instance()
            .raw_instance()
            .get_physical_device_memory_properties2(adapter.raw_physical_device(), &mut properties);
    }
    let memory = properties.memory_properties;
    let device_local: Vec<usize> = (0..memory.memory_heap_count as usize)
        .filter(|&heap| memory.memory_heaps[heap].flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL))
        .collect();
    if device_local.is_empty() {
        return Err("the device has no device-local memory heap".to_owned());
    }
    let sum = |of: &[vk::DeviceSize]| device_local.iter().map(|&heap| of[heap]).sum::<u64>();
    let (used, limit) = (sum(&budget.heap_usage), sum(&budget.heap_budget));
    let heaps = device_local.len();
    Ok([
        Measurement::present(
            Counter::DeviceInUse,
            used,
            format!("VK_EXT_memory_budget heapUsage, {heaps} device-local heap(s)"),
            Quality::Estimate,
        ),
        match limit {
            0 => Measurement::absent(Counter::DeviceBudget, "VK_EXT_memory_budget gives a heapBudget of zero"),
            _ => Measurement::present(
                Counter::DeviceBudget,
                limit,
                format!("VK_EXT_memory_budget heapBudget, {heaps} device-local heap(s)"),
                Quality::Estimate,
            ),
        },
    ])
}
