//! Everything the reports say, as data: `summary.json`.

use std::collections::{BTreeMap, BTreeSet};

use data::SetId;
use mem_policy::{Fidelity, registry};
use serde::{Deserialize, Serialize};

use super::{Change, Judgement, MemoryChange, RunStats, Side, Spread, Unit, Verdict, median, primary_counter};
use crate::experiment::Host;
use crate::record::{BASELINE, Outcome, Record};
use crate::run::spec::{PeakReading, RunResult, StepRole};

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

fn completed<'a>(runs: &[&'a Record]) -> BTreeMap<usize, &'a RunResult> {
    runs.iter()
        .filter(|run| run.outcome == Outcome::Completed)
        .filter_map(|run| Some((run.repeat, run.result.as_ref()?)))
        .collect()
}

fn summarise_arm(arm: &str, runs: &[&Record], baseline: &[&Record], primary: Option<&str>) -> ArmSummary {
    let (own, other) = (completed(runs), completed(baseline));
    let pairs: Vec<(&RunResult, &RunResult)> =
        own.iter().filter_map(|(repeat, result)| Some((*result, *other.get(repeat)?))).collect();
    let pairs = if arm == BASELINE { Vec::new() } else { pairs };
    let stats: Vec<RunStats> = own.values().map(|result| RunStats::of(result)).collect();
    let middle = |of: fn(&RunStats) -> Option<f64>| median(stats.iter().filter_map(of));
    let change = |unit, of: fn(&RunStats) -> Option<f64>| {
        let sides: Vec<Side> = pairs
            .iter()
            .filter_map(|(arm, baseline)| {
                Some(Side { arm: of(&RunStats::of(arm))?, baseline: of(&RunStats::of(baseline))? })
            })
            .collect();
        Change::of(unit, &sides)
    };
    let counters: BTreeSet<&str> =
        pairs.iter().flat_map(|(_, baseline)| baseline.peaks.keys()).map(String::as_str).collect();
    let memory: Vec<MemoryChange> =
        counters.into_iter().filter_map(|counter| MemoryChange::of(counter, &pairs)).collect();
    let time = change(Unit::MillisecondsPerImage, |stats| stats.image_ms);
    let judgement = (arm != BASELINE).then(|| judge(runs, baseline, &memory, time.as_ref(), primary));
    ArmSummary {
        arm: arm.to_owned(),
        title: title(arm),
        policies: runs.first().map(|run| run.spec.policies.clone()).unwrap_or_default(),
        left_out: runs.first().map(|run| run.left_out.clone()).unwrap_or_default(),
        fidelity: fidelity(arm),
        outcomes: outcomes(runs),
        completed: own.len(),
        judgement,
        peaks: peaks(&own),
        memory,
        time,
        image_ms: middle(|stats| stats.image_ms),
        images_per_s: middle(|stats| stats.images_per_s),
        wait_share: middle(|stats| stats.wait_share),
        step_ms: Spread::of(
            own.values()
                .flat_map(|result| &result.steps)
                .filter(|step| step.role == StepRole::Timed)
                .map(|step| step.step_ms),
        ),
        warmup_s: middle(|stats| stats.warmup_s),
        setup_s: middle(|stats| Some(stats.setup_s)),
        quality: Quality {
            train_loss: middle(|stats| stats.train_loss),
            valid_loss: middle(|stats| stats.valid_loss),
            accuracy: middle(|stats| stats.accuracy),
            f1: middle(|stats| stats.f1),
        },
        valid_loss: change(Unit::Loss, |stats| stats.valid_loss),
        accuracy: change(Unit::Share, |stats| stats.accuracy),
        f1: change(Unit::Share, |stats| stats.f1),
        parameters: own.values().next().map(|result| result.parameters),
        train_images: own.values().next().map(|result| result.train_images),
        events: events(&own),
    }
}

fn judge(
    runs: &[&Record],
    baseline: &[&Record],
    memory: &[MemoryChange],
    time: Option<&Change>,
    primary: Option<&str>,
) -> Judgement {
    let mut notes = Vec::new();
    let done = runs.iter().filter(|run| run.outcome == Outcome::Completed).count();
    let final_runs = runs.iter().filter(|run| run.outcome.is_final()).count();
    let unsupported = runs.iter().find_map(|run| match &run.outcome {
        Outcome::Unsupported { why } => Some(why.clone()),
        _ => None,
    });
    let verdict = if let (0, Some(why)) = (done, unsupported) {
        Verdict::Unsupported { why }
    } else if done == 0 {
        let how = runs.iter().find(|run| run.outcome.is_final()).or(runs.first());
        let how = how.map_or_else(
            || "never run".to_owned(),
            |run| match &run.outcome {
                // The verdict says `failed` already.
                Outcome::Failed { message } => message.clone(),
                outcome => outcome.to_string(),
            },
        );
        Verdict::Failed { how }
    } else {
        if done < final_runs {
            notes.push(format!("{done} of {final_runs} runs completed"));
        }
        compare(baseline, memory, time, primary, &mut notes)
    };
    Judgement { verdict, notes }
}

fn compare(
    baseline: &[&Record],
    memory: &[MemoryChange],
    time: Option<&Change>,
    primary: Option<&str>,
    notes: &mut Vec<String>,
) -> Verdict {
    let out_of_memory = |run: &&Record| matches!(run.outcome, Outcome::OutOfMemory { .. });
    if !baseline.is_empty() && baseline.iter().all(out_of_memory) {
        notes.push("the baseline ran out of memory, and this did not".to_owned());
        return Verdict::Saves;
    }
    if completed(baseline).is_empty() {
        let how = baseline.first().map_or_else(|| "was not run".to_owned(), |run| run.outcome.to_string());
        return Verdict::NotCompared { why: format!("no run of the baseline completed: {how}") };
    }
    let Some(primary) = primary else {
        return Verdict::NotCompared { why: "the baseline has no memory counter that could decide".to_owned() };
    };
    match memory.iter().find(|change| change.counter == primary) {
        Some(MemoryChange { change: Some(change), .. }) => {
            if change.pairs == 1 {
                notes.push("one pair of runs: no interval".to_owned());
            }
            Verdict::by(change, time)
        }
        Some(MemoryChange { why_not: Some(why), .. }) => Verdict::NotCompared { why: why.clone() },
        _ => Verdict::NotCompared { why: "no repeat completed on both sides".to_owned() },
    }
}

fn title(arm: &str) -> String {
    if arm == BASELINE {
        return "No policy".to_owned();
    }
    match registry().iter().find(|entry| entry.spec.id == arm) {
        Some(entry) => entry.spec.title.to_owned(),
        None => "All together".to_owned(),
    }
}

/// The loosest promise of the arm's policies.
fn fidelity(arm: &str) -> Option<Fidelity> {
    arm.split('+')
        .filter_map(|id| registry().iter().find(|entry| entry.spec.id == id))
        .map(|entry| entry.spec.fidelity)
        .max()
}

fn outcomes(runs: &[&Record]) -> Vec<OutcomeCount> {
    let mut counts: Vec<OutcomeCount> = Vec::new();
    for run in runs {
        let label = run.outcome.label();
        if let Some(count) = counts.iter_mut().find(|count| count.outcome == label) {
            count.runs += 1;
        } else {
            let text = run.outcome.to_string();
            counts.push(OutcomeCount { outcome: label.to_owned(), runs: 1, first: (text != label).then_some(text) });
        }
    }
    counts
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "sizes of memory are far below 2^52 bytes"
)]
fn peaks(runs: &BTreeMap<usize, &RunResult>) -> BTreeMap<String, PeakReading> {
    let mut peaks: BTreeMap<String, PeakReading> = BTreeMap::new();
    for key in runs.values().flat_map(|result| result.peaks.keys()) {
        if peaks.contains_key(key) {
            continue;
        }
        let readings = || runs.values().filter_map(|result| result.peaks.get(key));
        let bytes = |reading: &PeakReading| match reading {
            PeakReading::Read { bytes, .. } => Some(*bytes as f64),
            PeakReading::Absent { .. } => None,
        };
        let first = readings().find(|reading| bytes(reading).is_some()).or_else(|| readings().next());
        let Some(mut reading) = first.cloned() else { continue };
        if let PeakReading::Read { bytes: value, .. } = &mut reading {
            *value = median(readings().filter_map(bytes)).unwrap_or_default() as u64;
        }
        peaks.insert(key.clone(), reading);
    }
    peaks
}

fn events(runs: &BTreeMap<usize, &RunResult>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in runs.values().flat_map(|result| &result.events) {
        let kind = serde_json::to_value(event.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
        *counts.entry(format!("{}: {}", event.policy, kind.unwrap_or_default())).or_default() += 1;
    }
    counts
}
