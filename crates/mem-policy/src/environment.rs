//! What a policy may know about the machine before anything runs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::plan::Precision;

/// The facts about a device that decide whether a policy can do anything there.
///
/// Whoever opens devices fills it in; a policy only reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Environment {
    /// What computes.
    pub backend: Backend,
    /// The device's name as its driver gives it.
    pub device: String,
    /// The driver and its version, if there is one.
    pub driver: Option<String>,
    /// Whether the device is software (a CPU pretending to be a GPU).
    pub software: bool,
    /// Whether device and host share one memory. `None` if unknown.
    pub unified_memory: Option<bool>,
    /// The precisions in which the device stores, converts *and* computes.
    pub precisions: Vec<Precision>,
    /// Whether the backend has an allocator with pools that keep freed memory.
    pub pooled_allocator: bool,
    /// Whether that allocator's page layout can be chosen.
    pub pool_layouts: bool,
    /// Whether kernels are chosen by measuring ("autotune").
    #[serde(default)]
    pub autotune: bool,
    /// Whether `Device::staging` changes how data reach the device.
    pub staging: bool,
    /// Bytes the device recommends not to exceed, or the system's limit on a CPU. `None` if unknown.
    pub memory_budget: Option<u64>,
}

impl Environment {
    /// A CPU without pools, computing in 32 bits.
    #[must_use]
    pub fn cpu() -> Self {
        Self::new(Backend::Cpu, "cpu")
    }

    /// An environment of which nothing but the backend and the device's name is known.
    #[must_use]
    pub fn new(backend: Backend, device: impl Into<String>) -> Self {
        Self {
            backend,
            device: device.into(),
            driver: None,
            software: false,
            unified_memory: (backend == Backend::Cpu).then_some(true),
            precisions: vec![Precision::F32],
            pooled_allocator: backend != Backend::Cpu,
            pool_layouts: backend != Backend::Cpu,
            autotune: false,
            staging: backend != Backend::Cpu,
            memory_budget: None,
        }
    }

    /// Whether the device computes in `precision`.
    #[must_use]
    pub fn computes_in(&self, precision: Precision) -> bool {
        self.precisions.contains(&precision)
    }
}

/// What computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Backend {
    /// Burn's pure Rust CPU backend (Flex).
    Cpu,
    /// wgpu on Metal.
    Metal,
    /// wgpu on Vulkan.
    Vulkan,
    /// wgpu on Direct3D 12.
    Dx12,
    /// wgpu on another graphics API.
    OtherWgpu,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Cpu => "cpu",
            Self::Metal => "metal",
            Self::Vulkan => "vulkan",
            Self::Dx12 => "dx12",
            Self::OtherWgpu => "wgpu",
        })
    }
}

/// Whether a policy can do anything in an [`Environment`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "support", content = "why", rename_all = "kebab-case")]
pub enum Support {
    /// It can.
    Yes,
    /// It cannot, and why.
    No(String),
    /// It could, but is known to fail there, and how.
    KnownBad(String),
}

impl Support {
    /// Whether a run with the policy makes sense.
    #[must_use]
    pub fn is_yes(&self) -> bool {
        matches!(self, Self::Yes)
    }
}
