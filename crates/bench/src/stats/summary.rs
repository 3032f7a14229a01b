//! Everything the reports say, as data: `summary.json`.

use std::collections::{BTreeMap, BTreeSet};

use data::SetId;
use mem_policy::{Fidelity, registry};
use serde::{Deserialize, Serialize};

use super::arm::{completed, summarise_arm};
use super::{Change, Judgement, MemoryChange, Spread, primary_counter};
use crate::experiment::Host;
use crate::record::{BASELINE, Record};
use crate::run::spec::PeakReading;

/// The version of `summary.json`.
pub const SUMMARY_VERSION: u32 = 1;

/// What an experiment showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SUMMARY_VERSION`].
    pub format_version: u32,
    /// Who ran it, and on what.
    pub host: Host,
    /// Its settings.
    pub experiment: serde_json::Value,
    /// How intervals were made.
    pub interval_method: String,
    /// What a reader should know of the records as a whole.
    pub notes: Vec<String>,
    /// One for each data set.
    pub sets: Vec<SetSummary>,
}

/// What an experiment showed on one data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetSummary {
    /// The data set.
    pub set: SetId,
    /// The counter that decides about memory. `None` if no baseline completed, or none could be read.
    pub primary_counter: Option<String>,
    /// The baseline.
    pub baseline: ArmSummary,
    /// The other arms.
    pub arms: Vec<ArmSummary>,
}

/// What one arm took, and how that compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// The arm's id.
    pub arm: String,
    /// For people.
    pub title: String,
    /// The policies that were on, with the parameters that were given.
    pub policies: toml::Table,
    /// Policies that a combination went without, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, String>,
    /// What stays the same. `None` for the baseline.
    pub fidelity: Option<Fidelity>,
    /// How its runs ended.
    pub outcomes: Vec<OutcomeCount>,
    /// Runs that completed.
    pub completed: usize,
    /// The verdict. `None` for the baseline.
    pub judgement: Option<Judgement>,
    /// The peaks: medians over completed runs, or why a counter is absent.
    pub peaks: BTreeMap<String, PeakReading>,
    /// Each counter against the baseline's.
    pub memory: Vec<MemoryChange>,
    /// Milliseconds for each image, waiting included, against the baseline's.
    pub time: Option<Change>,
    /// Median over runs of the milliseconds for each image.
    pub image_ms: Option<f64>,
    /// Median over runs of the images in a second.
    pub images_per_s: Option<f64>,
    /// Median over runs of the share of time spent waiting for batches.
    pub wait_share: Option<f64>,
    /// Milliseconds of all timed steps of all completed runs, waiting not included.
    pub step_ms: Option<Spread>,
    /// Median over runs of the seconds in warm-up steps.
    pub warmup_s: Option<f64>,
    /// Median over runs of the seconds before the first step.
    pub setup_s: Option<f64>,
    /// Medians over runs of the last epoch's values.
    pub quality: Quality,
    /// Loss of the last epoch's validation against the baseline's.
    pub valid_loss: Option<Change>,
    /// Accuracy against the baseline's.
    pub accuracy: Option<Change>,
    /// F1 against the baseline's.
    pub f1: Option<Change>,
    /// Parameters of the network.
    pub parameters: Option<u64>,
    /// Training images of a run.
    pub train_images: Option<usize>,
    /// Test images of a run.
    #[serde(default)]
    pub test_images: Option<usize>,
    /// Images in the largest micro-batch of a run.
    #[serde(default)]
    pub micro_batch: Option<usize>,
    /// What a reader should know of the arm's own runs, whatever they are compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What policies noted, by `policy: kind`, in all completed runs together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, usize>,
}

/// How good the trained network is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Training loss.
    pub train_loss: Option<f64>,
    /// Validation loss.
    pub valid_loss: Option<f64>,
    /// From 0 to 1.
    pub accuracy: Option<f64>,
    /// From 0 to 1.
    pub f1: Option<f64>,
}

/// How many runs ended in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCount {
    /// The way.
    pub outcome: String,
    /// How many.
    pub runs: usize,
    /// The reason given by the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
}

/// Derives the summary of `records`, of which the last one of each id counts.
#[must_use]
pub fn summarise(records: &[Record], host: &Host, experiment: &toml::Table, mut notes: Vec<String>) -> Summary {
    let latest: BTreeMap<&str, &Record> = records.iter().map(|record| (record.id.as_str(), record)).collect();
    let latest: Vec<&Record> = latest.into_values().collect();
    let mut sets: Vec<SetId> = Vec::new();
    // In the order of `SetId::ALL`, whatever the order of the runs.
    sets.extend(SetId::ALL.into_iter().filter(|set| latest.iter().any(|record| record.set == *set)));
    let interrupted = latest.iter().filter(|record| !record.outcome.is_final()).count();
    if interrupted > 0 {
        notes.push("the experiment was interrupted; --resume goes on".to_owned());
    }
    Summary {
        format_version: SUMMARY_VERSION,
        host: host.clone(),
        experiment: serde_json::to_value(experiment).unwrap_or_default(),
        interval_method: super::METHOD.to_owned(),
        notes,
        sets: sets.into_iter().map(|set| summarise_set(set, &latest)).collect(),
    }
}

fn summarise_set(set: SetId, records: &[&Record]) -> SetSummary {
    let of_set = || records.iter().copied().filter(move |record| record.set == set);
    let of_arm = |arm: &str| -> Vec<&Record> {
        let mut runs: Vec<&Record> = of_set().filter(|record| record.arm == arm).collect();
        runs.sort_by_key(|record| record.repeat);
        runs
    };
    let baseline = of_arm(BASELINE);
    let primary = completed(&baseline).into_values().find_map(primary_counter);
    let names: BTreeSet<&str> = of_set().map(|record| record.arm.as_str()).filter(|arm| *arm != BASELINE).collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    let place = |arm: &str| registry().iter().position(|entry| entry.spec.id == arm).unwrap_or(usize::MAX);
    names.sort_by_key(|arm| place(arm));
    SetSummary {
        set,
        primary_counter: primary.map(str::to_owned),
        arms: names.into_iter().map(|arm| summarise_arm(arm, &of_arm(arm), &baseline, primary)).collect(),
        baseline: summarise_arm(BASELINE, &baseline, &baseline, primary),
    }
}
