//! Made-up experiments for tests: no device, no files, the same numbers every time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use data::SetId;
use mem_policy::Environment;

use crate::config::{Experiment, Settings};
use crate::experiment::{Ended, Host, Observation};
use crate::record::{FORMAT_VERSION, Observed, Outcome, Record};
use crate::run::spec::{
    DeviceInfo, EnvironmentReport, EpochSample, PeakKind, PeakReading, RunResult, RunSpec, StepRole, StepSample,
};

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn found() -> EnvironmentReport {
    EnvironmentReport {
        environment: Environment::cpu(),
        device: DeviceInfo {
            name: "fake cpu".into(),
            backend: "cpu".into(),
            driver: None,
            compiler: "rust, simd".into(),
            autotune: false,
            dtype: "f32".into(),
            burn: "0.22.1".into(),
            profile: "debug".into(),
            os: "linux x86_64".into(),
        },
    }
}

pub(crate) fn host() -> Host {
    Host {
        commands: vec!["cargo xtask experiment --repeats 3".into()],
        started_at: "2026-01-02T03:04:05Z".parse().unwrap(),
        found: found(),
    }
}

/// Synthetic images only, so that no folder is needed.
pub(crate) fn settings(toml: &str) -> Settings {
    Settings::from_toml(&format!("dataset = \"synthetic\"\ndevice = \"cpu\"\n{toml}")).unwrap()
}

pub(crate) fn experiment(toml: &str) -> Experiment {
    crate::config::resolve(settings(toml), &Environment::cpu()).unwrap()
}

pub(crate) fn spec(set: SetId, policies: &str) -> RunSpec {
    experiment("").run_spec(set, &policies.parse().unwrap(), 42, PathBuf::from("scratch"))
}

/// What a run takes.
#[derive(Clone, Copy)]
pub(crate) struct Takes {
    pub(crate) heap: u64,
    pub(crate) step_ms: f64,
    pub(crate) accuracy: f64,
}

pub(crate) fn result(takes: Takes) -> RunResult {
    let step = |index: usize| StepSample {
        epoch: 1,
        images: 32,
        wait_ms: 1.0,
        // A little different from step to step; the first is the warm-up.
        // Microseconds, as a clock gives them: longer fractions lose a bit on their way through JSON.
        step_ms: (takes.step_ms * if index == 0 { 5e3 } else { 1e3 + 10.0 * (index % 3) as f64 }).round() / 1e3,
        role: match index {
            0 => StepRole::Warmup,
            4 | 8 => StepRole::Sampled,
            _ => StepRole::Timed,
        },
    };
    let read = |bytes, how, source: &str| PeakReading::Read { bytes, how, source: source.into() };
    RunResult {
        complete: true,
        error: None,
        environment: Environment::cpu(),
        device: found().device,
        plan: Vec::new(),
        parameters: 123_456,
        train_images: 384,
        test_images: 96,
        skipped_files: 0,
        steps: (0..12).map(step).collect(),
        phases: Vec::new(),
        epochs: vec![EpochSample {
            epoch: 1,
            train_s: 1.5,
            train_loss: Some(1.2),
            valid_loss: Some(1.1),
            accuracy: Some(takes.accuracy),
            precision: Some(takes.accuracy),
            recall: Some(takes.accuracy),
            f1: Some(takes.accuracy - 0.02),
        }],
        peaks: BTreeMap::from([
            ("heap.in_use".to_owned(), read(takes.heap, PeakKind::Exact, "the counting allocator")),
            ("process.resident".to_owned(), read(takes.heap + 80 * MIB, PeakKind::Exact, "VmHWM")),
            ("pool.reserved".to_owned(), PeakReading::Absent { why: "Flex has no memory pool".into() }),
        ]),
        events: Vec::new(),
        setup_s: 0.4,
        train_s: 1.5,
    }
}

pub(crate) fn record(set: SetId, arm: &str, repeat: usize, outcome: Outcome, result: Option<RunResult>) -> Record {
    let policies = if arm == "baseline" { String::new() } else { format!("[{arm}]") };
    let ran = !matches!(outcome, Outcome::Unsupported { .. });
    Record {
        format_version: FORMAT_VERSION,
        id: Record::id_of(set, arm, repeat),
        set,
        arm: arm.into(),
        left_out: BTreeMap::new(),
        repeat,
        position: repeat,
        seed: 41 + repeat as u64,
        started_at: "2026-01-02T03:04:05Z".parse().unwrap(),
        wall_s: if ran { 1.25 } else { 0.0 },
        tuning: None,
        spec: spec(set, &policies),
        outcome,
        result,
        observed: ran.then_some(Observed {
            exit_code: Some(0),
            signal: None,
            peak_resident_bytes: Some(200 * MIB),
            output_tail: None,
        }),
    }
}

/// Three repeats of a completed arm, a little different from each other.
pub(crate) fn completed(set: SetId, arm: &str, takes: Takes) -> Vec<Record> {
    (1..=3)
        .map(|repeat| {
            let drift = repeat as f64 * 0.005;
            let takes = Takes { step_ms: takes.step_ms * (1.0 + drift), ..takes };
            record(set, arm, repeat, Outcome::Completed, Some(result(takes)))
        })
        .collect()
}

/// An experiment in which everything happens.
pub(crate) fn records() -> Vec<Record> {
    let base = Takes { heap: 100 * MIB, step_ms: 20.0, accuracy: 0.8 };
    let mut records = Vec::new();
    for set in [SetId::Mnist, SetId::Caltech101] {
        records.extend(completed(set, "baseline", base));
        records.extend(completed(set, "batch-size", Takes { heap: 61 * MIB, step_ms: 21.0, ..base }));
        records.extend(completed(set, "gradient-accumulation", Takes { heap: 55 * MIB, step_ms: 30.0, ..base }));
        records.extend(completed(set, "model-scale", Takes { heap: 40 * MIB, step_ms: 9.0, accuracy: 0.7 }));
        records.extend(completed(set, "loader", Takes { heap: 109 * MIB, step_ms: 18.0, ..base }));
        records.extend(completed(set, "monitor", base));
        let why = "the device does not compute in 16 bits".to_owned();
        records.push(record(set, "mixed-precision", 1, Outcome::Unsupported { why }, None));
        for repeat in 1..=3 {
            let outcome = if set == SetId::Mnist {
                Outcome::Stopped { message: "`memory-limit` stopped the run at step 3".into() }
            } else {
                Outcome::OutOfMemory { why: "killed (signal 9), probably out of memory".into() }
            };
            records.push(record(set, "memory-limit", repeat, outcome, None));
        }
    }
    records
}

pub(crate) fn summary() -> crate::stats::Summary {
    let table = toml::Table::try_from(experiment("repeats = 3")).unwrap();
    crate::stats::summarise(&records(), &host(), &table, Vec::new())
}

pub(crate) fn observation(ended: Ended, result: Option<RunResult>, output_tail: &str) -> Observation {
    Observation {
        ended,
        result,
        output_tail: output_tail.into(),
        wall_s: 1.0,
        peak_resident_bytes: None,
        oom_evidence: None,
    }
}

pub(crate) const BASE: Takes = Takes { heap: 100 * MIB, step_ms: 20.0, accuracy: 0.8 };
