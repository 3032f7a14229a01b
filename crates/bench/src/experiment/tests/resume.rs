use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use mem_policy::Environment;

use crate::config::Experiment;
use crate::experiment::{
    Ended, ExperimentError, FakeLauncher, Interrupt, Observation, Output, RunEnd, Runner, Schedule, arms,
};
use crate::fixture::{BASE, experiment, observation, result};
use crate::progress::Lines;
use crate::record::{Outcome, Record, RecordError, RecordLog, Sink, read};
use crate::run::spec::RunSpec;

fn small() -> (Experiment, Schedule) {
    let experiment = experiment("repeats = 2\npolicies = ['batch-size', 'subset', 'allocator-pages']");
    let arms = arms(&experiment, &Environment::cpu()).unwrap();
    let schedule = Schedule::new(&experiment, &arms);
    (experiment, schedule)
}

fn completes(_: &RunSpec, _: &Interrupt) -> Observation {
    observation(Ended::Exited(0), Some(result(BASE)), "")
}

/// Runs what is left, and returns how it ended, what was started and what was printed.
fn go<S: Sink>(
    folder: &Path,
    done: &BTreeSet<String>,
    log: &mut RecordLog<S>,
    answer: impl FnMut(&RunSpec, &Interrupt) -> Observation,
) -> (Result<RunEnd, ExperimentError>, usize, String) {
    let (experiment, schedule) = small();
    let mut launcher = FakeLauncher::new(answer);
    let mut printed = Vec::new();
    let end = Runner {
        experiment: &experiment,
        schedule: &schedule,
        output: &Output::create(folder).unwrap(),
        launcher: &mut launcher,
        progress: &mut Lines::new(&mut printed),
        interrupt: &Interrupt::new(),
    }
    .run(done, log);
    (end, launcher.seen.len(), String::from_utf8(printed).unwrap())
}

fn done(records: &[Record]) -> BTreeSet<String> {
    records.iter().filter(|record| record.outcome.is_final()).map(|record| record.id.clone()).collect()
}

#[test]
fn every_run_is_recorded_and_an_unsupported_one_is_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.jsonl");
    let mut log = RecordLog::create(&path).unwrap();
    let (end, started, printed) = go(folder.path(), &BTreeSet::new(), &mut log, completes);
    assert_eq!(end.unwrap(), RunEnd::Finished);
    // Three arms that run twice, and one that cannot.
    assert_eq!((started, log.kept()), (6, 7));
    let records = read(&path).unwrap().records;
    let unsupported: Vec<&Record> =
        records.iter().filter(|record| matches!(record.outcome, Outcome::Unsupported { .. })).collect();
    assert_eq!(unsupported.len(), 1);
    assert_eq!((&unsupported[0].arm[..], &unsupported[0].observed), ("allocator-pages", &None));
    assert_eq!(printed.lines().count(), 7, "{printed}");
    assert!(!folder.path().join("scratch").exists(), "completed runs leave no scratch");
}

#[test]
fn an_interrupted_experiment_keeps_its_records_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.jsonl");
    let mut log = RecordLog::create(&path).unwrap();
    let mut count = 0;
    let (end, ..) = go(folder.path(), &BTreeSet::new(), &mut log, |spec, interrupt| {
        count += 1;
        if count < 3 {
            return completes(spec, interrupt);
        }
        // Ctrl-C: the launcher ends the child and says so; what it had written is kept.
        interrupt.set();
        let mut partial = result(BASE);
        partial.complete = false;
        observation(Ended::Interrupted, Some(partial), "")
    });
    assert_eq!(end.unwrap(), RunEnd::Interrupted);

    let (mut log, contents) = RecordLog::resume(&path).unwrap();
    let cut: Vec<&Record> = contents.records.iter().filter(|record| !record.outcome.is_final()).collect();
    assert_eq!(cut.len(), 1);
    assert!(cut[0].result.as_ref().is_some_and(|result| !result.complete));
    let before = contents.records.len();
    let done = done(&contents.records);
    let (end, started, printed) = go(folder.path(), &done, &mut log, completes);
    assert_eq!(end.unwrap(), RunEnd::Finished);
    assert_eq!(started, 6 - 2, "two runs had completed");
    assert!(printed.starts_with(&format!("{} of 7 runs are there already", done.len())), "{printed}");

    let contents = read(&path).unwrap();
    let (_, schedule) = small();
    let latest = contents.latest();
    assert_eq!(latest.len(), schedule.entries.len());
    assert!(latest.values().all(|record| record.outcome.is_final()));
    assert!(contents.records.len() > before);
}

#[test]
fn a_run_that_was_cut_off_while_being_recorded_is_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.jsonl");
    let mut log = RecordLog::create(&path).unwrap();
    go(folder.path(), &BTreeSet::new(), &mut log, completes).0.unwrap();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 10]).unwrap();

    let (mut log, contents) = RecordLog::resume(&path).unwrap();
    assert!(contents.truncated.is_some());
    go(folder.path(), &done(&contents.records), &mut log, completes).0.unwrap();
    let contents = read(&path).unwrap();
    assert_eq!((contents.records.len(), contents.truncated), (7, None));
}

#[test]
fn a_failing_run_is_an_outcome_and_the_next_one_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.jsonl");
    let mut log = RecordLog::create(&path).unwrap();
    let (end, started, _) =
        go(folder.path(), &BTreeSet::new(), &mut log, |_, _| observation(Ended::Signalled(9), None, "the last words"));
    assert_eq!(end.unwrap(), RunEnd::Finished);
    assert_eq!(started, 6);
    for record in read(&path).unwrap().records {
        if let Some(observed) = record.observed {
            assert!(matches!(record.outcome, Outcome::OutOfMemory { .. }));
            assert_eq!((observed.signal, observed.output_tail.as_deref()), (Some(9), Some("the last words")));
        }
    }
}

/// Is full after some records.
struct FullAfter(usize);

impl Sink for FullAfter {
    fn append(&mut self, _: &[u8]) -> io::Result<()> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_experiment_and_counts_what_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = RecordLog::new(Path::new("records.jsonl"), FullAfter(3), 0);
    let (end, ..) = go(folder.path(), &BTreeSet::new(), &mut log, completes);
    let error = end.unwrap_err();
    assert!(error.is_output());
    assert!(matches!(error, ExperimentError::Record(RecordError::Write { kept: 3, .. })), "{error}");
}

#[test]
fn another_device_or_version_is_named_when_an_experiment_is_resumed() {
    let host = crate::fixture::host();
    let mut now = crate::fixture::found();
    assert!(host.differences(&now).is_empty());
    now.device.name = "another".into();
    now.device.driver = Some("1.2".into());
    let found: Vec<String> = host.differences(&now).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "host.device: another is here, but the records were made with fake cpu",
            "host.driver: 1.2 is here, but the records were made with none"
        ]
    );
}
