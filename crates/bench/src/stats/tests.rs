use data::SetId;

use super::*;
use crate::fixture::{BASE, MIB, Takes, completed, host, record, result};
use crate::record::{BASELINE, Outcome, Record};
use crate::run::spec::{PeakKind, PeakReading, StepRole};

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn quantiles_are_interpolated() {
    let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap();
    assert_eq!((spread.n, spread.q1, spread.median, spread.q3), (4, 1.75, 2.5, 3.25));
    assert_eq!(Spread::of([7.0]).unwrap().median, 7.0);
    assert_eq!(Spread::of([]), None);
}

#[test]
fn an_interval_is_students() {
    // t(0.975; 2) = 4.302653; the standard deviation of 1, 2, 3 is 1.
    let interval = mean_interval(&[1.0, 2.0, 3.0]).unwrap();
    let half = 4.302_652_729_911_275 / 3.0_f64.sqrt();
    assert!((interval.low - (2.0 - half)).abs() < 1e-6, "{interval:?}");
    assert!((interval.high - (2.0 + half)).abs() < 1e-6, "{interval:?}");
}

#[test]
fn one_sample_has_no_interval_and_equal_samples_one_without_width() {
    assert_eq!(mean_interval(&[1.0]), None);
    assert_eq!(mean_interval(&[]), None);
    assert_eq!(mean_interval(&[1.0, f64::NAN]), None);
    assert_eq!(mean_interval(&[-0.25, -0.25]), Some(Interval { low: -0.25, high: -0.25 }));
}

#[test]
fn only_timed_steps_count_for_time_and_every_one_of_them() {
    let mut run = result(BASE);
    for step in &mut run.steps {
        (step.wait_ms, step.step_ms) = (2.0, 8.0);
        if step.role != StepRole::Timed {
            step.step_ms = 1e6;
        }
    }
    // One slow step, such as a clean-up in every n-th: a median would not see it.
    run.steps[1].step_ms = 98.0;
    let timed = run.steps.iter().filter(|step| step.role == StepRole::Timed).count() as f64;
    let stats = RunStats::of(&run);
    let total = timed * 10.0 + 90.0;
    assert!(near(stats.image_ms.unwrap(), total / (timed * 32.0)));
    assert!(near(stats.images_per_s.unwrap(), 1000.0 * timed * 32.0 / total));
    assert!(near(stats.wait_share.unwrap(), timed * 2.0 / total));
    assert!(near(stats.step_ms.unwrap().median, 8.0));
    assert!(near(stats.warmup_s.unwrap(), 1000.002));
}

#[test]
fn a_run_without_timed_steps_has_no_times() {
    let mut run = result(BASE);
    run.steps.retain(|step| step.role != StepRole::Timed);
    let stats = RunStats::of(&run);
    assert_eq!((stats.image_ms, stats.images_per_s, stats.wait_share, stats.step_ms), (None, None, None, None));
}

#[test]
fn changes_are_paired_by_repeat() {
    // The machine got twice as slow in repeat 2, for both sides: paired, nothing changed.
    let pairs = [Side { arm: 11.0, baseline: 10.0 }, Side { arm: 22.0, baseline: 20.0 }];
    let change = Change::of(Unit::MillisecondsPerImage, &pairs).unwrap();
    assert!(near(change.relative.unwrap(), 0.1));
    let interval = change.relative_interval.unwrap();
    assert!(near(interval.low, 0.1) && near(interval.high, 0.1), "{interval:?}");
    assert_eq!(Change::of(Unit::Loss, &[]), None);
    assert_eq!(Change::of(Unit::Share, &[Side { arm: 0.5, baseline: 0.0 }]).unwrap().relative, None);
}

fn change(relative: f64, interval: Option<(f64, f64)>) -> Change {
    Change {
        unit: Unit::Bytes,
        arm: 0.0,
        baseline: 0.0,
        difference: 0.0,
        difference_interval: None,
        relative: Some(relative),
        relative_interval: interval.map(|(low, high)| Interval { low, high }),
        pairs: 3,
    }
}

#[test]
fn verdicts_follow_the_rules() {
    let sure = |by: f64| change(by, Some((by - 0.001, by + 0.001)));
    let unsure = |by: f64| change(by, Some((by - 1.0, by + 1.0)));
    let alone = |by: f64| change(by, None);
    let cases = [
        ("memory down for sure", sure(-0.3), Some(sure(0.0)), Verdict::Saves),
        ("memory down, whatever the time", sure(-0.3), Some(sure(0.9)), Verdict::Saves),
        ("just enough", sure(-0.02), None, Verdict::Saves),
        ("too little", sure(-0.019), None, Verdict::NoEffect),
        ("down, but perhaps not", unsure(-0.3), Some(sure(0.0)), Verdict::NoEffect),
        ("down, but perhaps not, and slow", unsure(-0.3), Some(sure(0.06)), Verdict::Costs),
        ("memory up", sure(0.05), Some(sure(-0.2)), Verdict::Costs),
        ("memory up a little", sure(0.049), Some(sure(0.0)), Verdict::NoEffect),
        ("memory up, but perhaps not", unsure(0.2), Some(sure(0.0)), Verdict::NoEffect),
        ("time up", sure(0.0), Some(sure(0.05)), Verdict::Costs),
        ("time up a little", sure(0.0), Some(sure(0.049)), Verdict::NoEffect),
        ("time up, but perhaps not", sure(0.0), Some(unsure(0.5)), Verdict::NoEffect),
        ("faster is no saving of memory", sure(0.0), Some(sure(-0.5)), Verdict::NoEffect),
        ("one repeat decides by size alone", alone(-0.3), Some(alone(0.5)), Verdict::Saves),
        ("one repeat that costs", alone(0.0), Some(alone(0.5)), Verdict::Costs),
        ("no time", sure(0.0), None, Verdict::NoEffect),
    ];
    for (name, memory, time, expected) in cases {
        assert_eq!(Verdict::by(&memory, time.as_ref()), expected, "{name}");
    }
}

fn judged(records: &[Record], arm: &str) -> Judgement {
    let summary = summarise(records, &host(), &toml::Table::new(), Vec::new());
    let arm = summary.sets[0].arms.iter().find(|found| found.arm == arm).unwrap();
    arm.judgement.clone().unwrap()
}

#[test]
fn arms_are_judged_by_what_became_of_their_runs() {
    let base = || completed(SetId::Mnist, BASELINE, BASE);
    let run = |arm: &str, repeat, outcome| record(SetId::Mnist, arm, repeat, outcome, None);
    let oom = || Outcome::OutOfMemory { why: "full".into() };
    let less = completed(SetId::Mnist, "subset", Takes { heap: 50 * MIB, ..BASE });

    let judgement = judged(&[base(), less.clone()].concat(), "subset");
    assert_eq!((judgement.verdict, judgement.notes.len()), (Verdict::Saves, 0));

    let unsupported = run("subset", 1, Outcome::Unsupported { why: "no pool".into() });
    let judgement = judged(&[base(), vec![unsupported]].concat(), "subset");
    assert_eq!(judgement.verdict, Verdict::Unsupported { why: "no pool".into() });

    let judgement = judged(&[base(), vec![run("subset", 1, oom())]].concat(), "subset");
    assert_eq!(judgement.verdict, Verdict::Failed { how: "out of memory: full".into() });

    // Only the runs that completed are compared, and the reader is told.
    let two = [base(), less[..2].to_vec(), vec![run("subset", 3, oom())]].concat();
    let judgement = judged(&two, "subset");
    assert_eq!((judgement.verdict, judgement.notes), (Verdict::Saves, vec!["2 of 3 runs completed".to_owned()]));

    // What fits where the baseline does not saves memory, although no number says how much.
    let baseline_full: Vec<Record> = (1..=3).map(|repeat| run(BASELINE, repeat, oom())).collect();
    let judgement = judged(&[baseline_full, less.clone()].concat(), "subset");
    assert_eq!(judgement.verdict, Verdict::Saves);
    assert_eq!(judgement.notes, ["the baseline ran out of memory, and this did not"]);

    let baseline_failed = vec![run(BASELINE, 1, Outcome::Failed { message: "no".into() })];
    let judgement = judged(&[baseline_failed, less].concat(), "subset");
    let why = "no run of the baseline completed: failed: no".to_owned();
    assert_eq!(judgement.verdict, Verdict::NotCompared { why });
}

/// The verdict on an arm that saves, with its primary counter read in another way.
fn judged_with(source: &str, how: PeakKind) -> Judgement {
    let base = completed(SetId::Mnist, BASELINE, BASE);
    let mut other = completed(SetId::Mnist, "subset", BASE);
    for record in &mut other {
        let reading = PeakReading::Read { bytes: 50 * MIB, how, source: source.into() };
        record.result.as_mut().unwrap().peaks.insert("heap.in_use".into(), reading);
    }
    judged(&[base, other].concat(), "subset")
}

#[test]
fn different_counters_are_never_compared() {
    let judgement = judged_with("another allocator", PeakKind::Exact);
    let why = "heap.in_use was read from another allocator, and for the baseline from the counting allocator";
    assert_eq!(judgement.verdict, Verdict::NotCompared { why: why.into() });
}

#[test]
fn a_sampled_peak_is_compared_with_an_exact_one_and_the_reader_is_told() {
    let judgement = judged_with("the counting allocator", PeakKind::Sampled);
    assert_eq!(judgement.verdict, Verdict::Saves);
    assert_eq!(judgement.notes, ["its peak is sampled and may be higher; the baseline's is exact"]);
    assert!(judged_with("the counting allocator", PeakKind::Exact).notes.is_empty());
}

#[test]
fn the_pool_decides_where_there_is_one() {
    let mut run = result(BASE);
    assert_eq!(primary_counter(&run), Some("heap.in_use"));
    let pool = PeakReading::Read { bytes: MIB, how: PeakKind::Exact, source: "the pool".into() };
    run.peaks.insert("pool.reserved".into(), pool);
    assert_eq!(primary_counter(&run), Some("pool.reserved"));
    run.peaks.clear();
    assert_eq!(primary_counter(&run), None);
}

#[test]
fn an_interrupted_run_is_not_a_failure_of_its_arm() {
    let base = completed(SetId::Mnist, BASELINE, BASE);
    let less = completed(SetId::Mnist, "subset", Takes { heap: 50 * MIB, ..BASE });
    let cut = record(SetId::Mnist, "subset", 3, Outcome::Interrupted, None);
    let records = [base, less[..2].to_vec(), vec![cut]].concat();
    assert!(judged(&records, "subset").notes.is_empty());
    let summary = summarise(&records, &host(), &toml::Table::new(), Vec::new());
    assert_eq!(summary.notes, ["the experiment was interrupted; --resume goes on"]);
}
