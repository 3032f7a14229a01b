//! Memory policies for training [Burn](burn) models: decide, compose, apply.
//!
//! - A [`MemoryPolicy`] decides. It writes a [`TrainPlan`], which is plain data.
//! - A [`PolicySet`] is a list of policies, read from TOML or built in Rust; [`registry`] lists the built-in ones.
//! - A [`PolicyStrategy`] runs Burn's supervised training by a plan, so that Burn's metrics, dashboards, checkpointers
//!   and early stopping keep working.
//! - [`segment`], [`shard`], [`precision`], [`optim`], [`offload`], [`accumulate`] and [`phase`] are the mechanisms, usable
//!   in a training loop of your own.
//!
//! Nothing here picks a backend, opens a device or reads a file.
//!
//! # Example
//!
//! ```
//! use mem_policy::{Baseline, Environment, PolicySet};
//!
//! let table: toml::Table = toml::from_str(
//!     "
//!     [gradient-accumulation]
//!     steps = 4
//!     [subset]
//!     fraction = 0.2
//!     ",
//! )?;
//! let policies = PolicySet::from_table(&table).map_err(|problems| format!("{problems:?}"))?;
//! let plan = policies
//!     .plan(&Baseline::new(64), &Environment::cpu())
//!     .map_err(|errors| format!("{errors:?}"))?;
//! assert_eq!(plan.micro_batch(), 16);
//! assert_eq!(plan.accumulation.set_by(), Some("gradient-accumulation"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking"))]

pub mod accumulate;
pub mod offload;
#[cfg(feature = "ops")]
pub mod ops;
pub mod optim;
pub mod phase;
pub mod policies;
pub mod precision;
pub mod segment;
pub mod shard;

mod config;
mod context;
mod environment;
mod error;
mod plan;
mod policy;
mod registry;
mod strategy;

pub use config::PolicySet;
pub use context::{EpochCx, EventKind, MemorySource, MemoryUsage, NoMemorySource, PolicyEvent, StepCx, Verdict};
pub use environment::{Backend, Environment, Support};
pub use error::{PolicyError, Problem};
pub use plan::{
    Baseline, ComputePlan, LoaderPlan, ModelScale, OptimizerPlan, PlanLine, PoolLayout, PoolReuse, Precision, Sampling,
    Segmenting, ShardPlan, SlicePlan, Slot, SubsetPlan, SubsetSize, TrainPlan, TuningLevel, TuningPlan,
};
pub use policy::{Fidelity, MemoryPolicy, ParamSpec, PolicySpec, Stage};
pub use registry::{ConfiguredPolicy, PolicyEntry, registry};
pub use strategy::{Mark, NoObserver, PolicyStrategy, RunState, StepObserver};
