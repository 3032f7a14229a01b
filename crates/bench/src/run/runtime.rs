//! Settings of CubeCL, the runtime under Burn's GPU backends, for this process: they can only be set before the first
//! device is open.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use burn_cubecl::cubecl;
use cubecl::config::autotune::AutotuneLevel;
use cubecl::config::memory::PersistentMemory;
use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
use mem_policy::{Environment, PoolReuse, TrainPlan, TuningLevel};

/// What kernels this process chose itself.
#[derive(Debug)]
pub(super) struct Choices {
    log: PathBuf,
}

/// Sets CubeCL up as `plan` says, on top of what its own configuration file and variables say. Choices of kernels are
/// logged in the folder `scratch`.
pub(super) fn configure(plan: &TrainPlan, scratch: &Path) -> Choices {
    let log = scratch.join("kernels.jsonl");
    let mut config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    if let Some(reuse) = plan.pool_reuse.get() {
        config.memory.persistent_memory = match reuse {
            PoolReuse::SizeMatch => PersistentMemory::SizeMatch,
            PoolReuse::Dynamic => PersistentMemory::Disabled,
            PoolReuse::Exact => PersistentMemory::Enforced,
            _ => PersistentMemory::Enabled,
        };
    }
    if let Some(tuning) = plan.tuning.get() {
        config.autotune.level = match tuning.level {
            TuningLevel::Minimal => AutotuneLevel::Minimal,
            TuningLevel::Extensive => AutotuneLevel::Extensive,
            TuningLevel::Full => AutotuneLevel::Full,
            _ => AutotuneLevel::Balanced,
        };
        config.autotune.decisions.file = Some(log.clone());
        if let Err(error) = std::fs::create_dir_all(scratch) {
            tracing::warn!("cannot log which kernels are chosen: {}: {error}", scratch.display());
        }
    }
    if !CubeClRuntimeConfig::try_set(config) {
        tracing::warn!("CubeCL was configured before this run; its own settings stay");
    }
    Choices { log }
}

/// Makes the cache of chosen kernels the one of this GPU and its driver: CubeCL's keys hold neither.
pub(super) fn use_cache_of(environment: &Environment) {
    let driver = environment.driver.as_deref().unwrap_or("no driver");
    let name = format!("mem-policy {} {driver} {}", environment.backend, environment.device);
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' })
        .collect();
    cubecl::environment::activate(name);
}

/// Where the active cache of chosen kernels is.
pub(super) fn cache_file() -> PathBuf {
    cubecl::environment::path()
}

impl Choices {
    /// Adds them to a list.
    pub(super) fn append_to(&self, list: &Path) -> io::Result<()> {
        let Ok(chosen) = std::fs::read(&self.log) else { return Ok(()) };
        OpenOptions::new().append(true).create(true).open(list)?.write_all(&chosen)
    }

    /// How many kernels this process chose so far.
    pub(super) fn count(&self) -> usize {
        std::fs::read_to_string(&self.log).map_or(0, |log| log.lines().filter(|line| !line.trim().is_empty()).count())
    }
}
