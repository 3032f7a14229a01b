//! Choosing and opening a device.

use burn::tensor::wgpu::{MemoryConfiguration, WgpuBackend, WgpuSetup, wgpu};
use burn::tensor::{Device, DeviceConfig, DeviceKind, FloatDType};
use mem_policy::{Backend, Environment, PoolLayout, Precision};
use models::DeviceLimits;
use mps_probe::{Budget, BurnPoolProbe, Counter, DeviceFacts, ProbeSet, WgpuProbe};

use super::heap;
use super::spec::{DeviceChoice, DeviceInfo};

/// Why a device cannot be opened or used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeviceError {
    #[error("no {0} device can be opened: {1}; `--device cpu` always works")]
    Open(&'static str, String),
    #[error("{0} exists only on {1}; choose another `--device`")]
    NotHere(&'static str, &'static str),
    #[error(
        "{0} is a software device, and kernels in SPIR-V crash there: build without the `vulkan` feature to use it, or \
         choose `--device cpu`"
    )]
    SpirvOnSoftware(String),
    #[error("the device cannot be set to {precision}: {why}")]
    Precision { precision: Precision, why: String },
}

/// An open device, and what is known of it.
pub(super) struct OpenDevice {
    pub(super) device: Device,
    pub(super) facts: DeviceFacts,
    pub(super) environment: Environment,
    pub(super) limits: DeviceLimits,
    /// The counters of this device, the process and the system.
    pub(super) probes: ProbeSet,
}

impl OpenDevice {
    /// Opens `choice`. The pool layout can only be chosen now.
    pub(super) fn open(choice: DeviceChoice, layout: Option<PoolLayout>) -> Result<Self, DeviceError> {
        match choice {
            DeviceChoice::Cpu => Ok(Self::cpu()),
            DeviceChoice::Auto if !real_gpu() => Ok(Self::cpu()),
            DeviceChoice::Auto | DeviceChoice::Wgpu => Self::wgpu("wgpu", WgpuBackend::Auto, layout),
            DeviceChoice::Vulkan if cfg!(target_os = "macos") => {
                Err(DeviceError::NotHere("Vulkan", "Linux, Windows and Android"))
            }
            DeviceChoice::Vulkan => Self::wgpu("Vulkan", WgpuBackend::Vulkan, layout),
            DeviceChoice::Metal if cfg!(not(target_os = "macos")) => Err(DeviceError::NotHere("Metal", "macOS")),
            DeviceChoice::Metal => Self::wgpu("Metal", WgpuBackend::Metal, layout),
            DeviceChoice::Dx12 if cfg!(not(windows)) => Err(DeviceError::NotHere("DX12", "Windows")),
            DeviceChoice::Dx12 => Self::wgpu("DX12", WgpuBackend::Dx12, layout),
        }
    }

    fn cpu() -> Self {
        let device = Device::flex();
        let probes = ProbeSet::host().with(heap::probe()).with(BurnPoolProbe::new(device.clone()));
        Self::describe(device, DeviceFacts::cpu("cpu"), Backend::Cpu, probes)
    }

    fn wgpu(name: &'static str, api: WgpuBackend, layout: Option<PoolLayout>) -> Result<Self, DeviceError> {
        let mut options = Device::wgpu_options().device_kind(DeviceKind::DefaultDevice).graphics_api(api);
        if let Some(layout) = layout {
            options = options.memory_config(match layout {
                PoolLayout::Exclusive => MemoryConfiguration::ExclusivePages,
                _ => MemoryConfiguration::Adaptive,
            });
        }
        let (device, setup) = options.init_with_setup().map_err(|error| DeviceError::Open(name, error.to_string()))?;
        let WgpuSetup { adapter, device: handle, backend, .. } = &setup;
        let facts = DeviceFacts::of(adapter, handle);
        let backend = match backend {
            wgpu::Backend::Metal => Backend::Metal,
            wgpu::Backend::Vulkan => Backend::Vulkan,
            wgpu::Backend::Dx12 => Backend::Dx12,
            _ => Backend::OtherWgpu,
        };
        if cfg!(feature = "vulkan") && backend == Backend::Vulkan && is_software(&facts) {
            return Err(DeviceError::SpirvOnSoftware(facts.name));
        }
        let probes = ProbeSet::host()
            .with(heap::probe())
            .with(BurnPoolProbe::new(device.clone()))
            .with(WgpuProbe::new(adapter, handle));
        Ok(Self::describe(device, facts, backend, probes))
    }

    fn describe(device: Device, facts: DeviceFacts, backend: Backend, probes: ProbeSet) -> Self {
        let mut environment = Environment::new(backend, facts.name.clone());
        environment.driver = driver(&facts);
        environment.software = is_software(&facts);
        environment.autotune = cfg!(feature = "autotune") && backend != Backend::Cpu;
        environment.unified_memory = facts.unified_memory;
        environment.precisions = [Precision::F32, Precision::F16, Precision::Bf16]
            .into_iter()
            .filter(|precision| device.supports_dtype(dtype(*precision)))
            .collect();
        let snapshot = probes.read();
        environment.pooled_allocator = snapshot.bytes(Counter::PoolReserved).is_some();
        environment.pool_layouts = environment.pooled_allocator;
        environment.memory_budget = Budget::of(&snapshot).ok().map(|budget| budget.limit.bytes);
        let limits = facts.limits.map_or(DeviceLimits::none(), |limits| DeviceLimits {
            workgroups_per_dimension: Some(u64::from(limits.max_compute_workgroups_per_dimension)),
            buffer_bytes: Some(limits.max_buffer_size_bytes),
            binding_bytes: Some(limits.max_storage_buffer_binding_size_bytes),
        });
        Self { device, facts, environment, limits, probes }
    }

    /// Sets the float dtype that every tensor takes from now on. Works once per process, before the first tensor.
    pub(super) fn set_precision(&mut self, precision: Precision) -> Result<(), DeviceError> {
        if precision == Precision::F32 {
            return Ok(());
        }
        self.device
            .configure(DeviceConfig::default().float_dtype(dtype(precision)))
            .map_err(|error| DeviceError::Precision { precision, why: error.to_string() })
    }

    /// The device and the software, for a record.
    pub(super) fn info(&self, precision: Precision) -> DeviceInfo {
        let compiler = match self.environment.backend {
            Backend::Cpu => "rust",
            Backend::Vulkan if cfg!(feature = "vulkan") => "spirv",
            Backend::Metal if cfg!(feature = "metal") => "msl",
            _ => "wgsl",
        };
        DeviceInfo {
            name: self.facts.name.clone(),
            backend: self.environment.backend.to_string(),
            driver: self.environment.driver.clone(),
            compiler: compiler.to_owned(),
            autotune: self.environment.autotune,
            dtype: precision.to_string(),
            burn: BURN_VERSION.to_owned(),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

/// The version that the workspace pins exactly.
const BURN_VERSION: &str = "0.22.1";

fn is_software(facts: &DeviceFacts) -> bool {
    facts.device_type == mps_probe::DeviceType::Cpu && facts.limits.is_some()
}

fn driver(facts: &DeviceFacts) -> Option<String> {
    let parts = [facts.driver.trim(), facts.driver_info.trim()];
    let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

fn dtype(precision: Precision) -> FloatDType {
    match precision {
        Precision::F16 => FloatDType::F16,
        Precision::Bf16 => FloatDType::BF16,
        _ => FloatDType::F32,
    }
}

/// Whether this machine has an adapter that is no CPU in disguise. Opens no device.
fn real_gpu() -> bool {
    let apis =
        if cfg!(target_os = "macos") { wgpu::Backends::METAL } else { wgpu::Backends::VULKAN | wgpu::Backends::DX12 };
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor { backends: apis, ..instance_defaults() });
    let adapters = pollster::block_on(instance.enumerate_adapters(apis));
    adapters.iter().any(|adapter| {
        matches!(
            adapter.get_info().device_type,
            wgpu::DeviceType::DiscreteGpu | wgpu::DeviceType::IntegratedGpu | wgpu::DeviceType::VirtualGpu
        )
    })
}

fn instance_defaults() -> wgpu::InstanceDescriptor {
    wgpu::InstanceDescriptor::new_without_display_handle()
}
