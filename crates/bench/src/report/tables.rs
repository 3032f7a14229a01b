//! The tables of a report, as text in cells; pages and terminal show the same ones.

use serde::Serialize;

use super::format::{ABSENT, bytes, grouped, kind, optional, percent, points, relative, share, spread};
use crate::run::spec::PeakReading;
use crate::stats::{ArmSummary, MemoryChange, SetSummary};

/// A table: the first cell of a row names it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Table {
    /// What it shows.
    pub(super) caption: String,
    /// One for each column.
    pub(super) headers: Vec<String>,
    /// The rows.
    pub(super) rows: Vec<Row>,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// A style: the verdict's word, with dashes.
    pub(super) class: String,
    /// The cells.
    pub(super) cells: Vec<String>,
}

/// Verdict, memory and time: the table that answers the question.
pub(super) fn verdicts(set: &SetSummary) -> Table {
    let counter = set.primary_counter.as_deref().unwrap_or("memory");
    let row = |arm: &ArmSummary| {
        let (word, notes): (_, Vec<String>) = match &arm.judgement {
            None => ("baseline", without_result(arm)),
            Some(judgement) => {
                let detail = judgement.verdict.detail().map(str::to_owned);
                let left_out = arm.left_out.iter().map(|(id, why)| format!("without {id}: {why}"));
                (judgement.verdict.word(), detail.into_iter().chain(judgement.notes.clone()).chain(left_out).collect())
            }
        };
        let notes: Vec<String> = notes.into_iter().chain(arm.notes.clone()).collect();
        let memory = primary(set, arm);
        Row {
            class: word.replace(' ', "-"),
            cells: vec![
                arm.arm.clone(),
                if one_pair(set, arm) { format!("{word} (1 pair)") } else { word.to_owned() },
                peak(arm, counter),
                relative(memory.and_then(|memory| memory.change.as_ref())),
                optional(arm.image_ms, 3, ""),
                relative(arm.time.as_ref()),
                share(arm.quality.accuracy),
                notes.join("; "),
            ],
        }
    };
    Table {
        caption: format!("{}: what each policy saves and costs", set.set),
        headers: headers(&[
            "policy",
            "verdict",
            &format!("peak {counter}"),
            "memory change",
            "ms per image",
            "time change",
            "accuracy",
            "notes",
        ]),
        rows: arms(set).map(row).collect(),
    }
}

/// How the runs of an arm ended, if none completed.
fn without_result(arm: &ArmSummary) -> Vec<String> {
    if arm.completed > 0 {
        return Vec::new();
    }
    let ends = arm.outcomes.iter().map(|count| {
        let how = count.first.as_deref().unwrap_or(&count.outcome);
        format!("no run completed: {how}")
    });
    ends.collect()
}

/// Whether the verdict rests on a single pair of runs, and hence on no interval.
fn one_pair(set: &SetSummary, arm: &ArmSummary) -> bool {
    let change = primary(set, arm).and_then(|memory| memory.change);
    arm.judgement.is_some() && change.is_some_and(|change| change.pairs == 1)
}

/// Every counter on both sides.
pub(super) fn memory(set: &SetSummary) -> Table {
    let rows = set.arms.iter().flat_map(|arm| {
        arm.memory.iter().map(move |memory| {
            let MemoryChange { counter, source, arm_how, baseline_how, change, why_not } = memory;
            let how = match memory.caution() {
                Some(caution) => caution,
                None => kind(if change.is_some() { *arm_how } else { *baseline_how }),
            };
            let cells = match change {
                Some(change) => vec![bytes(change.arm), bytes(change.baseline), relative(Some(change))],
                None => {
                    let why = why_not.clone().unwrap_or_else(|| "no repeat completed on both sides".to_owned());
                    vec![peak(arm, counter), peak(&set.baseline, counter), format!("not compared: {why}")]
                }
            };
            let names = [arm.arm.clone(), counter.clone(), format!("{source} ({how})")];
            Row { class: String::new(), cells: names.into_iter().chain(cells).collect() }
        })
    });
    Table {
        caption: format!("{}: peaks by counter, the same counter on both sides", set.set),
        headers: headers(&["policy", "counter", "source", "with the policy", "baseline", "change"]),
        rows: rows.collect(),
    }
}

/// What the baseline could not read.
pub(super) fn absent(set: &SetSummary) -> Table {
    let rows = set.baseline.peaks.iter().filter_map(|(counter, reading)| match reading {
        PeakReading::Absent { why } => Some(Row { class: String::new(), cells: vec![counter.clone(), why.clone()] }),
        PeakReading::Read { .. } => None,
    });
    Table {
        caption: format!("{}: counters that could not be read", set.set),
        headers: headers(&["counter", "why"]),
        rows: rows.collect(),
    }
}

/// Where the time goes.
pub(super) fn time(set: &SetSummary) -> Table {
    let row = |arm: &ArmSummary| Row {
        class: String::new(),
        cells: vec![
            arm.arm.clone(),
            spread(arm.step_ms.as_ref()),
            optional(arm.images_per_s, 1, ""),
            share(arm.wait_share),
            optional(arm.warmup_s, 2, " s"),
            optional(arm.setup_s, 2, " s"),
        ],
    };
    Table {
        caption: format!("{}: time", set.set),
        headers: headers(&[
            "policy",
            "micro-batch, median [quartiles]",
            "images per second",
            "waiting for data",
            "warm-up steps",
            "before the first step",
        ]),
        rows: arms(set).filter(|arm| arm.completed > 0).map(row).collect(),
    }
}

/// What became of the network.
pub(super) fn quality(set: &SetSummary) -> Table {
    let row = |arm: &ArmSummary| Row {
        class: String::new(),
        cells: vec![
            arm.arm.clone(),
            arm.fidelity.map_or_else(|| ABSENT.to_owned(), |fidelity| fidelity.to_string()),
            optional(arm.quality.train_loss, 3, ""),
            optional(arm.quality.valid_loss, 3, ""),
            share(arm.quality.accuracy),
            points(arm.accuracy.as_ref()),
            share(arm.quality.f1),
            points(arm.f1.as_ref()),
            arm.parameters.map_or_else(|| ABSENT.to_owned(), grouped),
            arm.train_images.map_or_else(|| ABSENT.to_owned(), |n| grouped(n as u64)),
        ],
    };
    Table {
        caption: format!("{}: the trained network (short runs: these show that training works, not how well)", set.set),
        headers: headers(&[
            "policy",
            "fidelity",
            "training loss",
            "validation loss",
            "accuracy",
            "change",
            "F1",
            "change",
            "parameters",
            "training images",
        ]),
        rows: arms(set).filter(|arm| arm.completed > 0).map(row).collect(),
    }
}

/// How the runs ended.
pub(super) fn outcomes(set: &SetSummary) -> Table {
    let rows = arms(set).flat_map(|arm| {
        arm.outcomes.iter().map(|count| {
            let first = count.first.clone().unwrap_or_default();
            Row {
                class: String::new(),
                cells: vec![arm.arm.clone(), count.outcome.clone(), count.runs.to_string(), first],
            }
        })
    });
    Table {
        caption: format!("{}: outcomes", set.set),
        headers: headers(&["policy", "outcome", "runs", "the first one says"]),
        rows: rows.collect(),
    }
}

/// The change of the counter that decides.
pub(super) fn primary<'a>(set: &SetSummary, arm: &'a ArmSummary) -> Option<&'a MemoryChange> {
    let counter = set.primary_counter.as_deref()?;
    arm.memory.iter().find(|memory| memory.counter == counter)
}

/// One sentence for each set: the best saving, for the end of a run.
pub(super) fn headline(set: &SetSummary) -> Option<String> {
    let saving = |arm: &ArmSummary| primary(set, arm).and_then(|memory| memory.change?.relative);
    let best = set
        .arms
        .iter()
        .filter(|arm| arm.judgement.as_ref().is_some_and(|judgement| judgement.verdict.word() == "saves"))
        .filter_map(|arm| Some((arm, saving(arm)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (arm, memory) = best;
    let time = arm
        .time
        .and_then(|time| time.relative)
        .map_or_else(String::new, |time| format!(", and the time for an image changes by {}", percent(time)));
    let basis = if one_pair(set, arm) { " (one pair of runs, no interval: repeat to be sure)" } else { "" };
    Some(format!(
        "{}: `{}` saves most, {} of peak {}{time}{basis}",
        set.set,
        arm.arm,
        percent(memory),
        set.primary_counter.as_deref().unwrap_or("memory"),
    ))
}

fn arms(set: &SetSummary) -> impl Iterator<Item = &ArmSummary> {
    std::iter::once(&set.baseline).chain(&set.arms)
}

fn peak(arm: &ArmSummary, counter: &str) -> String {
    match arm.peaks.get(counter) {
        #[expect(clippy::cast_precision_loss, reason = "sizes of memory are far below 2^52 bytes")]
        Some(PeakReading::Read { bytes: value, .. }) => bytes(*value as f64),
        _ => ABSENT.to_owned(),
    }
}

fn headers(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
