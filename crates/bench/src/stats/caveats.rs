//! What a reader should know beside the numbers of an arm.

use crate::record::{Outcome, Record};
use crate::run::spec::{RunResult, StepRole};

/// Images in the largest micro-batch of a run.
pub(super) fn micro_batch(result: &RunResult) -> Option<usize> {
    result.steps.iter().map(|step| step.images).max()
}

/// What to know of an arm's own runs: why they have no time, that they diverged, why there is none.
pub(super) fn of_runs(runs: &[&Record], completed: &[&RunResult]) -> Vec<String> {
    untimed(completed).into_iter().chain(diverged(completed)).chain(interrupted(runs)).collect()
}

/// Why there is no time for an image.
fn untimed(completed: &[&RunResult]) -> Option<String> {
    let count = |role| completed.iter().flat_map(|run| &run.steps).filter(|step| step.role == role).count();
    if completed.is_empty() || count(StepRole::Timed) > 0 {
        return None;
    }
    let (warmup, sampled) = (count(StepRole::Warmup), count(StepRole::Sampled));
    Some(format!(
        "no time: of {} steps {warmup} were warm-up and {sampled} sampled memory, so none was timed; take more steps, \
         fewer --warmup-steps or a larger --sample-every",
        warmup + sampled
    ))
}

/// That a loss stopped being a number.
fn diverged(completed: &[&RunResult]) -> Option<String> {
    let first = |run: &&RunResult| {
        run.epochs
            .iter()
            .find(|epoch| epoch.train_loss.is_none() || epoch.valid_loss.is_none())
            .map(|epoch| epoch.epoch)
    };
    let epochs: Vec<usize> = completed.iter().filter_map(first).collect();
    let earliest = epochs.iter().min()?;
    let (some, all) = (epochs.len(), completed.len());
    Some(format!("training diverged in {some} of {all} runs: the loss is NaN or infinite from epoch {earliest} on"))
}

fn interrupted(runs: &[&Record]) -> Option<String> {
    let cut = runs.iter().filter(|run| !run.outcome.is_final()).count();
    let completed = runs.iter().any(|run| run.outcome == Outcome::Completed);
    (cut > 0 && completed).then(|| format!("{cut} of {} runs interrupted, to be run again", runs.len()))
}

/// What differs between the sides beside the policy, over the pairs of results, arm first.
pub(super) fn of_pairs(pairs: &[(&RunResult, &RunResult)]) -> Vec<String> {
    let Some((arm, baseline)) = pairs.first() else { return Vec::new() };
    let mut notes = Vec::new();
    if arm.test_images != baseline.test_images {
        let (arm, baseline) = (arm.test_images, baseline.test_images);
        notes
            .push(format!("tested on {arm} images, the baseline on {baseline}: accuracies are of different test sets"));
    }
    if let (Some(own), Some(other)) = (micro_batch(arm), micro_batch(baseline))
        && own != other
    {
        let why = if arm.train_images < other {
            format!("; its {} training images fill no larger one, and memory changes with that", arm.train_images)
        } else {
            String::new()
        };
        notes.push(format!("largest micro-batch {own} images, the baseline's {other}{why}"));
    }
    notes
}
