//! One arm: what its runs took, how that compares, and the verdict.

use std::collections::{BTreeMap, BTreeSet};

use mem_policy::{Backend, Fidelity, registry};

use super::caveats;
use super::summary::{ArmSummary, OutcomeCount, Quality};
use super::{Change, Judgement, MemoryChange, RunStats, Side, Spread, Unit, Verdict, median};
use crate::record::{BASELINE, Outcome, Record};
use crate::run::spec::{PeakReading, RunResult, StepRole};

/// The results of the runs that completed, by repeat.
pub(super) fn completed<'a>(runs: &[&'a Record]) -> BTreeMap<usize, &'a RunResult> {
    runs.iter()
        .filter(|run| run.outcome == Outcome::Completed)
        .filter_map(|run| Some((run.repeat, run.result.as_ref()?)))
        .collect()
}

/// What the runs of one arm show, beside those of the baseline.
pub(super) fn summarise_arm(arm: &str, runs: &[&Record], baseline: &[&Record], primary: Option<&str>) -> ArmSummary {
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
    let judgement = (arm != BASELINE).then(|| {
        let mut judgement = judge(runs, baseline, &memory, time.as_ref(), primary);
        judgement.notes.extend(caveats::of_pairs(&pairs));
        judgement
    });
    let results: Vec<&RunResult> = own.values().copied().collect();
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
        test_images: own.values().next().map(|result| result.test_images),
        micro_batch: results.iter().filter_map(|result| caveats::micro_batch(result)).max(),
        notes: caveats::of_runs(runs, &results),
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
    } else if final_runs == 0 && !runs.is_empty() {
        // Not a failure: it has not ended yet.
        Verdict::NotCompared { why: "interrupted before a run ended; --resume runs it".to_owned() }
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
        Some(memory @ MemoryChange { change: Some(change), .. }) => {
            notes.extend(memory.caution().map(str::to_owned));
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

/// What a run says of a counter that no probe of it reads.
const NEVER_SAMPLED: &str = "it was never sampled";
/// How the counters begin that only a GPU has.
const DEVICE_COUNTERS: [&str; 3] = ["device.", "wgpu.", "pool."];

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
    let on_cpu = runs.values().all(|result| result.environment.backend == Backend::Cpu);
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
        if let PeakReading::Absent { why } = &mut reading
            && why == NEVER_SAMPLED
            && on_cpu
            && DEVICE_COUNTERS.iter().any(|prefix| key.starts_with(prefix))
        {
            "a CPU has no such counter: it belongs to a GPU".clone_into(why);
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
