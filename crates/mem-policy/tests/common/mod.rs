//! What the tests on a device share.

use burn::tensor::wgpu::WgpuBackend;
use burn::tensor::{Device, DeviceKind};

/// The machine's adapter, or `None` if it has none and none is required (`MPS_PROBE_REQUIRE_DEVICE`).
pub(crate) fn open(test: &str) -> Option<Device> {
    match Device::wgpu_options().device_kind(DeviceKind::DefaultDevice).graphics_api(WgpuBackend::Auto).init() {
        Ok(device) => Some(device),
        Err(error) => {
            assert!(std::env::var_os("MPS_PROBE_REQUIRE_DEVICE").is_none(), "a device is required: {error}");
            eprintln!("skipped: {test}: no adapter: {error}");
            None
        }
    }
}
