//! Starts one child process and sees how it ends.

mod fake;
mod process;
#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(not(unix), path = "other.rs")]
mod system;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Interrupt;
use crate::run::spec::{RunResult, RunSpec};

pub use fake::FakeLauncher;
pub use process::ProcessLauncher;

/// Starts runs. The real one starts processes; the fake one plays them from a list.
pub trait Launcher {
    /// Starts a run, waits for its end, and ends it when `timeout` is over or `interrupt` is set. `folder` is for
    /// whatever passes between parent and child; it exists and is empty.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] if the run could not be started at all. How a started one ends is never an error.
    fn launch(
        &mut self,
        spec: &RunSpec,
        folder: &Path,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Observation, LaunchError>;
}

/// What was seen of a child.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// How the process ended.
    pub ended: Ended,
    /// What it wrote, complete or not.
    pub result: Option<RunResult>,
    /// The end of its output.
    pub output_tail: String,
    /// Seconds from its start to its end.
    pub wall_s: f64,
    /// The largest resident set in bytes, as the kernel reports it at the end.
    pub peak_resident_bytes: Option<u64>,
    /// That the system killed something for want of memory meanwhile.
    pub oom_evidence: Option<String>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Exited(i32),
    /// By a signal that was not sent from here.
    Signalled(i32),
    /// It was ended from here after so many seconds.
    TimedOut {
        /// The limit.
        after_s: u64,
    },
    /// It was ended from here because the user wanted so.
    Interrupted,
}

/// Why a run could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A file for the child cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The program cannot be started, or not be waited for.
    #[error("cannot run {}: {source}", program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}
