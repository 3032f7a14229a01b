//! Runs an experiment: every arm in a child process, every outcome a record.

mod arms;
mod interrupt;
mod launcher;
mod oom;
mod outcome;
mod output;
mod runner;
mod schedule;

pub use arms::{Arm, arms, reference_policies};
pub use interrupt::Interrupt;
pub use launcher::{Ended, FakeLauncher, LaunchError, Launcher, Observation, ProcessLauncher};
pub use oom::OomCounter;
pub use outcome::judge;
pub use output::{Host, Lock, Output, OutputError};
pub use runner::{ExperimentError, RunEnd, Runner};
pub use schedule::{Entry, Schedule};

#[cfg(test)]
mod tests;
