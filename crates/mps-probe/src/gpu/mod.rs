//! Device memory through a wgpu device.

mod facts;
#[cfg(target_os = "macos")]
mod metal;
#[cfg(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd"))]
mod vulkan;

use crate::{Counter, Measurement, Probe, Quality};

/// Reads the device memory that the process uses and may use, through the handles of a wgpu device.
///
/// | backend | [`DeviceInUse`](Counter::DeviceInUse) | [`DeviceBudget`](Counter::DeviceBudget) |
/// |---|---|---|
/// | Metal | `MTLDevice.currentAllocatedSize` | `MTLDevice.recommendedMaxWorkingSetSize` |
/// | Vulkan with `VK_EXT_memory_budget` | sum of `heapUsage` over the device-local heaps | sum of `heapBudget` over them |
/// | others | absent | absent |
///
/// On Vulkan and DirectX 12 it also reads wgpu's own sub-allocator: [`WgpuInUse`](Counter::WgpuInUse) and
/// [`WgpuReserved`](Counter::WgpuReserved). What the API counts beyond `WgpuReserved` is the driver's overhead.
///
/// Burn gives the handles its runtime uses; the wgpu that Burn was built with is the same one as this crate's:
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use mps_probe::{Probe, WgpuProbe};
///
/// let (_device, setup) = burn::tensor::Device::wgpu_options().init_with_setup()?;
/// for measurement in WgpuProbe::new(&setup.adapter, &setup.device).read() {
///     println!("{measurement}");
/// }
/// # Ok(())
/// # }
/// ```
///
/// # What it does not see
///
/// * Metal counts the resources of this process's `MTLDevice`: buffers, textures and heaps, whoever made them in the
///   process, but neither pipelines nor the driver's own memory. The recommended size is a constant of the machine; it
///   does not shrink when other processes use memory, and exceeding it is slow rather than refused.
/// * Vulkan's figures are the driver's estimates. `heapUsage` is defined as the process's own use, `heapBudget` as what
///   the process can use in all, what it uses already included; it moves as other processes allocate. Some software
///   drivers report the whole machine's memory instead, as their device is the machine: compare the figures before and
///   after an allocation before relying on them.
/// * A driver may free memory some time after wgpu dropped a buffer, and wgpu drops a buffer only once the GPU is done
///   with it (`Device::poll`).
/// * Nothing here is a peak: [`SampledPeaks`](crate::SampledPeaks) makes one, and says that it is sampled.
///
/// # How it perturbs
///
/// Metal: two property reads. Vulkan: one query of the physical device, which may call into the kernel. The
/// sub-allocator's report locks it and copies its list of allocations, so its cost grows with the number of live
/// buffers, and an allocation on another thread waits meanwhile. Nothing is submitted to the GPU, no queue is awaited.
#[derive(Debug, Clone)]
pub struct WgpuProbe {
    adapter: wgpu::Adapter,
    device: wgpu::Device,
    access: Access,
}

/// How the budget and the use are read, found out once.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Access {
    #[cfg(target_os = "macos")]
    Metal,
    #[cfg(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd"))]
    VulkanMemoryBudget,
    None {
        why: String,
    },
}

impl Access {
    fn of(adapter: &wgpu::Adapter) -> Self {
        let why = match adapter.get_info().backend {
            #[cfg(target_os = "macos")]
            wgpu::Backend::Metal => return Self::Metal,
            #[cfg(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd"))]
            wgpu::Backend::Vulkan => match vulkan::supports_memory_budget(adapter) {
                Ok(()) => return Self::VulkanMemoryBudget,
                Err(why) => why,
            },
            #[cfg(not(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd")))]
            wgpu::Backend::Vulkan => "Vulkan is not read on this system; open the device through Metal".into(),
            wgpu::Backend::Dx12 => "DXGI's QueryVideoMemoryInfo is not read; open the device through Vulkan".into(),
            other => format!("the {other} backend has no query for device memory"),
        };
        Self::None { why }
    }
}

impl WgpuProbe {
    /// Reads the memory of `device`, which was opened on `adapter`.
    ///
    /// Keeps both alive. Asks the driver once for its extensions.
    pub fn new(adapter: &wgpu::Adapter, device: &wgpu::Device) -> Self {
        Self { access: Access::of(adapter), adapter: adapter.clone(), device: device.clone() }
    }

    fn use_and_budget(&self) -> [Measurement; 2] {
        let absent = |why: &str| {
            [Counter::DeviceInUse, Counter::DeviceBudget].map(|counter| Measurement::absent(counter, why.to_owned()))
        };
        match &self.access {
            #[cfg(target_os = "macos")]
            Access::Metal => metal::read(&self.device).unwrap_or_else(absent),
            #[cfg(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd"))]
            Access::VulkanMemoryBudget => vulkan::read(&self.adapter).unwrap_or_else(|why| absent(&why)),
            Access::None { why } => absent(why),
        }
    }

    fn sub_allocator(&self) -> [Measurement; 2] {
        const SOURCE: &str = "wgpu Device::generate_allocator_report";
        match self.device.generate_allocator_report() {
            Some(report) => [
                Measurement::present(Counter::WgpuInUse, report.total_allocated_bytes, SOURCE, Quality::Exact),
                Measurement::present(Counter::WgpuReserved, report.total_reserved_bytes, SOURCE, Quality::Exact),
            ],
            None => [Counter::WgpuInUse, Counter::WgpuReserved].map(|counter| {
                let backend = self.adapter.get_info().backend;
                Measurement::absent(counter, format!("wgpu does not sub-allocate on the {backend} backend"))
            }),
        }
    }
}

impl Probe for WgpuProbe {
    fn id(&self) -> &'static str {
        "device"
    }

    fn read(&self) -> Vec<Measurement> {
        self.use_and_budget().into_iter().chain(self.sub_allocator()).collect()
    }
}
