//! One measured run, in a child process. Nothing outside this module opens a device.
//!
//! | module | |
//! |---|---|
//! | [`spec`] | what the parent says and the child answers |
//! | `device` | choosing and opening a device, and what the policies may know of it |
//! | `workload` | data, network and optimizer of a run |
//! | `memory` | the probes of a run and the peaks of their counters |
//! | `recorder` | times of the steps, and when memory is sampled |
//! | `train` | the run itself |

mod child;
mod device;
mod heap;
mod memory;
mod recorder;
mod runtime;
mod silent;
pub mod spec;
mod train;
mod tuning;
mod workload;

pub use child::{child_main, environment_main, probe};
pub use workload::subset_problem;

/// Opens the images that a run of `spec` would use, without a device, and lets go of them.
///
/// # Errors
///
/// What opening them says: a file that is not there or damaged, by its path.
pub fn check_data(spec: &spec::RunSpec) -> Result<(), data::DataError> {
    workload::check_data(spec)
}

#[cfg(test)]
mod tests;
