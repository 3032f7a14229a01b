//! What memory is in use, by whom, and how much there is.
//!
//! A [`Probe`] reads counters; a [`ProbeSet`] reads several probes into a [`Snapshot`]; a [`Budget`] relates what is used
//! to what there is; [`SampledPeaks`] keeps the largest values. Nothing here decides, prints or writes files.
//!
//! ```
//! use mps_probe::{Budget, Counter, ProbeSet};
//!
//! let probes = ProbeSet::host();
//! let snapshot = probes.read();
//!
//! // A figure names its counter, its source and its quality...
//! let resident = snapshot.get(Counter::ProcessResident);
//! println!("{resident}"); // process_resident = 5.1 MiB (estimate, VmRSS of /proc/self/status)
//!
//! // ... and what cannot be read is absent with a reason, never zero.
//! let device = snapshot.get(Counter::DeviceInUse);
//! assert_eq!(device.bytes(), None);
//! assert_eq!(device.to_string(), "device_in_use is absent: no probe of this set reads it");
//!
//! // The share of the device's budget, or of the container's or the machine's memory where there is no device.
//! let budget = Budget::of(&snapshot)?;
//! println!("{:.1} % of {}", 100.0 * budget.usage_share(), budget.limit);
//!
//! // All of it as text.
//! println!("{}", snapshot.table());
//! # Ok::<(), mps_probe::BudgetError>(())
//! ```
//!
//! # Probes
//!
//! | probe | reads | feature |
//! |---|---|---|
//! | [`ProcessProbe`] | resident set and its peak; on macOS the physical footprint and its peak | |
//! | [`SystemProbe`] | the machine's memory and swap; on Linux the control group's limit and use | |
//! | [`AllocatorProbe`] | bytes requested from a [`CountingAllocator`] that the binary installs | |
//! | `BurnPoolProbe` | Burn's device pools: in use, padding, reserved, pages | `burn` |
//! | `WgpuProbe` | device memory in use and budget (Metal, Vulkan), wgpu's sub-allocator | `wgpu` |
//! | [`FakeProbe`] | what a test scripted | |
//!
//! Each probe's documentation says what it does not see and how it perturbs what it measures. [`children_peak_resident`]
//! tells a parent what its children used at most, also if they were killed.
//!
//! [`DeviceFacts`] says which device the figures belong to.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests"))]

mod allocator;
mod budget;
#[cfg(feature = "burn")]
mod burn_pool;
mod counter;
mod facts;
mod fake;
#[cfg(feature = "wgpu")]
mod gpu;
mod present;
mod probe;
mod process;
mod reading;
mod snapshot;
mod system;

pub use allocator::{AllocatorProbe, AllocatorStats, CountingAllocator};
pub use budget::{Budget, BudgetError};
#[cfg(feature = "burn")]
pub use burn_pool::{BurnPoolProbe, PoolPages};
pub use counter::Counter;
pub use facts::{DeviceFacts, DeviceLimits, DeviceType};
pub use fake::FakeProbe;
#[cfg(feature = "wgpu")]
pub use gpu::WgpuProbe;
pub use present::{Row, Table};
pub use probe::{Probe, ProbeSet};
pub use process::{ProcessProbe, children_peak_resident};
pub use reading::{Absent, Measurement, Quality, Reading};
pub use snapshot::{Measured, SampledPeaks, Snapshot};
pub use system::SystemProbe;
