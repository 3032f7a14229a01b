//! What the pages show, ready for a template.

use serde::Serialize;

use super::format::kind;
use super::tables::{self, Table};
use crate::run::spec::{DeviceInfo, PeakReading};
use crate::stats::{SetSummary, Summary, rules};

/// A page.
#[derive(Debug, Clone, Serialize)]
pub(super) struct View {
    /// When the experiment started, in UTC.
    started_at: String,
    /// The commands that ran.
    commands: Vec<String>,
    /// Label and value.
    facts: Vec<(String, String)>,
    /// The settings.
    settings: Vec<(String, String)>,
    /// What a reader should know.
    notes: Vec<String>,
    /// How intervals were made.
    interval_method: String,
    /// How verdicts come about.
    rules: String,
    /// The best savings.
    headlines: Vec<String>,
    /// The data sets.
    sets: Vec<SetView>,
}

#[derive(Debug, Clone, Serialize)]
struct SetView {
    name: String,
    /// Which counter decides, from where, and how its peak comes about.
    counter: String,
    verdicts: Table,
    details: Vec<Table>,
}

impl View {
    pub(super) fn of(summary: &Summary) -> Self {
        Self {
            started_at: summary.host.started_at.strftime("%Y-%m-%d %H:%M UTC").to_string(),
            commands: summary.host.commands.clone(),
            facts: facts(&summary.host.found.device),
            settings: settings(&summary.experiment),
            notes: summary.notes.clone(),
            interval_method: summary.interval_method.clone(),
            rules: format!(
                "`saves`: the memory counter goes down by at least {:.0} %. `costs`: it does not, and memory goes up by \
                 at least {:.0} %, or the time for an image by at least {:.0} %. `no effect`: neither. A change counts \
                 if its interval excludes 0; with one pair of runs there is no interval, its size alone decides, and \
                 the verdict is marked `1 pair`. Time leaves out the warm-up steps, in which kernels and shaders are \
                 compiled and caches fill, whatever policy is on: that time stands apart, as `warm-up steps` in the \
                 details. Nothing is concluded from it: the first run that needs a shader may compile it for those after \
                 it.",
                rules::SAVES_MEMORY * 100.0,
                rules::COSTS_MEMORY * 100.0,
                rules::COSTS_TIME * 100.0,
            ),
            headlines: summary.sets.iter().filter_map(tables::headline).collect(),
            sets: summary.sets.iter().map(SetView::of).collect(),
        }
    }
}

impl SetView {
    fn of(set: &SetSummary) -> Self {
        let counter = match &set.primary_counter {
            Some(key) => match set.baseline.peaks.get(key) {
                Some(PeakReading::Read { how, source, .. }) => {
                    format!("`{key}`, read from {source} ({}), on both sides", kind(*how))
                }
                _ => format!("`{key}`"),
            },
            None => "no counter: the baseline has none that could decide".to_owned(),
        };
        let details =
            [tables::memory(set), tables::time(set), tables::quality(set), tables::outcomes(set), tables::absent(set)];
        Self {
            name: set.set.to_string(),
            counter,
            verdicts: tables::verdicts(set),
            details: details.into_iter().filter(|table| !table.rows.is_empty()).collect(),
        }
    }
}

pub(super) fn facts(device: &DeviceInfo) -> Vec<(String, String)> {
    let DeviceInfo { name, backend, driver, compiler, autotune, dtype, burn, profile, os } = device;
    [
        ("device", name.clone()),
        ("backend", backend.clone()),
        ("driver", driver.clone().unwrap_or_else(|| "none".to_owned())),
        ("kernels", format!("{compiler}{}", if *autotune { ", chosen by measuring" } else { "" })),
        ("dtype of the baseline", dtype.clone()),
        ("Burn", burn.clone()),
        ("build profile", profile.clone()),
        ("system", os.clone()),
    ]
    .into_iter()
    .map(|(label, value)| (label.to_owned(), value))
    .collect()
}

fn settings(experiment: &serde_json::Value) -> Vec<(String, String)> {
    let Some(table) = experiment.as_object() else { return Vec::new() };
    table
        .iter()
        .map(|(key, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (key.clone(), text)
        })
        .collect()
}
