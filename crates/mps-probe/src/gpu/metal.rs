//! `MTLDevice`'s properties.

use objc2_metal::MTLDevice as _;

use crate::{Counter, Measurement, Quality};

const NOT_METAL: &str = "the wgpu device gives no MTLDevice";

/// The device's use and recommended limit.
///
/// # Errors
///
/// Why there is no `MTLDevice` to ask.
pub(super) fn read(device: &wgpu::Device) -> Result<[Measurement; 2], &'static str> {
    // SAFETY: the handle is only asked for properties, while the guard keeps it alive; it is neither destroyed nor kept.
    let device = unsafe { device.as_hal::<wgpu::hal::api::Metal>() }.ok_or(NOT_METAL)?;
    let device = device.raw_device();
    Ok([
        Measurement::present(
            Counter::DeviceInUse,
            device.currentAllocatedSize() as u64,
            "MTLDevice.currentAllocatedSize",
            Quality::Exact,
        ),
        match device.recommendedMaxWorkingSetSize() {
            0 => Measurement::absent(Counter::DeviceBudget, "MTLDevice.recommendedMaxWorkingSetSize is not set"),
            bytes => Measurement::present(
                Counter::DeviceBudget,
                bytes,
                "MTLDevice.recommendedMaxWorkingSetSize",
                Quality::Limit,
            ),
        },
    ])
}

/// `MTLDevice.hasUnifiedMemory`, if there is an `MTLDevice`.
pub(super) fn has_unified_memory(device: &wgpu::Device) -> Option<bool> {
    // SAFETY: as in `read`.
    let device = unsafe { device.as_hal::<wgpu::hal::api::Metal>() }?;
    Some(device.raw_device().hasUnifiedMemory())
}
