//! The record of one run: the only module that knows its format, which `docs/record-format.md` documents.
//!
//! Raw samples are the record; every statistic is derived from them ([`crate::stats`]). A record is appended as one
//! line of JSON when its run ends, and never edited.

mod log;
mod outcome;
mod read;

use std::collections::BTreeMap;
use std::path::PathBuf;

use data::SetId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::run::spec::{RunResult, RunSpec};

pub use log::{FileSink, RecordLog, Sink};
pub use outcome::Outcome;
pub use read::{Contents, Truncated, read};

/// The version of the record format that this program writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;

/// The arm that every other arm is compared with: no policy is on.
pub const BASELINE: &str = "baseline";

/// One run of one arm, as one line of `records.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT_VERSION`] of the program that wrote it.
    pub format_version: u32,
    /// `set/arm/repeat`. A later record with the same id replaces an earlier one that was interrupted.
    pub id: String,
    /// The data set.
    pub set: SetId,
    /// [`BASELINE`], a policy's id, or several joined by `+`.
    pub arm: String,
    /// Policies that a combination should have had and that this device does not support, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, String>,
    /// From 1.
    pub repeat: usize,
    /// The place in the shuffled schedule, from 1.
    pub position: usize,
    /// The seed of this run. All arms of one repeat share it.
    pub seed: u64,
    /// When the run started.
    pub started_at: Timestamp,
    /// Seconds from the start of the child process to its end. 0 if none was started.
    pub wall_s: f64,
    /// The process that chose kernels beforehand, if there was one. Its time is not in `wall_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
    /// What the child was told.
    pub spec: RunSpec,
    /// How it ended.
    pub outcome: Outcome,
    /// What the child measured; partial if [`RunResult::complete`] is false. `None` if it wrote nothing.
    pub result: Option<RunResult>,
    /// What the parent saw. `None` if no child was started.
    pub observed: Option<Observed>,
}

impl Record {
    /// The id of a run.
    #[must_use]
    pub fn id_of(set: SetId, arm: &str, repeat: usize) -> String {
        format!("{set}/{arm}/{repeat}")
    }
}

/// A process that chose kernels before a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// Seconds it took.
    pub wall_s: f64,
    /// How it ended. Whatever it was, the kernels chosen until then are in the cache.
    pub outcome: Outcome,
    /// What it said about the kernels.
    pub events: Vec<mem_policy::PolicyEvent>,
    /// Its memory peaks, by counter.
    pub peaks: std::collections::BTreeMap<String, crate::run::spec::PeakReading>,
}

/// What the parent saw of a child process, whatever the child says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// The exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended it (Unix).
    pub signal: Option<i32>,
    /// The largest resident set in bytes, as the kernel reports it when the process ends (Unix, `wait4`). On Linux it
    /// is never below the parent's own, which the child shares until it starts its program.
    pub peak_resident_bytes: Option<u64>,
    /// The end of its output, if the run did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tail: Option<String>,
}

/// Why records cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A record cannot be written; the ones before it are kept.
    #[error(
        "cannot write to {}: {source}; {kept} record(s) are kept: make room and go on with --resume",
        path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// Records that are safe.
        kept: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// A record cannot be turned into JSON.
    #[error("cannot write record {id} as JSON: {source}")]
    Encode {
        /// The record.
        id: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A line that is not the last one is not a record.
    #[error("{}:{line} is not a record: {source}; remove the line to go on without it", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A record is of another version.
    #[error(
        "{}:{line} has format_version {found}, and this program reads up to {FORMAT_VERSION}: use a newer one",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Its version.
        found: u64,
    },
}

#[cfg(test)]
mod tests;
