//! The loop: one run after the other, each recorded before the next starts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use mem_policy::ConfiguredPolicy;

use super::launcher::{Ended, LaunchError, Launcher, Observation};
use super::{Entry, Interrupt, Output, OutputError, Schedule, judge};
use crate::config::Experiment;
use crate::progress::Progress;
use crate::record::{FORMAT_VERSION, Observed, Outcome, Record, RecordError, RecordLog, Sink, Tuning};
use crate::run::spec::{Purpose, RunSpec};

/// How the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// Every run has a final outcome.
    Finished,
    /// The user ended it; what was measured is kept.
    Interrupted,
}

/// Why the loop had to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// A record cannot be kept.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The output folder cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A run could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

impl ExperimentError {
    /// Whether the trouble is with writing the output, which the user can mend.
    #[must_use]
    pub fn is_output(&self) -> bool {
        match self {
            Self::Record(_) | Self::Output(_) | Self::Launch(LaunchError::Write { .. }) => true,
            Self::Launch(_) => false,
        }
    }
}

/// What a loop needs.
pub struct Runner<'a> {
    /// The settings.
    pub experiment: &'a Experiment,
    /// The runs.
    pub schedule: &'a Schedule,
    /// Where files go.
    pub output: &'a Output,
    /// What starts runs.
    pub launcher: &'a mut dyn Launcher,
    /// Who is told.
    pub progress: &'a mut dyn Progress,
    /// Whether to stop.
    pub interrupt: &'a Interrupt,
}

impl Runner<'_> {
    /// Does the runs of the schedule whose ids are not in `done`, and appends a record for each to `log`.
    ///
    /// # Errors
    ///
    /// [`ExperimentError`] if a record cannot be kept or a run cannot be started; what a run does once it is started is
    /// an outcome.
    pub fn run<S: Sink>(&mut self, done: &BTreeSet<String>, log: &mut RecordLog<S>) -> Result<RunEnd, ExperimentError> {
        let entries = &self.schedule.entries;
        let left: Vec<&Entry> = entries.iter().filter(|entry| !done.contains(&entry.id)).collect();
        self.progress.begin(entries.len() - left.len(), entries.len());
        for entry in left {
            if self.interrupt.is_set() {
                return Ok(RunEnd::Interrupted);
            }
            self.progress.started(entry);
            let record = self.run_one(entry)?;
            log.append(&record)?;
            self.progress.ended(&record);
            if record.outcome == Outcome::Interrupted {
                return Ok(RunEnd::Interrupted);
            }
        }
        Ok(RunEnd::Finished)
    }

    fn run_one(&mut self, entry: &Entry) -> Result<Record, ExperimentError> {
        let Entry { id, position, set, arm, repeat, seed } = entry;
        let started_at = Timestamp::now();
        let record = |tuning, spec, wall_s, outcome, result, observed| Record {
            format_version: FORMAT_VERSION,
            id: id.clone(),
            set: *set,
            arm: arm.id.clone(),
            left_out: arm.left_out.clone(),
            repeat: *repeat,
            position: *position,
            seed: *seed,
            started_at,
            tuning,
            wall_s,
            spec,
            outcome,
            result,
            observed,
        };
        if let Some(why) = &arm.unsupported {
            let spec = self.experiment.run_spec(*set, &arm.policies, *seed, PathBuf::new());
            return Ok(record(None, spec, 0.0, Outcome::Unsupported { why: why.clone() }, None, None));
        }
        let folder = self.output.fresh_scratch(id)?;
        let spec = self.experiment.run_spec(*set, &arm.policies, *seed, folder.join("run"));
        let timeout = Duration::from_secs(self.experiment.timeout);
        let tuning = self.tune(&spec, &folder, timeout)?;
        let seen = self.launcher.launch(&spec, &folder, timeout, self.interrupt)?;
        let outcome = judge(&seen);
        let completed = outcome == Outcome::Completed;
        if completed {
            self.output.drop_scratch(&folder);
        }
        let observed = observed(&seen, completed);
        Ok(record(tuning, spec, seen.wall_s, outcome, seen.result, Some(observed)))
    }

    /// Chooses kernels in a process of its own, if the run's policies want it.
    fn tune(&mut self, spec: &RunSpec, folder: &Path, timeout: Duration) -> Result<Option<Tuning>, ExperimentError> {
        if !spec.policies.contains_key(mem_policy::policies::WarmAutotune::SPEC.id) {
            return Ok(None);
        }
        let folder = folder.join("tuning");
        std::fs::create_dir_all(&folder).map_err(|source| LaunchError::Write { path: folder.clone(), source })?;
        let spec = RunSpec { purpose: Purpose::Tune, scratch: folder.join("run"), ..spec.clone() };
        let seen = self.launcher.launch(&spec, &folder, timeout, self.interrupt)?;
        let outcome = judge(&seen);
        let (events, peaks) = seen.result.map(|result| (result.events, result.peaks)).unwrap_or_default();
        Ok(Some(Tuning { wall_s: seen.wall_s, outcome, events, peaks }))
    }
}

fn observed(seen: &Observation, completed: bool) -> Observed {
    let (exit_code, signal) = match seen.ended {
        Ended::Exited(code) => (Some(code), None),
        Ended::Signalled(signal) => (None, Some(signal)),
        Ended::TimedOut { .. } | Ended::Interrupted => (None, None),
    };
    Observed {
        exit_code,
        signal,
        peak_resident_bytes: seen.peak_resident_bytes,
        output_tail: (!completed && !seen.output_tail.is_empty()).then(|| seen.output_tail.clone()),
    }
}
