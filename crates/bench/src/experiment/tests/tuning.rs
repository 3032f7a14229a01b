use std::collections::BTreeSet;

use mem_policy::{Backend, Environment, EventKind, PolicyEvent};

use crate::experiment::{Ended, FakeLauncher, Interrupt, Output, Runner, Schedule, arms};
use crate::fixture::{BASE, experiment, observation, result};
use crate::progress::Lines;
use crate::record::{Outcome, RecordLog, read};
use crate::run::spec::{ErrorKind, Purpose, RunError};

/// One repeat of the baseline and of `warm-autotune` with a cap; `over` makes the tuning process end itself.
fn records(over: bool) -> Vec<crate::record::Record> {
    let experiment = experiment("repeats = 1\npolicies = ['warm-autotune']\n[set.warm-autotune]\ncap = '1 GiB'");
    let mut environment = Environment::new(Backend::Vulkan, "a GPU");
    environment.autotune = true;
    let schedule = Schedule::new(&experiment, &arms(&experiment, &environment).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.jsonl");
    let mut launcher = FakeLauncher::new(move |spec: &crate::run::spec::RunSpec, _: &Interrupt| {
        let mut answer = result(BASE);
        if spec.purpose != Purpose::Tune {
            return observation(Ended::Exited(0), Some(answer), "");
        }
        answer.events = vec![PolicyEvent::new("warm-autotune", EventKind::Reading, "chose 7 kernels")];
        if over {
            answer.complete = false;
            answer.error = Some(RunError { kind: ErrorKind::OutOfMemory, message: "over the cap".to_owned() });
        }
        observation(Ended::Exited(i32::from(over)), Some(answer), "")
    });
    let mut log = RecordLog::create(&path).unwrap();
    Runner {
        experiment: &experiment,
        schedule: &schedule,
        output: &Output::create(folder.path()).unwrap(),
        launcher: &mut launcher,
        progress: &mut Lines::new(Vec::new()),
        interrupt: &Interrupt::new(),
    }
    .run(&BTreeSet::new(), &mut log)
    .unwrap();
    // Two measured runs and one that tuned, which came right before the one that wanted it.
    let tuned: Vec<bool> = launcher.seen.iter().map(|spec| spec.purpose == Purpose::Tune).collect();
    assert_eq!(tuned.len(), 3);
    let place = tuned.iter().position(|tuning| *tuning).unwrap();
    assert!(launcher.seen[place + 1].policies.contains_key("warm-autotune"));
    assert_ne!(launcher.seen[place].scratch, launcher.seen[place + 1].scratch);
    drop(log);
    read(&path).unwrap().records
}

#[test]
fn kernels_are_chosen_in_a_process_before_the_run_that_wants_it() {
    let records = records(false);
    let of = |arm: &str| records.iter().find(|record| record.arm == arm).unwrap();
    assert_eq!(of("baseline").tuning, None);
    let tuning = of("warm-autotune").tuning.as_ref().unwrap();
    assert_eq!(tuning.outcome, Outcome::Completed);
    assert_eq!(tuning.events[0].message, "chose 7 kernels");
}

#[test]
fn a_run_goes_on_after_tuning_passed_its_cap() {
    let records = records(true);
    let run = records.iter().find(|record| record.arm == "warm-autotune").unwrap();
    assert_eq!(run.outcome, Outcome::Completed);
    let tuning = run.tuning.as_ref().unwrap();
    assert!(matches!(&tuning.outcome, Outcome::OutOfMemory { why } if why.contains("over the cap")), "{tuning:?}");
}
